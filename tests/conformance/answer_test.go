package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// outcome is what became of a fixture.
type outcome string

const (
	// Admitted, and no policy had anything to say.
	admitted outcome = "admitted"
	// Refused by the policy for its level and version.
	denied outcome = "denied"
	// Admitted with a warning of the policy for its level and version.
	warned outcome = "warned"
	// Refused by API validation, before any policy was asked. The object is invalid in every cluster, so this says
	// nothing of Palisade.
	refused outcome = "refused"
	// None of these.
	other outcome = "other"
)

// answer is what the API server said to a fixture.
type answer struct {
	// Whether it is a controller, not a pod.
	controller bool
	// Whether the pod complies with the level and version, says the reference implementation.
	complies bool
	// The profile for the level and version.
	profile string
	// The status code, the text of the error and the warnings.
	status   int
	message  string
	warnings []string
}

// judge says what the outcome is and, unless it is right, what is wrong with it.
func (a answer) judge() (outcome, string) {
	outcome, reason := a.outcome()
	right := a.complies && outcome == admitted ||
		!a.complies && (outcome == refused || !a.controller && outcome == denied || a.controller && outcome == warned)
	if right {
		return outcome, ""
	}
	complies := "complies"
	if !a.complies {
		complies = "violates"
	}
	return outcome, fmt.Sprintf("%s and is %s: %s", complies, outcome, reason)
}

func (a answer) outcome() (outcome, string) {
	const from = "ValidatingAdmissionPolicy '"
	ours := from + podsPolicy(a.profile) + "'"
	if a.controller {
		ours = from + workloadsPolicy(a.profile) + "'"
	}
	var warnings []string
	for _, warning := range a.warnings {
		if strings.Contains(warning, from) {
			warnings = append(warnings, warning)
		}
	}
	reason := fmt.Sprintf("%d %s, warnings %q", a.status, a.message, a.warnings)
	switch {
	case a.status == http.StatusCreated && len(warnings) == 0:
		return admitted, reason
	case a.status == http.StatusCreated && len(warnings) == 1 && strings.Contains(warnings[0], ours):
		return warned, reason
	case a.status == http.StatusForbidden && len(warnings) == 0 && strings.Contains(a.message, ours):
		return denied, reason
	case a.status == http.StatusUnprocessableEntity && !strings.Contains(a.message, from):
		return refused, reason
	}
	return other, reason
}

func TestOnlyThePolicyOfTheLevelCounts(t *testing.T) {
	denial := func(policy string) string {
		return `pods "test" is forbidden: ValidatingAdmissionPolicy '` + policy + `' with binding 'x' denied request: x`
	}
	warning := func(policy string) []string {
		return []string{
			`spec.template: something about seccomp`,
			`Validation failed for ValidatingAdmissionPolicy '` + policy + `' with binding 'x': x`,
		}
	}
	const pods, workloads = "palisade-baseline-1-3-pods", "palisade-baseline-1-3-workloads"
	for name, check := range map[string]struct {
		answer answer
		want   outcome
		right  bool
	}{
		"admitted":                   {answer{complies: true, status: 201}, admitted, true},
		"a violation admitted":       {answer{status: 201}, admitted, false},
		"denied":                     {answer{status: 403, message: denial(pods)}, denied, true},
		"one that complies denied":   {answer{complies: true, status: 403, message: denial(pods)}, denied, false},
		"by another level":           {answer{status: 403, message: denial("palisade-baseline-1-37-pods")}, other, false},
		"by somebody else":           {answer{status: 403, message: denial("other")}, other, false},
		"by another plugin":          {answer{status: 403, message: `pods "test" is forbidden: violates PodSecurity`}, other, false},
		"invalid":                    {answer{status: 422, message: `Pod "test" is invalid`}, refused, true},
		"one that complies invalid":  {answer{complies: true, status: 422, message: "invalid"}, refused, false},
		"no answer":                  {answer{status: 500}, other, false},
		"controller":                 {answer{controller: true, complies: true, status: 201}, admitted, true},
		"controller without warning": {answer{controller: true, status: 201}, admitted, false},
		"controller warned":          {answer{controller: true, status: 201, warnings: warning(workloads)}, warned, true},
		"controller that complies warned": {
			answer{controller: true, complies: true, status: 201, warnings: warning(workloads)}, warned, false},
		"controller warned by another": {answer{controller: true, status: 201, warnings: warning("other")}, other, false},
		"controller denied":            {answer{controller: true, status: 403, message: denial(workloads)}, denied, false},
		"pod warned":                   {answer{status: 201, warnings: warning(pods)}, warned, false},
	} {
		check.answer.profile = "baseline-1-3"
		outcome, mistake := check.answer.judge()
		if outcome != check.want || (mistake == "") != check.right {
			t.Errorf("%s: %s, mistake %q", name, outcome, mistake)
		}
	}
}

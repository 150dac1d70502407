package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// recorder listens to what the suite asks of the API server, counts it, and is stricter than the suite. The suite
// takes any error for a denial, and lets a controller that complies have any warning; here a denial or a warning must
// come from Palisade's policy for that level and version, and where there should be none there must be none. Which it
// should be, the reference implementation says. Requests and answers pass unchanged.
type recorder struct {
	evaluator policy.Evaluator

	lock              sync.Mutex
	namespaces        map[string]api.LevelVersion
	pods, controllers int
	outcomes          map[outcome]int
	mistakes          []string
}

func newRecorder(checks []policy.Check) (*recorder, error) {
	evaluator, err := policy.NewEvaluator(checks, nil)
	return &recorder{evaluator: evaluator, namespaces: map[string]api.LevelVersion{}, outcomes: map[outcome]int{}}, err
}

// expect says which level and version a namespace is for.
func (r *recorder) expect(namespace string, asked api.LevelVersion) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.namespaces[namespace] = asked
}

// wrap is for rest.Config.Wrap.
func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodPost || request.URL.Query().Get("dryRun") != metav1.DryRunAll {
			return next.RoundTrip(request)
		}
		sent, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		request = request.Clone(request.Context())
		request.Body = io.NopCloser(bytes.NewReader(sent))
		response, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		received, err := io.ReadAll(response.Body)
		if err != nil {
			return nil, err
		}
		if err := r.record(request.URL.Path, sent, response, received); err != nil {
			return nil, err
		}
		response.Body = io.NopCloser(bytes.NewReader(received))
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// record counts and judges one answer. It fails where it cannot, never because of a verdict.
func (r *recorder) record(path string, sent []byte, response *http.Response, received []byte) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	// .../namespaces/NAMESPACE/RESOURCE
	parts := strings.Split(path, "/")
	namespace, resource := parts[len(parts)-2], parts[len(parts)-1]
	asked, known := r.namespaces[namespace]
	if !known {
		return fmt.Errorf("the suite asks about namespace %s, which it did not create", namespace)
	}
	answer := answer{profile: profileName(asked), status: response.StatusCode}
	var template corev1.PodTemplateSpec
	switch resource {
	case "pods":
		var pod corev1.Pod
		if err := json.Unmarshal(sent, &pod); err != nil {
			return err
		}
		template.ObjectMeta, template.Spec = pod.ObjectMeta, pod.Spec
		r.pods++
	case "deployments":
		var deployment appsv1.Deployment
		if err := json.Unmarshal(sent, &deployment); err != nil {
			return err
		}
		template = deployment.Spec.Template
		answer.controller = true
		r.controllers++
	default:
		return fmt.Errorf("the suite creates %s, which nothing here knows", resource)
	}
	// The API server's default, which its plugins see: a volume that does not say what it is is an emptyDir.
	for i := range template.Spec.Volumes {
		if template.Spec.Volumes[i].VolumeSource == (corev1.VolumeSource{}) {
			template.Spec.Volumes[i].EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
	}
	standard := policy.AggregateCheckResults(r.evaluator.EvaluatePod(asked, &template.ObjectMeta, &template.Spec))
	answer.complies = standard.Allowed
	if response.StatusCode != http.StatusCreated {
		var status metav1.Status
		if err := json.Unmarshal(received, &status); err != nil {
			return err
		}
		answer.message = status.Message
	}
	warnings, errors := utilnet.ParseWarningHeaders(response.Header["Warning"])
	if len(errors) > 0 {
		return fmt.Errorf("unreadable warnings: %v", errors)
	}
	for _, warning := range warnings {
		answer.warnings = append(answer.warnings, warning.Text)
	}
	outcome, mistake := answer.judge()
	r.outcomes[outcome]++
	if mistake != "" {
		r.mistakes = append(r.mistakes, fmt.Sprintf("%s: %s: %s: %s", answer.profile, resource, mistake, sent))
	}
	return nil
}

// summary is the line that says how it went.
func (r *recorder) summary() string {
	all, wrong := r.pods+r.controllers, len(r.mistakes)
	return fmt.Sprintf("conformance: %d fixtures (%d pods, %d controllers; %d denied by policy, %d warned by policy, "+
		"%d admitted, %d refused by API validation alone), %d right, %d wrong", all, r.pods, r.controllers,
		r.outcomes[denied], r.outcomes[warned], r.outcomes[admitted], r.outcomes[refused], all-wrong, wrong)
}

// Package kstatus reads the conditions of profiles and exceptions as other tools do: kstatus (Flux, kubectl wait in scripts, Kpt), and
// the health check for Argo CD in examples/, which Argo CD runs with the same interpreter.
package kstatus

import (
	"encoding/json"
	"os"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

// What Argo CD calls what kstatus calls by these names.
var health = map[status.Status]string{
	status.CurrentStatus:    "Healthy",
	status.InProgressStatus: "Progressing",
	status.FailedStatus:     "Degraded",
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func object(kind string, generation int64, observed any) map[string]any {
	return map[string]any{
		"apiVersion": "toolsecurity.dev/v1alpha1",
		"kind":       kind,
		"metadata":   map[string]any{"name": "tools", "generation": generation},
		"status":     observed,
	}
}

// script is the health check of examples/gitops for a kind.
func script(t *testing.T, kind string) string {
	var patch struct{ Data map[string]string }
	read(t, "../../examples/gitops/argocd/health.yaml", &patch)
	text := patch.Data["resource.customizations.health.toolsecurity.dev_"+kind]
	if text == "" {
		t.Fatal("the example has no script for " + kind)
	}
	return text
}

func argo(t *testing.T, script string, object map[string]any) string {
	t.Helper()
	// As in Argo CD: without the libraries that reach out of the interpreter.
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	state.Push(state.NewFunction(lua.OpenBase))
	state.Call(0, 0)
	state.SetGlobal("obj", value(state, object))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	return state.GetField(state.Get(-1), "status").String()
}

func value(state *lua.LState, from any) lua.LValue {
	switch from := from.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, one := range from {
			table.RawSetString(key, value(state, one))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, one := range from {
			table.Append(value(state, one))
		}
		return table
	case string:
		return lua.LString(from)
	case bool:
		return lua.LBool(from)
	case float64:
		return lua.LNumber(from)
	case int64:
		return lua.LNumber(from)
	case nil:
		return lua.LNil
	}
	panic("not of JSON")
}

func judge(t *testing.T, name, script string, object map[string]any, want status.Status) {
	t.Helper()
	got, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if got.Status != want {
		t.Errorf("%s: kstatus says %s (%s), not %s", name, got.Status, got.Message, want)
	}
	if got := argo(t, script, object); got != health[want] {
		t.Errorf("%s: Argo CD says %s, not %s", name, got, health[want])
	}
}

// recorded judges the statuses of a file, and returns how many there are of each kind.
func recorded(t *testing.T, path, kind string) map[status.Status]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Kstatus status.Status
		Status  map[string]any
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	seen := map[status.Status]int{}
	for _, one := range all {
		seen[one.Kstatus]++
		generation := int64(one.Status["observedGeneration"].(float64))
		one.Status["observedGeneration"] = generation
		name := kind
		for _, condition := range one.Status["conditions"].([]any) {
			if condition := condition.(map[string]any); condition["type"] == "Ready" {
				name = condition["reason"].(string)
			}
		}
		judge(t, name, script(t, kind), object(kind, generation, one.Status), one.Kstatus)
		// An edit that the controller has not seen is in progress, whatever was reported before it.
		judge(t, name+" and then edited", script(t, kind), object(kind, generation+1, one.Status), status.InProgressStatus)
	}
	return seen
}

func TestStatusesAreUnderstood(t *testing.T) {
	seen := recorded(t, "statuses.json", "ToolSecurityProfile")
	if seen[status.CurrentStatus] < 4 || seen[status.InProgressStatus] < 4 || seen[status.FailedStatus] < 4 {
		t.Errorf("too few of a kind: %v", seen)
	}
}

func TestStatusesOfExceptionsAreUnderstood(t *testing.T) {
	seen := recorded(t, "exceptions.json", "ToolSecurityException")
	if seen[status.CurrentStatus] < 1 || seen[status.InProgressStatus] < 3 || seen[status.FailedStatus] < 5 {
		t.Errorf("too few of a kind: %v", seen)
	}
}

func TestWhatNoControllerHasSeenIsInProgress(t *testing.T) {
	for path, kind := range map[string]string{
		"toolsecurityprofiles.yaml":   "ToolSecurityProfile",
		"toolsecurityexceptions.yaml": "ToolSecurityException",
	} {
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema struct {
							Properties map[string]struct{ Default map[string]any }
						}
					}
				}
			}
		}
		read(t, "../../crds/"+path, &crd)
		initial := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Default
		judge(t, "new", script(t, kind), object(kind, 1, initial), status.InProgressStatus)
	}
}

package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/pod-security-admission/api"
)

// How long a profile may take until it is enforced.
const enforcedWithin = 2 * time.Minute

// How long between two questions whether it is.
const pause = 50 * time.Millisecond

// profiles are Palisade's answer to the labels of namespaces: one for each level and version.
type profiles struct {
	client   dynamic.ResourceInterface
	cluster  kubernetes.Interface
	warnings *warnings
}

func newProfiles(config *rest.Config) (*profiles, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	resource := schema.GroupVersionResource{Group: "toolsecurity.dev", Version: "v1alpha1", Resource: "toolsecurityprofiles"}
	config, warnings := rest.CopyConfig(config), &warnings{}
	config.WarningHandler = warnings
	cluster, err := kubernetes.NewForConfig(config)
	return &profiles{client.Resource(resource), cluster, warnings}, err
}

// Names of a profile and of what Palisade generates for it.

func profileName(asked api.LevelVersion) string {
	return fmt.Sprintf("%s-1-%d", asked.Level, asked.Version.Minor())
}

func podsPolicy(profile string) string { return "palisade-" + profile + "-pods" }

func workloadsPolicy(profile string) string { return "palisade-" + profile + "-workloads" }

// create writes the profile that selects the namespaces whose labels ask for the first of these levels and versions,
// and returns the others.
func (p *profiles) create(t *testing.T, wanted []api.LevelVersion) []api.LevelVersion {
	if len(wanted) == 0 {
		return nil
	}
	asked := wanted[0]
	names := map[api.Level]string{api.LevelBaseline: "Baseline", api.LevelRestricted: "Restricted"}
	_, err := p.client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "toolsecurity.dev/v1alpha1",
		"kind":       "ToolSecurityProfile",
		"metadata":   map[string]any{"name": profileName(asked)},
		"spec": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{
				api.EnforceLevelLabel:   string(asked.Level),
				api.EnforceVersionLabel: asked.Version.String(),
			}},
			"baseline":        names[asked.Level],
			"baselineVersion": asked.Version.String(),
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return wanted[1:]
}

// waitEnforced waits until Palisade has seen the API server judge pods by the profile.
func (p *profiles) waitEnforced(asked api.LevelVersion) error {
	name, last := profileName(asked), ""
	err := wait.PollUntilContextTimeout(context.Background(), pause, enforcedWithin, true,
		func(ctx context.Context) (bool, error) {
			profile, err := p.client.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			var status struct {
				Status struct {
					Conditions []metav1.Condition `json:"conditions"`
				} `json:"status"`
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(profile.Object, &status); err != nil {
				return false, err
			}
			last = fmt.Sprint(status.Status.Conditions)
			return meta.IsStatusConditionTrue(status.Status.Conditions, "Enforced"), nil
		})
	if err != nil {
		return fmt.Errorf("profile %s is not enforced: %w; its conditions: %s", name, err, last)
	}
	return nil
}

// waitWarned waits until the API server judges controllers by the profile, of which the condition says nothing.
func (p *profiles) waitWarned(namespace string, asked api.LevelVersion) error {
	labels := map[string]string{"app": "probe"}
	violating := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "app", Image: "x", SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
				}}},
			},
		},
	}
	policy, last := workloadsPolicy(profileName(asked)), ""
	err := wait.PollUntilContextTimeout(context.Background(), pause, enforcedWithin, true,
		func(ctx context.Context) (bool, error) {
			dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			_, err := p.cluster.AppsV1().Deployments(namespace).Create(ctx, violating, dryRun)
			last = p.warnings.take()
			return strings.Contains(last, policy), err
		})
	if err != nil {
		return fmt.Errorf("%s does not warn of a privileged Deployment: %w; the last warnings: %q", policy, err, last)
	}
	return nil
}

// warnings are what the API server warns of.
type warnings struct {
	lock  sync.Mutex
	texts []string
}

// HandleWarningHeader is of rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.texts = append(w.texts, text)
}

// take returns those since the last call.
func (w *warnings) take() string {
	w.lock.Lock()
	defer w.lock.Unlock()
	texts := w.texts
	w.texts = nil
	return strings.Join(texts, "; ")
}

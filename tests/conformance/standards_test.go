// Package conformance runs the suite of k8s.io/pod-security-admission, the reference implementation of the Pod
// Security Standards, against an API server in which Palisade enforces them instead.
//
// The cluster is the one of KUBECONFIG. Palisade runs in it, and the API server's own plugin PodSecurity, which reads
// the same labels, does not. `cargo xtask conformance` starts such a cluster.
package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/pod-security-admission/test"
)

// How many profiles exist before the suite asks about them.
const ahead = 4

func TestPodSecurityStandards(t *testing.T) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatalf("no cluster to test: %v; run `cargo xtask conformance`", err)
	}
	// The suite asks one question after the other.
	config.QPS = -1
	// The recorder reads what is sent.
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	profiles, err := newProfiles(config)
	if err != nil {
		t.Fatal(err)
	}

	// An API server whose feature gate is off removes the field of a check, and admits what violates it.
	// A check can have a second one for a level: procMount, procMount_restricted.
	without := os.Getenv("PALISADE_WITHOUT_CHECK")
	kept := slices.DeleteFunc(policy.DefaultChecks(), func(check policy.Check) bool {
		id, _, _ := strings.Cut(string(check.ID), "_")
		return id == without
	})
	checks, newest := everyVersion(kept)
	recorder, err := newRecorder(checks)
	if err != nil {
		t.Fatal(err)
	}
	// In the order of the suite.
	var all []api.LevelVersion
	for _, level := range []api.Level{api.LevelBaseline, api.LevelRestricted} {
		for minor := 0; minor <= newest; minor++ {
			all = append(all, api.LevelVersion{Level: level, Version: api.MajorMinorVersion(1, minor)})
		}
	}
	// Palisade takes on a few profiles while the suite asks about one, and never all at once.
	next := all
	for range ahead {
		next = profiles.create(t, next)
	}

	suite := rest.CopyConfig(config)
	suite.Wrap(recorder.wrap)
	test.Run(t, test.Options{
		ClientConfig: suite,
		Checks:       checks,
		CreateNamespace: func(client kubernetes.Interface, name string, labels map[string]string) (*corev1.Namespace, error) {
			version, err := api.ParseVersion(labels[api.EnforceVersionLabel])
			if err != nil {
				return nil, err
			}
			asked := api.LevelVersion{Level: api.Level(labels[api.EnforceLevelLabel]), Version: version}
			recorder.expect(name, asked)
			next = profiles.create(t, next)
			namespace, err := test.DefaultCreateNamespace(client, name, labels)
			if err != nil {
				return nil, err
			}
			if err := profiles.waitEnforced(asked); err != nil {
				return nil, err
			}
			return namespace, profiles.waitWarned(name, asked)
		},
	})

	for _, mistake := range recorder.mistakes {
		t.Error(mistake)
	}
	if len(recorder.namespaces) != len(all) {
		t.Errorf("%d of %d levels and versions were asked about", len(recorder.namespaces), len(all))
	}
	if recorder.pods == 0 || recorder.pods != recorder.controllers {
		t.Errorf("%d pods and %d controllers: each fixture should be both", recorder.pods, recorder.controllers)
	}
	// The suite lets only those controllers be refused whose pods no API server accepts. With this, pods too.
	if denied, warned := recorder.outcomes[denied], recorder.outcomes[warned]; denied != warned {
		t.Errorf("%d pods were denied by policy, but %d controllers warned of", denied, warned)
	}
	fmt.Println(recorder.summary())
	if t.Failed() && len(recorder.mistakes) == 0 {
		fmt.Println("conformance: the suite itself has found something wrong, see above")
	}
}

// everyVersion has the suite test each version up to the newest. By itself it leaves out those in which no check
// begins or changes, so each check is said to begin anew, unchanged, in each version.
func everyVersion(checks []policy.Check) ([]policy.Check, int) {
	newest := 0
	for _, check := range checks {
		newest = max(newest, check.Versions[len(check.Versions)-1].MinimumVersion.Minor())
	}
	for i, check := range checks {
		var versions []policy.VersionedCheck
		for j, current := range check.Versions {
			end := newest + 1
			if j+1 < len(check.Versions) {
				end = check.Versions[j+1].MinimumVersion.Minor()
			}
			for minor := current.MinimumVersion.Minor(); minor < end; minor++ {
				current.MinimumVersion = api.MajorMinorVersion(1, minor)
				versions = append(versions, current)
			}
		}
		checks[i].Versions = versions
	}
	return checks, newest
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	v1 "k8s.io/api/admissionregistration/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	generated "k8s.io/kubernetes/pkg/generated/openapi"
)

// typeChecker does what kube-controller-manager does for `status.typeChecking`.
type typeChecker struct {
	builtin resolver.SchemaResolver
	custom  map[schema.GroupVersionKind]*spec.Schema
	cached  map[schema.GroupVersionKind]*spec.Schema
	// by what it is for
	contexts map[string]typeContext
}

func newTypeChecker() (*typeChecker, error) {
	t := &typeChecker{
		builtin: resolver.NewDefinitionsSchemaResolver(generated.GetOpenAPIDefinitions, scheme.Scheme, extensions.Scheme),
		custom:  map[schema.GroupVersionKind]*spec.Schema{},
		cached:  map[schema.GroupVersionKind]*spec.Schema{},

		contexts: map[string]typeContext{},
	}
	files, err := filepath.Glob(filepath.Join(root, "schemas", "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := t.addCRD(file); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return t, nil
}

// addCRD publishes a CustomResourceDefinition as the API server does, and takes the schemas from there.
func (t *typeChecker) addCRD(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd apiextensions.CustomResourceDefinition
	if err := strict(text, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		published, err := builder.BuildOpenAPIV3(&crd, version.Name, builder.Options{V2: false})
		if err != nil {
			return err
		}
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		const prefix = "#/components/schemas/"
		for name, candidate := range published.Components.Schemas {
			var gvks []schema.GroupVersionKind
			if candidate.Extensions.GetObject("x-kubernetes-group-version-kind", &gvks) != nil || !contains(gvks, gvk) {
				continue
			}
			resolved, err := resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
				s, ok := published.Components.Schemas[strings.TrimPrefix(ref, prefix)]
				return s, ok
			}, prefix+name)
			if err != nil {
				return err
			}
			t.custom[gvk] = resolved
		}
		if t.custom[gvk] == nil {
			return fmt.Errorf("no schema of %v was published", gvk)
		}
	}
	return nil
}

func contains(gvks []schema.GroupVersionKind, gvk schema.GroupVersionKind) bool {
	for _, g := range gvks {
		if g == gvk {
			return true
		}
	}
	return false
}

// ResolveSchema finds the schema of a kind.
func (t *typeChecker) ResolveSchema(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	if s, ok := t.custom[gvk]; ok {
		return s, nil
	}
	if s, ok := t.cached[gvk]; ok {
		return s, nil
	}
	s, err := t.builtin.ResolveSchema(gvk)
	if err == nil {
		t.cached[gvk] = s
	}
	return s, err
}

func parseKind(text string) (schema.GroupVersionKind, error) {
	at := strings.LastIndexByte(text, '/')
	if at < 0 {
		return schema.GroupVersionKind{}, fmt.Errorf("%q is not group/version/Kind", text)
	}
	gv, err := schema.ParseGroupVersion(text[:at])
	return gv.WithKind(text[at+1:]), err
}

// A policy's context for one kind, which takes longer to make than to use.
type typeContext struct {
	checker validating.TypeChecker
	context *validating.TypeCheckingContext
	params  schema.GroupVersionKind
}

func (t *typeChecker) context(r request, gvk schema.GroupVersionKind) (c typeContext, err error) {
	key, err := json.Marshal([]any{gvk, orTrue(r.Params), r.TypedParams, r.Variables})
	if err != nil {
		return c, err
	}
	if known, ok := t.contexts[string(key)]; ok {
		return known, nil
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(gvk, meta.RESTScopeNamespace)
	policy := v1.ValidatingAdmissionPolicy{Spec: v1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &v1.MatchResources{ResourceRules: []v1.NamedRuleWithOperations{{
			RuleWithOperations: v1.RuleWithOperations{Rule: v1.Rule{
				APIGroups: []string{gvk.Group}, APIVersions: []string{gvk.Version}, Resources: []string{plural.Resource},
			}},
		}}},
	}}
	for _, v := range r.Variables {
		policy.Spec.Variables = append(policy.Spec.Variables, v1.Variable{Name: v.Name, Expression: v.Expr})
	}
	c.params = gvk
	if orTrue(r.Params) {
		// a kind without a schema makes params dyn
		policy.Spec.ParamKind = &v1.ParamKind{APIVersion: "unknown.example/v1", Kind: "Unknown"}
		if r.TypedParams != "" {
			if c.params, err = parseKind(r.TypedParams); err != nil {
				return c, err
			}
			policy.Spec.ParamKind = &v1.ParamKind{APIVersion: c.params.GroupVersion().String(), Kind: c.params.Kind}
		}
	}
	c.checker = validating.TypeChecker{SchemaResolver: t, RestMapper: mapper}
	c.context = c.checker.CreateContext(&policy)
	if len(t.contexts) >= maxScopes {
		clear(t.contexts)
	}
	t.contexts[string(key)] = c
	return c, nil
}

// check gives the errors for each kind that the request names.
func (t *typeChecker) check(r request) (map[string][]problem, error) {
	out := map[string][]problem{}
	for _, name := range r.Typed {
		gvk, err := parseKind(name)
		if err != nil {
			return nil, err
		}
		if _, err := t.ResolveSchema(gvk); err != nil {
			return nil, err
		}
		c, err := t.context(r, gvk)
		if err != nil {
			return nil, err
		}
		out[name] = c.check(r.Expr, gvk)
	}
	return out, nil
}

// check reports a panic as an error. It would end kube-controller-manager.
func (c typeContext) check(text string, gvk schema.GroupVersionKind) (problems []problem) {
	defer func() {
		if p := recover(); p != nil {
			problems = problemsOf(fmt.Sprintf("panic: %v", p))
		}
	}()
	problems = []problem{}
	for _, result := range c.checker.CheckExpression(c.context, text) {
		text := ""
		if result.Issues != nil {
			text = result.Issues.Error()
		} else {
			text = result.Err.Error()
		}
		problems = append(problems, problemsOf(withoutDigits(text, gvk.Kind, c.params.Kind))...)
	}
	return problems
}

// withoutDigits removes what the API server appends to the names of types to make them unique.
func withoutDigits(text string, names ...string) string {
	for _, kind := range names {
		text = regexp.MustCompile(`\b(`+regexp.QuoteMeta(kind)+`)\d{1,9}\b`).ReplaceAllString(text, "$1")
	}
	return text
}

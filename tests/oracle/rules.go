package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/warning"
)

// A document of rules/*.yaml: a schema, rules that are put into it one after the other, and objects.
type ruleCases struct {
	Name string `json:"name"`
	// The schema of `spec`, or of the whole.
	Spec   map[string]any `json:"spec"`
	Schema map[string]any `json:"schema"`
	// The schema of `spec` before, if the definition is updated.
	Old map[string]any `json:"old"`
	// Is there a subresource `status`?
	Status bool `json:"status"`
	// Where in the schema of `spec` rules are put: properties/list/items.
	At string `json:"at"`
	// Each a rule, or its `rule` alone. Without any there is one definition, with the rules that it has.
	Rules []any `json:"rules"`
	// Each a `spec`, and the one that it replaces, if there is one.
	Objects [][]any `json:"objects"`
}

// What the API server says of a definition and of objects of its kind.
type ruleAnswer struct {
	ID  string         `json:"id"`
	CRD map[string]any `json:"crd"`
	// The definition that it replaces.
	Old map[string]any `json:"old,omitempty"`
	// What is wrong with the definition.
	Errors []string `json:"errors,omitempty"`
	// The estimate of each rule that compiles, by its place: of the rule, its cardinality, of the message.
	Costs   map[string][]uint64 `json:"costs,omitempty"`
	Objects []objectAnswer      `json:"objects,omitempty"`
}

type objectAnswer struct {
	Sent map[string]any `json:"sent"`
	// The object that it replaces.
	Old      map[string]any `json:"old,omitempty"`
	Errors   []string       `json:"errors,omitempty"`
	Warnings []string       `json:"warnings,omitempty"`
}

var extensionsScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

var (
	// Digits of the name that the API server gives to the type of `self`, other ones each time.
	selfType = regexp.MustCompile(`selfType\d+`)
	// 1.33 shows pointers.
	address = regexp.MustCompile(`\(0x[0-9a-f]+\)`)
)

// errorTexts are errors in the order of their texts, if their order is that of Go's maps.
func errorTexts(errs field.ErrorList, again func() field.ErrorList) []string {
	plain := func(errs field.ErrorList) []string {
		var out []string
		for _, err := range errs {
			text := selfType.ReplaceAllString(err.Error(), "selfType")
			out = append(out, address.ReplaceAllString(text, "(0x0)"))
		}
		return out
	}
	out := plain(errs)
	// Few keys come in the same order often, so it takes many tries to see another one.
	for tries := 0; len(out) > 1 && tries < 100; tries++ {
		if !slices.Equal(out, plain(again())) {
			slices.Sort(out)
			break
		}
	}
	return out
}

func (c ruleCases) definition(spec map[string]any, whole map[string]any) map[string]any {
	if whole == nil {
		whole = map[string]any{"type": "object", "properties": map[string]any{"spec": spec}}
	}
	version := map[string]any{
		"name": "v1", "served": true, "storage": true,
		"schema": map[string]any{"openAPIV3Schema": whole},
	}
	if c.Status {
		version["subresources"] = map[string]any{"status": map[string]any{}}
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "cases.example.org"},
		"spec": map[string]any{
			"group": "example.org", "scope": "Namespaced",
			"names":    map[string]any{"plural": "cases", "singular": "case", "kind": "Case", "listKind": "CaseList"},
			"versions": []any{version},
		},
	}
}

// schemas are those of `spec`: with each of the rules alone.
func (c ruleCases) schemas() ([]map[string]any, error) {
	if len(c.Rules) == 0 {
		return []map[string]any{c.Spec}, nil
	}
	var out []map[string]any
	for _, rule := range c.Rules {
		if text, ok := rule.(string); ok {
			rule = map[string]any{"rule": text}
		}
		copied := runtime.DeepCopyJSON(c.Spec)
		at := copied
		for _, step := range strings.FieldsFunc(c.At, func(r rune) bool { return r == '/' }) {
			inner, ok := at[step].(map[string]any)
			if !ok {
				return nil, fmt.Errorf("no %s in the schema", c.At)
			}
			at = inner
		}
		at["x-kubernetes-validations"] = []any{rule}
		out = append(out, copied)
	}
	return out, nil
}

func internalDefinition(crd map[string]any) (*apiextensions.CustomResourceDefinition, error) {
	text, err := json.Marshal(crd)
	if err != nil {
		return nil, err
	}
	var out apiextensions.CustomResourceDefinition
	decoder := serializer.NewCodecFactory(extensionsScheme).UniversalDecoder(apiextensions.SchemeGroupVersion)
	return &out, runtime.DecodeInto(decoder, text, &out)
}

func (c ruleCases) answer(id string, spec map[string]any) (*ruleAnswer, error) {
	ctx := context.Background()
	out := &ruleAnswer{ID: id, CRD: c.definition(spec, c.Schema)}
	strategy := customresourcedefinition.NewStrategy(extensionsScheme)
	crd, err := internalDefinition(out.CRD)
	if err != nil {
		return nil, err
	}
	check := func() field.ErrorList { return strategy.Validate(ctx, crd) }
	strategy.PrepareForCreate(ctx, crd)
	if c.Old != nil {
		out.Old = c.definition(c.Old, nil)
		old, err := internalDefinition(out.Old)
		if err != nil {
			return nil, err
		}
		strategy.PrepareForCreate(ctx, old)
		old.ResourceVersion, crd.ResourceVersion = "1", "1"
		check = func() field.ErrorList { return strategy.ValidateUpdate(ctx, crd, old) }
	}
	out.Errors = errorTexts(check(), check)
	var internal apiextensions.JSONSchemaProps
	var external extensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(out.CRD, &external); err != nil {
		return nil, err
	}
	from := external.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := extensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(from, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return out, nil
	}
	out.Costs = map[string][]uint64{}
	costs(structural, true, "", out.Costs)
	for _, object := range c.Objects {
		if len(out.Errors) > 0 {
			return nil, fmt.Errorf("objects of a definition that is refused: %v", out.Errors)
		}
		answer, err := receiveByRules(&internal, structural, object)
		if err != nil {
			return nil, err
		}
		out.Objects = append(out.Objects, *answer)
	}
	return out, nil
}

// costs compiles the rules of a schema and all below it.
func costs(s *structuralschema.Structural, root bool, path string, out map[string][]uint64) {
	if s == nil {
		return
	}
	if declared := model.SchemaDeclType(s, root || s.XEmbeddedResource); declared != nil {
		base := baseEnv()
		results, err := schemacel.Compile(s, declared, celconfig.PerCallLimit, base, schemacel.NewExpressionsEnvLoader())
		if err == nil {
			for i, result := range results {
				if result.Error == nil && result.Program != nil {
					out[fmt.Sprintf("%s[%d]", path, i)] = []uint64{result.MaxCost, result.MaxCardinality, result.MessageExpressionMaxCost}
				}
			}
		}
	}
	for name, property := range s.Properties {
		costs(&property, false, path+"."+name, out)
	}
	costs(s.Items, false, path+".items", out)
	if s.AdditionalProperties != nil {
		costs(s.AdditionalProperties.Structural, false, path+".additionalProperties", out)
	}
}

type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// receiveByRules creates or updates an object.
func receiveByRules(internal *apiextensions.JSONSchemaProps, structural *structuralschema.Structural, specs []any) (*objectAnswer, error) {
	var objects []map[string]any
	out := &objectAnswer{}
	for i, spec := range specs {
		sent := map[string]any{
			"apiVersion": "example.org/v1", "kind": "Case",
			"metadata": map[string]any{"name": "a", "namespace": "default", "resourceVersion": "1"}, "spec": spec,
		}
		if len(specs) == 1 {
			delete(sent["metadata"].(map[string]any), "resourceVersion")
		}
		if i == 0 {
			out.Sent = runtime.DeepCopyJSON(sent)
		} else {
			out.Old = runtime.DeepCopyJSON(sent)
		}
		pruning.Prune(sent, structural, true)
		defaulting.PruneNonNullableNullsWithoutDefaults(sent, structural)
		defaulting.Default(sent, structural)
		objects = append(objects, sent)
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Case"}
	strategy := customresource.NewStrategy(nil, true, kind, validator, nil, structural, nil, nil, nil)
	var warned warnings
	check := func() field.ErrorList {
		warned = nil
		ctx := warning.WithWarningRecorder(context.Background(), &warned)
		object := &unstructured.Unstructured{Object: objects[0]}
		if len(objects) == 1 {
			return strategy.Validate(ctx, object)
		}
		return strategy.ValidateUpdate(ctx, object, &unstructured.Unstructured{Object: objects[1]})
	}
	out.Errors = errorTexts(check(), check)
	slices.Sort(warned)
	out.Warnings = warned
	return out, nil
}

// writeRules writes a line for each definition of a folder, with objects of its kind, compressed.
func writeRules(folder, file string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(fmt.Errorf("no cases in %s", folder), err)
	}
	var text bytes.Buffer
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for i, document := range strings.Split("\n"+string(content), "\n---") {
			id := fmt.Sprintf("%s/%d", strings.TrimSuffix(filepath.Base(name), ".yaml"), i)
			converted, err := utilyaml.ToJSON([]byte(document))
			if err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			var cases ruleCases
			if err := utiljson.Unmarshal(converted, &cases); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			specs, err := cases.schemas()
			if err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			for j, spec := range specs {
				answer, err := cases.answer(fmt.Sprintf("%s/%s/%d", id, strings.ReplaceAll(cases.Name, " ", "-"), j), spec)
				if err != nil {
					return fmt.Errorf("%s %s: %w", id, cases.Name, err)
				}
				line, err := compact(answer)
				if err != nil {
					return err
				}
				text.Write(line)
			}
		}
	}
	return writeGzip(file, text.Bytes())
}

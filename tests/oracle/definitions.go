package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// What the API server says of a definition with one change.
type definition struct {
	mutant
	// What is said if the valid definition, which is established, is updated to this one.
	Update [][2]string `json:"update,omitempty"`
	// What is said if this one is updated without a change.
	Kept [][2]string `json:"kept,omitempty"`
}

// The places of schemas, versions and so on, and what is put there by turns: a key and its values.
var added = []struct {
	at     *regexp.Regexp
	fields map[string][]any
}{
	{regexp.MustCompile(`^/metadata$`), map[string][]any{
		"name": {"a.b.example.org"}, "annotations": {map[string]any{"api-approved.kubernetes.io": "x"}, map[string]any{"api-approved.kubernetes.io": "unapproved, x"}},
		"finalizers": {[]any{"a b"}}, "generateName": {"x-"}, "unknown": {1},
	}},
	{regexp.MustCompile(`^/spec$`), map[string][]any{
		"group": {"example", "Example.org", "example.org.", "k8s.io", "x.kubernetes.io"}, "scope": {"Namespace", "cluster"}, "preserveUnknownFields": {true, false},
		"conversion": {
			map[string]any{}, map[string]any{"strategy": "Webhook"}, map[string]any{"strategy": "x"}, map[string]any{"strategy": "None", "webhook": map[string]any{"conversionReviewVersions": []any{"v1"}}},
			map[string]any{"strategy": "Webhook", "webhook": map[string]any{"conversionReviewVersions": []any{"v9", "v9", "V"}, "clientConfig": map[string]any{"url": "http://x/y?z#a"}}},
		},
		"versions": {[]any{map[string]any{"name": "v1", "served": true, "storage": true}}}, "validation": {map[string]any{}}, "version": {"v1"}, "additionalPrinterColumns": {[]any{}},
	}},
	{regexp.MustCompile(`^/spec/names$`), map[string][]any{
		"categories": {[]any{"A", "b c"}}, "shortNames": {[]any{"A", ""}}, "listKind": {"Gear", "Wheel", "Bolt", "Nut", "a_b"}, "kind": {"gearList", "aB", "a-B"}, "singular": {"A"}, "plural": {"other"},
	}},
	{regexp.MustCompile(`^/spec/versions/\d+$`), map[string][]any{
		"deprecated": {true, false}, "deprecationWarning": {"x", "", strings.Repeat("ü", 129), "a\nb", "a\u200bb", "a\u00a0b"}, "storage": {true, false}, "served": {false},
		"name": {"v1", "V1", "1", "v1.1"}, "schema": {map[string]any{}, map[string]any{"openAPIV3Schema": nil}, map[string]any{"openAPIV3Schema": map[string]any{}}, map[string]any{"openAPIV3schema": map[string]any{"type": "object"}}},
		"subresources":             {map[string]any{}, map[string]any{"scale": map[string]any{}}, map[string]any{"status": map[string]any{}, "scale": map[string]any{"specReplicasPath": ".spec", "statusReplicasPath": "status.n", "labelSelectorPath": ".x.y"}}},
		"additionalPrinterColumns": {[]any{map[string]any{}}, []any{map[string]any{"name": "a", "type": "x", "format": "y", "jsonPath": "z"}}, []any{map[string]any{"name": "Age", "type": "date", "format": "date", "jsonPath": "."}}},
		"selectableFields":         {[]any{map[string]any{}}, []any{map[string]any{"jsonPath": ".metadata.name"}, map[string]any{"jsonPath": ".spec"}, map[string]any{"jsonPath": "spec.x"}, map[string]any{"jsonPath": ".spec.nope"}, map[string]any{"jsonPath": ".spec.size"}, map[string]any{"jsonPath": ".spec['size']"}, map[string]any{"jsonPath": ".spec.parts[0].name"}, map[string]any{"jsonPath": ".spec.labels[a]"}, map[string]any{"jsonPath": ".spec.size"}}},
	}},
	{regexp.MustCompile(`(/openAPIV3Schema|/items|/not|/additionalProperties|/properties/[^/]+|/(allOf|anyOf|oneOf)/\d+)$`), map[string][]any{
		"type": {"null", "file", "number", "array", "object", "string"}, "default": {"x", 1, nil, map[string]any{"nope": 1}, map[string]any{}, []any{}}, "nullable": {true}, "title": {"t"}, "description": {"d"}, "format": {"nope", "int32", "date-time"},
		"id": {"x"}, "$schema": {"http://json-schema.org/schema#", "http://json-schema.org/draft-04/schema#", "x"}, "$ref": {"#/definitions/x", ""}, "definitions": {map[string]any{"a": map[string]any{"type": "object", "uniqueItems": true}}}, "dependencies": {map[string]any{"a": []any{"b"}}, map[string]any{"a": map[string]any{"type": "x"}}, map[string]any{}},
		"patternProperties": {map[string]any{"a": map[string]any{"type": "object"}}}, "additionalItems": {true, false, map[string]any{"type": "object"}}, "uniqueItems": {true}, "externalDocs": {map[string]any{"url": "x"}}, "example": {map[string]any{"a": 1}},
		"additionalProperties": {true, false, map[string]any{"type": "string", "default": "x"}, map[string]any{}}, "items": {map[string]any{"type": "string"}, []any{map[string]any{"type": "string"}}, map[string]any{}, []any{}},
		"properties": {map[string]any{}, map[string]any{"a": map[string]any{}}, map[string]any{"metadata": map[string]any{"type": "object"}}, map[string]any{"metadata": map[string]any{"type": "string", "properties": map[string]any{"labels": map[string]any{"type": "object"}}}, "kind": map[string]any{"type": "integer"}, "apiVersion": map[string]any{"type": "string", "default": "v1"}}},
		"required":   {[]any{"a", "a"}}, "enum": {[]any{}, []any{"a", "a"}, []any{nil}, []any{map[string]any{"a": 1}}}, "pattern": {"[", "(?<x>a)", "a"}, "minimum": {1.5}, "maximum": {-1}, "multipleOf": {0, -1}, "maxLength": {-1, 1}, "minLength": {-1}, "maxItems": {-1, 1}, "minItems": {2}, "maxProperties": {1}, "minProperties": {-1}, "exclusiveMinimum": {true},
		"x-kubernetes-preserve-unknown-fields": {true, false}, "x-kubernetes-embedded-resource": {true, false}, "x-kubernetes-int-or-string": {true, false},
		"x-kubernetes-list-type": {"atomic", "set", "map", "x"}, "x-kubernetes-map-type": {"atomic", "granular", "x"}, "x-kubernetes-list-map-keys": {[]any{"name"}, []any{"nope", "nope"}, []any{}},
		"x-kubernetes-validations": {[]any{map[string]any{"rule": ""}}, []any{map[string]any{"rule": "self == oldSelf", "message": " ", "messageExpression": " ", "reason": "x", "fieldPath": ".nope"}}, []any{map[string]any{"rule": "true", "optionalOldSelf": true, "fieldPath": "a\nb"}}, []any{}},
		"x-kubernetes-validation":  {[]any{map[string]any{"rule": "true"}}}, "maxlength": {1}, "oneOf": {[]any{map[string]any{"type": "string"}}, []any{map[string]any{"required": []any{"a"}}}}, "anyOf": {[]any{map[string]any{"properties": map[string]any{"zz": map[string]any{"minLength": 1}}}}}, "not": {map[string]any{"default": 1}, map[string]any{"items": map[string]any{"type": "string"}}},
	}},
}

// Values that are put in the place of one of each type.
var replaced = map[string][]any{
	"string":  {"", "A_b", "a b", "a.b.c", ".spec.x", ".status", strings.Repeat("a", 64), 7},
	"float64": {-1, 0, 1.5, "x"},
	"bool":    {"x"},
	"list":    {[]any{}, map[string]any{}},
	"map":     {map[string]any{}, "x", []any{}},
}

// changes are those of a value and of all in it.
func changes(at string, value any, out *[]mutant) {
	put := func(at string, values ...any) {
		for _, value := range values {
			*out = append(*out, mutant{At: at, To: value, Null: value == nil})
		}
	}
	if at != "" {
		*out = append(*out, mutant{At: at, Gone: true})
		put(at, nil)
	}
	switch value := value.(type) {
	case string:
		put(at, replaced["string"]...)
	case float64:
		put(at, replaced["float64"]...)
	case bool:
		put(at, !value)
		put(at, replaced["bool"]...)
	case []any:
		put(at, replaced["list"]...)
		put(at+"/-", value[0], nil)
		for i, element := range value {
			changes(at+"/"+strconv.Itoa(i), element, out)
		}
	case map[string]any:
		if at != "" {
			put(at, replaced["map"]...)
		}
		for _, key := range slices.Sorted(mapKeys(value)) {
			if at != "" || key == "metadata" || key == "spec" {
				changes(at+"/"+escaped(key), value[key], out)
			}
		}
		for i, more := range added {
			if !more.at.MatchString(at) {
				continue
			}
			for _, key := range slices.Sorted(func(yield func(string) bool) {
				for key := range more.fields {
					if !yield(key) {
						return
					}
				}
			}) {
				// Each at every third schema is enough.
				if i < len(added)-1 || crc32.ChecksumIEEE([]byte(at+"?"+key))%3 == 0 || strings.HasSuffix(at, "openAPIV3Schema") {
					put(at+"/"+escaped(key), more.fields[key]...)
				}
			}
		}
	}
}

// Decodes a definition, with warnings of what is unknown in it.
func decodeDefinition(text []byte) (*apiextensions.CustomResourceDefinition, []string, error) {
	info, _ := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(extensionsScheme).SupportedMediaTypes(), "application/json")
	internal := schema.GroupVersion{Group: apiextensions.GroupName, Version: runtime.APIVersionInternal}
	decoder := serializer.NewCodecFactory(extensionsScheme).DecoderToVersion(info.StrictSerializer, internal)
	object, _, err := decoder.Decode(text, nil, nil)
	var warned []string
	if strict, ok := runtime.AsStrictDecodingError(err); ok && object != nil {
		for _, problem := range strict.Errors() {
			warned = append(warned, problem.Error())
		}
	} else if err != nil {
		return nil, nil, err
	}
	crd, ok := object.(*apiextensions.CustomResourceDefinition)
	if !ok {
		return nil, nil, fmt.Errorf("no definition: %T", object)
	}
	return crd, warned, nil
}

func established(text []byte) (*apiextensions.CustomResourceDefinition, error) {
	old, _, err := decodeDefinition(text)
	if err != nil {
		return nil, err
	}
	customresourcedefinition.NewStrategy(extensionsScheme).PrepareForCreate(context.Background(), old)
	old.Status.Conditions = []apiextensions.CustomResourceDefinitionCondition{{Type: apiextensions.Established, Status: apiextensions.ConditionTrue}}
	old.ResourceVersion = "1"
	return old, nil
}

func causeTexts(errs field.ErrorList) [][2]string {
	out := [][2]string{}
	for _, err := range errs {
		text := selfType.ReplaceAllString(err.ErrorBody(), "selfType")
		out = append(out, [2]string{err.Field, address.ReplaceAllString(text, "(0x0)")})
	}
	slices.SortFunc(out, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return out
}

func judgeDefinition(answer definition, base, text []byte) (out definition, err error) {
	out = answer
	defer func() {
		if p := recover(); p != nil {
			out, err = answer, nil
			out.Panics = true
		}
	}()
	ctx := context.Background()
	strategy := customresourcedefinition.NewStrategy(extensionsScheme)
	crd, warned, err := decodeDefinition(text)
	if err != nil {
		out.Error = err.Error()
		return out, nil
	}
	updated, kept := crd.DeepCopy(), crd.DeepCopy()
	rest.FillObjectMetaSystemFields(crd)
	if crd.Name == "" && crd.GenerateName != "" {
		crd.Name = crd.GenerateName + "00000"
	}
	strategy.PrepareForCreate(ctx, crd)
	out.Causes = causeTexts(strategy.Validate(ctx, crd))
	out.Warnings = append(warned, strategy.WarningsOnCreate(ctx, crd)...)
	slices.Sort(out.Warnings)
	for _, update := range []struct {
		old    []byte
		crd    *apiextensions.CustomResourceDefinition
		causes *[][2]string
	}{{base, updated, &out.Update}, {text, kept, &out.Kept}} {
		old, err := established(update.old)
		if err != nil {
			return out, err
		}
		// As `rest.BeforeUpdate` sets them.
		update.crd.ResourceVersion, update.crd.Generation = "1", old.Generation
		strategy.PrepareForUpdate(ctx, update.crd, old)
		*update.causes = causeTexts(strategy.ValidateUpdate(ctx, update.crd, old))
	}
	return out, nil
}

// writeDefinitions writes a line for each definition of a folder, and for each with a change, compressed; with the file of
// another minor only what differs from that.
func writeDefinitions(folder, file, base string) error {
	documents, err := documents(folder)
	if err != nil {
		return err
	}
	known, ids, err := readMutants(base)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	write := func(answer definition) error {
		line, err := compact(answer)
		if err != nil {
			return err
		}
		if known[answer.ID] != string(bytes.TrimSpace(line)) {
			text.Write(line)
		}
		delete(known, answer.ID)
		return nil
	}
	for _, document := range documents {
		var object map[string]any
		if err := json.Unmarshal(document.text, &object); err != nil {
			return err
		}
		answer, err := judgeDefinition(definition{mutant: mutant{ID: document.id, Sent: object}}, document.text, document.text)
		if err == nil {
			err = write(answer)
		}
		if err != nil {
			return err
		}
		var wanted []mutant
		changes("", object, &wanted)
		seen := map[string]bool{}
		for _, one := range wanted {
			sent, err := changed(document.text, one)
			if err != nil {
				return fmt.Errorf("%s: %w", document.id, err)
			}
			what, err := json.Marshal([]any{one.At, one.To, one.Gone})
			if err != nil {
				return err
			}
			one.ID = fmt.Sprintf("%s/%08x", document.id, crc32.ChecksumIEEE(what))
			if seen[one.ID] || bytes.Equal(sent, document.text) {
				continue
			}
			seen[one.ID] = true
			answer, err := judgeDefinition(definition{mutant: one}, document.text, sent)
			if err == nil {
				err = write(answer)
			}
			if err != nil {
				return fmt.Errorf("%s at %s: %w", document.id, one.At, err)
			}
		}
	}
	for _, id := range ids {
		if _, missing := known[id]; missing {
			if err := write(definition{mutant: mutant{ID: id, Absent: true}}); err != nil {
				return err
			}
		}
	}
	return writeGzip(file, text.Bytes())
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
)

// A line of what the API server says of custom resources: a definition, or an object of the one before it.
type customLine struct {
	ID string `json:"id"`
	// The definition.
	CRD map[string]any `json:"crd,omitempty"`
	// The object as it is sent; text, for numbers are not the same in all spellings.
	Sent json.RawMessage `json:"sent,omitempty"`
	// The object that it replaces.
	Old json.RawMessage `json:"old,omitempty"`
	// Is it the status that is replaced?
	Status bool `json:"status,omitempty"`
	// The minor refuses the definition; of one in the file of the base minor there are `errors`, and no objects.
	Refused bool `json:"refused,omitempty"`
	customAnswer
}

type customAnswer struct {
	// Why it cannot be decoded. Of several reasons Go finds any one: then it is `varies`.
	Error string `json:"error,omitempty"`
	// What is decoded, pruned and defaulted, unless it is what was sent.
	Decoded map[string]any `json:"decoded,omitempty"`
	// What the client is warned of, sorted.
	Warnings []string `json:"warnings,omitempty"`
	// What is wrong with it, sorted where Go's order is random.
	Errors []string `json:"errors,omitempty"`
}

const manyReasons = "varies"

// What serves objects of a definition.
type customServer struct {
	structural *structuralschema.Structural
	create     interface {
		Validate(context.Context, runtime.Object) field.ErrorList
		PrepareForCreate(context.Context, runtime.Object)
		WarningsOnCreate(context.Context, runtime.Object) []string
	}
	update, status interface {
		ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList
		PrepareForUpdate(context.Context, runtime.Object, runtime.Object)
		WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string
	}
}

var caseKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Case"}

// refusal says why the API server refuses a definition, if it does.
func refusal(crd map[string]any) ([]string, error) {
	ctx := context.Background()
	strategy := customresourcedefinition.NewStrategy(extensionsScheme)
	definition, err := internalDefinition(crd)
	if err != nil {
		return nil, err
	}
	strategy.PrepareForCreate(ctx, definition)
	check := func() field.ErrorList { return strategy.Validate(ctx, definition) }
	return fewErrorTexts(check(), check), nil
}

// newCustomServer serves a definition that the API server takes.
func newCustomServer(crd map[string]any) (*customServer, error) {
	var external extensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd, &external); err != nil {
		return nil, err
	}
	version := external.Spec.Versions[0]
	var internal apiextensions.JSONSchemaProps
	if err := extensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, err
	}
	var statusValidator validation.SchemaValidator
	if of, ok := internal.Properties["status"]; ok {
		if statusValidator, _, err = validation.NewSchemaValidator(&of); err != nil {
			return nil, err
		}
	}
	var status *apiextensions.CustomResourceSubresourceStatus
	var scale *apiextensions.CustomResourceSubresourceScale
	if version.Subresources != nil {
		if version.Subresources.Status != nil {
			status = &apiextensions.CustomResourceSubresourceStatus{}
		}
		if of := version.Subresources.Scale; of != nil {
			scale = &apiextensions.CustomResourceSubresourceScale{SpecReplicasPath: of.SpecReplicasPath, StatusReplicasPath: of.StatusReplicasPath, LabelSelectorPath: of.LabelSelectorPath}
		}
	}
	resource := customresource.NewStrategy(nil, true, caseKind, validator, statusValidator, structural, status, scale, nil)
	return &customServer{structural, resource, resource, customresource.NewStatusStrategy(resource)}, nil
}

// decode does what decoding a custom resource does; or says why it cannot.
func (s *customServer) decode(text []byte) (map[string]any, []string, error) {
	object := map[string]any{}
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return nil, nil, err
	}
	var paths []string
	unknown, err := decodeCustom(object, caseKind, s.structural)
	for _, path := range unknown {
		paths = append(paths, `unknown field "`+path+`"`)
	}
	slices.Sort(paths)
	return object, paths, err
}

// answer says what becomes of an object.
func (s *customServer) answer(line customLine) (customAnswer, error) {
	var out customAnswer
	object, warned, err := s.decode(line.Sent)
	for try := 0; err != nil && try < 200; try++ {
		if _, _, again := s.decode(line.Sent); again.Error() != err.Error() {
			return customAnswer{Error: manyReasons}, nil
		}
	}
	if err != nil {
		return customAnswer{Error: fmt.Sprintf("Case in version \"v1\" cannot be handled as a Case: %v", err)}, nil
	}
	if line.Old == nil {
		rest.WipeObjectMetaSystemFields(&unstructured.Unstructured{Object: object})
	}
	var plain map[string]any
	if err := utiljson.Unmarshal(line.Sent, &plain); err != nil {
		return out, err
	}
	if !reflect.DeepEqual(plain, object) {
		out.Decoded = runtime.DeepCopyJSON(object)
	}
	out.Warnings = warned
	var recorded warnings
	ctx := warning.WithWarningRecorder(context.Background(), &recorded)
	var check func() field.ErrorList
	var more func() []string
	if line.Old == nil {
		of := &unstructured.Unstructured{Object: object}
		s.create.PrepareForCreate(ctx, of)
		check = func() field.ErrorList { return s.create.Validate(ctx, of) }
		more = func() []string { return s.create.WarningsOnCreate(ctx, of) }
	} else {
		before, _, err := s.decode(line.Old)
		if err != nil {
			return out, err
		}
		strategy := s.update
		if line.Status {
			strategy = s.status
		}
		of, old := &unstructured.Unstructured{Object: object}, &unstructured.Unstructured{Object: before}
		strategy.PrepareForUpdate(ctx, of, old)
		check = func() field.ErrorList { return strategy.ValidateUpdate(ctx, of, old) }
		more = func() []string { return strategy.WarningsOnUpdate(ctx, of, old) }
	}
	errs := check()
	if len(errs) == 0 {
		// The client of a request that is refused hears of nothing else here.
		out.Warnings = append(append(out.Warnings, recorded...), more()...)
		slices.Sort(out.Warnings)
	}
	out.Errors = fewErrorTexts(errs, check)
	return out, nil
}

// fewErrorTexts is errorTexts with fewer tries.
func fewErrorTexts(errs field.ErrorList, again func() field.ErrorList) []string {
	plain := func(errs field.ErrorList) []string {
		var out []string
		for _, err := range errs {
			out = append(out, err.Error())
		}
		return out
	}
	out := plain(errs)
	for tries := 0; len(out) > 1 && tries < 100; tries++ {
		if !slices.Equal(out, plain(again())) {
			slices.Sort(out)
			break
		}
	}
	return out
}

// customs makes so many definitions that the API server takes, and objects of their kinds.
func customs(seed uint64, count int, each func(customLine) error) error {
	for i := range count {
		g := &customGenerator{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		crd := g.definition()
		for refused := 0; ; crd = g.definition() {
			errs, err := refusal(crd)
			if err != nil {
				return err
			}
			if len(errs) == 0 {
				break
			}
			// Of wrong definitions those with a wrong default are of interest here.
			isDefault := func(text string) bool { return strings.Contains(text, ".default") }
			if refused == 0 && !slices.ContainsFunc(errs, func(text string) bool { return !isDefault(text) }) {
				refused++
				line := customLine{ID: fmt.Sprintf("%d/default", i), CRD: crd, Refused: true, customAnswer: customAnswer{Errors: errs}}
				if err := each(line); err != nil {
					return err
				}
			}
		}
		server, err := newCustomServer(crd)
		if err != nil {
			return err
		}
		if err := each(customLine{ID: fmt.Sprint(i), CRD: crd}); err != nil {
			return err
		}
		of := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		for j := range 20 {
			line := customLine{ID: fmt.Sprintf("%d/%d", i, j), Sent: g.object(of)}
			if j >= 12 {
				line.Sent = json.RawMessage(strings.Replace(string(line.Sent), `"metadata":{`, `"metadata":{"creationTimestamp":"2024-01-02T03:04:05Z","generation":1,"resourceVersion":"1","uid":"u",`, 1))
				line.Old, line.Status = g.near(line.Sent), j >= 17
				if _, _, err := server.decode(line.Old); err != nil {
					continue
				}
			}
			var err error
			if line.customAnswer, err = server.answer(line); err != nil {
				return fmt.Errorf("%s: %w", line.ID, err)
			}
			if err := each(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewCustoms answers the lines of an earlier file.
func renewCustoms(lines []byte, each func(customLine) error) error {
	var server *customServer
	for text := range bytes.Lines(lines) {
		var line customLine
		if err := utiljson.Unmarshal(text, &line); err != nil {
			return err
		}
		if line.CRD != nil {
			// Integers stay integers.
			var definition struct {
				CRD json.RawMessage `json:"crd"`
			}
			if err := json.Unmarshal(text, &definition); err != nil {
				return err
			}
			if err := utiljson.Unmarshal(definition.CRD, &line.CRD); err != nil {
				return err
			}
			errs, err := refusal(line.CRD)
			if err != nil {
				return err
			}
			line.Refused, line.customAnswer = len(errs) > 0, customAnswer{Errors: errs}
			if !line.Refused {
				if server, err = newCustomServer(line.CRD); err != nil {
					return err
				}
			}
		} else {
			var err error
			if line.customAnswer, err = server.answer(line); err != nil {
				return fmt.Errorf("%s: %w", line.ID, err)
			}
		}
		if err := each(line); err != nil {
			return err
		}
	}
	return nil
}

// writeCustoms writes a line for each definition and each object, compressed. If the file exists, its definitions and
// objects are kept, and the answers are renewed. With the file of the base minor, it answers the lines of that one, and
// writes what differs.
func writeCustoms(seed uint64, count int, file, base string) error {
	var text bytes.Buffer
	write := func(line customLine) error {
		out, err := compact(line)
		if err == nil {
			text.Write(out)
		}
		return err
	}
	if base == "" {
		kept, err := gunzip(file)
		switch {
		case err == nil:
			err = renewCustoms(kept, write)
		case errors.Is(err, fs.ErrNotExist):
			err = customs(seed, count, write)
		}
		if err != nil {
			return err
		}
		return writeGzip(file, text.Bytes())
	}
	lines, err := gunzip(base)
	if err != nil {
		return err
	}
	var server *customServer
	for text := range bytes.Lines(lines) {
		var line customLine
		if err := utiljson.Unmarshal(text, &line); err != nil {
			return err
		}
		if line.CRD != nil {
			errs, err := refusal(line.CRD)
			if err != nil {
				return err
			}
			server = nil
			if len(errs) == 0 && !line.Refused {
				if server, err = newCustomServer(line.CRD); err != nil {
					return err
				}
			}
			if !slices.Equal(errs, line.Errors) {
				if err := write(customLine{ID: line.ID, Refused: len(errs) > 0, customAnswer: customAnswer{Errors: errs}}); err != nil {
					return err
				}
			}
			continue
		}
		if server == nil {
			continue
		}
		answer, err := server.answer(line)
		if err != nil {
			return fmt.Errorf("%s: %w", line.ID, err)
		}
		same, err := json.Marshal(line.customAnswer)
		if err != nil {
			return err
		}
		other, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		if !bytes.Equal(same, other) {
			if err := write(customLine{ID: line.ID, customAnswer: answer}); err != nil {
				return err
			}
		}
	}
	return writeGzip(file, text.Bytes())
}

// customGenerator makes structural schemas, and values that fit them or nearly do.
type customGenerator struct {
	*rand.Rand
}

func oneOf[T any](g *customGenerator, from ...T) T { return from[g.IntN(len(from))] }

func (g *customGenerator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *customGenerator) definition() map[string]any {
	of := func(depth int) map[string]any {
		out := g.schema(depth)
		for g.chance(80) && out["properties"] == nil {
			out = g.schema(depth)
		}
		return out
	}
	root := map[string]any{"type": "object", "properties": map[string]any{"spec": of(3), "status": of(2)}}
	if g.chance(20) {
		root["properties"].(map[string]any)["more"] = g.schema(2)
	}
	version := map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": root}}
	subresources := map[string]any{"status": map[string]any{}}
	if g.chance(15) {
		scale := map[string]any{"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}
		if g.chance(50) {
			scale["labelSelectorPath"] = ".status.b"
		}
		subresources["scale"] = scale
	}
	version["subresources"] = subresources
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

var customFormats = []string{
	"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13",
	"creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime", "date-time", "k8s-short-name",
	"k8s-long-name", "int32", "int64", "float", "double", "binary", "b-y-t-e", "unknown",
}

// schema makes a structural one.
func (g *customGenerator) schema(depth int) map[string]any {
	out := map[string]any{}
	kinds := []string{"string", "string", "integer", "number", "boolean", "intorstring", "any"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "object", "map", "array", "array", "listmap", "set", "embedded")
	}
	kind := oneOf(g, kinds...)
	switch kind {
	case "string", "integer", "number", "boolean":
		out["type"] = kind
	case "intorstring":
		out["x-kubernetes-int-or-string"] = true
		if g.chance(50) {
			out["anyOf"] = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
		}
	case "any":
		out["x-kubernetes-preserve-unknown-fields"] = true
		if g.chance(50) {
			out["type"] = "object"
		}
	case "object", "embedded":
		out["type"] = "object"
		properties := map[string]any{}
		for range 1 + g.IntN(3) {
			properties[oneOf(g, "a", "b", "c")] = g.schema(depth - 1)
		}
		out["properties"] = properties
		if kind == "embedded" {
			out["x-kubernetes-embedded-resource"] = true
		}
		if g.chance(25) {
			out["x-kubernetes-preserve-unknown-fields"] = true
		}
		if g.chance(40) {
			out["required"] = []any{oneOf(g, "a", "b", "z")}
		}
		g.some(out, 15, "minProperties", g.IntN(3))
		g.some(out, 15, "maxProperties", g.IntN(3))
	case "map":
		out["type"] = "object"
		out["additionalProperties"] = g.schema(depth - 1)
		g.some(out, 15, "minProperties", g.IntN(3))
		g.some(out, 15, "maxProperties", g.IntN(3))
	case "array", "set", "listmap":
		out["type"] = "array"
		out["items"] = g.schema(depth - 1)
		g.some(out, 20, "minItems", g.IntN(3))
		g.some(out, 20, "maxItems", g.IntN(3))
		if kind == "set" {
			out["x-kubernetes-list-type"] = "set"
			out["items"] = g.schema(0)
		} else if kind == "listmap" {
			out["x-kubernetes-list-type"], out["x-kubernetes-list-map-keys"] = "map", []any{"a"}
			properties := map[string]any{"a": map[string]any{"type": oneOf(g, "string", "integer", "number")}, "b": g.schema(depth - 1)}
			out["items"] = map[string]any{"type": "object", "properties": properties, "required": []any{"a"}}
			if g.chance(40) {
				properties["c"] = map[string]any{"type": "string"}
				out["x-kubernetes-list-map-keys"] = []any{"a", "c"}
				out["items"].(map[string]any)["required"] = []any{"a", "c"}
			}
		}
	}
	g.constraints(out, kind)
	g.combinations(out, kind)
	if kind == "string" && g.chance(25) {
		g.rule(out)
	}
	if g.chance(15) {
		out["nullable"] = true
	}
	if kind != "set" && g.chance(12) {
		var value any
		if utiljson.Unmarshal([]byte(g.value(out, 95)), &value) == nil && value != nil {
			out["default"] = value
		}
	}
	return out
}

// rule shows what the value is to a rule.
func (g *customGenerator) rule(out map[string]any) {
	delete(out, "minLength")
	out["maxLength"] = 60
	rule := map[string]any{"rule": "string(self) == 'x'", "messageExpression": "string(self)"}
	switch {
	case out["format"] == "byte":
		rule = map[string]any{"rule": "size(self) == 100", "messageExpression": "string(size(self))"}
	case g.chance(20):
		rule["optionalOldSelf"], rule["rule"] = true, "oldSelf.hasValue() && string(self) == 'x'"
		delete(rule, "messageExpression")
	}
	out["x-kubernetes-validations"] = []any{rule}
}

func (g *customGenerator) some(out map[string]any, percent int, key string, value any) {
	if g.chance(percent) {
		out[key] = value
	}
}

// constraints are those of a value of a kind, now and then of another one.
func (g *customGenerator) constraints(out map[string]any, kind string) {
	if g.chance(4) {
		kind = oneOf(g, "string", "integer", "number")
	}
	switch kind {
	case "string":
		g.some(out, 60, "format", oneOf(g, customFormats...))
		g.some(out, 10, "minLength", g.IntN(4))
		g.some(out, 10, "maxLength", g.IntN(8))
		g.some(out, 10, "pattern", oneOf(g, "^a", "b$", `^\d+$`, ""))
		if g.chance(10) {
			out["enum"] = []any{"a", "<b>", "A"}
		}
	case "integer", "number", "intorstring":
		g.some(out, 40, "format", oneOf(g, "int32", "int64", "float", "double", "int32", "int64", "float", "date", "byte", "other"))
		bounds := []any{0, 1, 3, -2, 1.5, 0.1, 100, 2147483647, 2147483648, 1000000.0, 1e20}
		g.some(out, 20, "minimum", oneOf(g, bounds...))
		g.some(out, 20, "maximum", oneOf(g, bounds...))
		g.some(out, 15, "multipleOf", oneOf(g, []any{1, 2, 3, 0.1, 0.5, 1.5, 0.01, 1e20}...))
		g.some(out, 10, "exclusiveMinimum", true)
		g.some(out, 10, "exclusiveMaximum", true)
		if g.chance(10) {
			out["enum"] = oneOf(g, []any{1, 2}, []any{1.5, 3}, []any{"A", 1})
		}
	}
}

// combinations of alternatives, which have no types.
func (g *customGenerator) combinations(out map[string]any, kind string) {
	one := func() map[string]any {
		nested := map[string]any{}
		if kind == "object" && g.chance(70) {
			if g.chance(50) {
				nested["required"] = []any{oneOf(g, "a", "b", "c")}
			}
			properties := out["properties"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(properties))[:min(1, len(properties))] {
				inner := map[string]any{}
				if kind, ok := properties[name].(map[string]any)["type"].(string); ok && g.chance(50) {
					g.constraints(inner, kind)
					nested["properties"] = map[string]any{name: inner}
				}
			}
			return nested
		}
		g.constraints(nested, kind)
		return nested
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if _, has := out[key]; !has && g.chance(8) {
			list := []any{}
			for range 1 + g.IntN(3) {
				list = append(list, one())
			}
			out[key] = list
		}
	}
	if g.chance(5) {
		out["not"] = one()
	}
}

var customNumbers = []string{
	"0", "1", "2", "3", "4", "-1", "7", "100", "1.5", "0.3", "0.7", "-0.5", "3.0", "1e3", "65", "2147483647", "2147483648", "-2147483648",
	"-2147483649", "1e20", "1e300", "-1e300", "3.4e38", "3.5e38", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
	"9007199254740993", "1000000", "123456789.5", "0.00001", "1e-7", "4.0000000001", "2.9999999999", "18446744073709551615",
}

// value is JSON that fits a schema with that chance at each place.
func (g *customGenerator) value(of map[string]any, percent int) string {
	if !g.chance(percent) {
		return oneOf(g, "null", "true", `"a"`, `""`, `"<b>"`, "[]", `[1,"a"]`, "{}", `{"a":1}`, `{"a":{"b":null},"x":[1.0]}`, oneOf(g, customNumbers...))
	}
	if values, ok := of["enum"].([]any); ok && g.chance(60) {
		text, _ := json.Marshal(oneOf(g, values...))
		return string(text)
	}
	kind, _ := of["type"].(string)
	switch {
	case kind == "string", kind == "" && of["x-kubernetes-int-or-string"] == true && g.chance(50):
		format, _ := of["format"].(string)
		text, _ := json.Marshal(g.text(format))
		return string(text)
	case kind == "integer" && g.chance(85), kind == "":
		return oneOf(g, customNumbers[:11]...)
	case kind == "integer", kind == "number":
		return oneOf(g, customNumbers...)
	case kind == "boolean":
		return oneOf(g, "true", "false")
	case kind == "array":
		items, _ := of["items"].(map[string]any)
		var list []string
		for range g.IntN(4) {
			if len(list) > 0 && g.chance(25) {
				list = append(list, oneOf(g, list...))
			} else {
				list = append(list, g.value(items, percent))
			}
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	return g.fields(of, percent)
}

func (g *customGenerator) fields(of map[string]any, percent int) string {
	fields := map[string]string{}
	properties, _ := of["properties"].(map[string]any)
	names := []string{}
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if g.chance(80) {
			fields[name] = g.value(properties[name].(map[string]any), percent)
		}
	}
	if further, ok := of["additionalProperties"].(map[string]any); ok {
		for range g.IntN(3) {
			fields[oneOf(g, "a", "x", "k.l", "kind")] = g.value(further, percent)
		}
	}
	if g.chance(8) {
		fields[oneOf(g, "z", "x", "y")] = g.value(map[string]any{}, 50)
	}
	if of["x-kubernetes-embedded-resource"] == true {
		if g.chance(85) {
			fields["apiVersion"] = oneOf(g, `"v1"`, `"a/v1"`, `"v1"`, `"a/b/c"`, `""`, "1", "null")
		}
		if g.chance(85) {
			fields["kind"] = oneOf(g, `"Pod"`, `"Pod"`, `"Pod"`, `"a b"`, `""`, "1")
		}
		if g.chance(70) {
			fields["metadata"] = oneOf(g, `{"name":"a"}`, `{"name":"a","labels":{"a":"b"}}`, `{"name":"a/b"}`, `{"labels":{"a b":"c d"}}`, `{"name":"a","bogus":1}`,
				`{"labels":{"a":5}}`, `{"namespace":"A"}`, `{"generateName":"a%"}`, `{"annotations":{"a":"b"},"creationTimestamp":null}`, `{"generation":-1}`,
				`{"finalizers":["a b"]}`, `{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"a","uid":""}]}`, "null", `"a"`, `{}`)
		}
	}
	keys := []string{}
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var parts []string
	for _, key := range keys {
		name, _ := json.Marshal(key)
		parts = append(parts, string(name)+":"+fields[key])
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// object is one of the kind of a definition.
func (g *customGenerator) object(of map[string]any) json.RawMessage {
	text := strings.TrimPrefix(g.fields(of, oneOf(g, 99, 97, 93, 85)), "{")
	metadata := `{"name":"a","namespace":"default"}`
	if g.chance(5) {
		metadata = oneOf(g, `{"name":"a","namespace":"default","finalizers":["x","a.b","a/b"]}`, `{"name":"A","namespace":"default"}`, `{"name":"a","namespace":"default","bogus":1}`)
	}
	text = `{"apiVersion":"example.org/v1","kind":"Case","metadata":` + metadata + "," + text
	return json.RawMessage(strings.Replace(text, ",}", "}", 1))
}

// near is an object with few changes, valid or not.
func (g *customGenerator) near(sent json.RawMessage) json.RawMessage {
	text := string(sent)
	for range 1 + g.IntN(2) {
		from, to := oneOf(g, "1", `"a"`, "true", "3", "null", ":2", "{}"), oneOf(g, "1", "2", "4", `"b"`, "0.3", "[]", `""`)
		if at := strings.Index(text, `"spec"`); at > 0 {
			if changed := text[:at] + strings.Replace(text[at:], from, to, 1); json.Valid([]byte(changed)) {
				text = changed
			}
		}
	}
	return json.RawMessage(text)
}

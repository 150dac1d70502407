package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/deprecation"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	generated "k8s.io/kubernetes/pkg/generated/openapi"
)

// The kinds that are built into the API server, and the Go types that it decodes them into.
type goTypes struct {
	Resources []goResource `json:"resources"`
	// Structs to their fields: name of the key, type, flags: `e` omitempty, `z` omitzero, `i` inlined; and the
	// declared default, where there is one.
	Structs map[string][][]any `json:"structs"`
	// Other named types to what they are made of.
	Named map[string]string `json:"named"`
}

type goResource struct {
	Group      string   `json:"group,omitempty"`
	Version    string   `json:"version"`
	Kind       string   `json:"kind"`
	Plural     string   `json:"plural"`
	Namespaced bool     `json:"namespaced,omitempty"`
	Verbs      []string `json:"verbs"`
	Type       string   `json:"type,omitempty"`
	// What is warned of whoever uses it.
	Deprecated   string        `json:"deprecated,omitempty"`
	Subresources []subresource `json:"subresources,omitempty"`
}

type subresource struct {
	Name    string   `json:"name"`
	Group   string   `json:"group,omitempty"`
	Version string   `json:"version"`
	Kind    string   `json:"kind"`
	Verbs   []string `json:"verbs"`
	Type    string   `json:"type,omitempty"`
}

// What has a form of its own in JSON. Each is decoded and encoded by code of its name.
var ownForm = []string{
	"resource.Quantity", "intstr.IntOrString", "meta/v1.Time", "meta/v1.MicroTime", "meta/v1.Duration",
	"meta/v1.FieldsV1", "runtime.RawExtension", "apiextensions/v1.JSON", "apiextensions/v1.JSONSchemaPropsOrBool",
	"apiextensions/v1.JSONSchemaPropsOrArray", "apiextensions/v1.JSONSchemaPropsOrStringArray",
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// typeTable collects the kinds of the lists of resources of a folder, as kubernetes/api/discovery has them.
func typeTable(discovery string) (*goTypes, error) {
	files, err := filepath.Glob(filepath.Join(discovery, "api*__v*.json"))
	if err != nil {
		return nil, err
	}
	out := &goTypes{Structs: map[string][][]any{}, Named: map[string]string{}}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var list metav1.APIResourceList
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		if err := out.resources(gv, list.APIResources); err != nil {
			return nil, err
		}
	}
	if len(out.Resources) == 0 {
		return nil, fmt.Errorf("no lists of resources in %s", discovery)
	}
	return out, nil
}

// resources adds those of a version. The list has a subresource behind its resource, but not always at once.
func (t *goTypes) resources(gv schema.GroupVersion, list []metav1.APIResource) error {
	at := map[string]int{}
	for _, r := range list {
		kind := gv.WithKind(r.Kind)
		if r.Version != "" {
			kind = schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
		}
		name, err := t.kind(kind)
		if err != nil {
			return err
		}
		plural, sub, isSub := strings.Cut(r.Name, "/")
		if !isSub {
			at[plural] = len(t.Resources)
			t.Resources = append(t.Resources, goResource{
				Group: gv.Group, Version: gv.Version, Kind: kind.Kind, Plural: plural,
				Namespaced: r.Namespaced, Verbs: r.Verbs, Type: name, Deprecated: deprecated(kind),
			})
			continue
		}
		i, ok := at[plural]
		if !ok {
			return fmt.Errorf("%v: %s before %s", gv, r.Name, plural)
		}
		t.Resources[i].Subresources = append(t.Resources[i].Subresources, subresource{
			sub, kind.Group, kind.Version, kind.Kind, r.Verbs, name,
		})
	}
	return nil
}

// deprecated is what the API server warns of on each request for a kind that this minor deprecates.
func deprecated(kind schema.GroupVersionKind) string {
	object, err := legacyscheme.Scheme.New(kind)
	if err != nil {
		return ""
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	if !deprecation.IsDeprecated(object, 1, minor()) {
		return ""
	}
	return deprecation.WarningMessage(object)
}

// minor is that of the modules that this is built of.
func minor() int {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return 0
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubernetes" {
			number, err := strconv.Atoi(strings.Split(module.Version, ".")[1])
			if err == nil {
				return number
			}
		}
	}
	return 0
}

// kind is the name of the type of a kind, and empty where that is not linked into kube-apiserver's own schemes.
func (t *goTypes) kind(kind schema.GroupVersionKind) (string, error) {
	for _, scheme := range []interface {
		Recognizes(schema.GroupVersionKind) bool
		AllKnownTypes() map[schema.GroupVersionKind]reflect.Type
	}{legacyscheme.Scheme, extensions.Scheme} {
		if scheme.Recognizes(kind) {
			return t.name(scheme.AllKnownTypes()[kind])
		}
	}
	return "", nil
}

// name is how a type is written here: as in Go, but with the group before the version of a package.
func (t *goTypes) name(of reflect.Type) (string, error) {
	if of.Name() == "" || of.PkgPath() == "" {
		switch of.Kind() {
		case reflect.Pointer:
			inner, err := t.name(of.Elem())
			return "*" + inner, err
		case reflect.Slice:
			inner, err := t.name(of.Elem())
			return "[]" + inner, err
		case reflect.Map:
			if of.Key().Kind() != reflect.String {
				return "", fmt.Errorf("keys of %v are not strings", of)
			}
			inner, err := t.name(of.Elem())
			return "map[string]" + inner, err
		}
		return of.String(), nil
	}
	path := strings.Split(of.PkgPath(), "/")
	short := path[len(path)-1]
	if strings.HasPrefix(short, "v") && len(path) > 1 {
		short = path[len(path)-2] + "/" + short
	}
	name := short + "." + of.Name()
	if slices.Contains(ownForm, name) {
		return name, nil
	}
	if _, ok := t.Structs[name]; ok {
		return name, nil
	}
	if of.Kind() != reflect.Struct {
		if reflect.PointerTo(of).Implements(unmarshaler) {
			return "", fmt.Errorf("%s has a form of its own, which is not known here", name)
		}
		under, err := t.under(of)
		t.Named[name] = under
		return name, err
	}
	t.Structs[name] = [][]any{} // it may contain itself
	fields, err := t.fields(of)
	t.Structs[name] = fields
	return name, err
}

func (t *goTypes) under(of reflect.Type) (string, error) {
	switch of.Kind() {
	case reflect.Slice:
		inner, err := t.name(of.Elem())
		return "[]" + inner, err
	case reflect.Map:
		inner, err := t.name(of.Elem())
		return "map[string]" + inner, err
	case reflect.Struct, reflect.Pointer, reflect.Interface:
		return "", fmt.Errorf("%v is of no kind known here", of)
	}
	return of.Kind().String(), nil
}

func (t *goTypes) fields(of reflect.Type) ([][]any, error) {
	if reflect.PointerTo(of).Implements(unmarshaler) && of.NumField() > 0 && !of.Field(0).Anonymous {
		return nil, fmt.Errorf("%v has a form of its own, which is not known here", of)
	}
	defaults := declaredDefaults(of)
	fields := [][]any{}
	for i := range of.NumField() {
		field := of.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		if tag[0] == "-" || !field.IsExported() {
			continue
		}
		flags := ""
		if slices.Contains(tag, "omitempty") {
			flags += "e"
		}
		if slices.Contains(tag, "omitzero") {
			flags += "z"
		}
		if tag[0] == "" {
			if !field.Anonymous {
				return nil, fmt.Errorf("%v.%s has no name in JSON", of, field.Name)
			}
			flags += "i"
		}
		name, err := t.name(field.Type)
		if err != nil {
			return nil, err
		}
		entry := []any{tag[0], name, flags}
		if value, ok := defaults[tag[0]]; ok && tag[0] != "" {
			entry = append(entry, value)
		}
		fields = append(fields, entry)
	}
	return fields, nil
}

var definitions = generated.GetOpenAPIDefinitions(spec.MustCreateRef)

// declaredDefaults are those that `+default` gives to fields, as far as they are not what Go has anyway.
func declaredDefaults(of reflect.Type) map[string]any {
	path := of.PkgPath()
	dots := strings.Split(path, "/")
	host := strings.Split(dots[0], ".")
	slices.Reverse(host)
	definition, ok := definitions[path+"."+of.Name()]
	if !ok {
		definition = definitions[strings.Join(append(host, dots[1:]...), ".")+"."+of.Name()]
	}
	out := map[string]any{}
	for name, property := range definition.Schema.Properties {
		switch value := property.Default.(type) {
		case nil, map[string]any, []any:
		default:
			out[name] = value
		}
	}
	return out
}

// writeTypes writes the table, compressed.
func writeTypes(discovery, file string) error {
	table, err := typeTable(discovery)
	if err != nil {
		return err
	}
	return writeCompressed(file, table)
}

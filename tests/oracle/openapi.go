package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	extensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	generated "k8s.io/kubernetes/pkg/generated/openapi"
)

// The schemas of the kinds that are built into the API server, as type checking takes them.
type schemas struct {
	// group/version/Kind to the name of its schema.
	Kinds map[string]string `json:"kinds"`
	// References, `{"$ref": name}`, are to others of these.
	Schemas map[string]any `json:"schemas"`
}

// What type checking reads, apart from references, properties, items and additionalProperties; and what an object must
// have, which lints read.
var read = []string{
	"type", "format", "required", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
	"x-kubernetes-embedded-resource",
}

// What merging reads besides: of defaults only those of fields that may be keys of a list.
var merging = []string{"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "default"}

// isKept says whether a keyword is read by somebody.
func isKept(key string, value any) bool {
	if key == "default" {
		switch value.(type) {
		case map[string]any, []any, nil:
			return false
		}
	}
	return slices.Contains(read, key) || slices.Contains(merging, key)
}

const objectMeta = "apimachinery.pkg.apis.meta.v1.ObjectMeta"

// builtin collects the schemas of all kinds with metadata of an object: neither lists nor options can be admitted.
func builtin() (schemas, error) {
	definitions := generated.GetOpenAPIDefinitions(spec.MustCreateRef)
	namer := openapi.NewDefinitionNamer(scheme.Scheme, extensions.Scheme)
	out := schemas{map[string]string{}, map[string]any{}}
	for name, definition := range definitions {
		metadata, ok := definition.Schema.Properties["metadata"]
		if !ok || !strings.HasSuffix(dotted(refOf(&metadata)), objectMeta) {
			continue
		}
		_, found := namer.GetDefinitionName(name)
		kinds, _ := found["x-kubernetes-group-version-kind"].([]any)
		for _, kind := range kinds {
			k := kind.(map[string]any)
			gvk := schema.GroupVersionKind{
				Group: k["group"].(string), Version: k["version"].(string), Kind: k["kind"].(string),
			}
			text := gvk.GroupVersion().String() + "/" + gvk.Kind
			out.Kinds[text] = name
		}
	}
	var wanted []string
	for _, name := range out.Kinds {
		wanted = append(wanted, name)
	}
	for len(wanted) > 0 {
		name := wanted[0]
		wanted = wanted[1:]
		if _, ok := out.Schemas[name]; ok {
			continue
		}
		definition, ok := definitions[name]
		if !ok {
			return out, fmt.Errorf("no definition of %s", name)
		}
		text, err := json.Marshal(definition.Schema)
		if err != nil {
			return out, err
		}
		var tree map[string]any
		if err := json.Unmarshal(text, &tree); err != nil {
			return out, err
		}
		out.Schemas[name] = strip(tree, &wanted)
	}
	return out, nil
}

func dotted(name string) string { return strings.ReplaceAll(name, "/", ".") }

// refOf is the schema that one refers to. To have a default or a description beside it, a reference stands in `allOf`.
func refOf(s *spec.Schema) string {
	if s.Ref.GetURL() != nil {
		return s.Ref.String()
	}
	for i := range s.AllOf {
		if ref := refOf(&s.AllOf[i]); ref != "" {
			return ref
		}
	}
	return ""
}

// strip keeps of a schema what type checking reads, and notes what it refers to.
func strip(s map[string]any, refs *[]string) map[string]any {
	mapType, hasMapType := s["x-kubernetes-map-type"]
	all, _ := s["allOf"].([]any)
	for _, part := range all {
		if ref, ok := part.(map[string]any)["$ref"]; ok {
			s = map[string]any{"$ref": ref}
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		*refs = append(*refs, ref)
		out := map[string]any{"$ref": ref}
		if hasMapType {
			out["x-kubernetes-map-type"] = mapType
		}
		return out
	}
	out := map[string]any{}
	for key, value := range s {
		switch {
		case key == "properties":
			properties := map[string]any{}
			for name, property := range value.(map[string]any) {
				properties[name] = strip(property.(map[string]any), refs)
			}
			out[key] = properties
		case key == "items" || key == "additionalProperties":
			if inner, ok := value.(map[string]any); ok {
				out[key] = strip(inner, refs)
			} else {
				out[key] = value
			}
		case isKept(key, value):
			out[key] = value
		}
	}
	return out
}

// writeOpenAPI writes the schemas.
func writeOpenAPI(file string) error {
	s, err := builtin()
	if err != nil {
		return err
	}
	return writeCompressed(file, s)
}

// writeCompressed writes a value, unless the file has it: another version of Go may compress in another way.
func writeCompressed(file string, value any) error {
	text, err := compact(value)
	if err != nil {
		return err
	}
	return writeGzip(file, text)
}

func writeGzip(file string, text []byte) error {
	if have, err := gunzip(file); err == nil && bytes.Equal(have, text) {
		return nil
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

func gunzip(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

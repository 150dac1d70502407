package main

import (
	"reflect"
	"sort"
	"strings"
	"unsafe"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
)

// What MutatingAdmissionPolicy adds to the environment, and what its expressions must result in.

func init() {
	returnTypes["Object"] = []*cel.Type{cel.ObjectType(mutation.ObjectTypeName)}
	returnTypes["JSONPatch"] = []*cel.Type{cel.ListType(cel.ObjectType(mutation.JSONPatchTypeName))}
}

// optionsFor are the options of the expression itself. The policy's variables have no Object and no JSONPatch.
func (s *scope) optionsFor(r request) plugincel.OptionalVariableDeclarations {
	options := s.options
	options.HasPatchTypes = r.Mutation
	// Until 1.34 there are these types where costs are strict only, as they are for policies.
	if strict := reflect.ValueOf(&options).Elem().FieldByName("StrictCost"); r.Mutation && strict.IsValid() {
		strict.SetBool(true)
	}
	return options
}

// encodePatch writes a value that an expression of a mutation constructed: the name of the type and the fields that it
// was given, sorted by name.
func encodePatch(v ref.Val) (string, bool) {
	fields := map[string]ref.Val{}
	switch t := v.(type) {
	case *dynamic.ObjectVal:
		// Its own conversion to Go's types loses the types of its fields.
		hidden := reflect.ValueOf(t).Elem().FieldByName("fields")
		fields = reflect.NewAt(hidden.Type(), unsafe.Pointer(hidden.UnsafeAddr())).Elem().Interface().(map[string]ref.Val)
	case *mutation.JSONPatchVal:
		for _, name := range []string{"op", "path", "from", "value"} {
			if value := t.Get(types.String(name)); value != nil {
				fields[name] = value
			}
		}
	default:
		return "", false
	}
	texts := make([]string, 0, len(fields))
	for name, value := range fields {
		texts = append(texts, encodeString(name)+"="+encode(value))
	}
	sort.Strings(texts)
	return v.Type().TypeName() + "{" + strings.Join(texts, ",") + "}", true
}

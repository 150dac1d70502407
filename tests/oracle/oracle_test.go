package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	openapicel "k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Overloads that no expression can select by itself.
var unreachable = []string{
	"not_strictly_false", "__not_strictly_false__", // inside of macros, one for old stored ones
}

// The corpus is only worth something if each function that Kubernetes enables is in it, in each of its forms.
func TestTheCorpusHasEveryOverload(t *testing.T) {
	o, err := newOracle()
	if err != nil {
		t.Fatal(err)
	}
	s, err := o.scope(request{}, environment.StoredExpressions)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	corpora, err := filepath.Glob("corpus/*.*")
	if err != nil || len(corpora) == 0 {
		t.Fatal("no corpus", err)
	}
	for _, corpus := range corpora {
		requests, err := readCorpus(corpus)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range requests {
			if s.compile(request{Expr: r.Expr, Mutation: r.Mutation}).Error != nil {
				continue // among these are expressions which make the checker panic
			}
			ast, issues := s.estimator.Compile(r.Expr)
			if issues.Err() != nil {
				continue
			}
			for _, reference := range ast.NativeRep().ReferenceMap() {
				if len(reference.OverloadIDs) == 1 {
					used[reference.OverloadIDs[0]] = true
				}
			}
		}
	}
	for name, function := range s.estimator.Functions() {
		for _, overload := range function.OverloadDecls() {
			if !used[overload.ID()] && !slices.Contains(unreachable, overload.ID()) {
				t.Errorf("no expression calls %s of %s", overload.ID(), name)
			}
		}
	}
}

func TestErrorsAreRead(t *testing.T) {
	for _, c := range []struct {
		name, detail string
		want         []problem
	}{
		{"one", "compilation failed: ERROR: <input>:1:7: undefined field 'a'\n | object.a\n | ......^",
			[]problem{{"undefined-field", 1, 7, "undefined field 'a'"}}},
		{"two", "ERROR: <input>:1:1: undeclared reference to 'a' (in container '')\n | a + \n | ^\n" +
			"ERROR: <input>:2:3: undeclared reference to 'b' (in container '')\n |   b\n | ..^",
			[]problem{{"undeclared-reference", 1, 1, "undeclared reference to 'a' (in container '')"},
				{"undeclared-reference", 2, 3, "undeclared reference to 'b' (in container '')"}}},
		{"without a snippet", "ERROR: <input>:1:2: '1' is not a type\nERROR: <input>:1:9: type 'int' does not support field selection",
			[]problem{{"not-a-type", 1, 2, "'1' is not a type"}, {"not-selectable", 1, 9, "type 'int' does not support field selection"}}},
		{"no place", "must evaluate to bool but got dyn", []problem{{"return-type", 0, 0, "must evaluate to bool but got dyn"}}},
		{"truncated", "ERROR: <input>:1:1: undefined field 'a'\n | a\n | ^\n7 more errors were truncated",
			[]problem{{"undefined-field", 1, 1, "undefined field 'a'"}, {"limit", 0, 0, "7 more errors were truncated"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := problemsOf(c.detail); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestTemplatesAreExpanded(t *testing.T) {
	names := map[string]string{"N": "1‖2"}
	got, err := expand("«a‖» «N»«3*x»", names)
	want := []string{"a 1xxx", "a 2xxx", " 1xxx", " 2xxx"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := expand("«a", names); err == nil {
		t.Error("an open « is accepted")
	}
}

func TestDoublesAreWrittenAsInRust(t *testing.T) {
	for want, f := range map[string]float64{
		"1e0": 1, "1.5e0": 1.5, "-0e0": math.Copysign(0, -1), "1e21": 1e21, "5e-324": 5e-324,
		"inf": math.Inf(1), "-inf": math.Inf(-1), "NaN": math.NaN(), "1.7976931348623157e308": math.MaxFloat64,
	} {
		if got := encodeDouble(f); got != want {
			t.Errorf("%v is %s, not %s", f, got, want)
		}
	}
}

// What is left of the schemas gives the same types as the whole of them.
func TestSchemasGiveTheTypesOfTheAPIServer(t *testing.T) {
	types, err := newTypeChecker()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := builtin()
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.Kinds) < 100 {
		t.Errorf("only %d kinds", len(kept.Kinds))
	}
	schemaOf := func(ref string) (*spec.Schema, bool) {
		text, err := json.Marshal(kept.Schemas[ref])
		if err != nil || kept.Schemas[ref] == nil {
			return nil, false
		}
		s := &spec.Schema{}
		return s, json.Unmarshal(text, s) == nil
	}
	for kind, name := range kept.Kinds {
		gvk, err := parseKind(kind)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := types.ResolveSchema(gvk)
		if err != nil {
			t.Fatal(err)
		}
		stripped, err := resolver.PopulateRefs(schemaOf, name)
		if err != nil {
			t.Fatal(err)
		}
		var want, got strings.Builder
		describe(&want, common.SchemaDeclType(&openapicel.Schema{Schema: whole}, true))
		describe(&got, common.SchemaDeclType(&openapicel.Schema{Schema: stripped}, true))
		if want.String() != got.String() {
			t.Errorf("%s has other types than in the API server", kind)
		}
	}
}

func describe(b *strings.Builder, t *apiservercel.DeclType) {
	switch {
	case t == nil:
		b.WriteString("none")
	case t.IsList():
		b.WriteString("list ")
		describe(b, t.ElemType)
	case t.IsMap():
		b.WriteString("map ")
		describe(b, t.ElemType)
	case t.IsObject():
		var names []string
		for name := range t.Fields {
			names = append(names, name)
		}
		slices.Sort(names)
		b.WriteString("{")
		for _, name := range names {
			fmt.Fprintf(b, "%s: ", name)
			describe(b, t.Fields[name].Type)
			b.WriteString(", ")
		}
		b.WriteString("}")
	default:
		b.WriteString(t.CelType().String())
	}
}

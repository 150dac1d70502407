package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	celexpr "cel.dev/expr"
	_ "cel.dev/expr/conformance/proto2" // messages of the tests
	_ "cel.dev/expr/conformance/proto3"
	conformance "cel.dev/expr/conformance/test"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"google.golang.org/protobuf/encoding/prototext"
)

// The files of the CEL specification's tests whose functions Kubernetes has.
var specFiles = []string{
	"basic", "comparisons", "conversions", "fields", "fp_math", "integer_math", "lists", "logic", "macros", "macros2",
	"namespace", "optionals", "parse", "plumbing", "string", "string_ext", "timestamps", "type_deduction",
}

// A test of the specification: what it expects, beside what the API server answers.
type specified struct {
	golden
	// The value that is expected, or `error`.
	Spec string `json:"spec"`
}

// writeSpec answers the tests of the CEL specification that need no variables, messages or container of their own. They
// are in a module that cel-go needs, and are not kept.
func writeSpec(o *oracle, file string) error {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "cel.dev/expr").Output()
	if err != nil {
		return fmt.Errorf("cannot find the module cel.dev/expr: %w", err)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	for _, name := range specFiles {
		path := filepath.Join(strings.TrimSpace(string(dir)), "tests/simple/testdata", name+".textproto")
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var tests conformance.SimpleTestFile
		if err := prototext.Unmarshal(text, &tests); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, section := range tests.GetSection() {
			for _, test := range section.GetTest() {
				want, ok := expectation(test)
				if !ok || len(test.GetBindings()) > 0 || len(test.GetTypeEnv()) > 0 || test.GetContainer() != "" ||
					test.GetDisableMacros() || strings.Contains(test.GetExpr(), "TestAllTypes") {
					continue
				}
				r := request{ID: name + "/" + section.GetName() + "/" + test.GetName(), Expr: test.GetExpr()}
				a, err := o.ask(r)
				if err != nil {
					return fmt.Errorf("%s: %w", r.ID, err)
				}
				a.ID = ""
				line, err := compact(specified{golden{r, a}, want})
				if err != nil {
					return err
				}
				if _, err := out.Write(line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func expectation(test *conformance.SimpleTest) (string, bool) {
	value := test.GetValue()
	switch {
	case test.GetEvalError() != nil || test.GetAnyEvalErrors() != nil:
		return "error", true
	case test.GetTypedResult() != nil:
		value = test.GetTypedResult().GetResult()
	case test.GetResultMatcher() == nil:
		value = &celexpr.Value{Kind: &celexpr.Value_BoolValue{BoolValue: true}}
	}
	if value == nil {
		return "", false
	}
	v, err := cel.ProtoAsValue(types.DefaultTypeAdapter, value)
	if err != nil {
		return "", false
	}
	return encode(v), true
}

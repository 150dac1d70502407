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

// A test of the specification: what it expects, beside what the API server answers.
type specified struct {
	golden
	// The value that is expected, or `error`.
	Spec string `json:"spec"`
}

// A test that cannot be asked of the API server, and why.
type skipped struct {
	ID      string `json:"id"`
	Expr    string `json:"expr"`
	Skipped string `json:"skipped"`
}

// writeSpec answers the tests of the CEL specification. They are in a module that cel-go needs, and are not kept.
func writeSpec(o *oracle, file string) error {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "cel.dev/expr").Output()
	if err != nil {
		return fmt.Errorf("cannot find the module cel.dev/expr: %w", err)
	}
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "tests/simple/testdata", "*.textproto"))
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("the module cel.dev/expr has no tests: %v", err)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var tests conformance.SimpleTestFile
		if err := prototext.Unmarshal(text, &tests); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".textproto")
		for _, section := range tests.GetSection() {
			for _, test := range section.GetTest() {
				line, err := o.answerTest(name+"/"+section.GetName()+"/"+test.GetName(), test)
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

func (o *oracle) answerTest(id string, test *conformance.SimpleTest) ([]byte, error) {
	want, ok := expectation(test)
	why := ""
	switch {
	case len(test.GetBindings()) > 0 || len(test.GetTypeEnv()) > 0:
		why = "variables"
	case test.GetContainer() != "" || strings.Contains(test.GetExpr(), "TestAllTypes"):
		why = "messages"
	case test.GetDisableMacros():
		why = "no macros"
	case !ok || test.GetCheckOnly():
		why = "no value"
	}
	if why != "" {
		return compact(skipped{id, test.GetExpr(), why})
	}
	r := request{ID: id, Expr: test.GetExpr()}
	a, err := o.ask(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	a.ID = ""
	return compact(specified{golden{r, a}, want})
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

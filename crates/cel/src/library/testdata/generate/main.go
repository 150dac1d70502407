// Command generate writes what the API server's own code answers for calls of its CEL functions, one file of JSON
// lines per module of the library. Run it in this directory for a new minor version of Kubernetes:
//
//	go run .
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	_ "time/tzdata"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type table struct {
	env      *cel.Env
	programs map[string]cel.Program
	lines    []string
	seen     map[string]bool
}

// encode writes a value as JSON: what JSON has no type for is an object with the name of the type.
func encode(v any) any {
	switch v := v.(type) {
	case nil, types.Null:
		return nil
	case types.Bool:
		return bool(v)
	case types.String:
		return string(v)
	case types.Int:
		return encode(int64(v))
	case int:
		return encode(int64(v))
	case types.Uint:
		return encode(uint64(v))
	case types.Double:
		return encode(float64(v))
	case types.Bytes:
		return encode([]byte(v))
	case int64:
		return v
	case bool, string:
		return v
	case uint64:
		return map[string]any{"uint": v}
	case float64:
		return map[string]any{"double": strconv.FormatFloat(v, 'g', -1, 64)}
	case []byte:
		return map[string]any{"bytes": base64.StdEncoding.EncodeToString(v)}
	case types.Duration:
		return map[string]any{"duration": int64(v.Duration)}
	case types.Timestamp:
		return map[string]any{"timestamp": v.Format("2006-01-02T15:04:05.999999999Z07:00")}
	case []any:
		out := []any{}
		for _, item := range v {
			out = append(out, encode(item))
		}
		return out
	case map[any]any:
		out := [][]any{}
		for key, value := range v {
			out = append(out, []any{encode(key), encode(value)})
		}
		sort.Slice(out, func(a, b int) bool { return fmt.Sprint(out[a]) < fmt.Sprint(out[b]) })
		return map[string]any{"map": out}
	case *types.Optional:
		if !v.HasValue() {
			return map[string]any{"none": true}
		}
		return encode(v.GetValue())
	case apiservercel.Quantity:
		number, suffix := v.Quantity.CanonicalizeBytes(nil)
		return string(number) + string(suffix)
	case *apiservercel.Quantity:
		return encode(*v)
	case apiservercel.IP:
		return v.Addr.String()
	case apiservercel.CIDR:
		return v.Prefix.String()
	case apiservercel.URL:
		return v.URL.String()
	case apiservercel.Semver:
		return v.Version.String()
	case apiservercel.Format:
		return map[string]any{"format": v.Name, "size": v.MaxRegexSize}
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			out = append(out, encode(it.Next()))
		}
		return out
	case traits.Mapper:
		out := [][]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			out = append(out, []any{encode(key), encode(v.Get(key))})
		}
		sort.Slice(out, func(a, b int) bool { return fmt.Sprint(out[a]) < fmt.Sprint(out[b]) })
		return map[string]any{"map": out}
	}
	panic(fmt.Sprintf("no encoding for %T", v))
}

func (t *table) line(call string, args []any, ok any, err error) {
	entry := map[string]any{"call": call, "args": encode(args)}
	if err != nil {
		entry["err"] = err.Error()
	} else {
		entry["ok"] = encode(ok)
	}
	text := &strings.Builder{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(entry); err != nil {
		panic(err)
	}
	key := call + fmt.Sprintf("%#v", args)
	if !t.seen[key] {
		t.seen[key] = true
		t.lines = append(t.lines, text.String())
	}
}

// add evaluates the expression with the variables x0, x1 and so on.
func (t *table) add(call string, args ...any) {
	program := t.programs[call]
	if program == nil {
		ast, issues := t.env.Compile(call)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		var err error
		if program, err = t.env.Program(ast); err != nil {
			panic(err)
		}
		t.programs[call] = program
	}
	variables := map[string]any{}
	for i, arg := range args {
		variables["x"+strconv.Itoa(i)] = arg
	}
	value, _, err := program.Eval(variables)
	t.line(call, args, value, err)
}

// each calls every expression with every argument.
func (t *table) each(calls []string, args ...any) {
	for _, call := range calls {
		for _, arg := range args {
			t.add(call, arg)
		}
	}
}

// pairs calls every expression with every pair of arguments.
func (t *table) pairs(calls []string, first, second []any) {
	for _, call := range calls {
		for _, a := range first {
			for _, b := range second {
				t.add(call, a, b)
			}
		}
	}
}

func anys[T any](items ...T) []any {
	var out []any
	for _, item := range items {
		out = append(out, item)
	}
	return out
}

var files = map[string]func(*table){
	"bytes":        conversions,
	"cidr":         cidrs,
	"double":       doubles,
	"format":       formats,
	"ip":           ips,
	"printf":       printf,
	"printf_check": printfCheck,
	"quantity":     quantities,
	"quote":        quotes,
	"re2":          regexps,
	"re2_class":    regexpClasses,
	"re2_syntax":   regexpSyntax,
	"selector":     selectors,
	"semver":       semvers,
	"strings":      stringsTable,
	"time":         times,
	"url":          urls,
}

func main() {
	base, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Env(environment.StoredExpressions)
	if err != nil {
		panic(err)
	}
	var options []cel.EnvOption
	for i := range 6 {
		options = append(options, cel.Variable("x"+strconv.Itoa(i), cel.DynType))
	}
	env, err := base.Extend(options...)
	if err != nil {
		panic(err)
	}
	for name, fill := range files {
		if len(os.Args) > 1 && !regexp.MustCompile(os.Args[1]).MatchString(name) {
			continue
		}
		t := &table{env: env, programs: map[string]cel.Program{}, seen: map[string]bool{}}
		fill(t)
		file, err := os.Create("../" + name + ".jsonl")
		if err != nil {
			panic(err)
		}
		out := bufio.NewWriter(file)
		for _, line := range t.lines {
			out.WriteString(line)
		}
		if err := out.Flush(); err != nil {
			panic(err)
		}
		file.Close()
	}
}

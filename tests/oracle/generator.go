package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// A generator makes expressions of a wanted type out of the functions that the environment declares, of macros, of
// literals and of the fields of a fixture. They are well-typed but for mistakes, and what the checker takes for dyn.
type generator struct {
	random    *rand.Rand
	overloads []overload
	// Paths into a fixture, by what type the value there has. For the checker all are dyn, if it knows no schema.
	paths map[string][]string
	// Paths of lists of objects, and the first object of each.
	objects map[string]any
	// Variables in scope, with their types.
	scope []binding
	// The paths of the objects among these, as in paths.
	local map[string][]string
	// In how many of a hundred places there is a mistake.
	mistakes int
}

type overload struct {
	function string
	member   bool
	args     []*cel.Type
	result   *cel.Type
}

type binding struct {
	name string
	kind *cel.Type
}

// newGenerator reads the paths of a fixture.
func newGenerator(o *oracle, fixture string) (*generator, error) {
	s, err := o.scope(request{}, environment.StoredExpressions)
	if err != nil {
		return nil, err
	}
	bound, err := bindings(json.RawMessage(`"` + fixture + `"`))
	if err != nil {
		return nil, err
	}
	g := &generator{paths: map[string][]string{}, objects: map[string]any{}}
	functions := s.estimator.Functions()
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		_, isOperator := operators[name]
		if !isOperator && (strings.Contains(name, "@") || strings.HasPrefix(name, "_") || name == "in") {
			continue
		}
		for _, o := range functions[name].OverloadDecls() {
			g.overloads = append(g.overloads, overload{name, o.IsMemberFunction(), o.ArgTypes(), o.ResultType()})
		}
	}
	for _, root := range []string{"object", "oldObject", "params", "request", "namespaceObject"} {
		g.walk(root, bound[root], g.paths)
	}
	return g, nil
}

func (g *generator) walk(path string, value any, paths map[string][]string) {
	add := func(kind string) { paths[kind] = append(paths[kind], path) }
	switch v := value.(type) {
	case map[string]any:
		add("map")
		for _, key := range slices.Sorted(maps.Keys(v)) {
			escaped, ok := apiservercel.Escape(key)
			if ok { // which only is its name where there is a schema
				g.walk(path+"."+escaped, v[key], paths)
			}
			if isIdentifier(key) && escaped != key {
				g.walk(path+"."+key, v[key], paths)
			} else if escaped != key {
				g.walk(path+"["+encodeString(key)+"]", v[key], paths)
			}
		}
	case []any:
		add("list")
		for i := range min(len(v), 2) {
			g.walk(fmt.Sprintf("%s[%d]", path, i), v[i], paths)
		}
		if len(v) > 0 {
			if first, ok := v[0].(map[string]any); ok {
				g.objects[path] = first
			}
		}
	case string:
		add("string")
	case int64:
		add("int")
	case float64:
		add("double")
	case bool:
		add("bool")
	case nil:
		add("null_type")
	}
}

func isIdentifier(s string) bool {
	for i, c := range s {
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != "" && s != "in"
}

func pick[T any](g *generator, of []T) T { return of[g.random.IntN(len(of))] }

func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

// expression makes one of the wanted type.
func (g *generator) expression(want *cel.Type, depth int) string {
	if g.chance(g.mistakes) && depth > 0 {
		return g.mistake(want, depth-1)
	}
	if depth <= 0 || g.chance(10) {
		return g.leaf(want)
	}
	return g.composed(want, depth-1)
}

func (g *generator) composed(want *cel.Type, depth int) string {
	if g.chance(25) {
		if text, ok := g.macro(want, depth); ok {
			return text
		}
	}
	switch {
	case g.chance(8) && want.Kind() == types.BoolKind:
		return "has(" + g.selection() + ")"
	case g.chance(40) && isOptional(want):
		return g.optional(want, depth)
	}
	fitting := slices.DeleteFunc(slices.Clone(g.overloads), func(o overload) bool {
		return !bind(o.result, want, map[string]*cel.Type{})
	})
	if len(fitting) == 0 {
		return g.leaf(want)
	}
	o := pick(g, fitting)
	bound := map[string]*cel.Type{}
	bind(o.result, want, bound)
	return g.call(o, bound, depth)
}

func (g *generator) call(o overload, bound map[string]*cel.Type, depth int) string {
	args := make([]string, len(o.args))
	for i, arg := range o.args {
		args[i] = g.expression(g.substitute(arg, bound), depth)
	}
	if o.function == "lists.range" && len(args) > 0 {
		// Nothing bounds what it allocates.
		args[0] = pick(g, []string{"-1", "0", "1", "3", "20", "dyn(2)", operand(args[0]) + " % 9"})
	}
	if o.function == "isSorted" && len(args) > 0 && strings.Contains(args[0], "transformList") {
		// The keys of a large map are sorted so seldom that no number of evaluations shows that they can be.
		args[0] = "[" + g.leaf(cel.IntType) + "]"
	}
	if format, ok := operators[o.function]; ok {
		values := make([]any, len(args))
		for i := range args {
			values[i] = operand(args[i])
		}
		return fmt.Sprintf(format, values...)
	}
	if o.member {
		return fmt.Sprintf("%s.%s(%s)", operand(args[0]), o.function, strings.Join(args[1:], ", "))
	}
	return fmt.Sprintf("%s(%s)", o.function, strings.Join(args, ", "))
}

// operand puts what is not obviously one operand into parentheses.
func operand(text string) string {
	if strings.ContainsAny(text, " -!") {
		return "(" + text + ")"
	}
	return text
}

func isOptional(t *cel.Type) bool { return t.TypeName() == "optional_type" }

// with makes an expression in which a variable is known.
func (g *generator) with(bindings []binding, want *cel.Type, depth int) string {
	before := len(g.scope)
	g.scope = append(g.scope, bindings...)
	text := g.expression(want, depth)
	g.scope = g.scope[:before]
	return text
}

func (g *generator) macro(want *cel.Type, depth int) (string, bool) {
	element, x := pick(g, simple), fmt.Sprintf("x%d", len(g.scope))
	if len(g.objects) > 0 && g.chance(30) {
		return g.overObjects(x, want, depth)
	}
	y := x + "y"
	one := []binding{{x, element}}
	list := operand(g.expression(cel.ListType(element), depth))
	two := []binding{{x, cel.IntType}, {y, element}}
	source := list
	if g.chance(40) {
		source, two[0].kind = operand(g.expression(cel.MapType(cel.StringType, element), depth)), cel.StringType
	}
	switch {
	case want.Kind() == types.BoolKind && g.chance(30):
		return fmt.Sprintf("%s.%s(%s, %s, %s)", source, pick(g, []string{"all", "exists", "existsOne"}), x, y, g.with(two, cel.BoolType, depth)), true
	case want.Kind() == types.BoolKind:
		return fmt.Sprintf("%s.%s(%s, %s)", list, pick(g, []string{"all", "exists", "exists_one"}), x, g.with(one, cel.BoolType, depth)), true
	case want.Kind() == types.ListKind:
		result := want.Parameters()[0]
		switch g.random.IntN(4) {
		case 0:
			source := operand(g.expression(want, depth))
			return fmt.Sprintf("%s.filter(%s, %s)", source, x, g.with([]binding{{x, result}}, cel.BoolType, depth)), true
		case 1:
			return fmt.Sprintf("%s.transformList(%s, %s, %s)", source, x, y, g.with(two, result, depth)), true
		case 2:
			source := operand(g.expression(want, depth))
			return fmt.Sprintf("%s.sortBy(%s, %s)", source, x, g.with([]binding{{x, result}}, pick(g, simple), depth)), true
		}
		return fmt.Sprintf("%s.map(%s, %s)", list, x, g.with(one, result, depth)), true
	case want.Kind() == types.MapKind && want.Parameters()[0].Kind() == types.StringKind:
		source := operand(g.expression(cel.MapType(cel.StringType, element), depth))
		two[0].kind = cel.StringType
		return fmt.Sprintf("%s.transformMap(%s, %s, %s)", source, x, y, g.with(two, want.Parameters()[1], depth)), true
	case isOptional(want):
		source := operand(g.expression(cel.OptionalType(element), depth))
		return fmt.Sprintf("%s.optMap(%s, %s)", source, x, g.with(one, want.Parameters()[0], depth)), true
	}
	return "", false
}

// overObjects makes a comprehension over a list of objects.
func (g *generator) overObjects(x string, want *cel.Type, depth int) (string, bool) {
	list := pick(g, slices.Sorted(maps.Keys(g.objects)))
	local, objects := g.local, g.objects
	defer func() { g.local, g.objects = local, objects }()
	g.local, g.objects = map[string][]string{}, maps.Clone(objects)
	g.walk(x, objects[list], g.local)
	one := []binding{{x, cel.DynType}}
	switch want.Kind() {
	case types.BoolKind:
		return fmt.Sprintf("%s.%s(%s, %s)", list, pick(g, []string{"all", "exists", "exists_one"}), x, g.with(one, want, depth)), true
	case types.ListKind:
		return fmt.Sprintf("%s.map(%s, %s)", list, x, g.with(one, want.Parameters()[0], depth)), true
	}
	return "", false
}

// selection is a field, which may be missing.
func (g *generator) selection() string {
	path := pick(g, g.paths["map"])
	if local := g.local["map"]; len(local) > 0 && g.chance(50) {
		path = pick(g, local)
	}
	if all := g.paths[pick(g, []string{"string", "int", "bool", "list"})]; len(all) > 0 && g.chance(70) {
		path = pick(g, all)
		if strings.HasSuffix(path, "]") {
			path = "object.spec"
		}
		return path
	}
	return path + "." + pick(g, []string{"nope", "spec", "metadata", "name", "labels"})
}

func (g *generator) optional(want *cel.Type, depth int) string {
	path := g.selection()
	parts := strings.Split(path, ".")
	for i := 1; i < len(parts); i++ {
		if g.chance(60) || i == len(parts)-1 {
			parts[i] = "?" + parts[i]
		}
	}
	if g.chance(30) {
		return "optional.of(" + g.expression(want.Parameters()[0], depth) + ")"
	}
	return strings.Join(parts, ".")
}

func (g *generator) leaf(want *cel.Type) string {
	var fitting []string
	for _, b := range g.scope {
		if b.kind.IsExactType(want) || want.Kind() == types.DynKind {
			fitting = append(fitting, b.name)
		}
	}
	if len(fitting) > 0 && g.chance(60) {
		return pick(g, fitting)
	}
	kind := want.TypeName()
	if want.Kind() == types.DynKind || want.Kind() == types.AnyKind {
		kind = pick(g, []string{"string", "int", "bool", "double", "list", "map", "null_type"})
	}
	if paths := g.local[kind]; len(paths) > 0 && g.chance(50) {
		return pick(g, paths)
	}
	if paths := g.paths[kind]; len(paths) > 0 && g.chance(60) {
		return pick(g, paths)
	}
	switch {
	case isOptional(want) && g.chance(70):
		return "optional.of(" + g.leaf(want.Parameters()[0]) + ")"
	case isOptional(want):
		return "optional.none()"
	case want.Kind() == types.ListKind:
		elements := make([]string, g.random.IntN(4))
		for i := range elements {
			elements[i] = g.leaf(want.Parameters()[0])
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case want.Kind() == types.MapKind:
		entries := make([]string, g.random.IntN(3))
		for i := range entries {
			entries[i] = g.leaf(want.Parameters()[0]) + ": " + g.leaf(want.Parameters()[1])
		}
		return "{" + strings.Join(entries, ", ") + "}"
	}
	if known := literals[kind]; len(known) > 0 {
		return pick(g, known)
	}
	return "dyn(" + pick(g, literals["string"]) + ")"
}

// bind makes a declared type the wanted one by choosing its parameters.
func bind(declared, want *cel.Type, bound map[string]*cel.Type) bool {
	if declared.Kind() == types.TypeParamKind {
		if known, ok := bound[declared.TypeName()]; ok {
			return known.IsExactType(want)
		}
		bound[declared.TypeName()] = want
		return true
	}
	if want.Kind() == types.DynKind {
		return true
	}
	if declared.Kind() != want.Kind() || declared.TypeName() != want.TypeName() ||
		len(declared.Parameters()) != len(want.Parameters()) {
		return false
	}
	for i, parameter := range declared.Parameters() {
		if !bind(parameter, want.Parameters()[i], bound) {
			return false
		}
	}
	return true
}

// substitute chooses the parameters that are still open.
func (g *generator) substitute(t *cel.Type, bound map[string]*cel.Type) *cel.Type {
	switch {
	case t.Kind() == types.TypeParamKind:
		if bound[t.TypeName()] == nil {
			bound[t.TypeName()] = pick(g, simple)
		}
		return bound[t.TypeName()]
	case t.Kind() == types.ListKind:
		return cel.ListType(g.substitute(t.Parameters()[0], bound))
	case t.Kind() == types.MapKind:
		return cel.MapType(g.substitute(t.Parameters()[0], bound), g.substitute(t.Parameters()[1], bound))
	case isOptional(t):
		return cel.OptionalType(g.substitute(t.Parameters()[0], bound))
	}
	return t
}

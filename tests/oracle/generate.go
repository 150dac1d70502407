package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/environment"
)

// What requests are made for: a fixture, and the kinds that they are checked against.
type subject struct {
	fixture string
	typed   []string
}

var subjects = []subject{
	{"pod", []string{"v1/Pod"}},
	{"widget", []string{"test.example/v1/Widget"}},
	{"deployment", []string{"apps/v1/Deployment"}},
	{"widget", []string{"test.example/v1/Widget", "test.example/v2/Widget"}},
	{"sizes", nil},
}

// Variables that some requests have. They are the same ones, as making a compiler for others takes long.
var policyVariables = []variable{
	{"i", "1 + 1"}, {"s", "object.metadata.name"}, {"bad", "object.nope"}, {"o", "object.?metadata.?name"},
	{"m", "{'a': variables.i}"}, {"l", "object.metadata.?labels.orValue({}).map(k, k)"},
}

// How they are used, with the types that they have for the checker.
var variableBindings = []binding{
	{"variables.i", cel.IntType}, {"variables.s", cel.StringType}, {"variables.bad", cel.BoolType},
	{"variables.o", cel.OptionalType(cel.DynType)}, {"variables.m", cel.MapType(cel.StringType, cel.IntType)},
	{"variables.l", cel.ListType(cel.StringType)},
}

// How many percent of the requests are to be rejected. Among the others, many have warnings of type checking.
const wrongRequests = 34

// After so many expressions that are not what was wanted, the next is taken.
const tries = 50

// generate writes requests; each has randomness of its own, so that the same number gives the same whatever the count.
func generate(o *oracle, seed uint64, count int, out io.Writer) error {
	var generators []*generator
	for _, about := range subjects {
		g, err := newGenerator(o, about.fixture)
		if err != nil {
			return err
		}
		generators = append(generators, g)
	}
	wanted := append([]*cel.Type{
		cel.BoolType, cel.BoolType, cel.BoolType, cel.ListType(cel.StringType), cel.OptionalType(cel.IntType),
	}, simple...)
	w := bufio.NewWriter(out)
	for n := range count {
		about, g := subjects[n%len(subjects)], *generators[n%len(subjects)]
		g.random = rand.New(rand.NewPCG(seed<<32|uint64(n), 0))
		r := request{
			ID:      fmt.Sprintf("generated/%d/%d", seed, n),
			Fixture: json.RawMessage(`"` + about.fixture + `"`),
			Typed:   about.typed,
		}
		if about.typed != nil {
			r.TypedParams = "test.example/v1/Widget"
		}
		if g.chance(15) {
			r.Variables, g.scope = policyVariables, variableBindings
		}
		wrong := g.chance(wrongRequests)
		want := pick(&g, wanted)
		if g.chance(40) {
			switch want.Kind() {
			case types.BoolKind:
				r.Expect = "bool"
			case types.StringKind:
				r.Expect = pick(&g, []string{"string", "stringOrNull"})
			}
		}
		for range tries {
			if g.mistakes = 0; wrong {
				g.mistakes = 12
			}
			r.Expr = g.expression(want, 2+g.random.IntN(3))
			if wrong && g.chance(15) {
				r.Expr = g.misprint(r.Expr)
			}
			rejected, err := o.isRejected(r)
			if err != nil {
				return err
			}
			if rejected == wrong {
				break
			}
		}
		line, err := compact(r)
		if err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return w.Flush()
}

// isRejected tells what creating a policy would say.
func (o *oracle) isRejected(r request) (bool, error) {
	s, err := o.scope(r, environment.StoredExpressions)
	if err != nil {
		return false, err
	}
	return s.compile(r).Error != nil, nil
}

// mistake makes an expression that is wrong: for the parser, the checker or a validator.
func (g *generator) mistake(want *cel.Type, depth int) string {
	other := func() string { return operand(g.expression(pick(g, simple), depth)) }
	switch g.random.IntN(12) {
	case 0:
		return pick(g, []string{"nope", "objects", "x9", "variables.nope", "Object", "object.metadata.nope", "params.nope", "request.nope"})
	case 1:
		return operand(g.expression(want, depth)) + pick(g, []string{".nope", ".length", ".a.b", ".?nope", "[0]", "[?'a']", "['a']", ".nope()"})
	case 2:
		return pick(g, []string{"nope", "string", "size", "math.abs", "base64.encode", "type"}) + "(" + other() + ", " + other() + ")"
	case 3: // too many or too few arguments, or the wrong form of call
		o := pick(g, g.overloads)
		if g.chance(50) {
			o.member = !o.member
		}
		args := slices.Clone(o.args)
		if len(args) > 1 && g.chance(50) {
			args = args[1:]
		} else if g.chance(50) {
			args = append(args, pick(g, simple))
		}
		if len(args) == 0 || operators[o.function] != "" {
			return other()
		}
		o.args = args
		return g.call(o, map[string]*cel.Type{}, depth)
	case 4:
		return pick(g, []string{"[1, 'a']", "{1: 'a', 'b': 2}", "[1, 1.0, dyn(1)]", "{1.5: 1}", "[[1], ['a']]", "[?1]", "{?'a': 1}", "{'a': 1, 'a': 2}"})
	case 5:
		return other() + pick(g, []string{
			".all(a.b, true)", ".map(x)", ".exists(1, true)", ".all(x, 1)", ".sortBy(x)", ".exists_one(x, y, true)", ".filter(x, x)",
			".transformMap(a, b, c, d)", ".all(x, x, true)", ".map(__result__, 1)", ".optMap(x)", ".transformMapEntry(k, v, 1)",
		})
	case 6:
		return pick(g, []string{
			"timestamp('x')", "duration('1')", "'a'.matches('(')", "'%d'.format(['a'])", "'%s'.format([])", "quantity('x')", "url(':')",
			"ip('x')", "cidr('10.0.0.1')", "1 / 0", "semver('1')", "'a'.replace('b')", "9223372036854775808", "'\\z'", "1.e", "0x", "has(1)", "has(x)",
		})
	case 7:
		return pick(g, []string{"math.greatest(1, 2)", "base64.decode('YQ==')", "cel.bind(x, 1, x)", "'a'.reverse()", "proto.hasExt(1, a)", "strings.quote('a')"})
	case 8:
		return g.expression(cel.BoolType, depth) + " ? " + other() + " : " + other()
	case 9:
		return other() + pick(g, []string{" && ", " || ", " + ", " - ", " in ", " < ", " == ", " % "}) + other()
	}
	return g.expression(pick(g, simple), depth)
}

// misprint changes the text somewhere.
func (g *generator) misprint(text string) string {
	characters := []rune(text)
	at := g.random.IntN(len(characters) + 1)
	end := min(at+g.random.IntN(3), len(characters))
	pieces := []string{
		"", "", "(", ")", "[", "]", ",", ".", "?", ":", "'", `"`, "+", "=", "&&", "!", " in ", "\n", "é", "}", `\`, "`", "1u2", " 0x", ";",
		"//\n", "b'", "r'", "for", " null ", "@", "$", "#", "\t", "-", "''", "😀", "1", "e", "\u00a0",
	}
	return string(characters[:at]) + pick(g, pieces) + string(characters[end:])
}

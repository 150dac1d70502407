package main

import (
	"encoding/json"
	"fmt"

	"github.com/google/cel-go/cel"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

var returnTypes = map[string][]*cel.Type{
	"":             {cel.AnyType},
	"any":          {cel.AnyType},
	"bool":         {cel.BoolType},
	"string":       {cel.StringType},
	"stringOrNull": {cel.StringType, cel.NullType},
}

type expression struct {
	name, text string
	returns    []*cel.Type
}

func (e expression) GetName() string          { return e.name }
func (e expression) GetExpression() string    { return e.text }
func (e expression) ReturnTypes() []*cel.Type { return e.returns }

// A policy's compiler in one mode, with its variables.
type scope struct {
	compiler  *plugincel.CompositedCompiler
	options   plugincel.OptionalVariableDeclarations
	mode      environment.Type
	variables []variableVerdict
	estimator *cel.Env
}

type oracle struct {
	scopes map[string]*scope
	types  *typeChecker
	// Whether `varies` is about any object that is equal to the fixture's, however it is written.
	reorder bool
}

func newOracle() (*oracle, error) {
	types, err := newTypeChecker()
	return &oracle{scopes: map[string]*scope{}, types: types}, err
}

// Making a compiler takes much longer than using it, and most requests need the same.
const maxScopes = 64

func (o *oracle) scope(r request, mode environment.Type) (*scope, error) {
	key, err := json.Marshal([]any{mode, orTrue(r.Params), orTrue(r.Authorizer), r.Variables})
	if err != nil {
		return nil, err
	}
	if s, ok := o.scopes[string(key)]; ok {
		return s, nil
	}
	compiler, err := plugincel.NewCompositedCompiler(baseEnv())
	if err != nil {
		return nil, err
	}
	s := &scope{
		compiler: compiler,
		options:  plugincel.OptionalVariableDeclarations{HasParams: orTrue(r.Params), HasAuthorizer: orTrue(r.Authorizer)},
		mode:     mode,
	}
	for _, v := range r.Variables {
		e := expression{v.Name, v.Expr, []*cel.Type{cel.AnyType, cel.DynType}}
		result := compiler.CompileAndStoreVariable(e, s.options, mode)
		s.variables = append(s.variables, variableVerdict{v.Name, verdictOf(result)})
	}
	if s.estimator, err = s.estimating(); err != nil {
		return nil, err
	}
	if len(o.scopes) >= maxScopes {
		clear(o.scopes)
	}
	o.scopes[string(key)] = s
	return s, nil
}

// estimating is the environment for the static estimate. The compiler does not give its own away, so all variables but
// `variables` are dyn in this one: they are of unknown size anyway.
func (s *scope) estimating() (*cel.Env, error) {
	env, err := compositionOf(s.compiler).Env(environment.StoredExpressions)
	if err != nil {
		return nil, err
	}
	var options []cel.EnvOption
	for _, name := range []string{"object", "oldObject", "params", "request", "namespaceObject"} {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	options = append(options, cel.Variable("authorizer", library.AuthorizerType),
		cel.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType))
	return env.Extend(options...)
}

func verdictOf(r plugincel.CompilationResult) verdict {
	if r.Error != nil {
		return verdict{Errors: problemsOf(r.Error.Detail), Detail: r.Error.Detail}
	}
	return verdict{OK: true, Type: r.OutputType.String()}
}

// compile reports a panic as an error. The API server answers such a request with status 500.
func (s *scope) compile(r request) (result plugincel.CompilationResult) {
	defer func() {
		if p := recover(); p != nil {
			result.Error = &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: fmt.Sprintf("panic: %v", p)}
		}
	}()
	e := expression{"", r.Expr, returnTypes[r.Expect]}
	return s.compiler.CompileCELExpression(e, s.optionsFor(r), s.mode)
}

// ask puts a request to the API server's code.
func (o *oracle) ask(r request) (answer, error) {
	a := answer{ID: r.ID}
	fresh, err := o.scope(r, environment.NewExpressions)
	if err != nil {
		return a, err
	}
	stored, err := o.scope(r, environment.StoredExpressions)
	if err != nil {
		return a, err
	}
	a.New = verdictOf(fresh.compile(r))
	compiled := stored.compile(r)
	storedVerdict := verdictOf(compiled)
	if storedVerdict.Detail != a.New.Detail || storedVerdict.OK != a.New.OK || storedVerdict.Type != a.New.Type {
		a.Stored = &storedVerdict
	}
	for _, v := range fresh.variables {
		v.Detail = ""
		a.Variables = append(a.Variables, v)
	}
	if !r.Detail {
		a.New.Detail = ""
		storedVerdict.Detail = ""
	}
	if compiled.Error == nil {
		if a.Estimate, err = stored.estimate(r.Expr); err != nil {
			return a, err
		}
		if err := stored.evaluate(r, compiled, o.reorder, &a); err != nil {
			return a, err
		}
	}
	if len(r.Typed) > 0 {
		a.Typed, err = o.types.check(r)
	}
	return a, err
}

func (s *scope) estimate(text string) ([]uint64, error) {
	ast, issues := s.estimator.Compile(text)
	if issues.Err() != nil {
		return nil, nil // with dyn instead of its type a variable can make the types of two branches differ
	}
	cost, err := s.estimator.EstimateCost(ast, &library.CostEstimator{})
	if err != nil {
		return nil, err
	}
	return []uint64{cost.Min, cost.Max}, nil
}

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// An outcome of one evaluation.
type outcome struct {
	value, sorted, failure string
	cost, hasCost          uint64
	variablesCost          int64
}

func (o outcome) spent() int64 { return int64(o.cost) + o.variablesCost }

const (
	// Go iterates over maps in random order. So often is an expression with a comprehension evaluated, to see whether
	// that shows (one in 25 orders may differ: all but never are all of these the same) ...
	repetitions = 512
	// ... unless this much is spent on it before.
	repetitionBudget = 1_000_000
	// In so many of them the maps are made anew, which takes longer than iterating over them.
	reorderings = 24
	// All of these together may take so long. What allocates without an end must not be asked for: nothing can stop it.
	deadline = 10 * time.Second
)

// evaluate runs a program as the API server does, until it is known whether the outcome is always the same.
func (s *scope) evaluate(r request, compiled plugincel.CompilationResult, reorder bool, a *answer) error {
	most := 2
	if len(r.Variables) > 0 || s.iterates(r.Expr) {
		most = repetitions
	}
	activation, err := bindings(r.Fixture)
	if err != nil {
		return err
	}
	if !s.options.HasParams {
		delete(activation, plugincel.ParamsVarName)
	}
	if !s.options.HasAuthorizer {
		delete(activation, plugincel.AuthorizerVarName)
		delete(activation, plugincel.RequestResourceAuthorizerVarName)
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	first, err := s.once(ctx, compiled, activation)
	if err != nil {
		return err
	}
	var value, sorted, failure, cost bool
	for spent, n := first.spent(), 1; spent < repetitionBudget && n < most; n++ {
		if reorder && most > 2 && n < reorderings {
			for name, value := range activation {
				activation[name] = reordered(value, n%3)
			}
		}
		again, err := s.once(ctx, compiled, activation)
		if err != nil {
			return err
		}
		spent += again.spent()
		value = value || again.value != first.value
		sorted = sorted || again.sorted != first.sorted
		failure = failure || again.failure != first.failure
		cost = cost || again.cost != first.cost || again.variablesCost != first.variablesCost
	}
	if ctx.Err() != nil {
		a.Unfinished = true
		return nil
	}
	a.Value, a.Error = first.value, first.failure
	switch {
	case failure || sorted:
		a.Value, a.Error = "", ""
		a.Varies = append(a.Varies, "outcome")
	case value:
		a.Value = first.sorted
		a.Varies = append(a.Varies, "order")
	}
	if cost {
		a.Varies = append(a.Varies, "cost")
		return nil
	}
	if first.hasCost != 0 {
		a.Cost = &first.cost
	}
	if len(r.Variables) > 0 {
		a.VariablesCost = &first.variablesCost
	}
	return nil
}

// reordered copies a value with its maps' entries put in by name, the other way round, or in any order: of this depends in
// which orders Go iterates over small maps.
func reordered(value any, order int) any {
	switch v := value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		switch order {
		case 1:
			slices.Reverse(names)
		case 2:
			rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		}
		out := map[string]any{}
		for _, name := range names {
			out[name] = reordered(v[name], order)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = reordered(v[i], order)
		}
		return out
	}
	return value
}

func (s *scope) iterates(text string) bool {
	parsed, issues := s.estimator.Parse(text)
	return issues.Err() != nil ||
		len(ast.MatchDescendants(ast.NavigateAST(parsed.NativeRep()), ast.KindMatcher(ast.ComprehensionKind))) > 0
}

func (s *scope) once(parent context.Context, compiled plugincel.CompilationResult, shared map[string]any) (o outcome, err error) {
	activation := maps.Clone(shared)
	ctx := compositionOf(s.compiler).CreateContext(parent)
	activation[plugincel.VariableVarName] = ctx.Variables(activation)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the evaluation panicked: %v", p)
		}
	}()
	value, details, failure := compiled.Program.ContextEval(ctx, activation)
	if details != nil && details.ActualCost() != nil {
		o.cost, o.hasCost = *details.ActualCost(), 1
	}
	o.variablesCost = ctx.GetAndResetCost()
	if failure != nil {
		o.failure = failure.Error()
	} else {
		o.value, o.sorted = encode(value), encodeSorted(value)
	}
	return o, nil
}

// encodeSorted ignores the order of a list.
func encodeSorted(v ref.Val) string {
	list, ok := v.(traits.Lister)
	if !ok {
		return encode(v)
	}
	var elements []string
	for it := list.Iterator(); it.HasNext() == types.True; {
		elements = append(elements, encode(it.Next()))
	}
	slices.Sort(elements)
	return encodeList(elements)
}

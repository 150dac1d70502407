package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"time"

	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// answerAll writes golden lines of requests. An evaluation that panics has `failure` instead of an answer.
func answerAll(o *oracle, in io.Reader, out io.Writer) error {
	w := bufio.NewWriter(out)
	err := eachRequest(in, func(r request) error {
		a, err := o.ask(r)
		a.ID = ""
		var line any = golden{r, a}
		if err != nil {
			line = map[string]string{"id": r.ID, "expr": r.Expr, "failure": err.Error()}
		}
		text, err := compact(line)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
	if err != nil {
		return err
	}
	return w.Flush()
}

func eachRequest(in io.Reader, do func(request) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		r, err := parseRequest(lines.Bytes())
		if err == nil {
			err = do(r)
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

// How long the API server's code takes for an expression, in nanoseconds.
type timing struct {
	ID       string `json:"id"`
	Compile  int64  `json:"compile"`
	Evaluate int64  `json:"evaluate"`
}

// Of so many batches the fastest counts; each takes at least so long.
const (
	batches  = 15
	batchMin = 200_000 // nanoseconds
)

// bench measures accepted expressions without variables.
func bench(o *oracle, in io.Reader, out io.Writer) error {
	return eachRequest(in, func(r request) error {
		s, err := o.scope(r, environment.StoredExpressions)
		if err != nil {
			return err
		}
		activation, err := bindings(r.Fixture)
		if err != nil {
			return err
		}
		e := expression{"", r.Expr, returnTypes[r.Expect]}
		var compiled plugincel.CompilationResult
		t := timing{ID: r.ID, Compile: fastest(func() { compiled = s.compiler.CompileCELExpression(e, s.options, s.mode) })}
		if compiled.Error != nil {
			return compiled.Error
		}
		ctx := compositionOf(s.compiler).CreateContext(context.Background())
		activation = maps.Clone(activation)
		activation[plugincel.VariableVarName] = ctx.Variables(activation)
		t.Evaluate = fastest(func() { compiled.Program.ContextEval(ctx, activation) })
		return json.NewEncoder(out).Encode(t)
	})
}

func fastest(do func()) int64 {
	batch := func(n int64) int64 {
		start := time.Now()
		for range n {
			do()
		}
		return time.Since(start).Nanoseconds()
	}
	n := int64(1)
	for batch(n) < batchMin {
		n *= 2
	}
	best := batch(n)
	for range batches - 1 {
		best = min(best, batch(n))
	}
	return best / n
}

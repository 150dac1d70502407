package main

import (
	"encoding/json"
	"fmt"
)

// A request: an expression, and what it may use. The README says what each field means.
type request struct {
	ID          string          `json:"id,omitempty"`
	Expr        string          `json:"expr"`
	Expect      string          `json:"expect,omitempty"`
	Params      *bool           `json:"params,omitempty"`
	Authorizer  *bool           `json:"authorizer,omitempty"`
	Mutation    bool            `json:"mutation,omitempty"`
	Variables   []variable      `json:"variables,omitempty"`
	Fixture     json.RawMessage `json:"fixture,omitempty"`
	Typed       []string        `json:"typed,omitempty"`
	TypedParams string          `json:"typedParams,omitempty"`
	Detail      bool            `json:"detail,omitempty"`
}

type variable struct {
	Name string `json:"name"`
	Expr string `json:"expr"`
}

// A verdict of compiling an expression in one environment.
type verdict struct {
	OK     bool      `json:"ok"`
	Type   string    `json:"type,omitempty"`
	Errors []problem `json:"errors,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

type problem struct {
	Kind   string `json:"kind"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

// An answer to a request.
type answer struct {
	ID            string               `json:"id,omitempty"`
	Variables     []variableVerdict    `json:"variables,omitempty"`
	New           verdict              `json:"new"`
	Stored        *verdict             `json:"stored,omitempty"`
	Typed         map[string][]problem `json:"typed,omitempty"`
	Value         string               `json:"value,omitempty"`
	Error         string               `json:"error,omitempty"`
	Cost          *uint64              `json:"cost,omitempty"`
	VariablesCost *int64               `json:"variablesCost,omitempty"`
	Varies        []string             `json:"varies,omitempty"`
	Unfinished    bool                 `json:"unfinished,omitempty"`
	Estimate      []uint64             `json:"estimate,omitempty"`
}

type variableVerdict struct {
	Name string `json:"name"`
	verdict
}

func parseRequest(line []byte) (request, error) {
	var r request
	if err := strict(line, &r); err != nil {
		return r, fmt.Errorf("not a request: %w", err)
	}
	if _, ok := returnTypes[r.Expect]; !ok {
		return r, fmt.Errorf("expect is %q, not bool, string, stringOrNull, Object, JSONPatch or any", r.Expect)
	}
	return r, nil
}

func orTrue(b *bool) bool { return b == nil || *b }

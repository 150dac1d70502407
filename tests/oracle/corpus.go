package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// readCorpus gives a corpus file's requests. A `.jsonl` file has one per line. A line of a `.tsv` file is a category and
// an expression; `#{...}` has fields that the requests below it share, `#let NAME text` names a piece of text, `#` else
// begins a comment. In an expression `«a‖b»` stands for each of its alternatives in turn, `«NAME»` for the text of that
// name, `«3*a»` for `aaa`.
func readCorpus(path string) ([]request, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var requests []request
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	numbers := map[string]int{}
	identify := func(category string) string {
		numbers[category]++
		return fmt.Sprintf("%s/%s/%d", name, category, numbers[category])
	}
	shared, names := []byte("{}"), map[string]string{}
	for n, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		fail := func(err error) ([]request, error) { return nil, fmt.Errorf("%s:%d: %w", path, n+1, err) }
		switch let, isLet := strings.CutPrefix(line, "#let "); {
		case strings.HasSuffix(path, ".jsonl"):
			r, err := parseRequest([]byte(line))
			if err != nil {
				return fail(err)
			}
			if r.ID == "" {
				return fail(fmt.Errorf("no id, which is the category"))
			}
			r.ID = identify(r.ID)
			requests = append(requests, r)
		case isLet:
			key, value, _ := strings.Cut(let, " ")
			names[key] = value
		case strings.HasPrefix(line, "#{"):
			shared = []byte(line[1:])
		case line == "" || strings.HasPrefix(line, "#"):
		default:
			category, template, ok := strings.Cut(line, "\t")
			if !ok {
				return fail(fmt.Errorf("no tab in %q", line))
			}
			expressions, err := expand(template, names)
			if err != nil {
				return fail(err)
			}
			for _, expr := range expressions {
				r, err := parseRequest(shared)
				if err != nil {
					return fail(err)
				}
				r.ID, r.Expr = identify(category), expr
				requests = append(requests, r)
			}
		}
	}
	return requests, nil
}

// expand gives all expressions that a template stands for.
func expand(template string, names map[string]string) ([]string, error) {
	before, rest, ok := strings.Cut(template, "«")
	if !ok {
		return []string{template}, nil
	}
	inside, after, ok := strings.Cut(rest, "»")
	if !ok {
		return nil, fmt.Errorf("« without » in %q", template)
	}
	if text, ok := names[inside]; ok {
		inside = text
	}
	alternatives := strings.Split(inside, "‖")
	if count, text, ok := strings.Cut(inside, "*"); ok {
		if n, err := strconv.Atoi(count); err == nil {
			alternatives = []string{strings.Repeat(text, n)}
		}
	}
	tails, err := expand(after, names)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, alternative := range alternatives {
		for _, tail := range tails {
			out = append(out, before+alternative+tail)
		}
	}
	return out, nil
}

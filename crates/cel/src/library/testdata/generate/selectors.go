package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

func selectors(t *table) {
	add := func(text string) {
		var texts []any
		selector, err := fields.ParseSelector(text)
		if err == nil {
			for _, r := range selector.Requirements() {
				texts = append(texts, r.Field+string(r.Operator)+r.Value)
			}
		}
		t.line("fields", []any{text}, texts, err)
		texts = nil
		requirements, err := labels.ParseToRequirements(text)
		for _, r := range requirements {
			texts = append(texts, r.String())
		}
		t.line("labels", []any{text}, texts, err)
	}
	for _, text := range []string{
		"a", "!a", "! a", "a,b", "b,a", "a,,b", ",", "a,", ",a", " a = b ", "spec.nodeName=n1,metadata.name!=x", "a=b,a=c", "a==b", "a!=b",
		"a in (b)", "a in(b,a)", "a in (c,b,a,b)", "a notin (b, c)", "a in ()", "a in (,)", "a in (,,)", "a in (b,)", "a in (b,,)", "a in (,b)",
		"a in (b,,c)", "a in b", "a in", "a in (", "a in (b", "a in (b c)", "a in (=)", "a in (b,=)", "a in (in)", "in in (in)", "notin notin (notin)",
		"in", "in=notin", "x in (y),z", "x in (y) z", "a>1", "a<-1", "a<+1", "a>b", "a>", "a>1.5", "a>é", "a>9223372036854775808", "a=>1", "a=!b",
		"!a=b", "!!a", "!", "!=", "=", "==", "===", "=b", "!=b", "==b", "a=", "a==", "a!=", "a===b", "a=b=c", "a!b", "a b", "a (b)", "(a)", ")", "a)",
		`a=b\,c`, `a=b\=c`, `a=b\\`, `a=b\`, `a=b\c`, `a\,b`, `a\=b`, `a=\é`, `a=b\\,c=d`, "é=b", "a=é", "a=b é", "A/b=c", "a/b=c", "a/b/c=d", "/b", "a/",
		"-a", "a-", "a=-b", "a=b-", "a in (-b,c-)", "a\x00=b", "a=\x00b", "\x00a", "a\x00", "=\x00", "a=b\x00,c", "a==\x00b", "a\tin\n(b)\r", " ", "  ,",
		"a='b'", `a="b"`, "a=b;c=d", "a.b=c", "x=a,w!=b,z in (c),y", strings.Repeat("a", 64), "a=" + strings.Repeat("a", 64), "a=<b", "a<>b", "a!==b", "!=,a",
	} {
		add(text)
	}
	add("")
}

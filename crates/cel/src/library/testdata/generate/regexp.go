package main

import (
	"regexp"
	"sort"
	"strings"
	"unicode"
)

func regexps(t *table) {
	subjects := []any{"", "a", "abc", "aaa", "foo bar baz", "Straße é 世界", "line1\nline2\n", "2023-01-02", "k\u212asſ", "a.b*c[d]", "ab12_X", "😀a😀", "docker.io/library/nginx:1.25", "\t \v\f\r", "αβγΑΒΓ\u0345", "\u019b\ua7dc"}
	patterns := []string{"", "a", "a*", "a*?", "a+?", "a?", "(|a)*", "(|a)+", "(a|b)*", "(a*)+", "(a*)*", "a|ab", "ab|a", "(a|ab)(c|bcd)?", "^", "$", "^$", "(?m)^", "(?m)$", "(?m)^line.$", `\bb`, `\b`, `\B`, `\w+`, `\W+`, `\d+`, `\D+`, `\s`, `\S+`, ".", "(?s).", "(?s).*", ".*", ".+?", "(?i)K", "(?i)s", "(?i)straSSe", "(?i)[k-s]+", "(?i)[^k]", "(?i)\\w+", "(?i)\\W", "[[:word:]]+", "[[:^alpha:]]+", "[[:space:]]+", `\s+`, `[\d-]+`, `\pL+`, `\PL+`, `\p{Greek}+`, `\p{^Greek}+`, `\P{^Greek}+`, `(?i)\p{Lu}+`, `(?i)\P{Lu}+`, `(?i)\p{M}`, `[^a]`, `[^\n]+`, `[a-c]{2}`, `a{2}`, `a{2,}`, `a{0}`, `a{1,2}?`, `(?U)a+`, `(?U)a+?`, `\Qa.b*\E`, `\Q[\E`, `\Q`, `\x61`, `\x{4e16}`, `\141`, `\0`, `(?P<n>a)`, `(?<n>a)b`, `\Aa`, `c\z`, `(?i:A)b`, `(?i)a(?-i)B`, `a(?i)B|C`, `(?i)\x{19b}`, `(?i)\x{a7dc}`, `[^\x00-\x{10FFFF}]`, `x*`, `^[a-z0-9.]+/[a-z/]+(:[0-9.]+)?$`, `^\d{4}-\d{2}-\d{2}$`, "世", "[世-界]", `\p{Han}`, `(?i)α+`, "a^", "^*a", "$*", `\b+a`, `(?:)`, `|`, `a||b`, "[a\\-z]", "[]a]", "[^]a]", "[-a]", "[a-]", `(?s)a.*b`, `\pN+`, "(?m)^$", "(a?){3}", "(?:a{2}){2}|a", "(^|a)+"}
	for _, p := range patterns {
		for _, s := range subjects {
			t.add("x0.findAll(x1)", s, p)
			// The others follow from it for most.
			if text := s.(string); text == "" || text == "aaa" || text == "foo bar baz" || len(text) == 17 {
				t.add("x0.matches(x1)", s, p)
				t.add("x0.find(x1)", s, p)
			}
		}
		for _, n := range []int64{-5, 0, 1, 2} {
			t.add("x0.findAll(x1, x2)", "aaa bab", p, n)
		}
	}
	for _, call := range []string{"x0.matches(x1)", "x0.find(x1)", "x0.findAll(x1)"} {
		for _, p := range []string{"(", "a**", `\8`} {
			t.add(call, "a", p)
		}
	}
}

func regexpSyntax(t *table) {
	patterns := []string{"(", ")", "a)", "(a", "((a)", "[", "[a", "[^", "[]", "[]a", "[a-", "[z-a]", "[a-\\d]", "[[:foo:]]", "[[:alpha]", "[[:alpha:]", "[[:alpha:", "[[:", "[[:^alpha:]]", "*", "+", "?", "a**", "a*+", "a+*", "a??", "a???", "a*?*", "a{2}{3}", "a{2}*", "(*", "(|*", "|*", "a|*", "^*", "^**", "(?i)*", "a(?i)*", "a*(?i)*", "{", "{1}", "a{", "a{1", "a{1,", "a{1,2", "a{,2}", "a{01}", "a{1,02}", "a{1001}", "a{1000}", "a{1,1001}", "a{2,1}", "a{1001,}", "a{99999999999}", "a{1,99999999999}", "a{100000000}", "(a{100}){10}", "(a{100}){11}", "((a{10}){10}){10}", "((a{10}){10}){11}", "(a{1000}){1}", "(a{1000}){2}", "(a{1000}){0,1}", "(a{1000}){0}", "(a{2}){0,}", "(a{600}*){2}", "(a{501,}){2}", "(a{0,501}){2}", "\\", "a\\", "\\8", "\\1", "\\12", "\\18", "\\07", "\\0", "\\q", "\\_", "\\-", "\\é", "\\C", "[\\C]", "\\Z", "\\z", "\\G", "\\K", "\\R", "\\X", "\\h", "\\N", "\\u0041", "\\x", "\\x4", "\\x4g", "\\xg", "\\x{", "\\x{}", "\\x{41", "\\x{41}", "\\x{g}", "\\x{110000}", "\\x{10ffff}", "\\x{d800}", "[\\x{d800}-\\x{dfff}]", "[\\x{d000}-\\x{dfff}]", "\\xé4", "\\p", "\\pX", "\\pé", "\\p{", "\\p{}", "\\p{^}", "\\p{Foo}", "\\p{^Foo}", "[\\p{Foo}]", "\\PX", "\\p{greek}", "\\p{GREEK}", "\\p{Gr-eek}", "\\p{Old_Italic}", "\\p{OldItalic}", "\\p{LC}", "\\p{lc}", "\\p{Letter}", "\\p{lowercase letter}", "\\p{Any}", "\\p{ANY}", "\\p{ascii}", "\\p{Assigned}", "\\p{Cn}", "\\p{digit}", "\\p{Grek}", "\\p{Script=Greek}", "\\p{gc=L}", "\\p{IsGreek}", "\\p{Alphabetic}", "\\pL{2}", "(?", "(?)", "(?:", "(?:a", "(?:a)", "(?i", "(?i)", "(?i)a", "(?-)", "(?-i)", "(?i-)", "(?i-s)", "(?i-s:a)", "(?--i)", "(?x)", "(?a)", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?#c)", "(?R)", "(?1)", "(?P", "(?P<", "(?P<n", "(?P<n>", "(?P<n>a)", "(?P<n>a)(?P<n>b)", "(?P<>a)", "(?P<n m>a)", "(?P<é>a)", "(?P=n)", "(?P>n)", "(?<n>a)", "(?<n", "(?<", "(?<>a)", "(?'n'a)", "(?iU)a", "(?ié)", "(?n)", "\\Qa", "\\Qa\\E*", "\\Q\\E*", "a\\Q\\E*", "\\E", "\\Q\\Q\\E", "a++", "a*+b", "[a&&b]", "[a--b]", "[\\b]", "[\\A]", "[.]", "a]", "a}", "]", "}", "(?i)(?s)(?m)(?U)a", "[[=a=]]", "[[.a.]]", "\\<", "\\>", "\\`", "\\'", "(?s)(?-s).", "x{2}{", "x{2}{3", "\\d{1001}", "[\\Q]\\E]", "(a|b", "a|b)", "(?:(?:a)", strings.Repeat("(", 999) + strings.Repeat(")", 999), strings.Repeat("(", 1000) + strings.Repeat(")", 1000), strings.Repeat("(", 1001) + strings.Repeat(")", 1001), strings.Repeat("(?:", 2000) + strings.Repeat(")", 2000), strings.Repeat("(", 600) + "a" + strings.Repeat(")*", 600), "(" + strings.Repeat("ab|", 2000) + ")", "(?:" + strings.Repeat("(a{10})", 400) + "){100}", "[^\\x00-\\x{10FFFF}]*", "a{0}{0}", "(?i)\\Qé\\E{2}"}
	for _, p := range patterns {
		_, err := regexp.Compile(p)
		t.line("compile", []any{p}, nil, err)
	}
}

// summary is the number of code points and the sum of each times its number.
func summary(in func(rune) bool) []any {
	count, sum := int64(0), int64(0)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if (r < 0xd800 || r > 0xdfff) && in(r) {
			count++
			sum = (sum + int64(r)*count) % 1_000_000_007
		}
	}
	return []any{count, sum}
}

func regexpClasses(t *table) {
	names := []string{"Any", "Assigned", "ASCII", "Foo", "", "Grek"}
	for name := range unicode.Scripts {
		names = append(names, name)
	}
	for name := range unicode.Categories {
		names = append(names, name)
	}
	for name := range unicode.CategoryAliases {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		re, err := regexp.Compile(`^\p{` + name + `}$`)
		if err != nil {
			t.line("class", []any{name}, nil, nil)
			continue
		}
		t.line("class", []any{name}, summary(func(r rune) bool { return re.MatchString(string(r)) }), nil)
		re = regexp.MustCompile(`^(?i)\p{` + name + `}$`)
		t.line("folded class", []any{name}, summary(func(r rune) bool { return re.MatchString(string(r)) }), nil)
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if orbit := []rune{r}; unicode.SimpleFold(r) != r {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				orbit = append(orbit, f)
			}
			sort.Slice(orbit, func(a, b int) bool { return orbit[a] < orbit[b] })
			if orbit[0] == r {
				t.line("folded", []any{string(r)}, string(orbit), nil)
			}
		}
	}
	for _, r := range "1é\u019b\ua7dc\u0264\ua7cb\u1c89\u1c8a" {
		if unicode.SimpleFold(r) == r {
			t.line("folded", []any{string(r)}, string(r), nil)
		}
	}
}

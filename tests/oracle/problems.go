package main

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	located   = regexp.MustCompile(`^ERROR: <input>:(-?\d+):(-?\d+): `)
	truncated = regexp.MustCompile(`^\d+ more errors were truncated`)
)

// kinds has the form of each message, the first that fits being taken.
var kinds = []struct {
	name string
	text *regexp.Regexp
}{
	{"limit", regexp.MustCompile(`recursion (limit|depth) exceeded|lookahead limit exceeded|expression code point size exceeds limit|more errors were truncated|^Syntax error: More than \d+ `)},
	{"syntax", regexp.MustCompile(`^(Syntax error: |unsupported syntax|reserved identifier: |invalid (int|uint|double|bool|bytes|string) literal|invalid unicode code point|unable to unescape string|unsupported ident kind)`)},
	{"undeclared-reference", regexp.MustCompile(`^undeclared reference to '`)},
	{"undefined-field", regexp.MustCompile(`^undefined field '`)},
	{"no-matching-overload", regexp.MustCompile(`^found no matching overload for '`)},
	{"type-mismatch", regexp.MustCompile(`^expected type '`)},
	{"field-type-mismatch", regexp.MustCompile(`^expected type of field '`)},
	{"not-selectable", regexp.MustCompile(`^type '.*' does not support field selection`)},
	{"not-a-range", regexp.MustCompile(`cannot be range of a comprehension`)},
	{"not-a-message-type", regexp.MustCompile(`' is not a message type$`)},
	{"not-a-type", regexp.MustCompile(`' is not a type$`)},
	{"failed-resolution", regexp.MustCompile(`^unexpected failed resolution of '`)},
	{"invalid-literal", regexp.MustCompile(`^invalid (matches|duration|timestamp) argument|^error during formatting|^index \d+ out of range|^could not parse formatting clause|^too many arguments supplied to string\.format|^unexpected end of string`)},
	{"macro", regexp.MustCompile(`^argument (is not an identifier|must be a simple name)|^invalid argument to has|^iteration variable overwrites|must be a simple identifier|^duplicate variable name|^sortBy can only be applied`)},
	{"return-type", regexp.MustCompile(`^must evaluate to `)},
	{"panic", regexp.MustCompile(`^panic: `)},
	{"program", regexp.MustCompile(`^(program instantiation failed|unexpected compilation error): `)},
}

func kindOf(text string) string {
	if strings.HasPrefix(text, "unsupported optional field selection") {
		return "optional-selection"
	}
	for _, k := range kinds {
		if k.text.MatchString(text) {
			return k.name
		}
	}
	return "other"
}

// problemsOf reads the errors out of a message of the API server. Each is a line `ERROR: <input>:1:2: text`, the line of
// the source and a line which points at the place, the last two being left out where the source line is too long.
func problemsOf(detail string) []problem {
	rest := strings.TrimPrefix(detail, "compilation failed: ")
	var out []problem
	for rest != "" {
		m := located.FindStringSubmatch(rest)
		if m == nil {
			text := rest
			if truncated.MatchString(rest) {
				text, _, _ = strings.Cut(rest, "\n")
			}
			return append(out, problem{Kind: kindOf(text), Text: text})
		}
		line, _ := strconv.Atoi(m[1])
		column, _ := strconv.Atoi(m[2])
		body := rest[len(m[0]):]
		text, after := body, ""
		snippet := strings.Index(body, "\n | ")
		next := strings.Index(body, "\nERROR: <input>:")
		switch {
		case snippet >= 0 && (next < 0 || snippet < next):
			text = body[:snippet]
			after = body[snippet+1:]
			for strings.HasPrefix(after, " | ") {
				_, after, _ = strings.Cut(after, "\n")
			}
		case next >= 0:
			text, after = body[:next], body[next+1:]
		}
		out = append(out, problem{Kind: kindOf(text), Line: line, Column: column, Text: text})
		rest = after
	}
	return out
}

package main

import (
	"math"
	"sort"
	"strconv"
	"strings"
)

var texts = anys("", "a", "hello world", "tacocat", "こんにちは世界", "a\u0301é😀z", "aXbXc", "  \u2000 pad \u0085\u00a0\ufeff", "A-Z ÄÖ ß", "aaaa", "\t\n\v\f\r x \u3000", "😀😀😀")

func stringsTable(t *table) {
	offsets := anys[int64](-1, 0, 1, 3, 5, 7, 11, 12, math.MaxInt64, math.MinInt64)
	t.pairs([]string{"x0.charAt(x1)", "x0.substring(x1)"}, texts, offsets)
	parts := anys("", "a", "o w", "に", "é", "😀", "X", "aa", "hello world!", "cat")
	t.pairs([]string{"x0.indexOf(x1)", "x0.lastIndexOf(x1)", "x0.split(x1)", "x0.contains(x1)", "x0.startsWith(x1)", "x0.endsWith(x1)"}, texts, parts)
	for _, text := range anys("", "tacocat", "a\u0301é😀z", "aaaa", "aXbXc") {
		for _, part := range anys("", "a", "é", "😀", "aa", "cat", "aaaaa") {
			for _, offset := range anys[int64](-1, 0, 1, 2, 4, 5, math.MaxInt64) {
				t.add("x0.indexOf(x1, x2)", text, part, offset)
				t.add("x0.lastIndexOf(x1, x2)", text, part, offset)
			}
			for _, n := range anys[int64](-2, 0, 1, 2, 3, 100) {
				t.add("x0.split(x1, x2)", text, part, n)
				t.add("x0.replace(x1, '-', x2)", text, part, n)
			}
			t.add("x0.replace(x1, x2)", text, part, "<>")
			t.add("x0.replace(x1, x2)", text, part, part)
		}
		for _, start := range anys[int64](-1, 0, 2, 5, 6, math.MaxInt64) {
			for _, end := range anys[int64](-1, 0, 2, 5, 6, math.MaxInt64) {
				t.add("x0.substring(x1, x2)", text, start, end)
			}
		}
	}
	t.each([]string{"x0.lowerAscii()", "x0.upperAscii()", "x0.trim()", "x0.size()", "strings.quote(x0)"}, texts...)
	t.each([]string{"strings.quote(x0)"}, "\a\b\f\n\r\t\v\\\"'", "\x00\x7f\u200b", "\u2028")
	lists := anys([]any{}, []any{""}, []any{"a"}, []any{"a", "b", ""}, []any{"x", "é", "😀"})
	for _, list := range lists {
		t.add("x0.join()", list)
		t.add("x0.join(x1)", list, "-")
		t.add("x0.join(x1)", list, ", ")
	}
	for i := 0; i < 0x3100; i++ {
		if i < 0x300 || i > 0x1fff || i == 0x1680 || i == 0x180e {
			if s := string(rune(i)); strings.TrimSpace(s) == "" {
				t.add("x0.trim()", s+"."+s)
			}
		}
	}
}

func quotes(t *table) {
	for _, text := range texts {
		t.line("quote", []any{text}, strconv.Quote(text.(string)), nil)
	}
	for _, text := range []string{"\a\b\f\n\r\t\v\\\"'`", "\x00\x1f\x7f", "\u00ad\u200b\u2028\ufeff\ufffd", "\U000e0001\U0010ffff", "bad\xff\xc3", "\xe2\x82", "\u0378\U0001fae8\U0001faef\u1c89\ua7cb"} {
		t.line("quote", []any{[]byte(text)}, strconv.Quote(text), nil)
	}
	// The printable characters, as ranges.
	start, printable := rune(-1), []any{}
	for r := rune(0); r <= 0x110000; r++ {
		is := r <= 0x10ffff && strconv.IsPrint(r)
		if is && start < 0 {
			start = r
		} else if !is && start >= 0 {
			printable = append(printable, []any{int64(start), int64(r - 1)})
			start = -1
		}
	}
	t.line("printable", nil, printable, nil)
}

var doublesList = []float64{0, math.Copysign(0, -1), 1, -1, 1.5, 0.1, 100, 123456, 999999, 1e6, 1234567, 1e7, 1e20, 1e21, 1e22, 1e30, 1e-4, 1e-5, 0.00012345, 123456.789, 5e-324, 2.2250738585072014e-308, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), 0.3, 1.0 / 3, 2.5, 0.5, 1e15, 9007199254740993, -9.223372036854775808e18, 9.223372036854775807e18, 9223372036854774784, -9223372036854774784, 1.8446744073709552e19, 18446744073709549568, -0.9, 0.9, -1.9, 1e100, 3.14159265358979, 4.35, 1.0000015, 2.0000025, 1.00000250, 1234.5, 0.000001234565, 9.9999995, 9.99999949999, 1679583388349861.25, -15558373514069812.5, 8.8000026315309125e13, 1679583388349861.75, 99999999.5, -0.0000001}

func doubles(t *table) {
	for _, d := range doublesList {
		t.each([]string{"string(x0)", "int(x0)", "uint(x0)", "double(x0)"}, d)
	}
	for _, i := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 9007199254740993, 42} {
		t.each([]string{"string(x0)", "int(x0)", "uint(x0)", "double(x0)"}, i)
	}
	for _, i := range []uint64{0, 1, math.MaxUint64, 1 << 63, 1<<63 - 1, 9007199254740993} {
		t.each([]string{"string(x0)", "int(x0)", "uint(x0)", "double(x0)"}, i)
	}
	t.each([]string{"int(x0)", "uint(x0)", "double(x0)", "bool(x0)"},
		anys("", "0", "1", "-1", "+1", "-0", "007", "1_000", "0x10", "0x1p4", "0X1.8P1", "0x1", "0x", "0x_1p4", "0b1", "0o7", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1.5", "1e3", "1E+3", "1e", "1e+", ".5", "5.", ".", "1.5.2", "inf", "Inf", "INF", "+Inf", "-inf", "infinity", "Infinity", "-Infinity", "infinit", "nan", "NaN", "+nan", "-NaN", "1e309", "-1e309", "1e308", "1e-400", "4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "0x1p-1074", "0x1p-1075", "0x1.8p-1075", "0x1p1024", "0x1.fffffffffffff7p1023", "0x1.fffffffffffff8p1023", "0x.8p0", "0x1.p0", "0x.p0", "0xp0", "0x1.0000000000000800000001p0", "0x1.00000000000008p0", "0x1.00000000000018p0", "1e5000000000000000000000", "0e5000000000000000000000", "0x1p99999999999999", "0x1p-99999999999999", " 1", "1 ", "1,5", "t", "T", "true", "True", "TRUE", "tRUE", "f", "F", "false", "False", "FALSE", "yes", "on", "٣", "1e1_0", "1_0.5", "123456789012345678901234567890", "0.1e-10", "e5", "+", "-", "+.5e1", "--1", "0x1e5", "0x1.8", "1p5", "infx", "i", "in", "n", "na", "NAN0", "9007199254740993", "1.7976931348623159e308", "1.7976931348623157e308")...)
}

func conversions(t *table) {
	for _, b := range [][]byte{{}, []byte("abc"), []byte("é😀"), {0xff}, {0xc3}, {0xe2, 0x82}, {0xed, 0xa0, 0x80}, {0xf4, 0x90, 0x80, 0x80}, {0}} {
		t.each([]string{"string(x0)", "x0.size()"}, b)
	}
	t.each([]string{"bytes(x0)"}, texts...)
}

func printf(t *table) {
	fixed := append([]float64{}, doublesList...)
	fixed = append(fixed, 1234567.891, 12345678901234567890, 999.9999999, -1234.5, 0.25, 0.35, 1e-7, 1.0000005, 3.0000035, 8.8888885)
	for _, d := range fixed {
		for _, f := range []string{"%f", "%e", "%s", "%.0f", "%.1f", "%.2f", "%.3f", "%.10f", "%.20f", "%.0e", "%.3e", "%.15e", "%.20e", "%.300f", "%.300e", "%d", "%x", "%b", "%o", "%X", "%c"} {
			t.add("x0.format([x1])", f, d)
		}
	}
	for _, f := range []string{"%.40000f", "%.65540f", "%.65560e", "%.1000001f", "%.10000009f", "%.10000010f", "%.100000100f", "%.100000100e", "%.99999999999999999999f", "%.f", "%.e", "%.s", "%.5s", "%.3d", "%.", "%", "%%", "%.3", "%é", "%v", "%q", "%5d", "%-5s", "% d", "%+d", "%#x", "%%%s%%", "a%sb", "100%", "%s%", "%é s", "%😀", "é%sé"} {
		t.add("x0.format([x1])", f, 1.5)
		t.add("x0.format([x1])", f, "str")
		t.add("x0.format([x1])", f, int64(7))
	}
	values := []any{nil, true, false, int64(0), int64(-255), int64(math.MinInt64), uint64(255), uint64(math.MaxUint64), "", "hi", "é\n\"q\"", "NaN", "Infinity", "-Infinity", "Inf", []byte("by\x00t"), []byte{0xff, 0x01}, []any{}, []any{"a", int64(1), 2.5, nil, true, uint64(3), []byte("b"), []any{"n"}}, []any{math.NaN(), math.Inf(1), 1e30, 0.1},
		map[any]any{}, map[any]any{"b": "x", "a": int64(1)}, map[any]any{int64(10): []any{"l"}, int64(9): 1.5}, map[any]any{true: nil, false: map[any]any{"k": []byte("v")}}, map[any]any{uint64(1): "u"}, []any{[]byte{0xff}}, map[any]any{1.5: "x"}}
	for _, v := range values {
		for _, f := range []string{"%s", "%d", "%f", "%e", "%b", "%x", "%X", "%o"} {
			t.add("x0.format([x1])", f, v)
		}
	}
	for _, e := range []string{"type(x1)", "duration('90.5s')", "timestamp('2023-01-02T03:04:05.6Z')", "timestamp('2023-01-02T03:04:05+01:00')", "[duration('1s'), timestamp('2023-01-02T03:04:05Z')]", "[type(1), type('s')]", "{'d': duration('1h'), 't': string}", "quantity('1')", "ip('1.2.3.4')", "[quantity('1')]", "{'q': quantity('1')}", "optional.of(1)"} {
		for _, f := range []string{"%s", "%d", "%f", "%e", "%b", "%x", "%o"} {
			t.add("x0.format(["+e+"])", f, int64(1))
		}
	}
	t.add("x0.format(x1)", "%s %s", []any{"a"})
	t.add("x0.format(x1)", "%s", []any{})
	t.add("x0.format(x1)", "%", []any{})
	t.add("x0.format(x1)", "%s", []any{"a", "b"})
	t.add("x0.format(x1)", "%d of %d: %s is %.2f%%", []any{int64(1), uint64(2), []any{"x"}, 12.345})
	t.add("x0.format(x1)", "no clauses", []any{})
	t.add("x0.format(x1)", "%%", []any{})
}

// printfCheck compiles calls of format with literals; the place of an error is the number of its argument.
func printfCheck(t *table) {
	literals := map[string]string{
		"string": "'s'", "int": "1", "uint": "1u", "double": "1.5", "bool": "true", "bytes": "b'x'", "null_type": "null",
		"list": "[1]", "map": "{'a': 1}", "type": "type(1)", "google.protobuf.Duration": "duration('1s')",
		"google.protobuf.Timestamp": "timestamp('2023-01-02T03:04:05Z')", "kubernetes.Quantity": "quantity('1')", "net.IP": "ip('::1')",
	}
	try := func(format string, types ...string) {
		source := strconv.Quote(format) + ".format(["
		args, places := []any{format}, []int{}
		for i, name := range types {
			if i > 0 {
				source += ", "
			}
			places = append(places, len([]rune(source)))
			source += literals[name]
			args = append(args, name)
		}
		_, issues := t.env.Compile(source + "])")
		if issues.Err() == nil {
			t.line("check", args, nil, nil)
			return
		}
		first, place := issues.Errors()[0], any(nil)
		for i, at := range places {
			if at <= first.Location.Column() && first.Location.Column() < at+len(literals[types[i]]) {
				place = int64(i)
			}
		}
		t.line("check", args, []any{first.Message, place}, nil)
	}
	for _, clause := range []string{"%s", "%d", "%f", "%e", "%b", "%x", "%X", "%o", "%.3f", "%.e"} {
		for _, name := range sortedKeys(literals) {
			try(clause, name)
			try("a %s "+clause, "string", name)
		}
	}
	try("%s")
	try("%")
	try("%", "int")
	try("%q")
	try("%q", "int")
	try("%.3")
	try("%.3", "int")
	try("%.99999999999999999999f", "double")
	try("%s%s", "int")
	try("%s", "int", "int")
	try("none", "int")
	try("%%")
	try("%%", "int", "int", "int")
	try("%s %d %s", "int", "string")
}

func sortedKeys(m map[string]string) []string {
	keys := []string{}
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

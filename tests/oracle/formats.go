package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// Whether a text has a format, and what it is to a rule.
type formatLine struct {
	Format string `json:"format"`
	Text   string `json:"text"`
	Valid  bool   `json:"valid,omitempty"`
	// The value, or its error, if that is not the text itself.
	Value string `json:"value,omitempty"`
}

// Texts that have a format, that nearly do, and that look like it.
var formatTexts = map[string][]string{
	"bsonobjectid": {"507f1f77bcf86cd799439011", "507F1F77BCF86CD799439011", "507f1f77bcf86cd79943901", "507f1f77bcf86cd79943901g"},
	"uri":          {"http://a.b/c?d=e#f", "/a/b", "a/b", "mailto:a@b", "http://[::1]:80/", "http://a b/", "http://a/%zz", "*", "http://a:b/", "//a", "1http://a", "http://a:99999", "a:b:c", "http://user:p@h/", "http://[::1", "\x7f", "http://a\n", "http://%41/", "http://[fe80::1%25en0]/", "http://a/ b", "?a", "#a", ":a"},
	"email":        {"a@b", "a@b.c", "A <a@b>", "\"a b\"@c", "a.b@c", "a..b@c", ".a@b", "a.@b", "a@[1.2.3.4]", "a@[::1]", "a@[IPv6:::1]", "a@b (c)", "(c) a@b", "a (c) <a@b>", "g: a@b;", "g: a@b, c@d;", "g:;", "<a@b>", "=?utf-8?q?a?= <a@b>", "=?x?q?a?= <a@b>", "b =?x?q?a?= <a@b>", "=?utf-8?b?YQ==?= x <a@b>", "=?utf-8?b?Y?= <a@b>", "a@b (=?x?q?a?=)", "a@b, c@d", "a b@c", "ä@b", "a@", "@b", "a", "\"\"@b", "\"a\\\"b\"@c", "a@b>", "<a@b", "<@a:b@c>", "a@b c", "a\t@b", "a @b", "a@ b", "a(b)@c", "A. B. <a@b>", "a@b(c(d)e\\))", "a@b ((c)", "\"a\" \"b\" <c@d>", "a@b.", "a@-b", "a@b_c", "=?us-ascii?Q?=41?= <a@b>", "=?US-A\u017fCII?q?a?= <a@b>", "=?utf-8?q?a?=(c) <a@b>", "a (c) b <a@b>"},
	"hostname":     {"a", "a.b", "a.bc", "a-b.cd", "-a", "a-", "a_b", "1", "1.2.3.4", "a.b.1c", "ä.de", "☃.com", "a..b", "a.", ".a", strings.Repeat("a", 63) + ".com", strings.Repeat("a", 64) + ".com", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("abc.", 63) + "com", strings.Repeat("abcd.", 51) + "com", "a b", "a--b", "a--b.com", "xn--a.com", "A.COM", "€", "a.b-"},
	"ipv4":         {"1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.-4", "::1", "1.2.3.4%eth0", " 1.2.3.4", "::1.2.3.4", "1:2:3:4:5:6:1.2.3.04", "0x1.2.3.4", "1.2.3.0000004", "::ffff:1.2.3.400", "1.2.3.4:", "16777215.1.1.1", "1..2.3"},
	"ipv6":         {"::", "::1", "1::", "fe80::1%eth0", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:8:9", "::ffff:1.2.3.4", "::ffff:01.2.3.4", "12345::", "1.2.3.4", "g::", ":1", "1:", "1::2::3", "[::1]", "::00001", "1:2:3:4:5:6:7", "::1:2:3:4:5:6:7:8"},
	"cidr":         {"10.0.0.0/8", "10.0.0.0/33", "10.0.0.1/8", "010.0.0.0/8", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0", "::/0", "::/128", "::/129", "::1.2.3.4/32", "::ffff:1.2.3.4/96", "fe80::1%a/64", "1.2.3.4/8/8", "/8", "1.2.3.4/", "1.2.3.4/8 ", "1.2.3/8", "::/-1", "::/0000000000000000008", "::/16777216"},
	"mac":          {"01:23:45:67:89:ab", "01-23-45-67-89-AB", "0123.4567.89ab", "0123456789ab", "01:23:45:67:89:ab:cd:ef", "0123.4567.89ab.cdef", "0123456789abcdef", "01:23:45:67:89", "01:23:45:67:89:ag", "01:23-45:67:89:ab", "0123.4567.89ab.cdef.0123.4567.89ab.cdef.0123.4567", strings.Repeat("01:", 19) + "ab", "0123.4567-89ab", "01:23:45:67:89:ab:", "0123456789a", "01.23.45.67.89.ab", "012:345:678:9ab", strings.Repeat("0", 40)},
	"uuid":         {"123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000", "123e4567-e89b-32d3-a456-426614174000", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-c456-426614174000", "123e4567-e89b-52d3-8456-426614174000", "123e4567-e89b52d3-B456-426614174000", "123e4567--e89b-52d3-8456-426614174000", "123e4567-e89b-52d3-8456-42661417400", "{123e4567-e89b-52d3-8456-426614174000}", "123e456-7e89b-52d3-8456-426614174000"},
	"isbn":         {"0321751043", "978-0321751041", "0-321-75104-3", "032175104X", "3 401 01319 X", "3401013190", "9783401013190", "0321751044", "978032175104X", "03217\u00a051043", "0321751043\n", "3 401 01319 x", "978 0321751041", "", "0321_751043"},
	"creditcard":   {"4111111111111111", "4111 1111 1111 1111", "4222222222222", "5555555555554444", "6011111111111117", "378282246310005", "30569309025904", "38520000023237", "3530111333300000", "4111111111111112", "a4111111111111111z", "2131000000000008", "180000000000002", "6500000000000002", "213100000000000", "35000000000000000", "３4111111111111111", ""},
	"ssn":          {"123-45-6789", "123 45 6789", "123456789", "123-456789", "12-345-6789", "123-45-67890", "123--45-678", "1a3-45-6789"},
	"hexcolor":     {"#fff", "fff", "#FFFFFF", "#ff", "#fffff", "#ggg", "##fff", "fff#", "#ffff"},
	"rgbcolor":     {"rgb(1,2,3)", "rgb( 1 , 2 , 3 )", "rgb(256,2,3)", "rgb(255,255,255)", "rgb(01,2,3)", "rgba(1,2,3)", "RGB(1,2,3)", "rgb(1,2)", "rgb(1,2,3,4)", "rgb(99,199,249)", "rgb(\v1,2,3)", "rgb (1,2,3)"},
	"byte":         {"", "YQ==", "YWI=", "YWJj", "YQ", "YQ=", "-_-_", "++//", "YW Jj", "YWJj\n", "YWJj====", "====", "a", "ab=c", "YWJjYQ==", "YR==", "=", "\nYQ==", "YQ=\n="},
	"password":     {"", "x"},
	"date":         {"2024-01-02", "2024-02-29", "2023-02-29", "2024-1-2", "0000-01-01", "9999-12-31", "10000-01-01", "24-01-01", "2024-01-02T00:00:00Z", "", "20240102", "2024-13-01", "2024-00-01", "2024-01-00", "2024-01-32", "2024-01-0", "2024/01/02", "-024-01-02", "2024-01-02 ", "２024-01-02", "2024-02-30\"\\"},
	"datetime":     {"2024-01-02T03:04:05Z", "2024-01-02t03:04:05z", "2024-01-02T03:04:05", "2024-01-02 03:04:05Z", "2024-01-02T03:04:05.1Z", "2024-01-02T03:04:05.1234567891Z", "2024-01-02T03:04:05,5Z", "2024-01-02T03:04:05+05:30", "2024-01-02T03:04:05+0530", "2024-01-02T03:04:05-24:60", "2024-01-02T03:04:05+25:00", "2024-01-02T24:00:00Z", "2024-02-30T00:00:00Z", "2024-12-31T23:59:60Z", "2024-01-01T00:00Z", "2024-01-01T0:00:00Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59.999999999Z", "10000-01-01T00:00:00Z", "2024-01-02T03:04:05.Z", "2024-01-02T03:04:05x5Z", "2024-01-02T03:04:05Z ", "", "T", "2024-01-02T03:04:05-00:00", "2024-01-02T03:04:05.123456Z", "2024-01-02T03:04:05.123Z", "2024-01-02T03:04:05zt", "2024-01-02T3:04:05", "2024-01-02T03:4:05Z", "2024-01-02T03:04:05é5Z", "2024-01-02T03:04:05İ5Z", "2024-01-02T03:04:05.12", "2024-01-02T03:60:05", "2024-01-02T03:04:61", "2024-13-02T03:04:05", "2024-01-02T03:04:05\"Z"},
	"duration":     {"1h", "1h30m", "-1.5s", "0", ".5s", "", "P1D", "PT1H", "P1Y", "P1M", "PT1.5H", "p1d", "P1W2D", "PT0.5S", "90", "1 week 2 days", "3 sec", "5us", "5µs", "5μs", "5 μs", "1 hr", "1 hours", "1hrs", "1y", "1mo", "  1h ", "h", "1hh", "1h1h", "9223372036854775807ns", "9223372036854775808ns", "106751d", "10000000h", "1e3s", "0x10s", "１h", "1minute", "1millis", "1 NANO", "2 Weeks", "2wks", "99999999999999999999s", "1\u00a0h", "1\vh", "1\nh", "1 h-2 m", "1dd", "1dayz", "1h\x00", "1d2", "1 d 1 x", "292471208677536 years 3 d", "1µsec", "1 microseconds", "1secondhand", "1m30"},
	"k8sshortname": {"a", "a-b", "A", "-a", "a-", "a.b", "", strings.Repeat("a", 63), strings.Repeat("a", 64), "1", "ä"},
	"k8slongname":  {"a.b", "a..b", "A.b", strings.Repeat("a", 100), strings.Repeat("ab.", 84) + "a", strings.Repeat("ab.", 84) + "ab", "", ".a", "a.-b"},
}

// text is one that has a format, nearly has it, or has another.
func (g *customGenerator) text(format string) string {
	name := strings.ReplaceAll(format, "-", "")
	name = strings.TrimRight(name, "0123456789")
	if format == "ipv4" || format == "ipv6" {
		name = format
	}
	texts := formatTexts[name]
	if len(texts) == 0 || g.chance(10) {
		return oneOf(g, "a", "b", "A", "12", "", "abcdefgh", "<b>", "äöü", "a b", "2024-01-02", "1h", "\u2028", "x\ny")
	}
	text := oneOf(g, texts...)
	if g.chance(15) {
		return mutated(g.Rand, text)
	}
	return text
}

// mutated has one character changed, removed, or added.
func mutated(r *rand.Rand, text string) string {
	runes := []rune(text)
	at := r.IntN(len(runes) + 1)
	c := []rune("0123456789abcfgzTZ.:-+/@%=, \t\n\"\\()<>[]#_µäſ☃")
	with := []rune{c[r.IntN(len(c))]}
	rest := runes[at:]
	switch {
	case len(rest) == 0 || r.IntN(3) == 0:
	case r.IntN(2) == 0:
		rest, with = rest[1:], nil
	default:
		rest = rest[1:]
	}
	return string(runes[:at]) + string(with) + string(rest)
}

// Those that have a type of their own in rules.
var valuedFormats = []string{"byte", "duration", "date", "date-time"}

// writeFormats writes whether texts have each format, and their values.
func writeFormats(seed uint64, count int, file string) error {
	var out bytes.Buffer
	for _, format := range customFormats[:27] {
		r := rand.New(rand.NewPCG(seed, uint64(len(format))))
		g := &customGenerator{r}
		name := strings.ReplaceAll(format, "-", "")
		known := map[string]bool{}
		texts := append([]string{"", "a", " ", "null", "1"}, formatTexts[strings.TrimRight(name, "0123456789")]...)
		texts = append(texts, formatTexts[name]...)
		for range count {
			text := g.text(format)
			for range r.IntN(3) {
				text = mutated(r, text)
			}
			texts = append(texts, text)
		}
		for _, text := range texts {
			if known[text] {
				continue
			}
			known[text] = true
			line := formatLine{Format: format, Text: text, Valid: strfmt.Default.Validates(format, text)}
			typed := &structuralschema.Structural{Generic: structuralschema.Generic{Type: "string"}, ValueValidation: &structuralschema.ValueValidation{Format: format}}
			if slices.Contains(valuedFormats, format) {
				value := schemacel.UnstructuredToVal(text, typed)
				if types.IsError(value) {
					line.Value = "error: " + value.(*types.Err).Error()
				} else {
					line.Value = encode(value)
				}
			}
			encoded, err := compact(line)
			if err != nil {
				return err
			}
			out.Write(encoded)
		}
	}
	return writeGzip(file, out.Bytes())
}

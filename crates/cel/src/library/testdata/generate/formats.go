package main

import (
	"sort"
	"strings"

	"k8s.io/apiserver/pkg/cel/library"
)

func formats(t *table) {
	var names []string
	for name, format := range library.ConstantFormats {
		names = append(names, name)
		t.line("size", []any{name}, int64(format.MaxRegexSize), nil)
	}
	sort.Strings(names)
	sort.Strings(t.lines)
	t.line("size", []any{"dns1123label"}, nil, nil)
	texts := anys("", "a", "A", "-", "a-", "-a", "a-b", "a_b", "a.b", "a..b", ".a", "a.", "1a", "1", "aé", "é", "é-", "aé-", "--", "a--", ".-", "my-name", "My-Name", "example.com", "example.com/MyName", "/name", "example.com/", "/", "a/b/c", "Example.com/x", "a b", "a\n", "abc\n", "_a", "a_", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 62)+"-", strings.Repeat("a", 63)+"-", strings.Repeat("é", 33), strings.Repeat("a", 253), strings.Repeat("a", 254), strings.Repeat("a.", 130), strings.Repeat("a", 254)+"/b", "x/"+strings.Repeat("a", 64), "http://example.com", "/path", "foo", "http://[::1", "http://exa mple", "%zz", "/%zz", ":x",
		"123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000", "123e4567e89b12d3a456426614174000", "123e4567-e89b12d3-a456426614174000", "123e4567-e89b-12d3-a456-42661417400", "123e4567-e89b-12d3-a456-4266141740000", "g23e4567-e89b-12d3-a456-426614174000", "123e4567--e89b-12d3-a456-426614174000", "{123e4567-e89b-12d3-a456-426614174000}",
		"aGVsbG8=", "aGVsbG8", "aGVsbA==", "aGVs", "aGV=", "aG==", "a===", "====", "=", "aGVs====", "aGVs=", "a-_b", "a+/b", "aGVs\n", "aG VsbG8=",
		"2021-01-01", "2021-1-01", "2021-02-29", "2020-02-29", "21-01-01", "2021-13-01", "2021-01-32", "0000-01-01", "10000-01-01", "2021-01-01 ", "2021/01/01",
		"2021-01-01T00:00:00Z", "2021-01-01t00:00:00z", "2021-01-01T00:00:00", "2021-01-01 00:00:00Z", "2021-01-01T24:00:00Z", "2021-01-01T23:60:00Z", "2021-01-01T23:59:60Z", "2021-01-01T23:59:59.999Z", "2021-01-01T23:59:59,5Z", "2021-01-01T23:59:59x5Z", "2021-01-01T23:59:59é5Z", "2021-01-01T23:59:59.Z", "2021-01-01T23:59:5905Z", "2021-01-01T23:59:59+01:00", "2021-01-01T23:59:59-99:99", "2021-01-01T23:59:59.5+01:00", "2021-01-01T23:59:59+0100", "2021-01-01T23:59:59+01:00T", "2021-01-01T23:59:59Ttrash", "2021-01-01T23:59:59ZTtrash", "2021-02-30T00:00:00Z", "T00:00:00Z", "2021-01-01T", "2021-01-01T00:00:00\n5Z", "2021-01-01T00:00:00++01:00", "2021-01-01T00:00:00+1+01:00", "2021-01-01T00:00:00+01:00+01:00", "2021-01-01T00:00:00.12345678901234567890Z", "2021-01-01T٠0:00:00Z", "2021-01-01T00:00:00z\n", "ttt", "2021-01-01T00:00:00.5-01:00z", "İ21-01-01t00:00:00z")
	for _, name := range names {
		t.each([]string{"format." + name + "().validate(x0)"}, texts...)
	}
}

func urls(t *table) {
	all := anys("", "*", "/", "//", "///", "////a", "a", "a/b", "/a/b", "/a%20b", "/a b", "/a%2fb", "/a%2Fb", "/a%zzb", "/%", "/%4", "/%é", "/é", "/[a]", "/a;b,c", "/a?b", "/a?", "/a??", "/a?b?c", "/a?b#c", "/a#b", "/a#b%zz", "/a#b%20c", "/a#b c", "/a#[x]", "#a", "?a", "?", "http:", "http:/", "http://", "http:///", "http:///a", "http://a", "HTTP://A", "http://a/", "http://a?b", "http://a:80", "http://a:", "http://a:x", "http://a:80x", "http://a:80:90", "ftp://a:80:90", "ftp://a:b:90", "http://a,b:1", "mongodb://a:1,b:2/", "http://a b", "http://a%20b", "http://a%41b", "http://%e4%b8%96/", "http://%ff/", "http://a%2", "http://世界/", "http://[::1]", "http://[::1]:80", "http://[::1]x", "http://[::1]:x", "http://[::1", "http://::1]", "http://[1.2.3.4]", "http://[::ffff:1.2.3.4]", "http://[fe80::1%25eth0]", "http://[fe80::1%25et%20h0]:1", "http://[fe80::1%25%41]", "http://[fe80::1%25%2f]", "http://[fe80::1%eth0]", "http://[]", "http://[x]", "http://a[::1]", "http://u@h", "http://u:p@h:1/x", "http://u:@h", "http://:p@h", "http://@h", "http://u@v@h", "http://u%40v:p%3aq@h", "http://u v@h", "http://u%zz@h", "http://u:%zz@h", "http://ü@h", "http://u/@h", "http://a<b>\"c", "http://a{b", "http://a\\b", "mailto:a@b", "mailto:a?b=c#d", "mailto:", "urn:x:y?z", "1http://a", "ht+tp-1.x://a", "ht_tp://a", ":a", "a:b", "a:/b", "a:b/c", "é:b", "/a:b", "./a:b", "a\x00b", "a\x7fb", "/a\tb", "http://a\n", "//host/path", "//host:1/path?q", "//u@host", "//[::1]/", "//a b/", "https://kubernetes.io:443/docs/home?x=1&y=2&x=3", "/?a=1&a=2&b", "/?a=%zz&b=1", "/?a;b=1&c=2", "/?a+b=c+d&%41=%42", "/?&&a=&=b&=", "/?a=b=c", "/?a=%ff", "/?q=世", "/?"+"a=1&a=1", "http://a/%e4%b8%96", "http://a/世", "http://a/a%2fb/c%20d", "http://a/!$&'()*+,;=:@~", "http://a/^`{|}", "http://a/%5E%60", "http://a/a%3Fb", "http://a/%2a", "http://a//b", "http://a/../b", "file:///etc/passwd", "file:/etc/passwd", "x:?q", "x:/?q#f", "x://?q", "x://#f", "x:///#", "http://h#f%2", "/#", "/a#b#c", "http://a.%2e", "http://a/%e4%b8", "https://a:b@c:d@e:80/")
	calls := []string{"url(x0)", "isURL(x0)", "url(x0).getScheme()", "url(x0).getHost()", "url(x0).getHostname()", "url(x0).getPort()", "url(x0).getEscapedPath()", "url(x0).getQuery()"}
	t.each(calls, all...)
	many := "/?a=1" + strings.Repeat("&a=1", 4)
	t.add("url(x0).getQuery()", many)
	some := anys("http://a", "HTTP://a", "http://a/", "http://A", "http://a/%41", "http://a/A", "http://a?", "http://a#", "/a%2fb", "/a/b")
	t.pairs([]string{"url(x0) == url(x1)"}, some, some)
}

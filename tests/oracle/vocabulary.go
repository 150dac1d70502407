package main

import "github.com/google/cel-go/cel"

// Of these a type parameter is taken where nothing else decides.
var simple = []*cel.Type{
	cel.BoolType, cel.IntType, cel.UintType, cel.DoubleType, cel.StringType, cel.BytesType, cel.DurationType,
	cel.TimestampType,
}

var literals = map[string][]string{
	"bool":   {"true", "false"},
	"int":    {"0", "1", "-1", "2", "7", "100", "9223372036854775807", "-9223372036854775808"},
	"uint":   {"0u", "1u", "2u", "18446744073709551615u"},
	"double": {"0.0", "1.0", "-1.5", "2.5", "1e30", "1e-7"},
	"string": {
		`''`, `'a'`, `'web'`, `'é😀'`, `'1'`, `'-1.5'`, `'true'`, `'10.0.0.1'`, `'10.0.0.0/8'`, `'2001:db8::1'`, `'1Gi'`,
		`'500m'`, `'1.2.3'`, `'https://a.b:80/c?d=e'`, `'1h30m'`, `'2024-02-29T12:34:56.5Z'`, `'^[a-z]+$'`, `'UTC'`, `'%s %d'`,
		`'a,b,c'`, `'dns1123Label'`, `'get'`, `'app=web'`,
	},
	"bytes":                               {"b''", "b'abc'", `b'\xff'`},
	"null_type":                           {"null"},
	"google.protobuf.Duration":            {"duration('0s')", "duration('1h')", "duration('-1.5s')"},
	"google.protobuf.Timestamp":           {"timestamp('2024-02-29T12:34:56.5Z')", "timestamp('1969-12-31T23:59:59Z')"},
	"type":                                {"int", "string", "list", "null_type"},
	"kubernetes.Quantity":                 {"quantity('1Gi')", "quantity('500m')", "quantity('-3')"},
	"kubernetes.URL":                      {"url('https://a.b:80/c?d=e')"},
	"kubernetes.Semver":                   {"semver('1.2.3')", "semver('1.2.3-a')"},
	"net.IP":                              {"ip('10.0.0.1')", "ip('2001:db8::1')"},
	"net.CIDR":                            {"cidr('10.0.0.0/8')", "cidr('2001:db8::/32')"},
	"kubernetes.NamedFormat":              {"format.dns1123Label()", "format.uri()"},
	"kubernetes.authorization.Authorizer": {"authorizer"},
}

// Names of functions that are written as operators. Others with such names can only be called by a macro.
var operators = map[string]string{
	"_+_": "%s + %s", "_-_": "%s - %s", "_*_": "%s * %s", "_/_": "%s / %s", "_%_": "%s %% %s", "_==_": "%s == %s",
	"_!=_": "%s != %s", "_<_": "%s < %s", "_<=_": "%s <= %s", "_>_": "%s > %s", "_>=_": "%s >= %s", "_&&_": "%s && %s",
	"_||_": "%s || %s", "_?_:_": "%s ? %s : %s", "_[_]": "%s[%s]", "_[?_]": "%s[?%s]", "@in": "%s in %s", "!_": "!%s", "-_": "-%s",
}

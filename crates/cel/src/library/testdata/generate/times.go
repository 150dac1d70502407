package main

import (
	"fmt"
	"math"
)

func times(t *table) {
	stamps := anys("2023-01-02T03:04:05Z", "2023-12-31T23:59:59.999999999+14:00", "2024-02-29T12:00:00.5-07:30", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.25Z", "2000-01-01T00:00:00+00:00", "1883-11-18T12:00:00-05:00", "2023-03-12T06:59:59Z", "2023-03-12T07:00:00Z", "2050-07-01T00:00:00Z", "1900-03-01T00:00:00Z", "0500-02-28T23:00:00Z")
	bad := anys("", "2023", "2023-01-02", "2023-01-02T03:04:05", "2023-01-02 03:04:05Z", "2023-01-02t03:04:05Z", "2023-01-02T03:04:05z", "2023-01-02T3:04:05Z", "2023-01-02T03:4:05Z", "2023-01-02T03:04:5Z", "2023-1-02T03:04:05Z", "2023-01-2T03:04:05Z", "2023-01-02T03:04:05,5Z", "2023-01-02T03:04:05.Z", "2023-01-02T03:04:05.1234567891Z", "2023-01-02T03:04:05.123456789123Z", "2023-01-02T24:00:00Z", "2023-01-02T23:60:00Z", "2023-01-02T23:59:60Z", "2023-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2000-02-29T00:00:00Z", "2023-13-01T00:00:00Z", "2023-00-01T00:00:00Z", "2023-01-00T00:00:00Z", "2023-01-32T00:00:00Z", "2023-04-31T00:00:00Z", "2023-01-02T03:04:05+24:00", "2023-01-02T03:04:05+24:60", "2023-01-02T03:04:05+25:00", "2023-01-02T03:04:05+23:61", "2023-01-02T03:04:05+1:00", "2023-01-02T03:04:05+0100", "2023-01-02T03:04:05 01:00", "2023-01-02T03:04:05-00:00", "2023-01-02T03:04:05Zx", "x2023-01-02T03:04:05Z", "0000-01-01T00:00:00Z", "0000-12-31T23:59:59-01:00", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "10000-01-01T00:00:00Z", "-001-01-01T00:00:00Z", "2023-01-02T03:04:05.5+01:00", "2023-01-02T003:04:05Z", "٢023-01-02T03:04:05Z", "2023-01-02T03:04:05\u00e9", "2023-01-02T1:04:05.000Z", "2023-01-02T03:04:05.100200Z")
	t.each([]string{"timestamp(x0)", "string(timestamp(x0))", "int(timestamp(x0))"}, append(bad, stamps...)...)
	t.each([]string{"timestamp(x0)"}, anys[int64](0, 1, -1, 1700000000, -62135596800, -62135596801, 253402300799, 253402300800, math.MaxInt64, math.MinInt64)...)
	spans := anys("0", "0s", "1s", "-1s", "+1s", "1h", "1.5h", "1h30m", "-1h30m10.5s", "1ms", "1us", "1µs", "1μs", "1ns", "100ms", "0.1s", "90.5s", "3600s", "9223372036854775807ns", "-9223372036854775808ns", "9223372036854775808ns", "2562047h47m16.854775807s", "2562047h47m16.854775808s", "-2562047h47m16.854775808s", "2562047h59m59.999999999s", "2562046h59m59.999999999s", "1h59m59.999999999s", "9007199h59m59.999999999s", "999999h59m59.9999999999s", "0.000000001s", "0.0000000001s", "1.0000000000000000000000000001s", "0.9223372036854775807h", "0.92233720368547758079h", ".5s", "5.s", ".s", "s", "1", "1x", "1.5.5s", "", "+", "-", "--1s", "1 s", " 1s", "1s ", "1d", "1S", "1h1h", "10m5", "3000000h", "99999999999999999999s", "1s1", "-0", "+0", "00", "0.3s", "1.1s", "123456789.123456789s", "-.5m", "1e3s", "1s-1s", "106751d", "23h59m60s", "10000000000000000ns")
	t.each([]string{"duration(x0)", "string(duration(x0))", "duration(x0).getHours()", "duration(x0).getMinutes()", "duration(x0).getSeconds()", "duration(x0).getMilliseconds()"}, spans...)
	some := anys("1s", "-1ns", "999999999ns", "-1.5s", "2562047h47m16.854775807s", "-2562047h47m16.854775808s")
	t.pairs([]string{"duration(x0) + duration(x1)", "duration(x0) - duration(x1)"}, some, some)
	t.pairs([]string{"timestamp(x0) + duration(x1)", "timestamp(x0) - duration(x1)"}, stamps, some)
	t.pairs([]string{"timestamp(x0) - timestamp(x1)", "timestamp(x0) == timestamp(x1)", "timestamp(x0) < timestamp(x1)"}, stamps[:7], append(stamps[:7:7], "2023-01-02T04:04:05+01:00"))
	fields := []string{"getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek", "getHours", "getMinutes", "getSeconds", "getMilliseconds"}
	zones := anys("", "UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "US/Central", "Etc/GMT+5", "EST5EDT", "Pacific/Apia", "+01:00", "-02:30", "+14:00", "01:30", "-00:30", "+99:99", "00:00")
	for _, field := range fields {
		t.each([]string{"timestamp(x0)." + field + "()"}, stamps...)
		t.pairs([]string{"timestamp(x0)." + field + "(x1)"}, stamps, zones)
	}
	t.pairs([]string{"timestamp(x0).getHours(x1)"}, anys("2023-07-02T03:04:05Z"), anys("america/new_york", "Nowhere", "Europe/Nowhere", "../etc/passwd", "/etc/localtime", "\\x", "a..b", "GMT", "Zulu", "EST", "utc", ":", "1:", ":1", "a:b", "+1:é", "1:2:3", "+01:-30", "99999999999999999999:00", "1_0:00", "é", "CET", "Asia/Calcutta", "Asia/Kolkata", "Europe/Kiev", "Europe/Kyiv"))
	for year := 1800; year < 2100; year += 7 {
		for _, zone := range []string{"America/New_York", "Europe/Dublin", "America/Sao_Paulo", "Asia/Tehran"} {
			t.add("timestamp(x0).getHours(x1)", fmt.Sprintf("%d-07-01T12:00:00Z", year), zone)
		}
	}
}

package main

import "math"

func quantities(t *table) {
	all := anys("", "0", "00", "-0", "+0", "0.0", "1", "+1", "-1", "01", "1.", ".5", "-.5", ".", "+", "-", "1.5", "1.50", "100m", "1m", "1u", "1n", "0.1n", "0.5n", "-0.1n", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei", "8Ei", "7Ei", "-8Ei", "-9Ei", "16Ei", "1.5Gi", "0.5Ki", "0.5Mi", "0.1Ki", "0.0001Ki", "1023Ki", "1024Ki", "1025", "2048", "1024", "1000", "1500", "1e3", "1E3", "1e-3", "1e+3", "1e", "1E", "1e3k", "1.5e3", "12e6", "100e-9", "1e-10", "1e-100", "1e18", "1e19", "1e20", "1e100", "123456789012345678", "1234567890123456789", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "99999999999999999999", "9223372036854775807Ki", "1.0000000001", "1.123456789", "1.1234567891", "0.000000001", "0.0000000001", "1K", "1ki", "1mi", "1KI", "1 ", " 1", "1 Gi", "1Gib", "1GB", "Gi", "m", "e3", "1ee3", "1e3e3", "1.2.3", "1..2", "1-2", "1m-3", "1m3", "1Mi3", "é", "1é", "٣", "0x10", "1_000", "inf", "NaN", "1e99999", "-1.5Gi", "100000000000000000000Mi", "0.30", "3000", "30000000", "1.000", "10", "0.01", "250m", "1000m", "1001m", "1024m", "1e-9", "5e-1", "1.5E", "0.000000000001Ei", "0Ki", "0.0Ki", "0e3", "0m", "+1.5Ki", "1i", "1in", "1nn", "18446744073709551616", "1e9223372036854775808", "1e4294967299")
	t.each([]string{"quantity(x0)", "isQuantity(x0)", "sign(quantity(x0))", "quantity(x0).isInteger()", "quantity(x0).asInteger()", "quantity(x0).asApproximateFloat()"}, all...)
	some := anys("0", "0Ki", "1", "-1", "1.5", "100m", "1k", "1Ki", "0.5Ki", "1e3", "9223372036854775807", "-9223372036854775807", "1e19", "1e-9", "1Ei", "1e30", "99999999999999999999")
	t.pairs([]string{"quantity(x0).compareTo(quantity(x1))", "quantity(x0).isLessThan(quantity(x1))", "quantity(x0).isGreaterThan(quantity(x1))", "quantity(x0) == quantity(x1)", "quantity(x0).add(quantity(x1))", "quantity(x0).sub(quantity(x1))", "quantity(x0).add(quantity(x1)).isInteger()", "quantity(x0).sub(quantity(x1)).isInteger()"}, some, some)
	t.pairs([]string{"quantity(x0).add(x1)", "quantity(x0).sub(x1)"}, some, anys[int64](0, 1, -5, 1024, math.MaxInt64, math.MinInt64))
}

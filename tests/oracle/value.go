package main

import (
	"encoding/hex"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/lazy"
)

// encode writes a value in the text form that the README describes: different values have different texts.
func encode(v ref.Val) string {
	switch t := v.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return fmt.Sprintf("bool:%t", bool(t))
	case types.Int:
		return fmt.Sprintf("int:%d", int64(t))
	case types.Uint:
		return fmt.Sprintf("uint:%d", uint64(t))
	case types.Double:
		return "double:" + encodeDouble(float64(t))
	case types.String:
		return encodeString(string(t))
	case types.Bytes:
		return "bytes:" + hex.EncodeToString(t)
	case types.Timestamp:
		return "timestamp:" + t.Time.UTC().Format(time.RFC3339Nano)
	case types.Duration:
		return fmt.Sprintf("duration:%d", int64(t.Duration))
	case *types.Type:
		return "type:" + t.TypeName()
	case *types.Optional:
		if t.HasValue() {
			return "optional(" + encode(t.GetValue()) + ")"
		}
		return "optional.none"
	case *lazy.MapValue:
		return "opaque:" + t.Type().TypeName() // no expression can see its entries
	case traits.Mapper:
		var entries []string
		for it := t.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			entries = append(entries, encode(k)+"="+encode(t.Get(k)))
		}
		sort.Strings(entries)
		return "{" + strings.Join(entries, ",") + "}"
	case traits.Lister:
		var elements []string
		for it := t.Iterator(); it.HasNext() == types.True; {
			elements = append(elements, encode(it.Next()))
		}
		return encodeList(elements)
	}
	if text, ok := encodePatch(v); ok {
		return text
	}
	opaque := "opaque:" + v.Type().TypeName()
	if text, ok := opaqueText(v); ok {
		return opaque + "(" + encodeString(text) + ")"
	}
	return opaque
}

func encodeList(elements []string) string { return "[" + strings.Join(elements, ",") + "]" }

func opaqueText(v ref.Val) (string, bool) {
	switch t := v.(type) {
	case apiservercel.URL:
		return t.URL.String(), true
	case apiservercel.IP:
		return t.Addr.String(), true
	case apiservercel.CIDR:
		return t.Prefix.String(), true
	case apiservercel.Quantity:
		return t.Quantity.String(), true
	case apiservercel.Semver:
		return t.Version.String(), true
	case apiservercel.Format:
		return t.Name, true
	case *apiservercel.Format:
		return t.Name, true
	}
	return "", false
}

// encodeDouble is Rust's {:e}: the shortest digits that give the same number, and an exponent without sign or padding.
func encodeDouble(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	n, _ := strconv.Atoi(exponent)
	return fmt.Sprintf("%se%d", digits, n)
}

// encodeString is serde_json's: encoding/json also escapes U+2028 and U+2029.
func encodeString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			if r < 0x20 {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}

package main

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
)

// Random objects of every kind: what decoding, defaulting and preparing make of them must not depend on what someone
// thought of. They need not be valid.
type random struct {
	*rand.Rand
	table *goTypes
}

// What texts of some fields and types are, so that what depends on them is reached.
var texts = map[string][]string{
	"image":           {"a", "a:latest", "a:1", "b.example/c/d", "b.example:5000/c@sha256:" + strings.Repeat("0", 64), "A", ""},
	"reference":       {"a", "a:1"},
	"restartPolicy":   {"Always", "OnFailure", "Never", ""},
	"type":            {"RollingUpdate", "Recreate", "OnDelete", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "Container", "Pod", "Opaque", "RuntimeDefault", "Localhost", ""},
	"kind":            {"ServiceAccount", "User", "Group", "PersistentVolumeClaim", "Deployment"},
	"operator":        {"In", "NotIn", "Exists", "Equal", ""},
	"sessionAffinity": {"None", "ClientIP", ""},
	"clusterIP":       {"None", "10.0.0.1", ""},
	"allocationMode":  {"ExactCount", "All", ""},
	"name":            {"a", "b", "c-d", ""},
	"os":              {"linux", "windows"},
}

var (
	quantities = []any{"100m", "0.5", "1Gi", "1.5Gi", "1e3", "0", "100u", "1024Ki", "12345678901234567890", 2, 0.25, "+3", "1000000n"}
	times      = []string{"2024-01-02T03:04:05Z", "2024-01-02T03:04:05+02:00", "2023-12-31T23:59:59.123456Z"}
	keys       = []string{"a", "b", "example.org/c", "app", "cpu", "memory", "hugepages-2Mi"}
	amounts    = []string{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.org/x"}
)

func anyOf[T any](r *random, from []T) T { return from[r.IntN(len(from))] }

// object makes one of a kind.
func (r *random) object(resource goResource) ([]byte, error) {
	out, _ := r.value(resource.Type, "", 0).(map[string]any)
	metadata, _ := out["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"] = "x"
	for _, key := range []string{"namespace", "generateName", "resourceVersion", "managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(metadata, key)
	}
	out["metadata"] = metadata
	if resource.Kind == "DeviceTaintRule" {
		out["spec"] = map[string]any{"taint": map[string]any{"timeAdded": times[0]}}
	}
	out["kind"] = resource.Kind
	out["apiVersion"] = strings.TrimPrefix(resource.Group+"/"+resource.Version, "/")
	return json.Marshal(out)
}

func (r *random) value(of, field string, depth int) any {
	if under, ok := r.table.Named[of]; ok {
		if strings.HasPrefix(under, "map[string]resource.Quantity") {
			out := map[string]any{}
			for range r.IntN(4) {
				out[anyOf(r, amounts)] = anyOf(r, quantities)
			}
			return out
		}
		return r.value(under, field, depth)
	}
	switch {
	case strings.HasPrefix(of, "*"):
		return r.value(of[1:], field, depth)
	case of == "[]uint8":
		return anyOf(r, []string{"", "YQ==", "aGVsbG8="})
	case strings.HasPrefix(of, "[]"):
		out := []any{}
		for range r.IntN(3) {
			out = append(out, r.value(of[2:], field, depth+1))
		}
		return out
	case strings.HasPrefix(of, "map[string]"):
		out := map[string]any{}
		for range r.IntN(3) {
			out[anyOf(r, keys)] = r.value(strings.TrimPrefix(of, "map[string]"), "", depth+1)
		}
		return out
	}
	switch of {
	case "string":
		if known, ok := texts[field]; ok {
			return anyOf(r, known)
		}
		return anyOf(r, []string{"a", "b", "a/b", "0", ""})
	case "bool":
		return r.IntN(2) == 0
	case "int32", "int64", "int":
		return anyOf(r, []int{0, 1, 3, 80, 30000, -1})
	case "float64":
		return anyOf(r, []float64{0, 1, 0.5})
	case "resource.Quantity":
		return anyOf(r, quantities)
	case "intstr.IntOrString":
		return anyOf(r, []any{0, 1, "25%", "http", ""})
	case "meta/v1.MicroTime":
		return anyOf(r, []string{"2023-12-31T23:59:59.123456Z", "2024-01-02T03:04:05.000000Z", "2024-01-02T03:04:05Z"})
	case "meta/v1.Time":
		return anyOf(r, times)
	case "meta/v1.Duration":
		return "1h0m0s"
	}
	if slices.Contains(ownForm, of) {
		return map[string]any{"x": 1}
	}
	out := map[string]any{}
	r.fields(of, out, depth)
	if r.IntN(40) == 0 {
		out["bogus"] = 1
	}
	return out
}

func (r *random) fields(of string, out map[string]any, depth int) {
	fields := r.table.Structs[of]
	if of == "core/v1.VolumeSource" {
		// A volume has one.
		at := r.IntN(len(fields))
		fields = fields[at : at+1]
	}
	for _, entry := range fields {
		name, inner := entry[0].(string), entry[1].(string)
		if name == "" {
			r.fields(inner, out, depth)
			continue
		}
		// The deeper, the less; what is above everything is there.
		wanted := depth < 1 || r.IntN(100) < max(60-8*depth, 12) || (name == "name" && depth < 5) || name == "timeAdded"
		if depth > 9 || !wanted || name == "managedFields" {
			continue
		}
		// The time at hand is its default.
		if r.IntN(25) == 0 && name != "timeAdded" {
			out[name] = nil
			continue
		}
		out[name] = r.value(inner, name, depth+1)
	}
}

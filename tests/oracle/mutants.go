package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What the API server says of an object with one change: each value of it is replaced by ones that are at the borders
// of what is valid, removed, repeated, and put beside fields that it lacks; so each rule of validation is hit from both
// sides, whoever wrote the object.
type mutant struct {
	// File and number of the object, and of the change a checksum.
	ID string `json:"id"`
	// The object as it was sent, of the first line of it; the others change that.
	Sent any `json:"sent,omitempty"`
	// Where it is changed, as a JSON pointer; `-` appends.
	At string `json:"at,omitempty"`
	// What is put there.
	To any `json:"to,omitempty"`
	// Null is put there.
	Null bool `json:"null,omitempty"`
	// What is there is removed.
	Gone bool `json:"gone,omitempty"`
	// This minor has no such change, because it has no such field; only in files that say what differs.
	Absent bool `json:"absent,omitempty"`
	// Validating it panics, which the API server answers with status 500.
	Panics bool `json:"panics,omitempty"`
	// Why it cannot be decoded.
	Error string `json:"error,omitempty"`
	// What its validation finds wrong: field and text, sorted.
	Causes [][2]string `json:"causes,omitempty"`
	// What is warned of: unknown fields, the kind, and by its strategy; sorted.
	Warnings []string `json:"warnings,omitempty"`
}

// mutator collects what is done to one object.
type mutator struct {
	table  *goTypes
	id     string
	wanted []mutant
}

// Fields that are the server's, or that only say what the object is.
var untouched = []string{"apiVersion", "kind", "status", "managedFields", "namespace", "selfLink", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "uid", "generation"}

var borders = map[string][]any{
	"string":             {"", "A_b", "-a", "a.b", "a b", "a/b", "../a", "/a", "..", strings.Repeat("a", 64), "1"},
	"int32":              {-1, 0, 1, 65536, 2147483648},
	"int64":              {-1, 0, 1, 2147483648, 4294967297},
	"float64":            {-1.5},
	"resource.Quantity":  {"-1", "0", "1500m", "3Gi", "lots"},
	"intstr.IntOrString": {-1, 0, 65536, "", "101%", "a-b", "A b", "50%"},
	"meta/v1.Time":       {"yesterday"},
	"meta/v1.MicroTime":  {"yesterday"},
	"[]uint8":            {"", "no base64!", "YQ=="},
	"map[string]string":  {map[string]any{}, map[string]any{"a/b/c": "x"}, map[string]any{"a": "x y"}, map[string]any{"..": "x"}},
	"map[string]resource.Quantity": {
		map[string]any{}, map[string]any{"cpus": "1"}, map[string]any{"hugepages-2Mi": "3Mi"}, map[string]any{"hugepages-2Mi": "4Mi"}, map[string]any{"example.org/x": "500m"},
		map[string]any{"requests.cpu": "1"}, map[string]any{"cpu": "-1"}, map[string]any{"a b": "1"}, map[string]any{"memory": "2Gi"}, map[string]any{"storage": "1"},
	},
}

// Values of another type than the field has.
var shapes = []any{true, "text", 7, 1.5, []any{}, map[string]any{}}

// draw takes some of the values, the same for the same place.
func (m *mutator) draw(at string, from []any, count int) []any {
	if len(from) <= count {
		return from
	}
	r := rand.New(rand.NewPCG(1, uint64(crc32.ChecksumIEEE([]byte(m.id+at)))))
	out := []any{}
	for _, i := range r.Perm(len(from))[:count] {
		out = append(out, from[i])
	}
	return out
}

func (m *mutator) put(at string, values ...any) {
	for _, value := range values {
		m.wanted = append(m.wanted, mutant{At: at, To: value, Null: value == nil})
	}
}

// value changes a value of a Go type.
func (m *mutator) value(of, field, at string, value any) {
	if under, ok := m.table.Named[of]; ok {
		of = under
	}
	of = strings.TrimPrefix(of, "*")
	if under, ok := m.table.Named[of]; ok {
		of = under
	}
	if values, ok := borders[of]; ok {
		m.put(at, m.draw(at, values, 5)...)
		if known, ok := texts[field]; ok && of == "string" {
			for _, text := range known {
				m.put(at, text)
			}
		}
	}
	if of == "bool" {
		m.put(at, value != true)
	}
	m.put(at, m.draw(at+"?", shapes, 1)...)
	switch value := value.(type) {
	case []any:
		m.put(at, []any{})
		if len(value) > 0 {
			m.put(at+"/-", value[0])
			// Two claims become volumes in the order of a Go map, so that which index has no name is another each time.
			if field != "volumeClaimTemplates" {
				m.put(at+"/-", nil)
			}
		}
		for i, element := range value {
			m.value(strings.TrimPrefix(of, "[]"), field, at+"/"+strconv.Itoa(i), element)
		}
	case map[string]any:
		if inner, ok := strings.CutPrefix(of, "map[string]"); ok {
			for _, key := range slices.Sorted(mapKeys(value)) {
				m.value(inner, field, at+"/"+escaped(key), value[key])
			}
			return
		}
		m.fields(of, at, value)
	}
}

func escaped(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

func mapKeys(of map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range of {
			if !yield(key) {
				return
			}
		}
	}
}

// fields changes those of a struct that are there, and adds those that are not.
func (m *mutator) fields(of, at string, value map[string]any) {
	for _, entry := range m.table.Structs[of] {
		name, inner := entry[0].(string), entry[1].(string)
		if name == "" {
			m.fields(strings.TrimPrefix(inner, "*"), at, value)
			continue
		}
		if slices.Contains(untouched, name) && strings.Count(at, "/") < 2 {
			continue
		}
		path := at + "/" + escaped(name)
		if found, ok := value[name]; ok && found != nil {
			m.wanted = append(m.wanted, mutant{At: path, Gone: true})
			m.value(inner, name, path, found)
			continue
		}
		r := &random{rand.New(rand.NewPCG(2, uint64(crc32.ChecksumIEEE([]byte(m.id+path))))), m.table}
		// Near the leaves, so that it is small.
		m.put(path, r.value(inner, name, 6))
	}
}

// changed is the object with a change.
func changed(text []byte, by mutant) ([]byte, error) {
	var object any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	parts := strings.Split(by.At, "/")[1:]
	out, err := change(object, parts, by)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", by.At, err)
	}
	return json.Marshal(out)
}

func change(value any, parts []string, by mutant) (any, error) {
	if len(parts) == 0 {
		return by.To, nil
	}
	key := strings.ReplaceAll(strings.ReplaceAll(parts[0], "~1", "/"), "~0", "~")
	switch value := value.(type) {
	case map[string]any:
		if len(parts) == 1 && by.Gone {
			delete(value, key)
			return value, nil
		}
		inner, err := change(value[key], parts[1:], by)
		value[key] = inner
		return value, err
	case []any:
		if key == "-" {
			return append(value, by.To), nil
		}
		i, err := strconv.Atoi(key)
		if err != nil {
			return nil, err
		}
		inner, err := change(value[i], parts[1:], by)
		value[i] = inner
		return value, err
	}
	return nil, errors.New("nothing there")
}

// mutants answers an object and each that differs from it in one place.
func (r *receiver) mutants(id string, text []byte) ([]mutant, error) {
	kind, err := readKind(text)
	if err != nil {
		return nil, err
	}
	resource, ok := r.resources[kind]
	if !ok {
		return nil, nil
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	base, err := r.judge(mutant{ID: id, Sent: object}, text)
	if err != nil {
		return nil, err
	}
	m := &mutator{table: r.table, id: id}
	m.fields(resource.Type, "", object)
	out, known := []mutant{base}, map[string]bool{}
	for _, wanted := range m.wanted {
		sent, err := changed(text, wanted)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		what, err := json.Marshal([]any{wanted.At, wanted.To, wanted.Gone})
		if err != nil {
			return nil, err
		}
		wanted.ID = fmt.Sprintf("%s/%08x", id, crc32.ChecksumIEEE(what))
		if known[wanted.ID] {
			continue
		}
		known[wanted.ID] = true
		answer, err := r.judge(wanted, sent)
		if err != nil {
			return nil, fmt.Errorf("%s at %s: %w", id, wanted.At, err)
		}
		out = append(out, answer)
	}
	return out, nil
}

func (r *receiver) judge(answer mutant, text []byte) (out mutant, err error) {
	defer func() {
		if recover() != nil {
			out, err = answer, nil
			out.Panics = true
		}
	}()
	received, err := receiveObject(r.resources, text)
	if err != nil {
		return answer, err
	}
	answer.Error = received.Error
	answer.Causes = received.causes
	answer.Warnings = append(received.Warnings, received.strategyWarnings...)
	slices.Sort(answer.Warnings)
	return answer, nil
}

// Addresses of memory in texts of 1.33, which are others each time.
var addresses = regexp.MustCompile(`\(0x[0-9a-f]+\)`)

// causesOf lists what is wrong, sorted: in Go, maps have no order.
func causesOf(err error) ([][2]string, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil, err
	}
	out := [][2]string{}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			out = append(out, [2]string{cause.Field, addresses.ReplaceAllString(cause.Message, "(0x)")})
		}
	}
	slices.SortFunc(out, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return out, nil
}

// writeMutants writes a line for each object of the files of YAML in a folder, and for each mutant of it, compressed; with
// the file of another minor only what differs from that.
func writeMutants(discovery, folder, file, base string) error {
	r, err := newReceiver(discovery)
	if err != nil {
		return err
	}
	documents, err := documents(folder)
	if err != nil {
		return err
	}
	known, ids, err := readMutants(base)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, document := range documents {
		answers, err := r.mutants(document.id, document.text)
		if err != nil {
			return err
		}
		for _, answer := range answers {
			line, err := compact(answer)
			if err != nil {
				return err
			}
			if known[answer.ID] != string(bytes.TrimSpace(line)) {
				text.Write(line)
			}
			delete(known, answer.ID)
		}
	}
	for _, id := range ids {
		if _, missing := known[id]; missing {
			line, err := compact(mutant{ID: id, Absent: true})
			if err != nil {
				return err
			}
			text.Write(line)
		}
	}
	return writeGzip(file, text.Bytes())
}

// readMutants reads the lines of a file by their names, and these in its order.
func readMutants(file string) (map[string]string, []string, error) {
	known, ids := map[string]string{}, []string{}
	if file == "" {
		return known, ids, nil
	}
	packed, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer packed.Close()
	reader, err := gzip.NewReader(packed)
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, nil, err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var answer mutant
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			return nil, nil, err
		}
		known[answer.ID] = line
		ids = append(ids, answer.ID)
	}
	return known, ids, nil
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// A text, and what kubectl reads in it.
type reading struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// The documents that have something in them; a number that the API server takes for a float has a point.
	Documents []any `json:"documents,omitempty"`
	// Why it does not go on.
	Error string `json:"error,omitempty"`
}

// readTexts answers each line `{"id", "text"}` with what is read in the text.
func readTexts(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r reading
		err := json.Unmarshal(lines.Bytes(), &r)
		if err != nil {
			return err
		}
		r.Documents, err = readText(r.Text)
		if err != nil {
			r.Error = err.Error()
		}
		line, err := compact(r)
		if err != nil {
			return err
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return lines.Err()
}

// readText does what kubectl does with a file (`cli-runtime/pkg/resource/visitor.go`, `StreamVisitor`), and reads the
// numbers as `unstructured.UnstructuredJSONScheme` does.
func readText(text string) ([]any, error) {
	var documents []any
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var ext runtime.RawExtension
		if err := decoder.Decode(&ext); err != nil {
			if errors.Is(err, io.EOF) {
				return documents, nil
			}
			return documents, err
		}
		ext.Raw = bytes.TrimSpace(ext.Raw)
		if len(ext.Raw) == 0 || bytes.Equal(ext.Raw, []byte("null")) {
			continue
		}
		var document any
		if err := utiljson.Unmarshal(ext.Raw, &document); err != nil {
			return documents, err
		}
		documents = append(documents, withFloats(document))
	}
}

func withFloats(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			value[key] = withFloats(field)
		}
	case []any:
		for index, item := range value {
			value[index] = withFloats(item)
		}
	case float64:
		text := strconv.FormatFloat(value, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return json.Number(text)
	}
	return value
}

// writeReadings answers the lines of files, compressed.
func writeReadings(path string, files []string) error {
	var text bytes.Buffer
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			return err
		}
		err = readTexts(in, &text)
		in.Close()
		if err != nil {
			return err
		}
	}
	return writeGzip(path, text.Bytes())
}

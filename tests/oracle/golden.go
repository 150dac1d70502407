package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/cel/environment"
)

// The minor whose golden files are whole; of the others there is what differs.
const baseMinor = "1.36"

// A line of a golden file.
type golden struct {
	request
	Answer answer `json:"answer"`
}

type difference struct {
	ID     string `json:"id"`
	Answer answer `json:"answer"`
}

// writeGolden answers the whole corpus. It needs the base minor's files, which it compares with, for any other minor.
func writeGolden(o *oracle, base, out string) error {
	corpora, err := filepath.Glob(filepath.Join(root, "corpus", "*.*"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var written []string
	seen := map[string]bool{}
	for _, corpus := range corpora {
		requests, err := readCorpus(corpus)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(corpus), filepath.Ext(corpus)) + ".jsonl"
		if seen[name] {
			return fmt.Errorf("two files in corpus/ are called %s", name)
		}
		seen[name] = true
		known := map[string]string{}
		if base != "" {
			if known, err = readAnswers(filepath.Join(base, name)); err != nil {
				return err
			}
		}
		var text bytes.Buffer
		for _, r := range requests {
			a, err := o.ask(r)
			if err != nil {
				return fmt.Errorf("%s: %w", r.ID, err)
			}
			if a.Unfinished {
				return fmt.Errorf("%s: its evaluation takes longer than %v", r.ID, deadline)
			}
			a.ID = ""
			var line []byte
			if base == "" {
				line, err = compact(golden{r, a})
			} else {
				var same []byte
				if same, err = compact(a); err == nil && string(same) != known[r.ID] {
					line, err = compact(difference{r.ID, a})
				}
			}
			if err != nil {
				return err
			}
			text.Write(line)
		}
		if text.Len() == 0 {
			continue
		}
		written = append(written, filepath.Join(out, name))
		if err := os.WriteFile(filepath.Join(out, name), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	present, err := filepath.Glob(filepath.Join(out, "*.jsonl"))
	if err != nil {
		return err
	}
	for _, file := range present {
		if !slices.Contains(written, file) {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(out, "versions.json"), versions(), 0o644)
}

func readAnswers(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		text, err := compact(g.Answer)
		if err != nil {
			return nil, err
		}
		out[g.ID] = string(text)
	}
	return out, lines.Err()
}

// compact writes a line of JSON without the escapes that are for HTML.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return b.Bytes(), err
}

func versions() []byte {
	out := map[string]string{"newExpressions": environment.DefaultCompatibilityVersion().String()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if slices.Contains([]string{"k8s.io/apiserver", "k8s.io/kubernetes", "github.com/google/cel-go"}, m.Path) {
				out[m.Path] = m.Version
			}
		}
	}
	var b strings.Builder
	b.WriteString("{\n")
	for i, k := range slices.Sorted(maps.Keys(out)) {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "  %q: %q", k, out[k])
	}
	b.WriteString("\n}\n")
	return []byte(b.String())
}

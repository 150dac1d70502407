package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// writePlugins writes the admission plugins that a minor has on by default, in their order. They are read from the
// sources: the package that has them would bring all of kube-apiserver into this program.
func writePlugins(kubernetes, apiserver, file string) error {
	path := filepath.Join(kubernetes, "pkg/kubeapiserver/options/plugins.go")
	source, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return err
	}
	packages := map[string]string{} // the directory of each import, by its name
	for _, spec := range source.Imports {
		of, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		name := of[strings.LastIndex(of, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if inside, ok := strings.CutPrefix(of, "k8s.io/kubernetes/"); ok {
			packages[name] = filepath.Join(kubernetes, inside)
		} else if inside, ok := strings.CutPrefix(of, "k8s.io/apiserver/"); ok {
			packages[name] = filepath.Join(apiserver, inside)
		}
	}
	var ordered, on []ast.Expr
	ast.Inspect(source, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ValueSpec:
			if node.Names[0].Name == "AllOrderedPlugins" {
				ordered = node.Values[0].(*ast.CompositeLit).Elts
			}
		case *ast.AssignStmt:
			if name, ok := node.Lhs[0].(*ast.Ident); ok && name.Name == "defaultOnPlugins" {
				on = node.Rhs[0].(*ast.CallExpr).Args
			}
		}
		return true
	})
	if len(ordered) == 0 || len(on) == 0 {
		return fmt.Errorf("%s has another form", path)
	}
	isOn := map[string]bool{}
	for _, expr := range on {
		isOn[expr.(*ast.SelectorExpr).X.(*ast.Ident).Name] = true
	}
	var names []string
	for _, expr := range ordered {
		of := expr.(*ast.SelectorExpr).X.(*ast.Ident).Name
		name, err := pluginName(packages[of])
		if err != nil {
			return fmt.Errorf("%s: %w", of, err)
		}
		if isOn[of] {
			names = append(names, name)
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(names); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// pluginName is the constant PluginName of a package.
func pluginName(directory string) (string, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return "", err
		}
		if object := source.Scope.Lookup("PluginName"); object != nil {
			if spec, ok := object.Decl.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				return strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			}
		}
	}
	return "", fmt.Errorf("%q has no PluginName", directory)
}

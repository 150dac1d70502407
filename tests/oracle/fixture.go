package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"
)

// A fixture is what the variables are bound to.
type fixture struct {
	Object          any        `json:"object"`
	OldObject       any        `json:"oldObject"`
	Params          any        `json:"params"`
	Request         any        `json:"request"`
	NamespaceObject any        `json:"namespaceObject"`
	Authorizer      authScript `json:"authorizer"`
}

type authScript struct {
	User      string              `json:"user"`
	Groups    []string            `json:"groups"`
	Extra     map[string][]string `json:"extra"`
	Decisions []authRule          `json:"decisions"`
	Resource  authResource        `json:"resource"`
}

// A nil field fits everything.
type authRule struct {
	Verb          *string `json:"verb"`
	Group         *string `json:"group"`
	Version       *string `json:"version"`
	Resource      *string `json:"resource"`
	Subresource   *string `json:"subresource"`
	Namespace     *string `json:"namespace"`
	Name          *string `json:"name"`
	Path          *string `json:"path"`
	User          *string `json:"user"`
	FieldSelector *string `json:"fieldSelector"`
	LabelSelector *string `json:"labelSelector"`
	Decision      string  `json:"decision"`
	Reason        string  `json:"reason"`
	Error         string  `json:"error"`
}

type authResource struct {
	Group       string `json:"group"`
	Version     string `json:"version"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

func (r authResource) GetName() string        { return r.Name }
func (r authResource) GetNamespace() string   { return r.Namespace }
func (r authResource) GetSubresource() string { return r.Subresource }
func (r authResource) GetResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

var fixtureName = regexp.MustCompile(`^[a-z0-9-]+$`)

// Fixtures that were named before.
var named = map[string]map[string]any{}

// bindings are the variables of a fixture that is named, or written out in the request.
func bindings(raw json.RawMessage) (map[string]any, error) {
	name, isNamed := "mixed", len(raw) == 0 || raw[0] == '"'
	if len(raw) > 0 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &name); err != nil {
			return nil, err
		}
	}
	if isNamed {
		if known, ok := named[name]; ok {
			return maps.Clone(known), nil
		}
		if !fixtureName.MatchString(name) {
			return nil, fmt.Errorf("%q does not name a fixture", name)
		}
		var err error
		if raw, err = os.ReadFile(filepath.Join(root, "fixtures", name+".json")); err != nil {
			return nil, err
		}
	}
	var f fixture
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return nil, fmt.Errorf("not a fixture: %w", err)
	}
	who := &user.DefaultInfo{Name: f.Authorizer.User, Groups: f.Authorizer.Groups, Extra: f.Authorizer.Extra}
	bound := map[string]any{
		plugincel.ObjectVarName:                    numbers(f.Object),
		plugincel.OldObjectVarName:                 numbers(f.OldObject),
		plugincel.ParamsVarName:                    numbers(f.Params),
		plugincel.RequestVarName:                   numbers(f.Request),
		plugincel.NamespaceVarName:                 numbers(f.NamespaceObject),
		plugincel.AuthorizerVarName:                library.NewAuthorizerVal(who, f.Authorizer),
		plugincel.RequestResourceAuthorizerVarName: library.NewResourceAuthorizerVal(who, f.Authorizer, f.Authorizer.Resource),
	}
	if isNamed {
		named[name] = bound
	}
	return maps.Clone(bound), nil
}

// Authorize answers as the script says.
func (s authScript) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	for _, rule := range s.Decisions {
		if !rule.fits(a) {
			continue
		}
		var err error
		if rule.Error != "" {
			err = errors.New(rule.Error)
		}
		decision, ok := map[string]authorizer.Decision{
			"allow": authorizer.DecisionAllow, "deny": authorizer.DecisionDeny, "noOpinion": authorizer.DecisionNoOpinion,
		}[rule.Decision]
		if !ok {
			return authorizer.DecisionDeny, "", fmt.Errorf("the fixture's decision %q is none", rule.Decision)
		}
		return decision, rule.Reason, err
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (r authRule) fits(a authorizer.Attributes) bool {
	fits := func(want *string, have string) bool { return want == nil || *want == have }
	var name string
	if a.GetUser() != nil {
		name = a.GetUser().GetName()
	}
	return fits(r.Verb, a.GetVerb()) && fits(r.Group, a.GetAPIGroup()) && fits(r.Version, a.GetAPIVersion()) &&
		fits(r.Resource, a.GetResource()) && fits(r.Subresource, a.GetSubresource()) &&
		fits(r.Namespace, a.GetNamespace()) && fits(r.Name, a.GetName()) && fits(r.Path, a.GetPath()) &&
		fits(r.User, name) && fits(r.FieldSelector, fieldText(a)) && fits(r.LabelSelector, labelText(a))
}

func fieldText(a authorizer.Attributes) string {
	requirements, err := a.GetFieldSelector()
	if err != nil {
		return "error: " + err.Error()
	}
	var texts []string
	for _, r := range requirements {
		texts = append(texts, r.Field+string(r.Operator)+r.Value)
	}
	return strings.Join(texts, ",")
}

func labelText(a authorizer.Attributes) string {
	requirements, err := a.GetLabelSelector()
	if err != nil {
		return "error: " + err.Error()
	}
	var texts []string
	for _, r := range requirements {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, ",")
}

// numbers makes JSON numbers what the decoder of unstructured objects makes of them.
func numbers(v any) any {
	switch t := v.(type) {
	case map[string]any:
		for k := range t {
			t[k] = numbers(t[k])
		}
	case []any:
		for i := range t {
			t[i] = numbers(t[i])
		}
	case json.Number:
		if i, err := t.Int64(); err == nil {
			return i
		}
		f, _ := t.Float64()
		return f
	}
	return v
}

// strict decodes JSON and refuses fields which are not known.
func strict(b []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

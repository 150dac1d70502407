package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/capabilities"
)

// What the API server makes of an object that a client creates.
type receipt struct {
	ID string `json:"id"`
	// As it was sent. A CustomResourceDefinition is not answered, but defines kinds.
	Sent any `json:"sent,omitempty"`
	// As mutating admission sees it: decoded, with defaults.
	Decoded any `json:"decoded,omitempty"`
	// As validating admission sees it, valid or not: ready to be created. Absent for kinds without a strategy here.
	Created any `json:"created,omitempty"`
	// Of unknown and repeated fields.
	Warnings []string `json:"warnings,omitempty"`
	// Why it cannot be decoded.
	Error string `json:"error,omitempty"`
	// What the validation of its kind finds wrong.
	Invalid string `json:"invalid,omitempty"`
	// The same by field, sorted, and what the strategy warns of.
	causes           [][2]string
	strategyWarnings []string
}

// Chosen anew for each object by the API server.
const (
	fixedUID  = "00000000-0000-4000-8000-000000000000"
	fixedTime = "2024-01-02T03:04:05Z"
)

// receive does what a request to create does to its object, without a store.
func receiveObject(resources map[schema.GroupVersionKind]goResource, text []byte) (*receipt, error) {
	out := &receipt{}
	if err := json.Unmarshal(text, &out.Sent); err != nil {
		return nil, err
	}
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), "application/json")
	if !ok {
		return nil, errors.New("no JSON")
	}
	kind, err := readKind(text)
	if err != nil {
		return nil, err
	}
	resource, ok := resources[kind]
	if !ok {
		return nil, fmt.Errorf("no %v", kind)
	}
	if resource.Deprecated != "" {
		out.Warnings = append(out.Warnings, resource.Deprecated)
	}
	decoder := legacyscheme.Codecs.DecoderToVersion(info.StrictSerializer, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal})
	object, _, err := decoder.Decode(text, &kind, nil)
	if strict, ok := runtime.AsStrictDecodingError(err); ok && object != nil {
		for _, problem := range strict.Errors() {
			out.Warnings = append(out.Warnings, problem.Error())
		}
	} else if err != nil {
		out.Error = err.Error()
		return out, nil
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	if resource.Namespaced {
		if accessor.GetNamespace() == "" {
			accessor.SetNamespace("default")
		}
	}
	rest.WipeObjectMetaSystemFields(accessor)
	if out.Decoded, err = seen(object, kind); err != nil {
		return nil, err
	}
	strategy, ok := strategies[strings.TrimPrefix(kind.Group+"/"+resource.Plural, "/")]
	if !ok {
		return out, nil
	}
	rest.FillObjectMetaSystemFields(accessor)
	accessor.SetUID(fixedUID)
	if accessor.GetName() == "" && accessor.GetGenerateName() != "" {
		accessor.SetName(accessor.GetGenerateName() + "00000")
	}
	ctx := contextOf(resource, accessor.GetNamespace())
	// What was prepared is recorded whether or not it is valid.
	prepared := object.DeepCopyObject()
	strategy.PrepareForCreate(ctx, prepared)
	strategy.Canonicalize(prepared)
	created, err := seen(prepared, kind)
	if err != nil {
		return nil, err
	}
	out.Created = atFixedTime(created)
	// The allocator of addresses comes first, and refuses by itself what it cannot start from.
	if service, ok := object.(*core.Service); ok {
		if service.Spec.ClusterIP != "" && len(service.Spec.ClusterIPs) == 0 {
			service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
		}
		if errs := validateClusterIPs(service); len(errs) > 0 {
			err := apierrors.NewInvalid(core.Kind("Service"), service.Name, errs)
			out.Invalid = err.Error()
			out.causes, _ = causesOf(err)
		}
	}
	if out.Invalid != "" {
		return out, nil
	}
	ctx = warning.WithWarningRecorder(ctx, out)
	if err := rest.BeforeCreate(strategy, ctx, object); err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			return nil, err
		}
		out.Invalid = status.Status().Message
		out.causes, err = causesOf(err)
		return out, err
	}
	return out, nil
}

// AddWarning takes what preparing and validating an object warns of.
func (r *receipt) AddWarning(_, text string) {
	r.strategyWarnings = append(r.strategyWarnings, text)
}

// atFixedTime replaces what is the time at which it runs.
func atFixedTime(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			value[key] = atFixedTime(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = atFixedTime(inner)
		}
	case string:
		if at, err := time.Parse(time.RFC3339, value); err == nil && time.Since(at).Abs() < time.Hour {
			return fixedTime
		}
	}
	return value
}

func readKind(text []byte) (schema.GroupVersionKind, error) {
	var typed struct{ APIVersion, Kind string }
	err := json.Unmarshal(text, &typed)
	return schema.FromAPIVersionAndKind(typed.APIVersion, typed.Kind), err
}

// seen is what a policy sees of an object of the API server's own form.
func seen(object runtime.Object, kind schema.GroupVersionKind) (map[string]any, error) {
	versioned, err := legacyscheme.Scheme.ConvertToVersion(object.DeepCopyObject(), kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	versioned.GetObjectKind().SetGroupVersionKind(kind)
	return runtime.DefaultUnstructuredConverter.ToUnstructured(versioned)
}

func contextOf(r goResource, namespace string) context.Context {
	ctx := apirequest.WithNamespace(context.Background(), namespace)
	ctx = apirequest.WithUser(ctx, &user.DefaultInfo{Name: "admin", Groups: []string{"system:masters"}})
	return apirequest.WithRequestInfo(ctx, &apirequest.RequestInfo{
		IsResourceRequest: true, Verb: "create", APIGroup: r.Group, APIVersion: r.Version, Resource: r.Plural, Namespace: namespace,
	})
}

// receiver knows the resources of one minor.
type receiver struct {
	table     *goTypes
	resources map[schema.GroupVersionKind]goResource
	custom    map[schema.GroupVersionKind]customKind
}

func newReceiver(discovery string) (*receiver, error) {
	capabilities.Setup(true, 0) // as every cluster has it: --allow-privileged
	table, err := typeTable(discovery)
	if err != nil {
		return nil, err
	}
	r := &receiver{table, map[schema.GroupVersionKind]goResource{}, map[schema.GroupVersionKind]customKind{}}
	for _, resource := range table.Resources {
		r.resources[schema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: resource.Kind}] = resource
	}
	return r, nil
}

// A document of a file of YAML, as JSON.
type document struct {
	id   string
	text []byte
}

// documents reads those of the files of YAML in a folder.
func documents(folder string) ([]document, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var out []document
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for i, part := range strings.Split("\n"+string(text), "\n---") {
			id := fmt.Sprintf("%s/%d", strings.TrimSuffix(filepath.Base(file), ".yaml"), i)
			sent, err := utilyaml.ToJSON([]byte(part))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", id, err)
			}
			out = append(out, document{id, sent})
		}
	}
	return out, nil
}

// files answers each document of the files of YAML in a folder.
func (r *receiver) files(folder string) ([]*receipt, error) {
	documents, err := documents(folder)
	if err != nil {
		return nil, err
	}
	var out []*receipt
	for _, document := range documents {
		if out, err = r.add(out, document.id, document.text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// add answers one. A kind that a minor does not have is left out.
func (r *receiver) add(to []*receipt, id string, sent []byte) ([]*receipt, error) {
	kind, err := readKind(sent)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	var answer *receipt
	if kind.Kind == "CustomResourceDefinition" {
		answer = &receipt{}
		if err = r.define(sent); err == nil {
			err = json.Unmarshal(sent, &answer.Sent)
		}
	} else if of, ok := r.custom[kind]; ok {
		answer, err = receiveCustom(kind, of, sent)
	} else if _, ok := r.resources[kind]; ok {
		answer, err = receiveObject(r.resources, sent)
	} else {
		return to, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	answer.ID = id
	return append(to, answer), nil
}

// random answers so many random objects of each kind, and ten times as many pods.
func (r *receiver) random(seed uint64, count int) ([]*receipt, error) {
	var out []*receipt
	for _, resource := range r.table.Resources {
		kind := schema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: resource.Kind}
		if !legacyscheme.Scheme.Recognizes(kind) || r.resources[kind].Plural != resource.Plural {
			continue
		}
		if fields := r.table.Structs[resource.Type]; len(fields) < 2 || fields[1][0] != "metadata" {
			continue
		}
		n := count
		if resource.Kind == "Pod" {
			n *= 10
		}
		for i := range n {
			id := fmt.Sprintf("random/%s.%s.%s/%d", resource.Plural, resource.Version, resource.Group, i)
			// The same whatever other kinds there are.
			generator := &random{rand.New(rand.NewPCG(seed, uint64(crc32.ChecksumIEEE([]byte(id))))), r.table}
			sent, err := generator.object(resource)
			if err != nil {
				return nil, err
			}
			if out, err = r.add(out, id, sent); err != nil {
				return nil, err
			}
			// The order of many mistakes is random.
			if last := out[len(out)-1]; last.Invalid != "" {
				last.Invalid = "invalid"
			}
		}
	}
	return out, nil
}

// writeObjects writes a line for each object of a folder and for random ones, compressed.
func writeObjects(discovery, folder string, seed uint64, count int, file string) error {
	r, err := newReceiver(discovery)
	if err != nil {
		return err
	}
	answers, err := r.files(folder)
	if err != nil {
		return err
	}
	more, err := r.random(seed, count)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, answer := range append(answers, more...) {
		line, err := compact(answer)
		if err != nil {
			return err
		}
		text.Write(line)
	}
	return writeGzip(file, text.Bytes())
}

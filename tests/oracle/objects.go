package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// What the API server makes of an object that a client creates.
type receipt struct {
	ID string `json:"id"`
	// As it was sent.
	Sent any `json:"sent,omitempty"`
	// As mutating admission sees it: decoded, with defaults.
	Decoded any `json:"decoded,omitempty"`
	// As validating admission sees it: ready to be created. Absent where equal to Decoded.
	Created any `json:"created,omitempty"`
	// Of unknown and repeated fields.
	Warnings []string `json:"warnings,omitempty"`
	// Why it cannot be decoded.
	Error string `json:"error,omitempty"`
	// What the validation of its kind finds wrong.
	Invalid []string `json:"invalid,omitempty"`
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
	if resource.Namespaced {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		if accessor.GetNamespace() == "" {
			accessor.SetNamespace("default")
		}
	}
	if out.Decoded, err = seen(object, kind); err != nil {
		return nil, err
	}
	strategy, ok := strategies[strings.TrimPrefix(kind.Group+"/"+resource.Plural, "/")]
	if !ok {
		return out, nil
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	rest.FillObjectMetaSystemFields(accessor)
	if accessor.GetName() == "" && accessor.GetGenerateName() != "" {
		accessor.SetName(accessor.GetGenerateName() + "00000")
	}
	if err := rest.BeforeCreate(strategy, contextOf(resource, accessor.GetNamespace()), object); err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Details == nil {
			out.Invalid = []string{err.Error()}
			return out, nil
		}
		for _, cause := range status.Status().Details.Causes {
			out.Invalid = append(out.Invalid, cause.Field+": "+cause.Message)
		}
		return out, nil
	}
	created, err := seen(object, kind)
	if err != nil {
		return nil, err
	}
	metadata := created["metadata"].(map[string]any)
	metadata["uid"], metadata["creationTimestamp"] = fixedUID, fixedTime
	out.Created = created
	return out, nil
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

// receiveAll answers each document of the files of YAML in a folder.
func receiveAll(discovery, folder string) ([]*receipt, error) {
	table, err := typeTable(discovery)
	if err != nil {
		return nil, err
	}
	resources := map[schema.GroupVersionKind]goResource{}
	for _, r := range table.Resources {
		resources[schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}] = r
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var out []*receipt
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
		buffer := make([]byte, len(text)+1)
		for i := 0; ; i++ {
			n, err := documents.Read(buffer)
			if err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			document, err := utilyaml.ToJSON(buffer[:n])
			if err != nil {
				return nil, fmt.Errorf("%s, document %d: %w", file, i, err)
			}
			answer, err := receiveObject(resources, document)
			if err != nil {
				return nil, fmt.Errorf("%s, document %d: %w", file, i, err)
			}
			answer.ID = fmt.Sprintf("%s/%d", strings.TrimSuffix(filepath.Base(file), ".yaml"), i)
			out = append(out, answer)
		}
	}
	return out, nil
}

// writeObjects writes a line for each object.
func writeObjects(discovery, folder, file string) error {
	answers, err := receiveAll(discovery, folder)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, answer := range answers {
		line, err := compact(answer)
		if err != nil {
			return err
		}
		text.Write(line)
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

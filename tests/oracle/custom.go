package main

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// A version of a kind of a CustomResourceDefinition.
type customKind struct {
	schema    *structuralschema.Structural
	validator validation.SchemaCreateValidator
}

// define adds the kinds of a CustomResourceDefinition.
func (r *receiver) define(text []byte) error {
	var crd extensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(text, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		var internal apiextensions.JSONSchemaProps
		err := extensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &internal, nil)
		if err != nil {
			return err
		}
		structural, err := structuralschema.NewStructural(&internal)
		if err != nil {
			return err
		}
		validator, _, err := validation.NewSchemaValidator(&internal)
		if err != nil {
			return err
		}
		kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		r.custom[kind] = customKind{structural, validator}
	}
	return nil
}

// decodeCustom does what decoding a custom resource does, as `unstructuredSchemaCoercer` and `unstructuredDefaulter`. It
// returns the paths of unknown fields.
func decodeCustom(object map[string]any, kind schema.GroupVersionKind, of *structuralschema.Structural) ([]string, error) {
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errors.New("no metadata")
	}
	unknown = append(unknown, pruning.PruneWithOptions(object, of, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, of)
	invalid, paths := objectmeta.CoerceWithOptions(nil, object, of, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if invalid != nil {
		return nil, invalid
	}
	unknown = append(unknown, paths...)
	object["apiVersion"], object["kind"] = kind.GroupVersion().String(), kind.Kind
	if err := objectmeta.SetObjectMeta(object, meta); err != nil {
		return nil, err
	}
	defaulting.Default(object, of)
	return unknown, nil
}

// receiveCustom does what creating a custom resource does.
func receiveCustom(kind schema.GroupVersionKind, of customKind, text []byte) (*receipt, error) {
	out := &receipt{}
	if err := json.Unmarshal(text, &out.Sent); err != nil {
		return nil, err
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	unknown, err := decodeCustom(object, kind, of.schema)
	if err != nil {
		out.Error = err.Error()
		return out, nil
	}
	for _, path := range unknown {
		out.Warnings = append(out.Warnings, `unknown field "`+path+`"`)
	}
	rest.WipeObjectMetaSystemFields(&unstructured.Unstructured{Object: object})
	out.Decoded = object
	errs := validation.ValidateCustomResource(nil, object, of.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, of.schema, object)...)
	// Properties are walked in random order.
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(errs) > 0 {
		out.Invalid = apierrors.NewInvalid(kind.GroupKind(), (&unstructured.Unstructured{Object: object}).GetName(), errs).Error()
	}
	return out, nil
}

package main

import (
	"context"
	"reflect"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// What the minors spell differently; reflection spares a build tag for each of them.

// baseEnv is the environment of policies. Until 1.34 the function takes whether costs are strict, as they are for policies.
func baseEnv() *environment.EnvSet {
	base := reflect.ValueOf(environment.MustBaseEnvSet)
	args := []reflect.Value{reflect.ValueOf(environment.DefaultCompatibilityVersion())}
	if base.Type().NumIn() == 2 {
		args = append(args, reflect.ValueOf(true))
	}
	return base.Call(args)[0].Interface().(*environment.EnvSet)
}

// composition makes the environment and the context of a policy's variables.
type composition interface {
	Env(environment.Type) (*cel.Env, error)
	CreateContext(context.Context) plugincel.CompositionContext
}

// compositionOf is the compiler itself, until 1.35 a field of it.
func compositionOf(compiler *plugincel.CompositedCompiler) composition {
	if c, ok := any(compiler).(composition); ok {
		return c
	}
	return reflect.ValueOf(compiler).Elem().FieldByName("CompositionEnv").Interface().(composition)
}

// validateClusterIPs validates a new service. From 1.33 the function takes the stored service, too.
func validateClusterIPs(service *core.Service) field.ErrorList {
	validate := reflect.ValueOf(corevalidation.ValidateServiceClusterIPsRelatedFields)
	args := []reflect.Value{reflect.ValueOf(service)}
	if validate.Type().NumIn() == 2 {
		args = append(args, reflect.Zero(validate.Type().In(1)))
	}
	return validate.Call(args)[0].Interface().(field.ErrorList)
}

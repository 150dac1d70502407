// The yardstick of `cargo xtask bench-webhook`: a webhook as most are written, on controller-runtime, that defaults what
// Palisade's does for Toolforge's profile. It reads typed pods and lets the library find the difference.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"net/http"
	"os"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type filler struct {
	decoder admission.Decoder
	uids    map[string]int64
}

func unset[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func (f *filler) Handle(_ context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	pod := &corev1.Pod{}
	if err := f.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	uid, known := f.uids[request.Namespace]
	if !known {
		return admission.Allowed("")
	}
	unset(&pod.Spec.SecurityContext, corev1.PodSecurityContext{})
	context := pod.Spec.SecurityContext
	unset(&context.RunAsUser, uid)
	unset(&context.RunAsGroup, uid)
	unset(&context.FSGroup, uid)
	unset(&context.RunAsNonRoot, true)
	unset(&context.SeccompProfile, corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			unset(&containers[i].SecurityContext, corev1.SecurityContext{})
			context := containers[i].SecurityContext
			unset(&context.AllowPrivilegeEscalation, false)
			unset(&context.Capabilities, corev1.Capabilities{})
			if context.Capabilities.Drop == nil {
				context.Capabilities.Drop = []corev1.Capability{"ALL"}
			}
		}
	}
	marshaled, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, marshaled).WithWarnings("mutated")
}

func main() {
	port := flag.Int("port", 9443, "where to listen, on 127.0.0.1")
	certificates := flag.String("certificates", "", "a directory with tls.crt and tls.key")
	uids := flag.String("uids", "", "a file with the uid of each namespace, as JSON")
	url := flag.String("load", "", "do not serve, but send requests to this URL")
	pid := flag.Int("pid", 0, "the process that serves it")
	rate := flag.Int("rate", 500, "requests in a second")
	seconds := flag.Int("seconds", 20, "for how long")
	namespaces := flag.Int("namespaces", 3500, "in how many namespaces")
	pod := flag.String("pod", "", "a file with the pod, as JSON")
	flag.Parse()
	log.SetLogger(zap.New())
	fail := func(err error) {
		if err != nil {
			log.Log.Error(err, "failed")
			os.Exit(1)
		}
	}
	if *url != "" {
		text, err := os.ReadFile(*pod)
		fail(err)
		fail(json.NewEncoder(os.Stdout).Encode(load(*url, *pid, *rate, *seconds, *namespaces, text)))
		return
	}
	text, err := os.ReadFile(*uids)
	fail(err)
	f := &filler{}
	scheme := runtime.NewScheme()
	fail(corev1.AddToScheme(scheme))
	f.decoder = admission.NewDecoder(scheme)
	fail(json.Unmarshal(text, &f.uids))
	server := webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: *port, CertDir: *certificates,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.NextProtos = []string{"h2", "http/1.1"} }},
	})
	server.Register("/mutate/toolforge", &webhook.Admission{Handler: f})
	fail(server.Start(signals.SetupSignalHandler()))
}

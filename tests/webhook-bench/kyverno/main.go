// The other yardstick of `cargo xtask bench-webhook`: Kyverno's own handler of admission requests, from JSON to JSON, with one
// policy that defaults what Palisade's webhook does for Toolforge's profile. It is Kyverno with all that can be left
// out left out: no cluster to ask for roles, namespaces and exceptions, no events, no reports, one policy for all
// namespaces instead of one for each, and the same uid everywhere.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	kyvernov1 "github.com/kyverno/kyverno/api/kyverno/v1"
	"github.com/kyverno/kyverno/pkg/logging"
	"github.com/kyverno/kyverno/pkg/policycache"
	"github.com/kyverno/kyverno/pkg/webhooks/handlers"
	"github.com/kyverno/kyverno/pkg/webhooks/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const policy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: toolforge}
spec:
  background: false
  rules:
  - name: fill-in
    match: {any: [{resources: {kinds: [Pod], operations: [CREATE]}}]}
    mutate:
      patchStrategicMerge:
        spec:
          securityContext:
            +(runAsUser): 50001
            +(runAsGroup): 50001
            +(fsGroup): 50001
            +(runAsNonRoot): true
            +(seccompProfile): {type: RuntimeDefault}
          containers:
          - (name): "*"
            securityContext:
              +(allowPrivilegeEscalation): false
              +(capabilities): {drop: [ALL]}
`

func main() {
	port := flag.Int("port", 9443, "where to listen, on 127.0.0.1")
	certificates := flag.String("certificates", "", "a directory with tls.crt and tls.key")
	flag.Parse()
	found := &kyvernov1.ClusterPolicy{}
	if err := yaml.UnmarshalStrict([]byte(policy), found); err != nil {
		log.Fatal(err)
	}
	cache := policycache.NewCache()
	if err := cache.Set("toolforge", found, policycache.TestResourceFinder{}); err != nil {
		log.Fatal(err)
	}
	mutate := resource.NewFakeHandlers(context.Background(), cache).Mutate
	pods := func(ctx context.Context, logger logr.Logger, request handlers.AdmissionRequest, start time.Time) handlers.AdmissionResponse {
		// What it otherwise asks discovery for.
		request.GroupVersionKind = schema.GroupVersionKind(request.Kind)
		return mutate(ctx, logger, request, "all", start)
	}
	handler := handlers.FromAdmissionFunc("MUTATE", pods).WithAdmission(logging.WithName("mutate")).ToHandlerFunc("MUTATE")
	address := fmt.Sprintf("127.0.0.1:%d", *port)
	log.Fatal(http.ListenAndServeTLS(address, *certificates+"/tls.crt", *certificates+"/tls.key", handler))
}

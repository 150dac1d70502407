package main

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
)

// What makes objects ready to be created, by `group/plural`.
var strategies = map[string]rest.RESTCreateStrategy{
	"certificates.k8s.io/certificatesigningrequests":           certificates.Strategy,
	"node.k8s.io/runtimeclasses":                               runtimeclass.Strategy,
	"scheduling.k8s.io/priorityclasses":                        priorityclass.Strategy,
	"networking.k8s.io/ingresses":                              ingress.Strategy,
	"networking.k8s.io/ingressclasses":                         ingressclass.Strategy,
	"networking.k8s.io/networkpolicies":                        networkpolicy.Strategy,
	"discovery.k8s.io/endpointslices":                          endpointslice.Strategy,
	"policy/poddisruptionbudgets":                              poddisruptionbudget.Strategy,
	"storage.k8s.io/csidrivers":                                csidriver.Strategy,
	"storage.k8s.io/csinodes":                                  csinode.Strategy,
	"storage.k8s.io/storageclasses":                            storageclass.Strategy,
	"storage.k8s.io/volumeattachments":                         volumeattachment.Strategy,
	"rbac.authorization.k8s.io/roles":                          role.Strategy,
	"rbac.authorization.k8s.io/rolebindings":                   rolebinding.Strategy,
	"rbac.authorization.k8s.io/clusterroles":                   clusterrole.Strategy,
	"rbac.authorization.k8s.io/clusterrolebindings":            clusterrolebinding.Strategy,
	"autoscaling/horizontalpodautoscalers":                     horizontalpodautoscaler.Strategy,
	"coordination.k8s.io/leases":                               lease.Strategy,
	"flowcontrol.apiserver.k8s.io/flowschemas":                 flowschema.Strategy,
	"flowcontrol.apiserver.k8s.io/prioritylevelconfigurations": prioritylevelconfiguration.Strategy,
	"apps/daemonsets":                                          daemonset.Strategy,
	"apps/statefulsets":                                        statefulset.Strategy,
	"apps/deployments":                                         deployment.Strategy,
	"apps/replicasets":                                         replicaset.Strategy,
	"apps/controllerrevisions":                                 controllerrevision.Strategy,
	"batch/jobs":                                               job.Strategy,
	"batch/cronjobs":                                           cronjob.Strategy,
	"nodes":                                                    node.Strategy,
	"resourcequotas":                                           resourcequota.Strategy,
	"limitranges":                                              limitrange.Strategy,
	"persistentvolumes":                                        persistentvolume.Strategy,
	"persistentvolumeclaims":                                   persistentvolumeclaim.Strategy,
	"serviceaccounts":                                          serviceaccount.Strategy,
	"events":                                                   event.Strategy,
	"secrets":                                                  secret.Strategy,
	"namespaces":                                               namespace.Strategy,
	"pods":                                                     pod.Strategy,
	"services":                                                 service.Strategy,
	"podtemplates":                                             podtemplate.Strategy,
	"configmaps":                                               configmap.Strategy,
	"endpoints":                                                endpoint.Strategy,
	"replicationcontrollers":                                   replicationcontroller.Strategy,
	"admissionregistration.k8s.io/validatingwebhookconfigurations": validatingwebhookconfiguration.Strategy,
	"admissionregistration.k8s.io/mutatingwebhookconfigurations":   mutatingwebhookconfiguration.Strategy,
}

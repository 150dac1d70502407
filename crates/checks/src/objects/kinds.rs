//! The kinds that the checks of objects evaluate.

use crate::ObjectResource;

/// The group of the Gateway API.
pub(super) const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

pub(super) const INGRESS: ObjectResource =
    ObjectResource { group: "networking.k8s.io", versions: &["v1"], kind: "Ingress", resource: "ingresses" };

pub(super) const NETWORK_POLICY: ObjectResource = ObjectResource {
    group: "networking.k8s.io",
    versions: &["v1"],
    kind: "NetworkPolicy",
    resource: "networkpolicies",
};

pub(super) const SERVICE: ObjectResource = of_core("Service", "services");
pub(super) const ENDPOINTS: ObjectResource = of_core("Endpoints", "endpoints");
pub(super) const ENDPOINT_SLICE: ObjectResource =
    ObjectResource { group: "discovery.k8s.io", versions: &["v1"], kind: "EndpointSlice", resource: "endpointslices" };

pub(super) const PERSISTENT_VOLUME_CLAIM: ObjectResource = of_core("PersistentVolumeClaim", "persistentvolumeclaims");
pub(super) const VOLUME_SNAPSHOT: ObjectResource = ObjectResource {
    group: "snapshot.storage.k8s.io",
    versions: &["v1", "v1beta1"],
    kind: "VolumeSnapshot",
    resource: "volumesnapshots",
};
/// In all these versions, it has the same class.
pub(super) const VOLUME_GROUP_SNAPSHOT: ObjectResource = ObjectResource {
    group: "groupsnapshot.storage.k8s.io",
    versions: &["v1", "v1beta2", "v1beta1", "v1alpha1"],
    kind: "VolumeGroupSnapshot",
    resource: "volumegroupsnapshots",
};
pub(super) const ROLE_BINDING: ObjectResource = ObjectResource {
    group: "rbac.authorization.k8s.io",
    versions: &["v1"],
    kind: "RoleBinding",
    resource: "rolebindings",
};

pub(super) const GATEWAY: ObjectResource = of_gateways("Gateway", "gateways", &["v1", "v1beta1"]);
pub(super) const LISTENER_SET: ObjectResource = of_gateways("ListenerSet", "listenersets", &["v1"]);
/// A [`LISTENER_SET`], in the releases before it had this name.
pub(super) const EXPERIMENTAL_LISTENER_SET: ObjectResource = ObjectResource {
    group: "gateway.networking.x-k8s.io",
    versions: &["v1alpha1"],
    kind: "XListenerSet",
    resource: "xlistenersets",
};

pub(super) const HTTP_ROUTE: ObjectResource = of_gateways("HTTPRoute", "httproutes", &["v1", "v1beta1"]);
pub(super) const GRPC_ROUTE: ObjectResource = of_gateways("GRPCRoute", "grpcroutes", &["v1", "v1alpha2"]);
pub(super) const TLS_ROUTE: ObjectResource = of_gateways("TLSRoute", "tlsroutes", &["v1", "v1alpha3", "v1alpha2"]);
pub(super) const TCP_ROUTE: ObjectResource = of_gateways("TCPRoute", "tcproutes", &["v1", "v1alpha2"]);
pub(super) const UDP_ROUTE: ObjectResource = of_gateways("UDPRoute", "udproutes", &["v1", "v1alpha2"]);

/// A kind of the core group.
const fn of_core(kind: &'static str, resource: &'static str) -> ObjectResource {
    ObjectResource { group: "", versions: &["v1"], kind, resource }
}

/// A kind of the Gateway API. In all these versions, it has the same fields.
const fn of_gateways(kind: &'static str, resource: &'static str, versions: &'static [&'static str]) -> ObjectResource {
    ObjectResource { group: GATEWAY_GROUP, versions, kind, resource }
}

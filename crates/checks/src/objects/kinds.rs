//! The kinds that the checks of objects evaluate.

use crate::{
    ObjectResource,
    object_check::{CHANGES, CONNECTION, CREATION, WRITES},
};

/// The group of the Gateway API.
pub(super) const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// The group of RBAC.
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

pub(super) const INGRESS: ObjectResource = stored("networking.k8s.io", &["v1"], "Ingress", "ingresses");

pub(super) const NETWORK_POLICY: ObjectResource =
    stored("networking.k8s.io", &["v1"], "NetworkPolicy", "networkpolicies");

pub(super) const SERVICE: ObjectResource = of_core("Service", "services");
pub(super) const SERVICE_STATUS: ObjectResource =
    ObjectResource { subresource: "status", operations: CHANGES, ..SERVICE };
pub(super) const ENDPOINTS: ObjectResource = of_core("Endpoints", "endpoints");
pub(super) const ENDPOINT_SLICE: ObjectResource =
    stored("discovery.k8s.io", &["v1"], "EndpointSlice", "endpointslices");

pub(super) const PERSISTENT_VOLUME_CLAIM: ObjectResource = of_core("PersistentVolumeClaim", "persistentvolumeclaims");
pub(super) const VOLUME_SNAPSHOT: ObjectResource =
    stored("snapshot.storage.k8s.io", &["v1", "v1beta1"], "VolumeSnapshot", "volumesnapshots");
/// In all these versions, it has the same class.
pub(super) const VOLUME_GROUP_SNAPSHOT: ObjectResource = stored(
    "groupsnapshot.storage.k8s.io",
    &["v1", "v1beta2", "v1beta1", "v1alpha1"],
    "VolumeGroupSnapshot",
    "volumegroupsnapshots",
);

pub(super) const ROLE: ObjectResource = stored(RBAC_GROUP, &["v1"], "Role", "roles");
pub(super) const ROLE_BINDING: ObjectResource = stored(RBAC_GROUP, &["v1"], "RoleBinding", "rolebindings");

pub(super) const SECRET: ObjectResource = of_core("Secret", "secrets");
pub(super) const TOKEN_REQUEST: ObjectResource =
    ObjectResource { subresource: "token", operations: CREATION, ..of_core("TokenRequest", "serviceaccounts") };

pub(super) const POD_EXEC: ObjectResource = connection("PodExecOptions", "pods", "exec");
pub(super) const POD_ATTACH: ObjectResource = connection("PodAttachOptions", "pods", "attach");
pub(super) const POD_PORT_FORWARD: ObjectResource = connection("PodPortForwardOptions", "pods", "portforward");
pub(super) const POD_PROXY: ObjectResource = connection("PodProxyOptions", "pods", "proxy");
pub(super) const SERVICE_PROXY: ObjectResource = connection("ServiceProxyOptions", "services", "proxy");

pub(super) const GATEWAY: ObjectResource = of_gateways("Gateway", "gateways", &["v1", "v1beta1"]);
pub(super) const LISTENER_SET: ObjectResource = of_gateways("ListenerSet", "listenersets", &["v1"]);
/// A [`LISTENER_SET`], in the releases before it had this name.
pub(super) const EXPERIMENTAL_LISTENER_SET: ObjectResource =
    stored("gateway.networking.x-k8s.io", &["v1alpha1"], "XListenerSet", "xlistenersets");

pub(super) const HTTP_ROUTE: ObjectResource = of_gateways("HTTPRoute", "httproutes", &["v1", "v1beta1"]);
pub(super) const GRPC_ROUTE: ObjectResource = of_gateways("GRPCRoute", "grpcroutes", &["v1", "v1alpha2"]);
pub(super) const TLS_ROUTE: ObjectResource = of_gateways("TLSRoute", "tlsroutes", &["v1", "v1alpha3", "v1alpha2"]);
pub(super) const TCP_ROUTE: ObjectResource = of_gateways("TCPRoute", "tcproutes", &["v1", "v1alpha2"]);
pub(super) const UDP_ROUTE: ObjectResource = of_gateways("UDPRoute", "udproutes", &["v1", "v1alpha2"]);

/// A kind of the core group.
const fn of_core(kind: &'static str, resource: &'static str) -> ObjectResource {
    stored("", &["v1"], kind, resource)
}

/// The options of a connection to an object of the core group.
const fn connection(kind: &'static str, resource: &'static str, subresource: &'static str) -> ObjectResource {
    ObjectResource { subresource, operations: CONNECTION, ..of_core(kind, resource) }
}

/// A kind of the Gateway API. In all these versions, it has the same fields.
const fn of_gateways(kind: &'static str, resource: &'static str, versions: &'static [&'static str]) -> ObjectResource {
    stored(GATEWAY_GROUP, versions, kind, resource)
}

const fn stored(
    group: &'static str,
    versions: &'static [&'static str],
    kind: &'static str,
    resource: &'static str,
) -> ObjectResource {
    ObjectResource { group, versions, kind, resource, subresource: "", operations: WRITES }
}

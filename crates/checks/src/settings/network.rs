//! `spec.network`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Allowance, Other, Texts},
    Range, Setting, at, setting,
};
use crate::{Flag, Text};

/// Restrictions on objects that publish services, and on NetworkPolicies. They are evaluated at the stage in enforcement.objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Network {
    /// Hosts that Ingresses may have in rules and tls, HTTPRoutes, GRPCRoutes and TLSRoutes in hostnames, and Gateways
    /// and ListenerSets in listeners: a host name; *. and a domain for the hosts below it, at any depth; * for all, or
    /// $name. A rule, route or listener without a host is denied. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 253)))]
    pub allowed_hosts: Option<Vec<Text>>,
    /// Whether Ingresses may have a defaultBackend, which receives requests for all hosts that no rule has. true, false
    /// or $name. If unset: false if allowedHosts restricts hosts, otherwise true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_default_backend: Option<Flag>,
    /// Classes that Ingresses may have, in ingressClassName and in the annotation kubernetes.io/ingress.class; '' for
    /// Ingresses without one, * for all, or $name. If an Ingress has no class, the API server sets the default class of
    /// the cluster, if there is one, before policies run. An empty list allows none. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 0, max = 253)))]
    pub allowed_ingress_classes: Option<Vec<Text>>,
    /// Classes that Gateways may have in gatewayClassName, * for all, or $name. An empty list allows none. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub allowed_gateway_classes: Option<Vec<Text>>,
    /// Gateways in other namespaces that routes and ListenerSets may name as parents: namespace/name, where * at the end
    /// matches any suffix; * for all, or $name. Parents in the namespace of the route are always allowed. An empty list
    /// allows no others. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(validation = ("self.all(x, x == '*' || x.startsWith('$') || x.matches('^[^/]+/[^/]+$'))",
        "must be namespace/name, * or $name"))]
    pub allowed_gateways: Option<Vec<Text>>,
    /// Types that Services may have: ClusterIP, NodePort, LoadBalancer, ExternalName, * for all, or $name. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8))]
    #[x_kube(validation = ("self.all(x, x in ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName', '*'] || x.startsWith('$'))",
        "must be ClusterIP, NodePort, LoadBalancer, ExternalName, * or $name"))]
    pub allowed_service_types: Option<Vec<Text>>,
    /// Hosts that Services of the type ExternalName may have in externalName: a host name; *. and a domain for the hosts
    /// below it, at any depth; * for all, or $name. An empty list allows none. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub allowed_external_names: Option<Vec<Text>>,
    /// Whether Services, other than those of the type ExternalName, may have no selector. true, false or $name. If
    /// unset: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_services_without_selector: Option<Flag>,
    /// Networks, as CIDRs, of the addresses that Services may have in externalIPs and loadBalancerIP, and that users may
    /// write into the status of load balancers; * for all, or $name. Controllers of the control plane may write any address
    /// into the status. An empty list allows none. If unset: all.
    #[serde(rename = "allowedExternalIPs", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    #[x_kube(validation = ("self.all(x, x == '*' || x.contains('$') || isCIDR(x))", "must be a CIDR, * or $name"))]
    pub allowed_external_ips: Option<Vec<Text>>,
    /// Classes that Services of the type LoadBalancer may have in loadBalancerClass; '' for Services without one, * for
    /// all, or $name. An empty list allows none. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 0, max = 256)))]
    pub allowed_load_balancer_classes: Option<Vec<Text>>,
    /// Networks, as CIDRs, that contain the networks in loadBalancerSourceRanges of each Service of the type
    /// LoadBalancer; * for all, or $name. An unset field means all networks, and is denied. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 64)))]
    #[x_kube(validation = ("self.all(x, x == '*' || x.contains('$') || isCIDR(x))", "must be a CIDR, * or $name"))]
    pub allowed_load_balancer_source_ranges: Option<Vec<Text>>,
    /// Ranges of ports that Services may have in nodePort and healthCheckNodePort. An empty list allows none. If unset:
    /// all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub allowed_node_ports: Option<Vec<Range>>,
    /// Whether users may write addresses into Endpoints and EndpointSlices. Controllers of the control plane may always.
    /// true, false or $name. If unset: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_endpoints: Option<Flag>,
    /// Networks, as CIDRs, that contain each ipBlock.cidr in the ingress rules of NetworkPolicies; * for all, or $name. An
    /// empty list allows no ipBlock. A rule without peers means all sources, and is denied. If unset: all.
    #[serde(rename = "allowedPolicyIngressCIDRs", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    #[x_kube(validation = ("self.all(x, x == '*' || x.contains('$') || isCIDR(x))", "must be a CIDR, * or $name"))]
    pub allowed_policy_ingress_cidrs: Option<Vec<Text>>,
    /// Networks, as CIDRs, that contain each ipBlock.cidr in the egress rules of NetworkPolicies; * for all, or $name. An
    /// empty list allows no ipBlock. A rule without peers means all destinations, and is denied. If unset: all.
    #[serde(rename = "allowedPolicyEgressCIDRs", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    #[x_kube(validation = ("self.all(x, x == '*' || x.contains('$') || isCIDR(x))", "must be a CIDR, * or $name"))]
    pub allowed_policy_egress_cidrs: Option<Vec<Text>>,
    /// Networks, as CIDRs or $name, that no ipBlock of a NetworkPolicy may contain or be part of, unless one element of its
    /// except contains the whole network. A rule without peers is denied. If unset or empty: none.
    #[serde(rename = "deniedPolicyCIDRs", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 64)))]
    #[x_kube(validation = ("self.all(x, x.contains('$') || isCIDR(x))", "must be a CIDR or $name"))]
    pub denied_policy_cidrs: Option<Vec<Text>>,
    /// Other namespaces that peers of NetworkPolicies may select, by the label kubernetes.io/metadata.name; * at the end
    /// matches any suffix; * for all, or $name. Peers without a namespaceSelector are in the namespace of the NetworkPolicy,
    /// and always allowed. A rule without peers is denied. An empty list allows no others. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub allowed_policy_namespaces: Option<Vec<Text>>,
    /// Keys of annotations that Ingresses, Services, routes, Gateways and ListenerSets may have. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<AnnotationKeys>,
}

/// Keys of annotations that are denied, and exceptions from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnnotationKeys {
    /// Keys that are denied unless they are allowed: a key, where * at the end matches any suffix; * for all, or $name. An
    /// empty list denies none. If unset: all.
    #[serde(default = "all_keys")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 317)))]
    #[x_kube(validation = ("self.all(x, x.matches('^[^*]*[*]?$'))", "must have * only at the end"))]
    pub denied: Vec<Text>,
    /// Keys that are allowed although they are denied, in the same notation. If unset or empty: none.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(min = 1, max = 317)))]
    #[x_kube(validation = ("self.all(x, x.matches('^[^*]*[*]?$'))", "must have * only at the end"))]
    pub allowed: Vec<Text>,
}

fn all_keys() -> Vec<Text> {
    vec!["*".into()]
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("network.allowedHosts", Texts(at!(network.allowed_hosts))),
    setting("network.allowDefaultBackend", Allowance(at!(network.allow_default_backend))),
    setting("network.allowedIngressClasses", Texts(at!(network.allowed_ingress_classes))),
    setting("network.allowedGatewayClasses", Texts(at!(network.allowed_gateway_classes))),
    setting("network.allowedGateways", Texts(at!(network.allowed_gateways))),
    setting("network.allowedServiceTypes", Texts(at!(network.allowed_service_types))),
    setting("network.allowedExternalNames", Texts(at!(network.allowed_external_names))),
    setting("network.allowServicesWithoutSelector", Allowance(at!(network.allow_services_without_selector))),
    setting("network.allowedExternalIPs", Texts(at!(network.allowed_external_ips))),
    setting("network.allowedLoadBalancerClasses", Texts(at!(network.allowed_load_balancer_classes))),
    setting("network.allowedLoadBalancerSourceRanges", Texts(at!(network.allowed_load_balancer_source_ranges))),
    setting("network.allowedNodePorts", Other(&at!(network.allowed_node_ports))),
    setting("network.allowEndpoints", Allowance(at!(network.allow_endpoints))),
    setting("network.allowedPolicyIngressCIDRs", Texts(at!(network.allowed_policy_ingress_cidrs))),
    setting("network.allowedPolicyEgressCIDRs", Texts(at!(network.allowed_policy_egress_cidrs))),
    setting("network.deniedPolicyCIDRs", Other(&at!(network.denied_policy_cidrs))),
    setting("network.allowedPolicyNamespaces", Texts(at!(network.allowed_policy_namespaces))),
    setting("network.annotations", Other(&at!(network.annotations))),
];

//! Pods and templates of pods: `ValidatePodSpec` of `pkg/apis/core/validation/validation.go` from top to bottom, and what
//! is around it. Rules of options that only updates have are not here.

mod annotations;
mod containers;
mod env;
mod handlers;
mod os;
mod paths;
mod projected;
mod resources;
pub(super) mod scheduling;
mod security;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::Minor;
use serde_json::Value;

use super::{super::gates::Gate, formats, node::Node, shown};
use crate::validation::{Checking, names};

const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];

/// A specification of pods that is validated.
#[expect(clippy::struct_field_names, reason = "what is asked is whether it is a pod")]
struct Pod<'a> {
    spec: Node<'a>,
    /// Of a pod, and not of a template.
    is_pod: bool,
    /// The name of the pod, if it is one and has one.
    name: Option<String>,
    /// Is it a pod that a node made of a file?
    is_mirror: bool,
    /// The volumes that are valid.
    volumes: BTreeMap<&'a str, &'a Value>,
    /// The names of its claims of resources.
    claims: BTreeSet<&'a str>,
}

impl<'a> Pod<'a> {
    fn new(spec: Node<'a>) -> Self {
        let claims = if spec.has("resourceClaims") { spec.list("resourceClaims") } else { spec.list("-") };
        let claims = claims.map(|claim| claim.text("name")).filter(|name| !name.is_empty()).collect();
        Self { spec, is_pod: false, name: None, is_mirror: false, volumes: BTreeMap::new(), claims }
    }

    fn os(&self) -> Option<&'a str> {
        self.spec.part("os").map(|os| os.text("name"))
    }

    /// Containers of each kind, in the order in which the API server visits them.
    fn containers(&self) -> impl Iterator<Item = Node<'a>> + use<'a> {
        let spec = self.spec.clone();
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(move |list| spec.list(list))
    }
}

/// A pod (`validatePodMetadataAndSpec`, `ValidatePodCreate`); its metadata is validated before.
pub(super) fn pod(checking: &mut Checking<'_>, object: &Value) {
    let object = Node::new(object, "");
    let metadata = object.get("metadata");
    let mut pod = Pod::new(object.get("spec"));
    pod.is_pod = true;
    pod.name = Some(metadata.text("name").to_owned()).filter(|name| !name.is_empty());
    pod.is_mirror = metadata.map("annotations").is_some_and(|map| map.contains_key("kubernetes.io/config.mirror"));
    annotations::check(checking, &metadata, "metadata.annotations", &pod);
    spec(checking, &mut pod);
    if pod.spec.text("serviceAccountName").is_empty() {
        for volume in pod.spec.list("volumes") {
            for source in volume.get("projected").list("sources").filter(|source| source.has("serviceAccountToken")) {
                let text = "must not be specified when serviceAccountName is not set";
                checking.forbidden(source.field("serviceAccountToken"), text);
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for container in pod.spec.list(list) {
            containers::only_of_pods(checking, &container);
        }
    }
    if checking.old.is_some() {
        return;
    }
    if !pod.spec.elements("ephemeralContainers").is_empty() {
        checking.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
    if !pod.spec.text("nodeName").is_empty() && !pod.spec.elements("schedulingGates").is_empty() {
        checking.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared");
    }
    annotations::match_fields(checking, &metadata, &pod);
}

/// The annotations of a pod alone (`ValidatePodSpecificAnnotations`).
pub(in crate::objects::validate) fn own_annotations(checking: &mut Checking<'_>, object: &Value) {
    let object = Node::new(object, "");
    let pod = Pod::new(object.get("spec"));
    annotations::check(checking, &object.get("metadata"), "metadata.annotations", &pod);
}

/// A template (`ValidatePodTemplateSpec`).
pub(super) fn template(checking: &mut Checking<'_>, template: &Node<'_>) {
    template_metadata(checking, template);
    let metadata = template.get("metadata");
    let mut pod = Pod::new(template.get("spec"));
    spec(checking, &mut pod);
    annotations::match_fields(checking, &metadata, &pod);
    if !pod.spec.elements("ephemeralContainers").is_empty() {
        let text = "ephemeral containers not allowed in pod template";
        checking.forbidden(pod.spec.field("ephemeralContainers"), text);
    }
}

/// Labels and annotations of a template.
pub(super) fn template_metadata(checking: &mut Checking<'_>, template: &Node<'_>) {
    let metadata = template.get("metadata");
    let pod = Pod::new(template.get("spec"));
    formats::labels(checking, &metadata.get("labels").at(template.field("labels")));
    formats::annotations(checking, &metadata.get("annotations").at(template.field("annotations")));
    annotations::check(checking, &metadata, &template.field("annotations"), &pod);
}

/// `ValidatePodSpec`.
fn spec(checking: &mut Checking<'_>, pod: &mut Pod<'_>) {
    if !pod.spec.has("terminationGracePeriodSeconds") {
        checking.required(pod.spec.field("terminationGracePeriodSeconds"), "");
    }
    pod.volumes = volumes::volumes(checking, pod);
    resource_claims(checking, pod);
    containers::regular(checking, pod);
    containers::init(checking, pod);
    containers::ephemeral(checking, pod);
    if Gate::PodLevelResources.is_on(checking.minor) {
        resources::of_pod(checking, pod);
    }
    host_network(checking, pod);
    let spec = &pod.spec;
    checking.required_one_of(&spec.get("restartPolicy"), &["Always", "OnFailure", "Never"]);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    checking.required_one_of(&spec.get("dnsPolicy"), &policies);
    formats::labels(checking, &spec.get("nodeSelector"));
    security::of_pod(checking, pod);
    scheduling::affinity(checking, spec);
    dns(checking, spec);
    scheduling::gates(checking, spec);
    scheduling::spreading(checking, spec);
    os::host_process(checking, pod);
    os::host_users(checking, pod);
    host_name(checking, spec);
    for key in ["serviceAccountName", "nodeName"] {
        optional(checking, spec, key, formats::subdomain);
    }
    if spec.has("activeDeadlineSeconds") {
        checking.within(spec, "activeDeadlineSeconds", 1, i64::from(i32::MAX));
    }
    for key in ["hostname", "subdomain"] {
        optional(checking, spec, key, formats::label);
    }
    scheduling::tolerations(checking, spec, "tolerations");
    for alias in spec.list("hostAliases") {
        formats::ip(checking, &alias.field("ip"), alias.text("ip"));
        for host in alias.list("hostnames") {
            formats::subdomain(checking, &host.path, host.string());
        }
    }
    optional(checking, spec, "priorityClassName", formats::subdomain);
    if let Some(class) = spec.part("runtimeClassName") {
        formats::subdomain(checking, &class.path, class.string());
    }
    if let Some(policy) = spec.part("preemptionPolicy") {
        checking.required_one_of(&policy, &["PreemptLowerPriority", "Never"]);
    }
    resources::overhead(checking, spec);
    os::check(checking, pod);
    env::volumes_of_files(checking, pod);
}

fn optional(checking: &mut Checking<'_>, of: &Node<'_>, key: &str, form: fn(&mut Checking<'_>, String, &str)) {
    let value = of.text(key);
    if !value.is_empty() {
        form(checking, of.field(key), value);
    }
}

/// `validatePodResourceClaims`.
fn resource_claims(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    let mut seen = BTreeSet::new();
    for claim in pod.spec.list("resourceClaims") {
        if pod.is_mirror {
            checking.forbidden("", "static pods do not support resource claims");
            continue;
        }
        let name = claim.text("name");
        if name.is_empty() {
            checking.required(claim.field("name"), "");
        } else if seen.contains(name) {
            checking.duplicate(claim.field("name"), name);
        } else {
            formats::label(checking, claim.field("name"), name);
            seen.insert(name);
        }
        let (own, template) = (claim.part("resourceClaimName"), claim.part("resourceClaimTemplateName"));
        let text = match (&own, &template) {
            (Some(_), Some(_)) => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            (None, None) => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            _ => "",
        };
        if !text.is_empty() {
            checking.invalid_shown(&claim.path, &shown::resource_claim(&claim), text);
        }
        for name in [own, template].into_iter().flatten() {
            formats::subdomain(checking, &name.path, name.string());
        }
    }
}

/// Ports of containers in the network of the host are its ports (`validatePodHostNetworkDeps`).
fn host_network(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    if !pod.spec.is_true("hostNetwork") {
        return;
    }
    for container in pod.spec.list("containers") {
        for port in container.list("ports") {
            let host = port.int("hostPort").unwrap_or(0);
            if (pod.is_pod || host != 0) && Some(host) != port.int("containerPort") {
                let text = "must match `containerPort` when `hostNetwork` is true";
                checking.invalid_value(port.field("hostPort"), &host.into(), text);
            }
        }
    }
}

/// `validatePodDNSConfig`.
fn dns(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let config = spec.get("dnsConfig");
    let servers = config.elements("nameservers");
    if spec.text("dnsPolicy") == "None" {
        if config.value.is_null() {
            checking.required(&config.path, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if servers.is_empty() {
            let text = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            checking.required(config.field("nameservers"), text);
            return;
        }
    }
    if servers.len() > 3 {
        let text = "must not have more than 3 nameservers";
        checking.invalid_texts(config.field("nameservers"), config.get("nameservers").value, text);
    }
    for server in config.list("nameservers") {
        formats::ip(checking, &server.path, server.string());
    }
    let searches = config.get("searches");
    let list: Vec<_> = config.list("searches").collect();
    if list.len() > 32 {
        checking.invalid_texts(&searches.path, searches.value, "must not have more than 32 search paths");
    }
    if list.iter().map(|search| search.string().len() + 1).sum::<usize>() > 2048 + 1 {
        let text = "must not have more than 2048 characters (including spaces) in the search list";
        checking.invalid_texts(&searches.path, searches.value, text);
    }
    let relaxed = Gate::RelaxedDNSSearchValidation.is_on(checking.minor);
    for search in list.iter().filter(|search| !relaxed || search.string() != ".") {
        let name = search.string().strip_suffix('.').unwrap_or(search.string());
        let wrong =
            if relaxed { formats::subdomain_with_underscores(checking.minor, name) } else { names::subdomain(name) };
        checking.each(&search.path, name, &wrong);
    }
    for option in config.list("options").filter(|option| option.text("name").is_empty()) {
        checking.required(&option.path, "must not be empty");
    }
}

/// `validatePodHostName`.
fn host_name(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let Some(name) = spec.part("hostnameOverride").filter(|_| checking.minor >= Minor::V1_34) else { return };
    if spec.is_true("setHostnameAsFQDN") {
        checking.forbidden(&name.path, "may not be specified when setHostnameAsFQDN is true");
    }
    if spec.is_true("hostNetwork") {
        checking.forbidden(&name.path, "may not be specified when hostNetwork is true");
    }
    if name.string().len() > 64 {
        checking.too_long(&name.path, 64);
    }
    checking.each(&name.path, name.string(), &names::subdomain(name.string()));
}

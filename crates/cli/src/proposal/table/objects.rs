//! Objects other than pods: hosts, classes, types, modes, ports, roles.

use palisade_checks::{Piece, Resolved, Text, Values, Wildcard, matches, pieces};
use serde_json::Value as Json;

use super::{Change, Found, Row, Subject, for_all, ids, items, names::listed, never, row, text};

const NO_HOST: &str = "an object without a host, or with a defaultBackend, receives requests for all hosts";
const NO_SELECTOR: &str = "a Service without a selector sends requests to any address";

/// The rows of checks of other objects than pods.
pub(super) static TABLE: [Row; 17] = [
    row("networkHosts", hosts, NO_HOST),
    row("networkClasses", network_classes, "no class was found in the object"),
    row("networkGateways", gateways, "the route has a parent that is not a Gateway"),
    row("networkServices", services, NO_SELECTOR),
    never("networkExternalAddresses", "with an external address, a Service receives the traffic of others"),
    row("networkLoadBalancers", load_balancers, "the profile limits the clients of load balancers"),
    row("networkNodePorts", node_ports, "no port of the node was found in the object"),
    never("networkEndpoints", "addresses in Endpoints can be those of other tenants"),
    never("networkPolicies", "the policy would open connections that policies of the platform close"),
    never("networkAnnotations", "annotations can configure the controllers of the platform"),
    row("storageClaims", claims, "the profile limits the size and the source of claims"),
    row("storageSnapshots", snapshots, "no class was found in the object"),
    row("accessBindings", role_refs, "another subject would get permissions in the namespace"),
    row("accessRoles", verbs, "a wildcard includes permissions that are not known yet"),
    never("accessTokens", "a token also gives access from outside of the cluster"),
    never("accessConnect", "a connection is not a stored object"),
    never("metadata", "only the owner of the object knows the right labels and annotations"),
];

/// Elements of lists of strings.
fn strings(list: &Json) -> impl Iterator<Item = &str> {
    items(list).filter_map(Json::as_str)
}

/// `network.allowedHosts`
fn hosts(subject: &Subject<'_>) -> Found {
    let Some(list) = &subject.settings.network.allowed_hosts else { return Ok(vec![]) };
    let spec = subject.spec();
    let of_rules = items(&spec["rules"]).filter_map(|rule| rule["host"].as_str());
    let of_tls = items(&spec["tls"]).flat_map(|tls| strings(&tls["hosts"]));
    let of_listeners = items(&spec["listeners"]).filter_map(|listener| listener["hostname"].as_str());
    let found = of_rules.chain(of_tls).chain(strings(&spec["hostnames"])).chain(of_listeners);
    of_hosts("network.allowedHosts", list, subject, found, |host| {
        format!("Ingresses, routes and Gateways may have the host {host}.")
    })
}

/// Changes that add the hosts that are not in a list.
fn of_hosts<'a>(
    path: &'static str,
    list: &[Text],
    subject: &Subject<'_>,
    found: impl Iterator<Item = &'a str>,
    allows: impl Fn(&str) -> String,
) -> Found {
    let mut changes = Vec::new();
    for host in found.filter(|host| !host.is_empty() && !matches(list, Wildcard::Host, subject.values, host)) {
        let (wildcard, name) = host.strip_prefix("*.").map_or(("", host), |name| ("*.", name));
        if is_of_namespaces(list, name) {
            return Err(format!("{host} is in a domain in which each namespace has separate hosts"));
        }
        let change = match of_parameter(subject.values, name) {
            Some((parameter, [before, after])) => {
                let value = format!("{wildcard}{}${parameter}{}", text(before)?, text(after)?);
                let allows = format!("{} {parameter} is the parameter of the namespace.", allows(&value));
                Change::add(path, value, allows)
            }
            None if !wildcard.is_empty() => return Err(format!("{host} includes hosts of other namespaces")),
            None => Change::add(path, text(host)?, allows(host))
                .but("All namespaces may use this host, also if it belongs to one of them."),
        };
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    Ok(changes)
}

/// Whether a host is in a domain in which a list has a separate host for each namespace: in `example.org`, if the list has
/// `$tool.example.org`.
fn is_of_namespaces(list: &[Text], host: &str) -> bool {
    list.iter().any(|one| match pieces(&one.0).unwrap_or_default().as_slice() {
        [.., Piece::Reference(_), Piece::Literal(domain)] => domain.starts_with('.') && host.ends_with(domain),
        _ => false,
    })
}

/// The parameter whose value is the first labels of a host, or its domain, with the rest of the host before and after it.
fn of_parameter<'a>(values: &'a Values, host: &'a str) -> Option<(&'a str, [&'a str; 2])> {
    values.iter().find_map(|(name, value)| {
        let Resolved::String(value) = value else { return None };
        let value = Some(value.as_str()).filter(|value| !value.is_empty())?;
        let after = host.strip_prefix(value).filter(|rest| rest.is_empty() || rest.starts_with('.'));
        let before = host.strip_suffix(value).filter(|rest| rest.ends_with('.') && value.contains('.'));
        let parts = after.map(|after| ["", after]).or_else(|| before.map(|before| [before, ""]))?;
        Some((name.as_str(), parts))
    })
}

/// The classes of an object: of an annotation and a field, as the check reads them. `""` if it has none.
fn classes<'a>(subject: &'a Subject<'_>, annotation: Option<&str>, field: &str) -> Vec<&'a str> {
    let by_annotation = annotation.and_then(|key| subject.pod["metadata"]["annotations"][key].as_str());
    let by_field = subject.spec()[field].as_str();
    let found: Vec<_> = by_annotation.into_iter().chain(by_field).collect();
    if found.is_empty() { vec![""] } else { found }
}

fn kind<'a>(subject: &'a Subject<'_>) -> &'a str {
    subject.pod["kind"].as_str().unwrap_or_default()
}

/// `network.allowedIngressClasses` and `network.allowedGatewayClasses`
fn network_classes(subject: &Subject<'_>) -> Found {
    let network = &subject.settings.network;
    if kind(subject) == "Gateway" {
        let (found, list) = (classes(subject, None, "gatewayClassName"), network.allowed_gateway_classes.as_deref());
        let found = found.into_iter().filter(|class| !class.is_empty());
        return listed(subject, "network.allowedGatewayClasses", list, found, |class| {
            format!("Any Gateway may have the class {class}.")
        });
    }
    let found = classes(subject, Some("kubernetes.io/ingress.class"), "ingressClassName");
    let list = network.allowed_ingress_classes.as_deref();
    listed(subject, "network.allowedIngressClasses", list, found.into_iter(), |class| match class {
        "" => "Any Ingress may have no class. Every Ingress controller can serve it.".to_owned(),
        class => format!("Any Ingress may have the class {class}."),
    })
}

/// `network.allowedGateways`
fn gateways(subject: &Subject<'_>) -> Found {
    const PATH: &str = "network.allowedGateways";
    let Some(list) = &subject.settings.network.allowed_gateways else { return Ok(vec![]) };
    let own = subject.pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let spec = subject.spec();
    let mut changes = Vec::new();
    for parent in items(&spec["parentRefs"]).chain([&spec["parentRef"]]) {
        let part = |field: &str| parent[field].as_str();
        let Some((namespace, name)) = part("namespace").filter(|one| *one != own).zip(part("name")) else { continue };
        let is_gateway = part("kind").is_none_or(|kind| kind == "Gateway")
            && part("group").is_none_or(|group| group == "gateway.networking.k8s.io");
        let gateway = format!("{namespace}/{name}");
        if !is_gateway || matches(list, Wildcard::End, subject.values, &gateway) {
            continue;
        }
        let change = Change::add(PATH, text(&gateway)?, format!("Any route may attach to the Gateway {gateway}."));
        changes
            .push(for_all(change.but("If it is the Gateway of one tenant, routes of all tenants could attach."), list));
    }
    Ok(changes)
}

/// `network.allowedServiceTypes` and `network.allowedExternalNames`
fn services(subject: &Subject<'_>) -> Found {
    let network = &subject.settings.network;
    let kind = subject.spec()["type"].as_str().unwrap_or("ClusterIP");
    if kind == "ExternalName" && network.allowed_external_names.is_none() {
        return Err("an ExternalName can be any host, and the profile lists no hosts".to_owned());
    }
    let list = network.allowed_service_types.as_deref();
    let mut changes = listed(subject, "network.allowedServiceTypes", list, [kind].into_iter(), |kind| match kind {
        "NodePort" => "Any Service may open a port on every node.".to_owned(),
        kind => format!("Any Service may have the type {kind}."),
    })?;
    let caution = match kind {
        "NodePort" if network.allowed_node_ports.is_none() => {
            "spec.network.allowedNodePorts is omitted, so it may be any port."
        }
        "LoadBalancer" => "A load balancer also has an address outside of the cluster, and ports on every node.",
        _ => "",
    };
    for change in changes.iter_mut().filter(|change| change.caution.is_empty()) {
        caution.clone_into(&mut change.caution);
    }
    if let Some(list) = network.allowed_external_names.as_deref().filter(|_| kind == "ExternalName") {
        let found = subject.spec()["externalName"].as_str();
        changes.extend(of_hosts("network.allowedExternalNames", list, subject, found.into_iter(), |host| {
            format!("Any Service may be an alias of the host {host}.")
        })?);
    }
    Ok(changes)
}

/// `network.allowedLoadBalancerClasses`
fn load_balancers(subject: &Subject<'_>) -> Found {
    let list = subject.settings.network.allowed_load_balancer_classes.as_deref();
    let found = classes(subject, None, "loadBalancerClass");
    listed(subject, "network.allowedLoadBalancerClasses", list, found.into_iter(), |class| match class {
        "" => "Any load balancer may have no class, and is served by the default implementation.".to_owned(),
        class => format!("Any load balancer may have the class {class}."),
    })
}

/// `network.allowedNodePorts`
fn node_ports(subject: &Subject<'_>) -> Found {
    let Some(ranges) = &subject.settings.network.allowed_node_ports else { return Ok(vec![]) };
    let spec = subject.spec();
    let ports = items(&spec["ports"]).map(|port| &port["nodePort"]).chain([&spec["healthCheckNodePort"]]);
    let found = ports.filter_map(Json::as_i64).filter(|port| *port > 0);
    ids::outside("network.allowedNodePorts", ranges, subject, found, |port| {
        format!("Any Service may have port {port} of every node.")
    })
}

/// `storage.allowedStorageClasses`, `storage.allowedAccessModes` and `storage.allowedVolumeModes`
fn claims(subject: &Subject<'_>) -> Found {
    let (storage, spec) = (&subject.settings.storage, subject.spec());
    let found = classes(subject, Some("volume.beta.kubernetes.io/storage-class"), "storageClassName");
    let list = storage.allowed_storage_classes.as_deref();
    let mut changes = listed(subject, "storage.allowedStorageClasses", list, found.into_iter(), |class| match class {
        "" => "Any claim may have no class.".to_owned(),
        class => format!("Any claim may have the storage class {class}."),
    })?;
    let list = storage.allowed_access_modes.as_deref();
    changes.extend(listed(subject, "storage.allowedAccessModes", list, strings(&spec["accessModes"]), |mode| {
        format!("Any claim may have the access mode {mode}.")
    })?);
    let list = storage.allowed_volume_modes.as_deref();
    let mode = spec["volumeMode"].as_str().unwrap_or("Filesystem");
    changes.extend(listed(subject, "storage.allowedVolumeModes", list, [mode].into_iter(), |mode| {
        format!("Any claim may have the volume mode {mode}.")
    })?);
    Ok(changes)
}

/// `storage.allowedSnapshotClasses`
fn snapshots(subject: &Subject<'_>) -> Found {
    let field = match kind(subject) {
        "VolumeGroupSnapshot" => "volumeGroupSnapshotClassName",
        _ => "volumeSnapshotClassName",
    };
    let list = subject.settings.storage.allowed_snapshot_classes.as_deref();
    listed(subject, "storage.allowedSnapshotClasses", list, classes(subject, None, field).into_iter(), |class| {
        match class {
            "" => "Any snapshot may have no class.".to_owned(),
            class => format!("Any snapshot may have the class {class}."),
        }
    })
}

/// Roles that a profile for tenants does not list: with their permissions, a subject controls the namespace.
const POWERFUL: [&str; 3] = ["ClusterRole/cluster-admin", "ClusterRole/admin", "ClusterRole/edit"];

/// `access.allowedRoleRefs`
fn role_refs(subject: &Subject<'_>) -> Found {
    let Some(list) = &subject.settings.access.allowed_role_refs else { return Ok(vec![]) };
    let role = &subject.pod["roleRef"];
    let Some((kind, name)) = role["kind"].as_str().zip(role["name"].as_str()) else { return Ok(vec![]) };
    let found = format!("{kind}/{name}");
    if matches(list, Wildcard::End, subject.values, &found) {
        return Ok(vec![]);
    }
    if POWERFUL.contains(&found.as_str()) || found.starts_with("ClusterRole/system:") {
        return Err(format!("a subject with {found} controls the namespace"));
    }
    let allows = format!("Any RoleBinding may grant {found}, if its author has these permissions or the verb bind.");
    Ok(vec![for_all(Change::add("access.allowedRoleRefs", text(&found)?, allows), list)])
}

/// Verbs with which a user gets permissions of others.
const ESCALATING: [&str; 3] = ["bind", "escalate", "impersonate"];

/// `access.allowedRoleVerbs`
fn verbs(subject: &Subject<'_>) -> Found {
    let Some(list) = &subject.settings.access.allowed_role_verbs else { return Ok(vec![]) };
    let found: Vec<_> = items(&subject.pod["rules"]).flat_map(|rule| strings(&rule["verbs"])).collect();
    if let Some(verb) = found.iter().find(|verb| ESCALATING.contains(verb) || verb.starts_with("impersonate")) {
        return Err(format!("with the verb {verb}, a user gets permissions of others"));
    }
    listed(subject, "access.allowedRoleVerbs", Some(list), found.into_iter(), |verb| {
        format!("Any Role may have the verb {verb}.")
    })
}

#[cfg(test)]
mod tests {
    use palisade_api::Settings;
    use serde_json::json;

    use super::*;

    fn found(settings: &Json, values: &[(&str, &str)], object: &Json) -> Result<Vec<String>, String> {
        let settings: Settings = serde_json::from_value(settings.clone()).unwrap();
        let values: Values =
            values.iter().map(|(name, value)| ((*name).to_owned(), Resolved::String((*value).to_owned()))).collect();
        let subject = Subject { settings: &settings, values: &values, pod: object, message: "" };
        let changes = hosts(&subject)?.into_iter().chain(services(&subject)?).chain(role_refs(&subject)?);
        Ok(changes.map(|change| format!("{change}{}", if change.caution.is_empty() { "" } else { " !" })).collect())
    }

    #[test]
    fn a_host_of_a_namespace_is_proposed_with_its_parameter() {
        let ingress = |host: &str| json!({"spec": {"rules": [{"host": host}], "tls": [{"hosts": [host]}]}});
        let values = [("domain", "weather.example"), ("empty", ""), ("tool", "weather")];
        let settings = |hosts: &[&str]| json!({"network": {"allowedHosts": hosts}});
        for (listed, host, expected) in [
            (&[][..], "weather.toolforge.org", Ok(r#"spec.network.allowedHosts += "$tool.toolforge.org""#)),
            (&[], "*.weather.toolforge.org", Ok(r#"spec.network.allowedHosts += "*.$tool.toolforge.org""#)),
            (&[], "www.weather.example", Ok(r#"spec.network.allowedHosts += "www.$domain""#)),
            (&[], "weathers.toolforge.org", Ok("spec.network.allowedHosts += weathers.toolforge.org !")),
            (&[], "*.toolforge.org", Err("includes hosts of other namespaces")),
            (&["$tool.toolforge.org"], "other.toolforge.org", Err("each namespace has separate hosts")),
            (&["*.$tool.toolforge.org"], "other.toolforge.org", Err("each namespace has separate hosts")),
            (&["$tool.toolforge.org"], "other.example.org", Ok("spec.network.allowedHosts += other.example.org !")),
        ] {
            let result = found(&settings(listed), &values, &ingress(host));
            match expected {
                Ok(change) => assert_eq!(result, Ok(vec![change.to_owned()]), "{host}"),
                Err(why) => assert!(result.as_ref().is_err_and(|error| error.contains(why)), "{host}: {result:?}"),
            }
        }
        let listed = settings(&["$tool.toolforge.org"]);
        assert_eq!(found(&listed, &values, &ingress("weather.toolforge.org")), Ok(vec![]));
    }

    #[test]
    fn no_change_gives_a_namespace_more_than_it_may_have() {
        for (settings, object) in [
            (
                json!({"network": {"allowedServiceTypes": []}}),
                json!({"spec": {"type": "ExternalName", "externalName": "a.b"}}),
            ),
            (
                json!({"access": {"allowedRoleRefs": []}}),
                json!({"roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}}),
            ),
            (
                json!({"access": {"allowedRoleRefs": []}}),
                json!({"roleRef": {"kind": "ClusterRole", "name": "system:node"}}),
            ),
        ] {
            let result = found(&settings, &[], &object);
            assert!(result.is_err(), "{object}: {result:?}");
        }
        let verbs = |verb: &str| {
            let settings = serde_json::from_value(json!({"access": {"allowedRoleVerbs": ["get"]}})).unwrap();
            let object = json!({"rules": [{"verbs": ["get", verb]}]});
            verbs(&Subject { settings: &settings, values: &Values::new(), pod: &object, message: "" })
        };
        for verb in ["escalate", "bind", "impersonate", "impersonate-on:user-info", "*"] {
            assert!(verbs(verb).is_err(), "{verb}");
        }
        assert_eq!(verbs("list").unwrap().len(), 1);
    }
}

//! Containers of each kind (`validateContainers`, `validateInitContainers` and `validateEphemeralContainers` in
//! `pkg/apis/core/validation/validation.go`).

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::Minor;

use super::{
    super::{super::gates::Gate, formats, node::Node, quantities::without_quotes},
    PULL_POLICIES, Pod, env, handlers, paths, resources, security,
};
use crate::validation::Checking;

pub(super) fn regular(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    if pod.spec.elements("containers").is_empty() {
        checking.required(pod.spec.field("containers"), "");
        return;
    }
    let mut names = BTreeSet::new();
    for container in pod.spec.list("containers") {
        common(checking, &container, pod);
        if !names.insert(container.text("name")) {
            checking.duplicate(container.field("name"), container.text("name"));
        }
        handlers::of_container(checking, &container, pod);
        if Gate::ContainerRestartRules.is_on(checking.minor) {
            restart(checking, &container);
        } else if container.has("restartPolicy") {
            checking.forbidden(container.field("restartPolicy"), "may not be set for non-init containers");
        }
    }
    host_ports(checking, pod.spec.list("containers"));
}

/// Ports of the host that are taken twice.
fn host_ports<'a>(checking: &mut Checking<'_>, containers: impl Iterator<Item = Node<'a>>) {
    let mut taken = BTreeSet::new();
    for container in containers {
        for port in container.list("ports") {
            let Some(number) = port.int("hostPort").filter(|number| *number != 0) else { continue };
            let shown = format!("{}/{}/{number}", port.text("protocol"), port.text("hostIP"));
            if !taken.insert(shown.clone()) {
                checking.duplicate(port.field("hostPort"), &shown);
            }
        }
    }
}

pub(super) fn init(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    let mut names: BTreeSet<_> = pod.spec.list("containers").map(|container| container.text("name")).collect();
    for (i, container) in pod.spec.list("initContainers").enumerate() {
        common(checking, &container, pod);
        restart_of_init(checking, &container);
        let (name, restarts) = (container.text("name"), container.text("restartPolicy") == "Always");
        if names.contains(name) {
            checking.duplicate(container.field("name"), name);
        } else if !name.is_empty() {
            names.insert(name);
        }
        // One after the other they can have the same; the API server reports the place as that of the first.
        let first = container.at(format!("{}[0]", pod.spec.field("initContainers")));
        host_ports(checking, std::iter::once(first));
        if restarts {
            handlers::of_container(checking, &container, pod);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.has(key) {
                    let text = "may not be set for init containers without restartPolicy=Always";
                    checking.forbidden(container.field(key), text);
                }
            }
        }
        if !restarts && checking.minor >= Minor::V1_36 {
            for (j, policy) in container.list("resizePolicy").enumerate() {
                if policy.text("restartPolicy") == "RestartContainer" {
                    let field = format!("{}[{i}].resizePolicy[{j}].restartPolicy", pod.spec.field("initContainers"));
                    let text = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                    checking.invalid(field, "RestartContainer", text);
                }
            }
        }
    }
}

/// Rules for pods only, not for templates.
pub(super) fn only_of_pods(checking: &mut Checking<'_>, container: &Node<'_>) {
    let image = container.text("image");
    if image.trim() != image {
        checking.invalid(container.field("image"), image, "must not have leading or trailing whitespace");
    }
}

/// Fields that containers have and ephemeral ones must not, by their names in Go.
const NOT_EPHEMERAL: &[(&str, &str)] = &[
    ("ports", "ports"),
    ("resources", "resources"),
    ("resizePolicy", "resizePolicy"),
    ("restartPolicy", "restartPolicy"),
    ("restartPolicyRules", "restartPolicyRules"),
    ("livenessProbe", "livenessProbe"),
    ("readinessProbe", "readinessProbe"),
    ("startupProbe", "startupProbe"),
    ("lifecycle", "lifecycle"),
];

pub(super) fn ephemeral(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    let others: BTreeSet<_> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| pod.spec.list(list))
        .map(|container| container.text("name"))
        .collect();
    let mut names = others.clone();
    for container in pod.spec.list("ephemeralContainers") {
        common(checking, &container, pod);
        only_of_pods(checking, &container);
        let (name, target) = (container.text("name"), container.text("targetContainerName"));
        if !names.insert(name) {
            checking.duplicate(container.field("name"), name);
        }
        if !target.is_empty() && !others.contains(target) {
            checking.not_found(container.field("targetContainerName"), target);
        }
        let forbidden = "cannot be set for an Ephemeral Container";
        for (key, shown) in NOT_EPHEMERAL {
            let empty = container.get(key).value.as_object().is_some_and(serde_json::Map::is_empty);
            if container.has(key) && !empty {
                checking.forbidden(container.field(shown), forbidden);
            }
        }
        for mount in container.list("volumeMounts") {
            for key in ["subPath", "subPathExpr"] {
                if !mount.text(key).is_empty() {
                    checking.forbidden(mount.field(key), forbidden);
                }
            }
        }
    }
}

/// `validateContainerCommon`.
fn common(checking: &mut Checking<'_>, container: &Node<'_>, pod: &Pod<'_>) {
    let name = container.text("name");
    if name.is_empty() {
        checking.required(container.field("name"), "");
    } else {
        formats::label(checking, container.field("name"), name);
    }
    if container.text("image").is_empty() {
        checking.required(container.field("image"), "");
    }
    checking.required_one_of(&container.get("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"]);
    ports(checking, container);
    env::variables(checking, container);
    env::maps(checking, container);
    mounts(checking, container, pod);
    devices(checking, container, pod);
    checking.required_one_of(&container.get("imagePullPolicy"), PULL_POLICIES);
    resources::container(checking, &container.get("resources"), &pod.claims);
    resizing(checking, container, pod);
    security::of_container(checking, &container.get("securityContext"), pod);
}

fn ports(checking: &mut Checking<'_>, container: &Node<'_>) {
    let mut names = BTreeSet::new();
    for port in container.list("ports") {
        let name = port.text("name");
        let wrong = if name.is_empty() { vec![] } else { formats::port_name(name) };
        // Its loop counts with the index of the port, which only the name sees.
        checking.each(port.field("name"), name, &wrong);
        if !name.is_empty() && wrong.is_empty() && !names.insert(name) {
            checking.duplicate(port.field("name"), name);
        }
        if port.int("containerPort").unwrap_or(0) == 0 {
            checking.required(port.field("containerPort"), "");
        } else {
            formats::port_number(checking, &port.get("containerPort"));
        }
        if port.int("hostPort").is_some_and(|number| number != 0) {
            formats::port_number(checking, &port.get("hostPort"));
        }
        checking.required_one_of(&port.get("protocol"), formats::PROTOCOLS);
    }
}

fn by_name<'a>(container: &Node<'a>, list: &str, path: &str) -> BTreeMap<&'a str, &'a str> {
    container.list(list).map(|one| (one.text("name"), one.text(path))).collect()
}

/// `ValidateVolumeMounts`. Some errors are reported at the list, without an index.
fn mounts(checking: &mut Checking<'_>, container: &Node<'_>, pod: &Pod<'_>) {
    let devices = by_name(container, "volumeDevices", "devicePath");
    let mut paths = BTreeSet::new();
    let list = container.get("volumeMounts");
    for mount in container.list("volumeMounts") {
        let (name, path) = (mount.text("name"), mount.text("mountPath"));
        if name.is_empty() {
            checking.required(mount.field("name"), "");
        }
        if !pod.volumes.contains_key(name) {
            checking.not_found(mount.field("name"), name);
        }
        if path.is_empty() {
            checking.required(mount.field("mountPath"), "");
        }
        if !paths.insert(path) {
            checking.invalid(mount.field("mountPath"), path, "must be unique");
        }
        if devices.contains_key(name) {
            checking.invalid(mount.field("name"), name, "must not already exist in volumeDevices");
        }
        if devices.values().any(|device| *device == path) {
            let text = "must not already exist as a path in volumeDevices";
            checking.invalid(mount.field("mountPath"), path, text);
        }
        let (sub, expression) = (mount.text("subPath"), mount.text("subPathExpr"));
        if !sub.is_empty() {
            paths::descending(checking, &list.field("subPath"), sub);
        }
        if !expression.is_empty() {
            if !sub.is_empty() {
                let text = "subPathExpr and subPath are mutually exclusive";
                checking.invalid(mount.field("subPathExpr"), expression, text);
            }
            paths::descending(checking, &list.field("subPathExpr"), expression);
        }
        propagation(checking, &mount, &list, container);
    }
}

fn propagation(checking: &mut Checking<'_>, mount: &Node<'_>, list: &Node<'_>, container: &Node<'_>) {
    let propagation = mount.text("mountPropagation");
    if mount.has("mountPropagation") {
        let field = list.field("mountPropagation");
        if !["Bidirectional", "HostToContainer", "None"].contains(&propagation) {
            checking.unsupported(&field, propagation, &["Bidirectional", "HostToContainer", "None"]);
        }
        if propagation == "Bidirectional" && !container.get("securityContext").is_true("privileged") {
            let text = "Bidirectional mount propagation is available only to privileged containers";
            checking.forbidden(field, text);
        }
    }
    let field = list.field("recursiveReadOnly");
    match mount.part("recursiveReadOnly").map(|value| value.string()) {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.is_true("readOnly") {
                checking.forbidden(&field, "may only be specified when readOnly is true");
            }
            if mount.has("mountPropagation") && propagation != "None" {
                checking.forbidden(field, "may only be specified when mountPropagation is None or not specified");
            }
        }
        Some(other) => checking.unsupported(field, other, &["Disabled", "Enabled", "IfPossible"]),
    }
}

fn devices(checking: &mut Checking<'_>, container: &Node<'_>, pod: &Pod<'_>) {
    let mounts = by_name(container, "volumeMounts", "mountPath");
    let (mut paths, mut names) = (BTreeSet::new(), BTreeSet::new());
    for device in container.list("volumeDevices") {
        let (name, path) = (device.text("name"), device.text("devicePath"));
        let (name_field, path_field) = (device.field("name"), device.field("devicePath"));
        if name.is_empty() {
            checking.required(&name_field, "");
        }
        if names.contains(name) {
            checking.invalid(&name_field, name, "must be unique");
        }
        match pod.volumes.get(name) {
            None => checking.not_found(&name_field, name),
            Some(volume) => {
                let volume = Node::new(volume, "");
                if !volume.has("persistentVolumeClaim") && !volume.has("ephemeral") {
                    let text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                    checking.invalid(&name_field, name, text);
                }
            }
        }
        if path.is_empty() {
            checking.required(&path_field, "");
        }
        if paths.contains(path) {
            checking.invalid(&path_field, path, "must be unique");
        }
        if path.split('/').any(|part| part == "..") {
            checking.invalid(&path_field, path, "can not contain backsteps ('..')");
        } else {
            paths.insert(path);
        }
        if mounts.contains_key(name) {
            checking.invalid(name_field, name, "must not already exist in volumeMounts");
        }
        if mounts.values().any(|mount| *mount == path) {
            checking.invalid(path_field, path, "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}

/// `validateResizePolicy`. Most is reported at the list.
fn resizing(checking: &mut Checking<'_>, container: &Node<'_>, pod: &Pod<'_>) {
    let (mut seen, field) = (BTreeSet::new(), container.field("resizePolicy"));
    for policy in container.list("resizePolicy") {
        let (resource, restart) = (policy.text("resourceName"), policy.text("restartPolicy"));
        let from = checking.errors.len();
        if !seen.insert(resource) {
            checking.duplicate(&policy.path, resource);
        }
        checking.required_one_of(&policy.get("resourceName").at(&field), &["cpu", "memory"]);
        without_quotes(checking, from, resource);
        checking.required_one_of(&policy.get("restartPolicy").at(&field), &["NotRequired", "RestartContainer"]);
        if pod.spec.text("restartPolicy") == "Never" && restart != "NotRequired" {
            let what = if checking.minor >= Minor::V1_36 { "pod `restartPolicy`" } else { "`restartPolicy`" };
            checking.invalid(&field, restart, &format!("must be 'NotRequired' when {what} is 'Never'"));
        }
    }
}

fn restart_of_init(checking: &mut Checking<'_>, container: &Node<'_>) {
    let rules = !container.elements("restartPolicyRules").is_empty() && checking.minor >= Minor::V1_34;
    let Some(policy) = container.part("restartPolicy") else {
        if rules {
            let text = "must specify restartPolicy when restart rules are used";
            checking.required(container.field("restartPolicy"), text);
        }
        return;
    };
    if !Gate::ContainerRestartRules.is_on(checking.minor) {
        checking.one_of(&policy, &["Always"]);
    } else if policy.string() != "Always" || Gate::RestartAllContainersOnContainerExits.is_on(checking.minor) {
        restart(checking, container);
    } else if rules {
        let text = "restartPolicyRules are not allowed for init containers with restart policy Always";
        checking.forbidden(container.field("restartPolicyRules"), text);
    }
}

/// `validateContainerRestartPolicy`.
fn restart(checking: &mut Checking<'_>, container: &Node<'_>) {
    let (rules, count) = (container.list("restartPolicyRules"), container.elements("restartPolicyRules").len());
    match container.part("restartPolicy") {
        None if count == 0 => return,
        None => {
            let text = "must specify restartPolicy when restart rules are used";
            checking.required(container.field("restartPolicy"), text);
        }
        Some(policy) => checking.one_of(&policy, &["Always", "Never", "OnFailure"]),
    }
    let longer = |checking: &mut Checking<'_>, field: String, count: usize, most: usize| {
        if count > most && checking.minor >= Minor::V1_36 {
            checking.too_many(field, count, most);
        } else if count > most {
            checking.too_long(field, most);
        }
    };
    longer(checking, container.field("restartPolicyRules"), count, 20);
    let all = Gate::RestartAllContainersOnContainerExits.is_on(checking.minor);
    for rule in rules {
        checking.one_of(&rule.get("action"), if all { &["Restart", "RestartAllContainers"] } else { &["Restart"] });
        let Some(codes) = rule.part("exitCodes") else {
            checking.required(rule.field("exitCodes"), "must be specified");
            continue;
        };
        checking.one_of(&codes.get("operator"), &["In", "NotIn"]);
        longer(checking, codes.field("values"), codes.elements("values").len(), 255);
    }
}

//! The ways in which a request is judged.

use palisade_api::{ToolSecurityProfile, Values, catalogue, names};
use palisade_compiler::{Bundle, Compiled};
use palisade_kube_json::{json::Change as _, pod};
use palisade_tests::{Cluster, bare_pod, hostile_pod, tool_pod};
use serde_json::{Value as Json, json};

use crate::{Only, Result};

/// The uid of all tools.
pub(crate) const UID: i64 = 50_001;
/// The name of all tools.
pub(crate) const TOOL: &str = "job";
/// The arm with a tool's pod that nothing judges.
const NOT_SELECTED: &str = "a tool's pod, not selected";
/// The arm of Toolforge's profile as it is compiled.
const PALISADE: &str = "tool-palisade";

/// A way in which a request is judged.
pub(crate) struct Arm {
    /// Its name, which is that of its namespace, too.
    pub name: String,
    /// What it is, for people.
    pub about: String,
    /// The arm that it is compared with; none for one that others are compared with.
    pub against: Option<&'static str>,
    /// The labels of its namespace.
    pub labels: Json,
    /// The objects to apply, besides the namespace.
    pub objects: Vec<Json>,
    /// What exists in the namespace before it is judged.
    pub before: Vec<(&'static str, Json)>,
    pub request: Request,
    /// Whether the request must be denied.
    pub denied: bool,
    /// Pods that must have their verdicts before anything is measured, and what they are.
    pub verdicts: Vec<(&'static str, Json, Expected)>,
    /// The process that judges beside the API server.
    pub engine: Option<u32>,
    /// The arm whose CPU this one's is a multiple of.
    pub multiple_of: Option<&'static str>,
}

/// A request, as a dry run.
#[derive(Clone)]
pub(crate) struct Request {
    pub method: &'static str,
    /// Below the namespace.
    pub path: &'static str,
    pub body: Json,
}

impl Request {
    pub(crate) fn create(body: Json) -> Self {
        Self { method: "POST", path: "api/v1/pods", body }
    }

    fn patch(path: &'static str, body: Json) -> Self {
        Self { method: "PATCH", path, body }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Admitted,
    Denied,
}

/// What a profile is changed to before its objects are applied.
#[derive(Clone, Copy)]
pub(crate) enum Variant {
    AsCompiled,
    /// Without the fast path.
    Full,
}

/// The arms with pods and workloads.
pub(crate) fn of_pods() -> Result<Vec<Arm>> {
    Ok([tools()?, restricted()?, denied()?, updates()?].into_iter().flatten().collect())
}

/// The arms that are to be measured, and what they are compared with.
pub(crate) fn selected(arms: Vec<Arm>, only: &Only) -> Vec<Arm> {
    let against: Vec<_> = arms.iter().filter(|arm| only.has(&arm.name)).filter_map(|arm| arm.against).collect();
    arms.into_iter().filter(|arm| only.has(&arm.name) || against.contains(&arm.name.as_str())).collect()
}

/// A tool's pod, by Toolforge's profile.
fn tools() -> Result<Vec<Arm>> {
    let request = Request::create(tool_pod("job", UID));
    let arm = |name: &str, about: &str, profile: Option<Json>, variant| -> Result<Arm> {
        arm(name, about, Some("tool-none"), profile, variant, request.clone())
    };
    let profile = toolforge()?;
    let mut arms = vec![
        Arm { against: None, ..arm("tool-none", NOT_SELECTED, None, Variant::AsCompiled)? },
        arm(PALISADE, "Toolforge's profile", Some(profile.clone()), Variant::AsCompiled)?,
        arm("tool-full", "Toolforge's profile without the fast path", Some(profile.clone()), Variant::Full)?,
    ];
    let mut each = arm("tool-policies", "the same checks as a policy each", None, Variant::AsCompiled)?;
    each.objects = policy_of_each_check(&profile)?;
    arms.push(each);
    let mut trivial = arm("tool-validation", "one trivial validation with parameters", None, Variant::AsCompiled)?;
    trivial.objects =
        trivial_policy("tool-validation", &json!({"validations": [{"expression": "params.spec.problem == ''"}]}));
    arms.push(trivial);
    let mut condition = arm("tool-condition", "one trivial match condition that is false", None, Variant::AsCompiled)?;
    let never = json!([{"name": "never", "expression": "params.spec.problem != ''"}]);
    let spec = json!({"validations": [{"expression": "false"}], "matchConditions": never});
    condition.objects = trivial_policy("tool-condition", &spec);
    arms.push(condition);
    let mut native = profile;
    *native.at_mut(&["spec", "mutation"]) = json!({"defaults": "Secure", "engine": "Native"});
    arms.push(arm(
        "tool-mutation",
        "Toolforge's profile with native mutation, nothing to default",
        Some(native.clone()),
        Variant::AsCompiled,
    )?);
    let mut defaults = arm(
        "tool-defaults",
        "Toolforge's profile with native mutation, defaults to write",
        Some(native),
        Variant::AsCompiled,
    )?;
    defaults.request = Request::create(bare_pod("job"));
    arms.push(defaults);
    Ok(arms)
}

/// The arms that are measured beside each peer: nothing judges, and Palisade.
pub(crate) fn beside_peers() -> Result<Vec<Arm>> {
    let request = Request::create(tool_pod("job", UID));
    let none = arm("tool-none", NOT_SELECTED, None, None, Variant::AsCompiled, request.clone())?;
    let about = "Toolforge's profile";
    let palisade = arm(PALISADE, about, Some("tool-none"), Some(toolforge()?), Variant::AsCompiled, request)?;
    Ok(vec![none, Arm { verdicts: verdicts()?, ..palisade }])
}

/// A tool's pod, judged by a process beside the API server.
pub(crate) fn of_peer(name: &str, about: &str, engine: u32) -> Result<Arm> {
    let request = Request::create(tool_pod("job", UID));
    let arm = arm(name, about, Some("tool-none"), None, Variant::AsCompiled, request)?;
    Ok(Arm { verdicts: verdicts()?, engine: Some(engine), multiple_of: Some(PALISADE), ..arm })
}

/// The arms of profiles that mutate, by the API server itself and by a webhook.
pub(crate) fn of_webhook(webhook: u32) -> Result<Vec<Arm>> {
    let complies = tool_pod("job", UID);
    let none = arm("tool-none", NOT_SELECTED, None, None, Variant::AsCompiled, Request::create(complies.clone()))?;
    let mut arms = vec![none];
    for (name, engine, about, pod) in [
        ("native-mutation", "Native", "native mutation, nothing to default", complies.clone()),
        ("webhook-mutation", "Webhook", "mutation by the webhook, nothing to default", complies),
        ("native-defaults", "Native", "native mutation, defaults to write", bare_pod("job")),
        ("webhook-defaults", "Webhook", "mutation by the webhook, defaults to write", bare_pod("job")),
    ] {
        let about = format!("Toolforge's profile with {about}");
        let mut arm = arm(name, &about, Some("tool-none"), None, Variant::AsCompiled, Request::create(pod))?;
        let mut profile = toolforge()?;
        profile["metadata"]["name"] = name.into();
        profile["spec"]["namespaceSelector"] = json!({"matchLabels": {"arm": name}});
        *profile.at_mut(&["spec", "mutation"]) = json!({"defaults": "Secure", "engine": engine});
        arm.objects = vec![profile];
        arm.engine = (engine == "Webhook").then_some(webhook);
        arms.push(arm);
    }
    Ok(arms)
}

/// Pods with the verdicts of Toolforge's profile: a hostile pod, one that complies, and one that violates each check.
fn verdicts() -> Result<Vec<(&'static str, Json, Expected)>> {
    let constant: ToolSecurityProfile = serde_json::from_value(with_uid(UID)?)?;
    let (settings, values) = (constant.spec.effective_settings(), Values::new());
    let mut complies = pod::minimal("job");
    for check in catalogue::ALL {
        (check.comply)(&settings, &values, &mut complies);
    }
    let mut all = vec![("a hostile pod", hostile_pod("job"), Expected::Denied)];
    for check in catalogue::ALL {
        let mut pod = complies.clone();
        if (check.violate)(&settings, &values, &mut pod) {
            all.push((check.id, pod, Expected::Denied));
        }
    }
    all.push(("a pod that complies", complies, Expected::Admitted));
    Ok(all)
}

/// Toolforge's profile with a constant for its parameter.
fn with_uid(uid: i64) -> Result<Json> {
    let constant = toolforge()?.to_string().replace("\"$uid\"", &uid.to_string());
    let mut profile: Json = serde_json::from_str(&constant)?;
    profile["spec"]["parameters"] = json!([]);
    Ok(profile)
}

/// A restricted pod, by the level Restricted.
fn restricted() -> Result<Vec<Arm>> {
    let request = Request::create(restricted_pod());
    let arm = |name: &str, about: &str, profile: Option<Json>, variant| -> Result<Arm> {
        arm(name, about, Some("restricted-none"), profile, variant, request.clone())
    };
    let mut psa = arm("restricted-psa", "Pod Security Admission, restricted", None, Variant::AsCompiled)?;
    psa.labels["pod-security.kubernetes.io/enforce"] = "restricted".into();
    let mut native = level();
    *native.at_mut(&["spec", "mutation"]) = json!({"defaults": "Secure", "engine": "Native"});
    Ok(vec![
        Arm { against: None, ..arm("restricted-none", "a restricted pod, not selected", None, Variant::AsCompiled)? },
        psa,
        arm("restricted-palisade", "the level Restricted", Some(level()), Variant::AsCompiled)?,
        arm("restricted-full", "the level Restricted without the fast path", Some(level()), Variant::Full)?,
        arm(
            "restricted-mutation",
            "the level Restricted with native mutation, nothing to default",
            Some(native),
            Variant::AsCompiled,
        )?,
    ])
}

fn denied() -> Result<Vec<Arm>> {
    let request = Request::create(hostile_pod("job"));
    let arm = |name: &str, about: &str, profile, variant, denied| -> Result<Arm> {
        Ok(Arm { denied, ..arm(name, about, Some("denied-none"), profile, variant, request.clone())? })
    };
    let profile = toolforge()?;
    Ok(vec![
        Arm { against: None, ..arm("denied-none", "a hostile pod, not selected", None, Variant::AsCompiled, false)? },
        arm("denied-palisade", "denied by Toolforge's profile", Some(profile.clone()), Variant::AsCompiled, true)?,
        arm("denied-full", "denied without the fast path", Some(profile), Variant::Full, true)?,
    ])
}

/// Updates that leave the judged fields alone.
fn updates() -> Result<Vec<Arm>> {
    let mut arms = Vec::new();
    let label = Request::patch("api/v1/pods/job", json!({"metadata": {"labels": {"new": "label"}}}));
    let scale = Request::patch("apis/apps/v1/deployments/job", json!({"spec": {"replicas": 3}}));
    let mut profile = toolforge()?;
    *profile.at_mut(&["spec", "enforcement", "workloads"]) = "Deny".into();
    let mut template = tool_pod("job", UID);
    template["spec"]["restartPolicy"] = "Always".into();
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "job"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"toolforge": "tool"}}, "template": {
            "metadata": {"labels": {"toolforge": "tool"}}, "spec": template["spec"],
        }},
    });
    for (kind, none, about, request, before) in [
        ("label", "label-none", "a label of a running pod", label, ("api/v1/pods", tool_pod("job", UID))),
        ("scale", "scale-none", "the scale of a Deployment", scale, ("apis/apps/v1/deployments", deployment)),
    ] {
        for (way, profile, variant) in [
            ("none", None, Variant::AsCompiled),
            ("palisade", Some(profile.clone()), Variant::AsCompiled),
            ("full", Some(profile.clone()), Variant::Full),
        ] {
            let how = match way {
                "none" => "not selected",
                "palisade" => "Toolforge's profile",
                _ => "Toolforge's profile without the fast path",
            };
            let against = (way != "none").then_some(none);
            let name = format!("{kind}-{way}");
            let mut arm = arm(&name, &format!("{about}, {how}"), against, profile, variant, request.clone())?;
            arm.before.push(before.clone());
            arms.push(arm);
        }
    }
    Ok(arms)
}

pub(crate) fn arm(
    name: &str,
    about: &str,
    against: Option<&'static str>,
    profile: Option<Json>,
    variant: Variant,
    request: Request,
) -> Result<Arm> {
    let objects = match profile {
        Some(profile) => objects(name, profile, variant)?,
        None => vec![],
    };
    Ok(Arm {
        name: name.to_owned(),
        about: about.to_owned(),
        against,
        labels: json!({"arm": name}),
        objects,
        before: vec![],
        request,
        denied: false,
        verdicts: vec![],
        engine: None,
        multiple_of: None,
    })
}

/// The checks of Toolforge's profile: mutation is an arm of its own.
pub(crate) fn toolforge() -> Result<Json> {
    Cluster::toolforge_profile("tool")
}

fn level() -> Json {
    json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": ""},
        "spec": {"enforcement": {"workloads": "Off"}},
    })
}

fn restricted_pod() -> Json {
    let mut restricted = pod::minimal("job");
    let context = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    pod::set(&mut restricted, &["securityContext"], context);
    let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    pod::set_container(&mut restricted, &["securityContext"], context);
    restricted
}

/// What a profile becomes for the namespace of an arm.
fn objects(arm: &str, mut profile: Json, variant: Variant) -> Result<Vec<Json>> {
    profile["metadata"]["name"] = arm.into();
    profile["spec"]["namespaceSelector"] = json!({"matchLabels": {"arm": arm}});
    let profile: ToolSecurityProfile = serde_json::from_value(profile)?;
    let compiled = palisade_compiler::compile(&profile).map_err(|found| format!("{found:?}"))?;
    let compiled = palisade_gate::check(compiled)?;
    let mut all = match variant {
        Variant::AsCompiled => of_bundle(&compiled.bundle),
        Variant::Full => of_bundle(&compiled.bundle.clone().in_full()),
    };
    all.extend(params(arm, &compiled));
    Ok(all)
}

fn of_bundle(bundle: &Bundle) -> Vec<Json> {
    let mut all = Vec::new();
    for (_, pair) in bundle.pairs() {
        all.push(json!(pair.policy));
        all.extend(pair.bindings().map(|binding| json!(binding)));
    }
    all.extend(bundle.mutation.iter().flat_map(|pair| pair.objects("v1")));
    all
}

fn params(arm: &str, compiled: &Compiled) -> Option<Json> {
    let mut spec = compiled.probes.params.clone()?;
    spec.integers.insert("uid".to_owned(), UID);
    if let Some(tool) = spec.strings.get_mut("tool") {
        TOOL.clone_into(tool);
    }
    Some(json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityParams",
        "metadata": {"name": names::params(&compiled.profile), "namespace": arm}, "spec": spec,
    }))
}

fn policy_of_each_check(profile: &Json) -> Result<Vec<Json>> {
    let mut all = Vec::new();
    for check in catalogue::ALL {
        let mut single = json!({"baseline": "Privileged", "enforcement": {"pods": "Deny", "workloads": "Off"}});
        for setting in check.settings {
            let path: Vec<_> = setting.split('.').collect();
            let found = path.iter().fold(&profile["spec"], |at, key| &at[*key]);
            if !found.is_null() {
                *single.at_mut(&path) = found.clone();
            }
        }
        if single.to_string().contains("$uid") {
            single["parameters"] = profile["spec"]["parameters"].clone();
        }
        let name = format!("tool-policies-{}", check.id.to_lowercase());
        let whole = json!({
            "apiVersion": profile["apiVersion"], "kind": profile["kind"], "metadata": {"name": name}, "spec": single,
        });
        let mut whole = whole;
        whole["spec"]["namespaceSelector"] = json!({"matchLabels": {"arm": "tool-policies"}});
        let compiled =
            palisade_compiler::compile(&serde_json::from_value(whole)?).map_err(|found| format!("{found:?}"))?;
        if compiled.checks.is_empty() {
            continue;
        }
        all.extend(of_bundle(&compiled.bundle.clone().in_full()));
        all.extend(params("tool-policies", &compiled));
    }
    Ok(all)
}

/// A policy and its binding for one namespace, whose uid is a constant of it.
pub(crate) fn policy_of_namespace(namespace: &str, uid: i64) -> Result<Vec<Json>> {
    let mut profile = with_uid(uid)?;
    profile["metadata"]["name"] = namespace.into();
    profile["spec"]["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    let compiled = palisade_compiler::compile(&serde_json::from_value(profile)?);
    Ok(of_bundle(&compiled.map_err(|found| format!("{found:?}"))?.bundle))
}

/// A policy with parameters that judges all pods of the arm so.
fn trivial_policy(arm: &str, judges: &Json) -> Vec<Json> {
    let group = "admissionregistration.k8s.io/v1";
    let mut spec = json!({
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": names::API_VERSION, "kind": "ToolSecurityParams"},
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"arm": arm}},
            "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"],
            }],
        },
    });
    pod::merge(&mut spec, judges);
    vec![
        json!({"apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": arm}, "spec": spec}),
        json!({
            "apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": arm},
            "spec": {
                "policyName": arm, "validationActions": ["Deny"],
                "paramRef": {"name": arm, "parameterNotFoundAction": "Deny"},
            },
        }),
        json!({
            "apiVersion": names::API_VERSION, "kind": "ToolSecurityParams",
            "metadata": {"name": arm, "namespace": arm},
            "spec": {"problem": "", "integers": {"uid": UID}, "strings": {}, "booleans": {}, "stringLists": {}},
        }),
    ]
}

//! Suites of kaptest (`github.com/pfnet/kaptest`, `internal/tester/manifest.go`).

use palisade_kube_json::json::Change as _;
use palisade_manifest::{Object, Problem};
use serde_json::{Value as Json, json};

use super::{complete, note_others, stub_crds, text, texts};
use crate::{
    Suite,
    assemble::{Draft, MissingBinding, Question},
    cluster::Member,
    format::{ExpectFields, Verdict},
    loader::Loader,
    request::{self, RequestFields},
};

/// Whether this is one.
pub(crate) fn is(object: &Object<'_>) -> bool {
    object.kind.is_empty() && object.node.get("validatingAdmissionPolicies").is_some()
}

/// Reads one.
pub(crate) fn suite(mut loader: Loader<'_>) -> Result<Suite, Vec<Problem>> {
    loader.imported = true;
    let json = loader.object.json().map_err(|mistake| vec![mistake.problem])?;
    note_others(&mut loader, "", &json, &["validatingAdmissionPolicies", "resources", "testSuites"]);
    let mut members = Vec::new();
    for list in ["validatingAdmissionPolicies", "resources"] {
        for (index, file) in texts(&json[list]).iter().enumerate() {
            let mut of_file = loader.file(&format!("{list}[{index}]"), file);
            if list == "resources" {
                of_file.retain(|member| !member.kind().ends_with("AdmissionPolicy"));
            }
            // kaptest ignores bindings. Each case here has its own.
            of_file.retain(|member| !member.kind().ends_with("AdmissionPolicyBinding"));
            members.extend(of_file);
        }
    }
    complete(&mut loader, &mut members);
    members.extend(stub_crds(&mut loader, &members));
    let mut drafts = Vec::new();
    for (index, tests) in json["testSuites"].as_array().into_iter().flatten().enumerate() {
        let path = format!("testSuites[{index}]");
        note_others(&mut loader, &path, tests, &["policy", "tests"]);
        let policy = members
            .iter()
            .find(|member| member.kind() == "ValidatingAdmissionPolicy" && member.name() == text(tests, "/policy"));
        let Some(policy) = policy else {
            loader.problem(&format!("{path}.policy"), format!("{path}.policy: there is no such policy in the files"));
            continue;
        };
        for (index, test) in tests["tests"].as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}.tests[{index}]");
            match draft(&mut loader, &path, policy, test, &members) {
                Ok(draft) => drafts.push(draft),
                Err(error) => loader.problem(&path, format!("{path}: {error}")),
            }
        }
    }
    let name = loader.source.name().to_owned();
    loader.finish(name, members, drafts, MissingBinding::Leave)
}

fn draft(
    loader: &mut Loader<'_>,
    path: &str,
    policy: &Member,
    test: &Json,
    members: &[Member],
) -> Result<Draft, String> {
    note_others(loader, path, test, &["object", "oldObject", "param", "params", "userInfo", "expect"]);
    let verdict = match text(test, "/expect") {
        "admit" | "allow" => Verdict::NoViolation,
        "deny" => Verdict::Violation,
        "skip" => Verdict::Skip,
        "error" => Verdict::Error,
        other => return Err(format!("expect: {other:?} is not admit, deny, skip or error")),
    };
    let object = find(&test["object"], members).map_err(|error| format!("object: {error}"))?;
    let old = find(&test["oldObject"], members).map_err(|error| format!("oldObject: {error}"))?;
    let shown = object.or(old).ok_or("there is neither object nor oldObject")?;
    let param = if test["param"].is_object() { &test["param"] } else { &test["params"] };
    let user = &test["userInfo"];
    let name = [text(user, "/name"), text(user, "/user")].into_iter().find(|name| !name.is_empty());
    let extra = serde_json::from_value(user["extra"].clone()).ok();
    let asked = RequestFields {
        object: object.map(|member| member.object.clone()),
        old: old.map(|member| member.object.clone()),
        user: request::user(name.map(str::to_owned), None, Some(texts(&user["groups"])), extra),
        // kaptest sets it always.
        dry_run: true,
        ..RequestFields::default()
    };
    Ok(Draft {
        name: format!("{}: {} {}: {}", policy.name(), shown.kind(), shown.name(), text(test, "/expect")),
        range: loader.object.node.place(&format!("{path}.expect")),
        minor: loader.server.minor,
        asked: Question::Fields(Box::new(asked)),
        expect: ExpectFields { verdict, policy: Some(policy.name().to_owned()), ..ExpectFields::default() },
        assertions: Vec::new(),
        extra: vec![binding(policy, param, members)?],
        open: Some(open(policy)),
    })
}

/// The object of a kind and name, as kaptest finds it: a group counts if it is given, and a version if a group is.
fn find<'m>(wanted: &Json, members: &'m [Member]) -> Result<Option<&'m Member>, String> {
    if wanted.is_null() {
        return Ok(None);
    }
    let (kind, name) = (text(wanted, "/kind"), text(wanted, "/name"));
    if kind.is_empty() || name.is_empty() {
        return Err("kind and name are needed".to_owned());
    }
    let fits = |member: &&Member| {
        let api_version = text(&member.object, "/apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        member.kind() == kind
            && member.name() == name
            && is(text(wanted, "/namespace"), text(&member.object, "/metadata/namespace"))
            && is(text(wanted, "/group"), group)
            && (text(wanted, "/group").is_empty() || is(text(wanted, "/version"), version))
    };
    let mut found = members.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(member), None) => Ok(Some(member)),
        (None, _) => Err(format!("there is no {kind} {name} in the files")),
        (Some(_), Some(_)) => Err(format!("there are several {kind} {name} in the files: add a namespace or group")),
    }
}

/// The policy with constraints that match everything: kaptest ignores matchConstraints.
fn open(policy: &Member) -> Json {
    let mut policy = policy.object.clone();
    let all = json!(["*"]);
    if let Some(spec) = policy.get_mut("spec").and_then(Json::as_object_mut) {
        let rule = json!({"apiGroups": all, "apiVersions": all, "operations": all, "resources": all});
        spec.insert("matchConstraints".to_owned(), json!({"resourceRules": [rule]}));
    }
    policy
}

/// A binding of the policy to the parameters of a case.
fn binding(policy: &Member, param: &Json, members: &[Member]) -> Result<Json, String> {
    let mut binding = crate::cluster::generated_binding(policy);
    let kind = text(&policy.object, "/spec/paramKind/kind");
    if kind.is_empty() {
        return Ok(binding);
    }
    let mut wanted = param.clone();
    if !wanted.is_object() {
        return Err("param: the policy has a paramKind, so that a name is needed".to_owned());
    }
    *wanted.at_mut(&["kind"]) = kind.into();
    let found = find(&wanted, members).map_err(|error| format!("param: {error}"))?;
    let namespace = found.map_or("", |found| text(&found.object, "/metadata/namespace"));
    *binding.at_mut(&["spec", "paramRef"]) = json!({"name": text(param, "/name"), "parameterNotFoundAction": "Deny"});
    if !namespace.is_empty() {
        *binding.at_mut(&["spec", "paramRef", "namespace"]) = namespace.into();
    }
    Ok(binding)
}

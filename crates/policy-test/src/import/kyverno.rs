//! Suites of `kyverno test` (`cli.kyverno.io/v1alpha1`, kind `Test`), as far as they are about
//! ValidatingAdmissionPolicies.

use palisade_kube_json::json;
use palisade_manifest::{Object, Problem};
use serde_json::{Value as Json, json};

use super::{complete, note_others, stub_crds, text, texts};
use crate::{
    Suite,
    assemble::{Draft, MissingBinding, Question},
    cluster::Member,
    format::{ExpectFields, Operation, Verdict},
    loader::Loader,
    places::Origin,
    request::{self, RequestFields},
};

/// Whether this is one.
pub(crate) fn is(object: &Object<'_>) -> bool {
    object.kind == "Test" && object.api_version.starts_with("cli.kyverno.io/")
}

/// Fields whose meaning is carried over, or that have none here.
const KNOWN: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "policies",
    "resources",
    "paramResources",
    "clusterResources",
    "variables",
    "values",
    "userinfo",
    "results",
];

/// Reads one.
pub(crate) fn suite(mut loader: Loader<'_>) -> Result<Suite, Vec<Problem>> {
    loader.imported = true;
    let json = loader.object.json().map_err(|mistake| vec![mistake.problem])?;
    note_others(&mut loader, "", &json, KNOWN);
    let mut members = Vec::new();
    for list in ["policies", "resources", "paramResources", "clusterResources"] {
        for (index, file) in texts(&json[list]).iter().enumerate() {
            members.extend(loader.file(&format!("{list}[{index}]"), file));
        }
    }
    let is_kyverno = |member: &Member| text(&member.object, "/apiVersion").contains("kyverno.io/");
    for member in members.iter().filter(|member| is_kyverno(member)) {
        loader.notes.push(format!("{} {} is not carried over: it is Kyverno's own", member.kind(), member.name()));
    }
    members.retain(|member| !is_kyverno(member));
    let user = user(&mut loader, &json);
    namespaces(&mut loader, &json, &mut members);
    complete(&mut loader, &mut members);
    members.extend(stub_crds(&mut loader, &members));
    let mut drafts = Vec::new();
    for (index, result) in json["results"].as_array().into_iter().flatten().enumerate() {
        results(&mut loader, &format!("results[{index}]"), result, &members, &user, &mut drafts);
    }
    if drafts.is_empty() && loader.problems.is_empty() {
        loader.notes.push("no result is about a ValidatingAdmissionPolicy".to_owned());
    }
    let name = match text(&json, "/metadata/name") {
        "" => loader.source.name().to_owned(),
        name => name.to_owned(),
    };
    loader.finish(name, members, drafts, MissingBinding::Bind)
}

/// The user of the requests.
fn user(loader: &mut Loader<'_>, json: &Json) -> palisade_admission::requests::User {
    let file = text(json, "/userinfo");
    let found = if file.is_empty() { Vec::new() } else { loader.file("userinfo", file) };
    let info = found.first().map_or(&Json::Null, |member| &member.object);
    note_others(loader, "userinfo", info, &["apiVersion", "kind", "metadata", "userInfo"]);
    let name = Some(text(info, "/userInfo/username")).filter(|name| !name.is_empty());
    let groups = info.pointer("/userInfo/groups").map(texts);
    request::user(name.map(str::to_owned), None, groups, None)
}

/// The namespaces in the values, with their labels.
fn namespaces(loader: &mut Loader<'_>, json: &Json, members: &mut Vec<Member>) {
    let file = text(json, "/variables");
    let mut values: Vec<(&str, Json)> = vec![("values", json["values"].clone())];
    if !file.is_empty() {
        values.extend(loader.file("variables", file).into_iter().map(|member| ("variables", member.object)));
    }
    for (path, values) in values {
        note_others(loader, path, &values, &["apiVersion", "kind", "metadata", "namespaceSelector", "namespaces"]);
        let selectors = values["namespaceSelector"].as_array().into_iter().flatten();
        let of_selector = |one: &Json| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one["name"], "labels": one["labels"]}});
        let listed = values["namespaces"].as_array().into_iter().flatten().map(|one| {
            let mut namespace = one.clone();
            json::merge(&mut namespace, &json!({"apiVersion": "v1", "kind": "Namespace"}));
            namespace
        });
        for object in selectors.map(of_selector).chain(listed) {
            let name = text(&object, "/metadata/name").to_owned();
            let known = members.iter_mut().find(|member| member.kind() == "Namespace" && member.name() == name);
            if let Some(known) = known {
                json::merge(&mut known.object, &object);
            } else {
                let origin = Origin { generated: true, ..Origin::new(loader.source, loader.index) };
                members.push(Member { object, origin });
            }
        }
    }
}

/// The cases of one entry.
fn results(
    loader: &mut Loader<'_>,
    path: &str,
    result: &Json,
    members: &[Member],
    user: &palisade_admission::requests::User,
    drafts: &mut Vec<Draft>,
) {
    let policy = text(result, "/policy");
    let known = |member: &Member| member.kind() == "ValidatingAdmissionPolicy" && member.name() == policy;
    if !members.iter().any(known) {
        loader.notes.push(format!("{path} is not carried over: {policy:?} is not a ValidatingAdmissionPolicy"));
        return;
    }
    let fields =
        ["policy", "result", "kind", "resources", "resourceSpecs", "operation", "isValidatingAdmissionPolicy", "rule"];
    note_others(loader, path, result, &fields);
    let verdict = match text(result, "/result") {
        "pass" => Verdict::NoViolation,
        "fail" | "warn" => Verdict::Violation,
        "skip" => Verdict::Skip,
        "error" => Verdict::Error,
        other => {
            return loader.problem(&format!("{path}.result"), format!("{path}.result: unknown: {other:?}"));
        }
    };
    let operation = match text(result, "/operation") {
        "" | "CREATE" => Operation::Create,
        "UPDATE" => Operation::Update,
        "DELETE" => Operation::Delete,
        other => {
            loader.notes.push(format!("{path} is not carried over: operation {other}"));
            return;
        }
    };
    let of_names = texts(&result["resources"]).into_iter().enumerate().map(|(index, name)| {
        let (namespace, name) =
            name.split_once('/').map_or((None, name.clone()), |(a, b)| (Some(a.to_owned()), b.to_owned()));
        (format!("{path}.resources[{index}]"), text(result, "/kind").to_owned(), namespace, name)
    });
    let specs = result["resourceSpecs"].as_array().into_iter().flatten().enumerate().map(|(index, spec)| {
        let namespace = Some(text(spec, "/namespace").to_owned()).filter(|namespace| !namespace.is_empty());
        (
            format!("{path}.resourceSpecs[{index}]"),
            text(spec, "/kind").to_owned(),
            namespace,
            text(spec, "/name").to_owned(),
        )
    });
    for (path, kind, namespace, name) in of_names.chain(specs) {
        let fits = |member: &&Member| {
            let found = text(&member.object, "/metadata/namespace");
            let in_namespace = |wanted: &String| wanted == found || (wanted == "default" && found.is_empty());
            (kind.is_empty() || member.kind() == kind)
                && member.name() == name
                && namespace.as_ref().is_none_or(in_namespace)
                && !member.origin.generated
        };
        let found: Vec<_> = members.iter().filter(fits).collect();
        if found.is_empty() {
            loader.problem(&path, format!("{path}: there is no {kind} {name} in the files"));
        }
        for member in found {
            let (object, old) = match operation {
                Operation::Delete => (None, Some(member.object.clone())),
                Operation::Update => {
                    loader.notes.push(format!("{path}: there is no old object: an update that changes nothing"));
                    (Some(member.object.clone()), Some(member.object.clone()))
                }
                _ => (Some(member.object.clone()), None),
            };
            let asked = RequestFields { object, old, user: user.clone(), ..RequestFields::default() };
            drafts.push(Draft {
                name: format!("{policy}: {kind} {name}: {}", text(result, "/result")),
                range: loader.object.node.place(&path),
                minor: loader.server.minor,
                asked: Question::Fields(Box::new(asked)),
                expect: ExpectFields { verdict, policy: Some(policy.to_owned()), ..ExpectFields::default() },
                assertions: Vec::new(),
                extra: vec![],
                open: None,
            });
        }
    }
}

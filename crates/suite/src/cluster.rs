//! The cluster of a suite, made of the objects in its files.

use std::sync::Arc;

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use palisade_api::{ToolSecurityProfile, crd};
use palisade_apiserver::admission::{Plugins, PolicyKind};
use palisade_compiler::{ChangedBy, Compiled, Namespace};
use palisade_manifest::{Object, Problem, Source};
use palisade_objects::json::Change as _;
use serde_json::{Value as Json, json};

use crate::{places::Origin, world::World};

/// An object of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub object: Json,
    pub origin: Origin,
}

impl Member {
    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The kind of policy, if it is a policy or a binding.
    pub fn policy_kind(&self) -> PolicyKind {
        if self.kind().starts_with("Mutating") { PolicyKind::Mutating } else { PolicyKind::Validating }
    }

    /// A problem with the object.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        let place = palisade_manifest::objects(&self.origin.source)
            .ok()
            .and_then(|objects| Some(objects.get(self.origin.index)?.node.place(&self.origin.prefix)));
        Problem::new(message).at(&self.origin.source, place.unwrap_or(0..0))
    }
}

/// A profile of the cluster, and what it becomes.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// The profile in its file.
    pub member: Member,
    pub typed: ToolSecurityProfile,
    pub compiled: Compiled,
}

impl Profile {
    pub fn new(member: &Member) -> Result<Self, Vec<Problem>> {
        let typed: ToolSecurityProfile = serde_json::from_value(member.object.clone())
            .map_err(|error| vec![member.problem(error.to_string()).help("palisade render says where")])?;
        let compiled = palisade_compiler::compile(&typed)
            .map_err(|found| found.iter().map(|one| member.problem(one.to_string())).collect::<Vec<_>>())?;
        Ok(Self { member: member.clone(), typed, compiled })
    }

    /// The expressions of a variable of the policies that judge: the policy, the path and the text.
    pub fn variables(&self, variable: &str) -> Vec<(&str, String, &str)> {
        let policies = self.compiled.bundle.pairs().map(|(_, pair)| &pair.policy);
        let found = policies.filter_map(|policy| {
            let variables = policy.spec.as_ref()?.variables.as_ref()?;
            let index = variables.iter().position(|one| one.name == variable)?;
            let source = variables[index].expression.as_str();
            Some((policy.metadata.name.as_deref()?, format!("variables[{index}].expression"), source))
        });
        found.collect()
    }
}

/// The objects of a file.
pub(crate) fn members(source: &Arc<Source>) -> Result<Vec<Member>, Vec<Problem>> {
    let objects = palisade_manifest::objects(source).map_err(|problem| vec![problem])?;
    let (mut members, mut problems) = (Vec::new(), Vec::new());
    for (index, object) in objects.iter().enumerate() {
        match member(object) {
            Ok(json) => members.push(Member { object: json, origin: Origin::new(source, index) }),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(members) } else { Err(problems) }
}

fn member(object: &Object<'_>) -> Result<Json, Problem> {
    let mut json = object.json().map_err(|mistake| mistake.problem)?;
    if !json.is_object() || object.kind.is_empty() || object.api_version.is_empty() {
        return Err(object.problem("", "this is no Kubernetes object: it has no apiVersion and kind"));
    }
    // What is in a typed list need not say it.
    *json.at_mut(&["kind"]) = object.kind.as_str().into();
    *json.at_mut(&["apiVersion"]) = object.api_version.as_str().into();
    Ok(json)
}

/// Replaces profiles by what they become, with the parameters of the namespaces among the members.
pub(crate) fn lower_profiles(
    members: Vec<Member>,
    now: Timestamp,
) -> Result<(Vec<Member>, Vec<Profile>), Vec<Problem>> {
    let is_profile = |member: &Member| member.kind() == "ToolSecurityProfile";
    let namespaces: Vec<_> = members.iter().filter_map(|member| namespace(&member.object)).collect();
    let (mut lowered, mut profiles, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for member in members {
        if !is_profile(&member) {
            lowered.push(member);
            continue;
        }
        let origin = Origin { generated: true, ..member.origin.clone() };
        let found = Profile::new(&member).and_then(|profile| Ok((profile.objects(&namespaces, now)?, profile)));
        match found {
            Ok((objects, profile)) => {
                lowered.extend(objects.into_iter().map(|object| Member { object, origin: origin.clone() }));
                profiles.push(profile);
            }
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok((lowered, profiles)) } else { Err(problems) }
}

impl Profile {
    /// What it becomes in a cluster of any version.
    fn objects(&self, namespaces: &[Namespace], now: Timestamp) -> Result<Vec<Json>, Vec<Problem>> {
        let Self { member, typed, compiled } = self;
        let mut objects: Vec<Result<Json, serde_json::Error>> = Vec::new();
        let of_params = crd::all().into_iter().filter(|crd| crd.spec.names.kind == "ToolSecurityParams");
        objects.extend(of_params.map(serde_json::to_value));
        let selected = namespaces.iter().filter(|one| palisade_compiler::selects(&typed.spec, one));
        objects.extend(selected.filter_map(|one| compiled.params(one, now)).map(serde_json::to_value));
        for (_, pair) in compiled.bundle.pairs() {
            objects.push(serde_json::to_value(&pair.policy).map(|json| with_type(json, "ValidatingAdmissionPolicy")));
            let bindings = pair.bindings().map(serde_json::to_value);
            objects.extend(bindings.map(|json| json.map(|json| with_type(json, "ValidatingAdmissionPolicyBinding"))));
        }
        objects.into_iter().collect::<Result<_, _>>().map_err(|error| vec![member.problem(error.to_string())])
    }
}

fn with_type(mut object: Json, kind: &str) -> Json {
    *object.at_mut(&["apiVersion"]) = "admissionregistration.k8s.io/v1".into();
    *object.at_mut(&["kind"]) = kind.into();
    object
}

/// What a profile knows of a namespace.
fn namespace(object: &Json) -> Option<Namespace> {
    if object["kind"] != "Namespace" || object["metadata"]["deletionTimestamp"].is_string() {
        return None;
    }
    let metadata: ObjectMeta = serde_json::from_value(object["metadata"].clone()).ok()?;
    let name = metadata.name?;
    let mut labels = metadata.labels.unwrap_or_default();
    labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
    Some(Namespace { name, labels, annotations: metadata.annotations.unwrap_or_default() })
}

/// A binding that enforces a policy everywhere.
pub(crate) fn generated_binding(policy: &str) -> Json {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy},
        "spec": {"policyName": policy, "validationActions": ["Deny"]},
    })
}

/// The policies that no binding names.
pub(crate) fn unbound(members: &[Member]) -> Vec<&Member> {
    let bound: Vec<_> = members
        .iter()
        .filter(|member| member.kind().ends_with("AdmissionPolicyBinding"))
        .filter_map(|member| member.object["spec"]["policyName"].as_str())
        .collect();
    let is_unbound = |member: &&Member| member.kind().ends_with("AdmissionPolicy") && !bound.contains(&member.name());
    members.iter().filter(is_unbound).collect()
}

/// The order in which a cluster needs its objects.
fn rank(kind: &str) -> u8 {
    match kind {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => 3,
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => 4,
        _ => 2,
    }
}

/// The cluster with all members in it, and what fills in pods for profiles; the warnings of its server, and what it
/// refuses and why.
pub(crate) fn build<'a>(
    minor: u8,
    plugins: &Plugins,
    members: &'a [Member],
    profiles: &'a [Profile],
) -> (World, Vec<String>, Vec<(&'a Member, String)>) {
    let mut world = World::new(minor, plugins);
    let mut ordered: Vec<&Member> = members.iter().collect();
    ordered.sort_by_key(|member| rank(member.kind()));
    let (mut notes, mut refused) = (Vec::new(), Vec::new());
    for member in ordered {
        match world.apply(member.object.clone()) {
            Ok(warnings) => {
                notes.extend(warnings.iter().map(|text| format!("{} {}: {text}", member.kind(), member.name())));
            }
            Err(why) => refused.push((member, why)),
        }
    }
    for Profile { member, compiled, .. } in profiles {
        let Some(mutation) = &compiled.mutation else { continue };
        match (mutation.by(minor), &compiled.bundle.mutation) {
            (ChangedBy::Policy(served), Some(pair)) => {
                for object in pair.objects(served) {
                    refused.extend(world.apply(object).err().map(|why| (member, why)));
                }
            }
            (ChangedBy::Webhook, _) => world.register(mutation.clone()),
            _ => {}
        }
    }
    (world, notes, refused)
}

/// The policies among the members.
pub(crate) fn policies(members: &[Member]) -> impl Iterator<Item = &Member> {
    members.iter().filter(|member| member.kind().ends_with("AdmissionPolicy"))
}

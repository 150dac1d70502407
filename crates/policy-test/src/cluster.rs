//! The cluster of a suite, made of the objects in its files.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use palisade_admission::requests::PolicyKind;
use palisade_kube_json::json::Change as _;
use palisade_manifest::{Object, Problem, Source as File};
use serde_json::{Value as Json, json};

use crate::{
    Extension, Made, Wrong,
    places::Origin,
    test_cluster::{Server, TestCluster},
};

/// The kind of definitions of kinds.
pub(crate) const DEFINITION: &str = "CustomResourceDefinition";

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

/// An object of the cluster that becomes policies.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The object in its file.
    pub member: Member,
    pub made: Arc<dyn Made>,
}

impl Source {
    pub fn new(member: &Member, extension: &dyn Extension) -> Result<Self, Vec<Problem>> {
        let problem = |Wrong { message, help }: Wrong| {
            let problem = member.problem(message);
            match help {
                Some(help) => problem.help(help),
                None => problem,
            }
        };
        let made =
            extension.read(&member.object).map_err(|wrong| wrong.into_iter().map(problem).collect::<Vec<_>>())?;
        Ok(Self { member: member.clone(), made })
    }
}

/// The objects of a file.
pub(crate) fn members(source: &Arc<File>) -> Result<Vec<Member>, Vec<Problem>> {
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
        return Err(object.problem("", "this is not a Kubernetes object: it has no apiVersion and kind"));
    }
    // An object in a typed list need not have its kind.
    *json.at_mut(&["kind"]) = object.kind.as_str().into();
    *json.at_mut(&["apiVersion"]) = object.api_version.as_str().into();
    Ok(json)
}

/// Replaces objects that become policies by these, at the place of the members.
pub(crate) fn lower(
    members: Vec<Member>,
    extension: Option<&dyn Extension>,
    now: Timestamp,
) -> Result<(Vec<Member>, Vec<Source>), Vec<Problem>> {
    let Some(extension) = extension else { return Ok((members, vec![])) };
    let is_other = |member: &&Member| member.kind() != extension.kind();
    let others: Vec<_> = members.iter().filter(is_other).map(|member| member.object.clone()).collect();
    let others: Vec<_> = others.iter().collect();
    let (mut lowered, mut sources, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for member in members {
        if member.kind() != extension.kind() {
            lowered.push(member);
            continue;
        }
        let origin = Origin { generated: true, ..member.origin.clone() };
        let found = Source::new(&member, extension).and_then(|source| {
            let objects = source.made.objects(&others, now).map_err(|error| vec![member.problem(error)])?;
            Ok((objects, source))
        });
        match found {
            Ok((objects, source)) => {
                lowered.extend(objects.into_iter().map(|object| Member { object, origin: origin.clone() }));
                sources.push(source);
            }
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok((lowered, sources)) } else { Err(problems) }
}

/// A binding that enforces a policy everywhere.
pub(crate) fn generated_binding(policy: &Member) -> Json {
    let name = policy.name();
    let (api_version, spec) = match policy.policy_kind() {
        PolicyKind::Validating => {
            ("admissionregistration.k8s.io/v1".into(), json!({"policyName": name, "validationActions": ["Deny"]}))
        }
        // Bindings have the version of the policies, which is not stable in each minor.
        PolicyKind::Mutating => (policy.object["apiVersion"].clone(), json!({"policyName": name})),
    };
    json!({
        "apiVersion": api_version,
        "kind": format!("{}Binding", policy.kind()),
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// The policies that no binding names.
pub(crate) fn unbound(members: &[Member]) -> Vec<&Member> {
    let bound: Vec<_> = members
        .iter()
        .filter(|member| member.kind().ends_with("AdmissionPolicyBinding"))
        .filter_map(|member| Some((member.policy_kind(), member.object["spec"]["policyName"].as_str()?)))
        .collect();
    let is_unbound = |member: &&Member| {
        member.kind().ends_with("AdmissionPolicy") && !bound.contains(&(member.policy_kind(), member.name()))
    };
    members.iter().filter(is_unbound).collect()
}

/// The order in which a cluster needs its objects.
fn rank(kind: &str) -> u8 {
    match kind {
        DEFINITION => 0,
        "Namespace" => 1,
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => 3,
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => 4,
        _ => 2,
    }
}

/// An object that the API server rejects, and why.
type Refused<'a> = (&'a Member, String);

/// The cluster with all members in it, and what they become in its version; the warnings of its server, and the objects
/// that it rejects, with the reason.
pub(crate) fn build<'a>(
    server: &Server,
    members: &'a [Member],
    sources: &'a [Source],
) -> (TestCluster, Vec<String>, Vec<Refused<'a>>) {
    let mut cluster = TestCluster::new(server.minor, &server.plugins, server.extension);
    let mut ordered: Vec<&Member> = members.iter().collect();
    ordered.sort_by_key(|member| rank(member.kind()));
    let (mut notes, mut refused) = (Vec::new(), Vec::new());
    for member in ordered {
        match cluster.apply(member.object.clone()) {
            Ok(warnings) => {
                notes.extend(warnings.iter().map(|text| format!("{} {}: {text}", member.kind(), member.name())));
            }
            Err(why) => refused.push((member, why)),
        }
    }
    for Source { member, made } in sources {
        for object in made.objects_of(server.minor) {
            refused.extend(cluster.apply(object).err().map(|why| (member, why)));
        }
        if let Some((name, webhook)) = made.webhook(server.minor) {
            cluster.register(name, webhook);
        }
    }
    (cluster, notes, refused)
}

/// The policies among the members.
pub(crate) fn policies(members: &[Member]) -> impl Iterator<Item = &Member> {
    members.iter().filter(|member| member.kind().ends_with("AdmissionPolicy"))
}

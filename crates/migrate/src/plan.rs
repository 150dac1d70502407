//! From policies and grants to profiles: the namespaces that each selects.
//!
//! The API server admitted a pod if one of the policies that it may use admits it. But all profiles apply. So if every
//! pod of a namespace may use several policies, and one of them admits all pods that the others admit, only its profile
//! selects that namespace. If there is no such policy, all of them select it, which is stricter. A policy that only
//! some accounts of a namespace may use allows nothing to the others: a note reports it, and the profile does not
//! select the namespace.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use palisade_api::{
    Diagnostic, Enforcement, Exemptions, Level, OptionalStage, Stage, ToolSecurityProfile, ToolSecurityProfileSpec,
    names,
};
use palisade_kube_json::text::truncated;

use crate::{
    cover::covers,
    limits,
    note::{Kind, Note},
    psp::{self, Converted, PodSecurityPolicy},
    rbac::{Grants, Rbac},
};

/// The label with which a namespace demands the profile of a policy, if nothing else selects the namespace.
pub const LABEL: &str = "toolsecurity.dev/psp";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The longest name of a profile.
const MAX_NAME: usize = 50;
/// The most namespaces that a note names; it counts the others.
const SHOWN: usize = 5;

/// Notes that apply to every migrated policy.
pub const ALWAYS: [&str; 7] = [
    "A pod must comply with all profiles that select its namespace. With several PodSecurityPolicies, one was \
     enough.",
    "Former defaults are set by spec.mutation in pods that leave the field unset. Without a mutation engine, such \
     pods are denied.",
    "Pods of kube-system, kube-public, kube-node-lease and palisade-system are never evaluated.",
    "Ephemeral containers (kubectl debug) are evaluated like others. PodSecurityPolicy did not evaluate them.",
    "If root is not allowed, a pod with root in its securityContext (runAsUser: 0, runAsNonRoot: false) is denied, \
     even if each of its containers overrides it.",
    "A pod for Windows (os.name: windows) is exempt from fields that it cannot set (windows: Exempt).",
    "Settings that PodSecurityPolicy did not have are not restricted (baseline: Privileged): HostProcess containers \
     of Windows, hosts of probes, user namespaces, images. Safe sysctls are those of Kubernetes 1.24, its last \
     version.",
];

/// How to migrate.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How far the profiles are enforced.
    pub stage: Stage,
    /// Labels of the namespaces that every profile selects, instead of those of the grants.
    pub namespace_selector: Option<BTreeMap<String, String>>,
}

/// The result for a policy.
#[derive(Clone, Debug)]
pub struct Migrated {
    /// The profile.
    pub profile: ToolSecurityProfile,
    /// The differences, by the fields of the policy.
    pub notes: Vec<Note>,
}

/// Makes a profile of each policy, in their order.
///
/// # Errors
/// Fields that no API server would have accepted, that make a policy admit no pod, or that go beyond the bounds of a
/// profile: each with the index of its policy and its path there.
pub fn migrate(
    policies: &[PodSecurityPolicy],
    rbac: &Rbac,
    options: &Options,
) -> Result<Vec<Migrated>, Vec<(usize, Diagnostic)>> {
    let mut mistakes = Vec::new();
    let mut converted = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, policy) in policies.iter().enumerate() {
        match psp::convert(policy) {
            Ok(one) => converted.push(one),
            Err(found) => mistakes.extend(found.into_iter().map(|mistake| (index, mistake))),
        }
        if let Some(mistake) = name_mistake(policy.name(), &mut seen) {
            mistakes.push((index, mistake));
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let plan = Plan::new(policies, &converted, rbac);
    let mut migrated = Vec::new();
    for (index, (policy, Converted { settings, mut notes })) in policies.iter().zip(converted.clone()).enumerate() {
        let name = profile_name(policy.name());
        if name != policy.name() {
            let message = format!(
                "is longer than the {MAX_NAME} characters that a profile name may have; the \
                                   profile is named {name}"
            );
            notes.push(Note::new(Kind::Note, "metadata.name", message));
        }
        let (namespace_selector, found) = match &options.namespace_selector {
            Some(labels) => (by_labels(labels.clone()), given(policies.len(), rbac)),
            None => plan.selector(index, &name),
        };
        notes.extend(found);
        let spec = ToolSecurityProfileSpec {
            namespace_selector,
            guard_sources: false,
            exclude_namespaces: vec![],
            rollout: None,
            enforcement: Enforcement {
                pods: options.stage,
                workloads: templates(options.stage),
                ..Enforcement::default()
            },
            exemptions: Exemptions::default(),
            exceptions: vec![],
            exception_requests: None,
            parameters: vec![],
            overrides: vec![],
            generate: vec![],
            baseline: Level::Privileged,
            baseline_version: palisade_api::settings::standard::Version::default(),
            minimum_kube_version: None,
            users: settings.users,
            privileges: settings.privileges,
            host: settings.host,
            volumes: settings.volumes,
            identity: settings.identity,
            scheduling: settings.scheduling,
            images: settings.images,
            network: settings.network,
            storage: settings.storage,
            access: settings.access,
            metadata: settings.metadata,
            custom_checks: vec![],
            mutation: settings.mutation,
        };
        let written = serde_json::to_value(&spec).unwrap_or_default();
        mistakes.extend(limits::exceeded(&written).into_iter().map(|beyond| {
            let path = limits::origin(&beyond.location.path);
            (index, Diagnostic::new(path, beyond.message).help("shorten the list, or split the policy"))
        }));
        migrated.push(Migrated { profile: ToolSecurityProfile::new(&name, spec), notes });
    }
    if mistakes.is_empty() { Ok(migrated) } else { Err(mistakes) }
}

/// The stage of templates, which PodSecurityPolicy did not evaluate: `Warn`, or `Audit` if pods are only audited.
fn templates(pods: Stage) -> OptionalStage {
    match pods {
        Stage::Deny | Stage::Warn => OptionalStage::Warn,
        Stage::Audit => OptionalStage::Audit,
    }
}

fn name_mistake(name: &str, seen: &mut BTreeSet<String>) -> Option<Diagnostic> {
    let subdomain = |name: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        name.len() <= 253
            && name.split('.').all(|part| {
                !part.is_empty() && part.chars().all(inner) && !part.starts_with('-') && !part.ends_with('-')
            })
    };
    if name.is_empty() {
        return Some(Diagnostic::new("metadata.name", "is required").help("add the name of the policy"));
    }
    if !subdomain(name) {
        let help = "must consist of lower case letters, digits, dots and dashes, and begin and end with a letter or \
                    digit";
        return Some(Diagnostic::new("metadata.name", format!("{name:?} is not a valid object name")).help(help));
    }
    let second = !seen.insert(profile_name(name));
    second.then(|| Diagnostic::new("metadata.name", format!("must be unique: another policy is named {name:?}")))
}

/// The name, or its beginning and a hash of all of it (FNV-1a, which is the same everywhere).
fn profile_name(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let start = truncated(name, MAX_NAME - 9);
    format!("{}-{hash:08x}", start.trim_end_matches(['-', '.']))
}

/// The notes if the admin gives the selector.
fn given(policies: usize, rbac: &Rbac) -> Vec<Note> {
    let mut notes = Vec::new();
    if policies > 1 {
        let message = format!(
            "all {policies} profiles select the same namespaces, and a pod must comply with each of them; before, \
             one policy was enough"
        );
        notes.push(Note::new(Kind::Stricter, "metadata.name", message));
    }
    if !rbac.is_empty() {
        let message = "the namespaces come from the option, not from the grants";
        notes.push(Note::new(Kind::Note, "metadata.name", message));
    }
    notes
}

/// The policies that apply in each namespace.
struct Plan<'a> {
    names: Vec<&'a str>,
    grants: Vec<Grants>,
    unresolved: Vec<String>,
    /// By policy: whether it applies in namespaces that no grant names.
    elsewhere: BTreeSet<usize>,
    /// The policies that apply, by the namespaces that grants name.
    applied: BTreeMap<String, BTreeSet<usize>>,
    /// The policies that a namespace does not need, each with one that covers it.
    covered: BTreeMap<(String, usize), usize>,
}

impl<'a> Plan<'a> {
    fn new(policies: &'a [PodSecurityPolicy], converted: &[Converted], rbac: &Rbac) -> Self {
        let grants: Vec<_> = policies.iter().map(|policy| rbac.grants(policy.name())).collect();
        let named: BTreeSet<_> =
            grants.iter().flat_map(|grants| grants.whole.iter().chain(grants.partly.keys()).cloned()).collect();
        let everywhere: Vec<_> = (0..grants.len()).filter(|&index| grants[index].everywhere).collect();
        let mut plan = Self {
            names: policies.iter().map(PodSecurityPolicy::name).collect(),
            elsewhere: BTreeSet::new(),
            applied: BTreeMap::new(),
            covered: BTreeMap::new(),
            unresolved: rbac.unresolved(),
            grants,
        };
        plan.elsewhere = plan.widest(&everywhere, converted, "");
        for namespace in named {
            if names::PROTECTED_NAMESPACES.contains(&namespace.as_str()) {
                continue;
            }
            let whole: Vec<_> = (0..policies.len())
                .filter(|&index| plan.grants[index].everywhere || plan.grants[index].whole.contains(&namespace))
                .collect();
            let applied = if whole.is_empty() {
                (0..policies.len()).filter(|&index| plan.grants[index].partly.contains_key(&namespace)).collect()
            } else {
                plan.widest(&whole, converted, &namespace)
            };
            // What some accounts may use besides, and what all may use admits anyway.
            for index in (0..policies.len()).filter(|index| !whole.contains(index)) {
                let by = applied
                    .iter()
                    .find(|&&by| by != index && covers(&converted[by].settings, &converted[index].settings));
                if let Some(&by) = by.filter(|_| !applied.contains(&index)) {
                    plan.covered.insert((namespace.clone(), index), by);
                }
            }
            plan.applied.insert(namespace, applied);
        }
        plan
    }

    /// The policies that no other one covers; the first by name among equal ones.
    fn widest(&mut self, policies: &[usize], converted: &[Converted], namespace: &str) -> BTreeSet<usize> {
        let covering = |by: usize, index: usize| {
            let (wide, narrow) = (&converted[by].settings, &converted[index].settings);
            by != index && covers(wide, narrow) && (!covers(narrow, wide) || self.names[by] < self.names[index])
        };
        let mut widest = BTreeSet::new();
        for &index in policies {
            match policies.iter().find(|&&by| covering(by, index)) {
                Some(&by) => drop(self.covered.insert((namespace.to_owned(), index), by)),
                None => drop(widest.insert(index)),
            }
        }
        widest
    }

    /// The selector of a policy's profile, and notes on the namespaces that it leaves out.
    fn selector(&self, index: usize, profile: &str) -> (LabelSelector, Vec<Note>) {
        let grants = &self.grants[index];
        let notes = self.notes(index, profile);
        let applies = |applied: &BTreeSet<usize>| applied.contains(&index);
        let inside: Vec<_> =
            self.applied.iter().filter(|(_, applied)| applies(applied)).map(|(name, _)| name.clone()).collect();
        if applies(&self.elsewhere) {
            let outside: Vec<_> =
                self.applied.iter().filter(|(_, applied)| !applies(applied)).map(|(name, _)| name.clone()).collect();
            let (operator, values) = if outside.is_empty() { ("Exists", None) } else { ("NotIn", Some(outside)) };
            return (by_name(operator, values), notes);
        }
        if !inside.is_empty() {
            return (by_name("In", Some(inside)), notes);
        }
        let why = if grants.is_empty() {
            "no binding in the files grants this policy"
        } else {
            "there is no namespace left to enforce it in"
        };
        let message = format!(
            "{why}, so the profile selects namespaces with the label {LABEL}={profile}: kubectl label namespace NAME \
             {LABEL}={profile}; or set --namespace-selector"
        );
        let mut notes = notes;
        notes.push(Note::new(Kind::Selection, "metadata.name", message));
        (by_labels([(LABEL.to_owned(), profile.to_owned())].into()), notes)
    }

    fn notes(&self, index: usize, profile: &str) -> Vec<Note> {
        let mut notes = Vec::new();
        let mut say = |kind, message: String| notes.push(Note::new(kind, "metadata.name", message));
        let grants = &self.grants[index];
        // One note for all namespaces with the same policies.
        let mut together: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
        let mut without: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut beside: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
        let mut alone = Vec::new();
        let no_name = String::new();
        for (namespace, applied) in self.applied.iter().chain([(&no_name, &self.elsewhere)]) {
            let shown = if namespace.is_empty() { "all others" } else { namespace };
            let others: Vec<_> =
                applied.iter().filter(|&&other| other != index).map(|&other| self.names[other]).collect();
            let partly = grants.partly.contains_key(namespace) && !grants.everywhere;
            if applied.contains(&index) {
                if !others.is_empty() {
                    together.entry(others).or_default().push(shown);
                }
                if partly {
                    alone.push(namespace.as_str());
                }
            } else if let Some(&by) = self.covered.get(&(namespace.clone(), index)) {
                let granted = partly || grants.everywhere || grants.whole.contains(namespace);
                if granted {
                    without.entry(self.names[by]).or_default().push(shown);
                }
            } else if partly {
                beside.entry(others).or_default().push(shown);
            }
        }
        for (others, namespaces) in together {
            let message = format!(
                "in {} the profile of {} applies, too: before, a pod had to comply with one of these policies, and \
                 now it must comply with each. Choose one, or use separate namespaces for their pods",
                listed(&namespaces),
                others.join(", ")
            );
            say(Kind::Stricter, message);
        }
        for (by, namespaces) in without {
            let message = format!(
                "does not select {}, because {by} applies there and admits the same pods and more",
                listed(&namespaces)
            );
            say(Kind::Note, message);
        }
        for (others, namespaces) in beside {
            let message = format!(
                "in {} only some accounts may use it ({}), and {} is for all: only the profile of the latter \
                 applies, and pods that need this policy are denied. Use a separate namespace for them, with the \
                 label {LABEL}={profile}",
                listed(&namespaces),
                listed(&accounts(grants, &namespaces)),
                others.join(", ")
            );
            say(Kind::Stricter, message);
        }
        if !alone.is_empty() {
            let message = format!(
                "in {} only some accounts may use it ({}), and pods of others were denied; now it applies to all \
                 pods",
                listed(&alone),
                listed(&accounts(grants, &alone))
            );
            say(Kind::Looser, message);
        }
        let protected: Vec<_> = grants
            .whole
            .iter()
            .chain(grants.partly.keys())
            .map(String::as_str)
            .filter(|n| names::PROTECTED_NAMESPACES.contains(n))
            .collect();
        if !protected.is_empty() {
            say(Kind::Selection, format!("is granted in {}, where pods are never evaluated", listed(&protected)));
        }
        if !grants.creators.is_empty() {
            let creators: Vec<_> = grants.creators.iter().map(String::as_str).collect();
            let message = format!(
                "is granted to {} in all namespaces; a profile selects namespaces and not users, so this selects \
                 none",
                listed(&creators)
            );
            say(Kind::Selection, message);
        }
        if !self.unresolved.is_empty() {
            let roles: Vec<_> = self.unresolved.iter().map(String::as_str).collect();
            let message = format!(
                "bindings refer to roles that may grant it and are not in the files: {}. Add them",
                listed(&roles)
            );
            say(Kind::Selection, message);
        }
        notes
    }
}

fn accounts<'a>(grants: &'a Grants, namespaces: &[&str]) -> Vec<&'a str> {
    let found: BTreeSet<_> =
        namespaces.iter().filter_map(|&name| grants.partly.get(name)).flatten().map(String::as_str).collect();
    found.into_iter().collect()
}

/// The first of these, and how many more there are.
fn listed(names: &[&str]) -> String {
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{} and {more} more", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}

fn by_labels(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector { match_labels: Some(labels), match_expressions: None }
}

fn by_name(operator: &str, values: Option<Vec<String>>) -> LabelSelector {
    let requirement = LabelSelectorRequirement { key: NAME_LABEL.to_owned(), operator: operator.to_owned(), values };
    LabelSelector { match_labels: None, match_expressions: Some(vec![requirement]) }
}

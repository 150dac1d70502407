//! What is defaulted in pods, whatever a profile says.

use std::{cell::Cell, collections::BTreeSet};

use palisade_api::{Level, catalogue};
use palisade_checks::{Field, defaults};
use palisade_compiler::Mutation;
use palisade_gate::{ValidationRequest, Validator};
use palisade_mutation::{MutationRequest, PatchOperation, Plan};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::properties::{compile, ids, judge, pods, runner, settings, values, yaml};

/// The fields that may be added, and replaced, below a pod's spec and below a container or volume.
const ADDED: [&str; 14] = [
    "/hostUsers",
    "/securityContext",
    "/securityContext/runAsNonRoot",
    "/securityContext/runAsUser",
    "/securityContext/runAsGroup",
    "/securityContext/fsGroup",
    "/securityContext/supplementalGroups",
    "/securityContext/supplementalGroupsPolicy",
    "/securityContext/seccompProfile",
    "/securityContext/seLinuxOptions",
    "/securityContext/allowPrivilegeEscalation",
    "/securityContext/readOnlyRootFilesystem",
    "/securityContext/capabilities",
    "/securityContext/capabilities/",
];

fn may(operation: &PatchOperation, pod: &Json) -> bool {
    let path = operation.path();
    match operation {
        PatchOperation::Add { .. } => {
            let below = path.strip_prefix("/spec").unwrap_or_default();
            let below = below.find("/securityContext").map_or(below, |at| &below[at..]);
            let below = below.strip_suffix("add").or(below.strip_suffix("drop")).unwrap_or(below);
            let found = pod.pointer(path).unwrap_or(&Json::Null);
            ADDED.contains(&below) && defaults::is_unset(found)
        }
        PatchOperation::Replace { .. } => {
            let of = |list: &str, field: &str| path.starts_with(list) && path.ends_with(field);
            of("/spec/containers/", "/image")
                || of("/spec/initContainers/", "/image")
                || of("/spec/volumes/", "/image/reference")
        }
        PatchOperation::Remove { .. } => false,
    }
}

#[test]
fn defaults_cause_no_violation_and_overwrite_nothing() {
    let (mutated, admitted, passed_over) = (Cell::new(0), Cell::new(0), Cell::new(0));
    // Of those that were passed over, the pods whose images the profile redirects, if they were elsewhere.
    let stayed = Cell::new(0);
    let pod = (pods::shape(), any::<bool>(), prop::collection::vec(pods::change(catalogue::ALL), 0..8));
    // Few bare pods are admitted by random profiles of so many checks, so that it takes many.
    let outcome = runner(1200).run(&(settings::settings(), pod), |(settings, (shape, complying, changes))| {
        let compiled = compile(&settings, Level::Privileged);
        let judge = judge(&compiled);
        let Some(mutation) = &compiled.mutation else { return Ok(()) };
        let plan = Plan::new([(mutation, compiled.probes.params.as_ref())]);
        let mut pod = if complying { shape.complying(&settings, &values()) } else { shape.bare() };
        for change in &changes {
            change.apply(&mut pod);
        }
        let patch = plan.patch(&MutationRequest::create("tenant", &pod));
        let matched = Conditions::new(mutation).hold(&pod);
        prop_assert!(matched || patch.is_empty(), "nothing was to change: {patch:?}\n{pod}\n{}", yaml(&settings));
        passed_over.set(passed_over.get() + usize::from(!matched));
        let mut after = pod.clone();
        for operation in &patch.operations {
            prop_assert!(may(operation, &pod), "{operation:?}\n{pod}");
        }
        prop_assert_eq!(patch.apply(&mut after), Ok(()));
        let again = plan.patch(&MutationRequest::create("tenant", &after));
        prop_assert!(again.is_empty(), "defaulted twice: {again:?}\n{pod}\n{}", yaml(&settings));
        let again = Conditions::new(mutation).hold(&after);
        passed_over.set(passed_over.get() + usize::from(!again));
        if mutation.redirect.is_some() {
            stayed.set(stayed.get() + usize::from(!matched) + usize::from(!again));
        }
        let (before, now) = (judge.denial(&pod), judge.denial(&after));
        mutated.set(mutated.get() + patch.operations.len());
        admitted.set(admitted.get() + usize::from(before.is_some() && now.is_none()));
        let (before, now) = (before.unwrap_or_default(), now.unwrap_or_default());
        let mut new: BTreeSet<_> = ids(&now).difference(&ids(&before)).copied().collect();
        // Where images are taken from is not asked whether they may be.
        if settings.images.redirect.is_some() {
            new.remove("imageRegistries");
        }
        prop_assert!(new.is_empty(), "{new:?}\n{pod}\n{after}\n{}", yaml(&settings));
        if !complying && changes.is_empty() {
            let mut mutated: BTreeSet<_> = patch.changes.iter().filter_map(|change| change.check.as_deref()).collect();
            // What is added by default is no answer to what must be dropped.
            if settings.mutation.defaults == palisade_api::settings::mutation::Defaults::None {
                mutated.remove("capabilities");
            }
            prop_assert!(mutated.is_disjoint(&ids(&now)), "{now}\n{after}\n{}", yaml(&settings));
        }
        // What is set is as it was.
        let mut reduced = after.clone();
        for operation in patch.operations.iter().rev() {
            let (parent, key) = operation.path().rsplit_once('/').unwrap();
            let before = pod.pointer(operation.path());
            let parent = reduced.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            match before {
                Some(before) => drop(parent.insert(key.to_owned(), before.clone())),
                None => drop(parent.remove(key)),
            }
        }
        prop_assert_eq!(reduced, pod);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    println!("{} operations; {} pods were admitted because of them", mutated.get(), admitted.get());
    assert!(mutated.get() > 300 && admitted.get() > 5, "{} {}", mutated.get(), admitted.get());
    println!(
        "{} times nothing was to change, and nobody was asked; {} of them images might be redirected",
        passed_over.get(),
        stayed.get()
    );
    assert!(passed_over.get() > 100 && stayed.get() > 20, "{} {}", passed_over.get(), stayed.get());
}

/// Who changes pods is asked by pods in which nothing may be left to change: each engine is asked about them all the same.
#[test]
fn mutation_probe_is_matched_even_with_nothing_to_default() {
    let settings = serde_json::from_value(json!({
        "mutation": {"defaults": "Secure"}, "users": {"requireRunAsNonRoot": true},
    }));
    let compiled = compile(&settings.unwrap(), Level::Privileged);
    let conditions = Conditions::new(compiled.mutation.as_ref().unwrap());
    let mut pod = palisade_kube_json::pod::minimal("pod");
    palisade_kube_json::pod::set(&mut pod, &["securityContext"], json!({"runAsNonRoot": true}));
    assert!(!conditions.hold(&pod), "nothing is to change");
    pod["metadata"]["annotations"] = json!({palisade_api::names::PROBE_MUTATION_ANNOTATION: ""});
    let namespace = palisade_api::names::PROBE_NAMESPACE;
    let request = ValidationRequest { namespace, ..ValidationRequest::create("Pod", &pod) };
    assert!(conditions.0.judge(&request).unwrap().matched);
}

/// The match conditions of a mutation.
pub(crate) struct Conditions(Validator);

impl Conditions {
    pub(crate) fn new(mutation: &Mutation) -> Self {
        let spec = json!({
            "validations": [{"expression": "true"}], "matchConditions": palisade_compiler::match_conditions(mutation),
        });
        let policy = serde_json::from_value(json!({"metadata": {"name": "conditions"}, "spec": spec})).unwrap();
        Self(Validator::new(&policy).unwrap_or_else(|error| panic!("{error:?}")))
    }

    pub(crate) fn hold(&self, pod: &Json) -> bool {
        self.0.judge(&ValidationRequest::create("Pod", pod)).unwrap_or_else(|error| panic!("{error}\n{pod}")).matched
    }
}

/// What is defaulted for a check is what the check names as its own.
#[test]
fn defaulted_fields_are_restricted_by_their_check() {
    let outcome = runner(100).run(&settings::settings(), |settings| {
        let declared = compile(&settings, Level::Privileged).parameters;
        for check in catalogue::ALL {
            for default in (check.defaults)(&settings, &declared) {
                let path = default.path.join(".");
                let restricted = check
                    .fields
                    .iter()
                    .any(|field| matches!(field, Field::Pod(of) | Field::Container(of) if of.starts_with(&path)));
                prop_assert!(restricted, "{}: {path}", check.id);
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

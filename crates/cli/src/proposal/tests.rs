//! The table with the fixtures of the catalogue: what a row proposes is a profile that admits what it is for.

use std::collections::BTreeSet;

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use palisade_api::{ToolSecurityProfile, catalogue, objects};
use palisade_cel::Minor;
use palisade_checks::{ObjectFixture, fixture::Fixture};
use palisade_kube_json::{existing::anew, json::set};
use serde_json::{Value as Json, json};

use super::{
    change::{Change, applied},
    table::{Subject, row_of},
};
use crate::{
    evaluator::ProfileEvaluator,
    namespaces::{self, Tenant},
    parallel::{parallel, threads},
    profiles,
};

/// Pods of checks whose fixtures have parameters, or values that are never proposed.
const MORE: &str = "
- check: capabilities
  name: one of the Baseline level
  settings: {privileges: {capabilities: {allowedAdd: [], requiredDrop: []}}}
  pod: {spec: {containers: [{securityContext: {capabilities: {add: [CHOWN]}}}]}}
- check: runAsGroup
  name: another group
  settings: {users: {runAsGroup: {rule: MayRunAs, ranges: [{min: 1, max: 2}]}}}
  pod: {spec: {securityContext: {runAsGroup: 7}}}
- check: fsGroup
  name: another group
  settings: {users: {fsGroup: {rule: MayRunAs, ranges: [{min: 1, max: 2}]}}}
  pod: {spec: {securityContext: {fsGroup: 7}}}
- check: supplementalGroups
  name: another group
  settings: {users: {supplementalGroups: {rule: MayRunAs, ranges: [{min: 1, max: 2}]}}}
  pod: {spec: {securityContext: {supplementalGroups: [1, 7]}}}
- check: seLinuxOptions
  name: another type
  settings: {privileges: {seLinux: {types: [container_t]}}}
  pod: {spec: {securityContext: {seLinuxOptions: {type: container_init_t}}}}
- check: serviceAccountTokens
  name: another audience
  settings: {identity: {serviceAccountTokens: {audiences: [a]}}}
  pod: {spec: {volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t, audience: b}}]}}]}}
- check: tolerations
  name: a taint of its own
  settings: {scheduling: {tolerations: []}}
  pod: {spec: {tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]}}
";

/// The same of other objects.
const MORE_OBJECTS: &str = "
- check: networkHosts
  name: another host
  settings: {network: {allowedHosts: [a.example.org]}}
  object:
    apiVersion: networking.k8s.io/v1
    kind: Ingress
    spec:
      rules:
      - host: b.example.org
        http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
- check: networkLoadBalancers
  name: another class
  settings: {network: {allowedLoadBalancerClasses: [example.org/a]}}
  object:
    apiVersion: v1
    kind: Service
    spec:
      type: LoadBalancer
      loadBalancerClass: example.org/b
      selector: {app: web}
      ports: [{port: 80, protocol: TCP, targetPort: 80}]
";

/// How many fixtures of a check are tried.
const OF_A_CHECK: usize = 2;

fn labels() -> Json {
    json!({"a": "b"})
}

fn profile(fixture: &Fixture) -> ToolSecurityProfile {
    profile_of(&fixture.spec(&labels()))
}

fn profile_of(spec: &Json) -> ToolSecurityProfile {
    let object = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "a"}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

fn pod(fixture: &Fixture) -> Json {
    let mut pod = fixture.pod();
    set(&mut pod, &["metadata", "namespace"], "a");
    // Without ephemeral containers, which no pod is created with.
    anew(pod)
}

fn tenant() -> Tenant {
    let metadata = ObjectMeta { labels: serde_json::from_value(labels()).unwrap(), ..ObjectMeta::default() };
    namespaces::seen("a".to_owned(), metadata).unwrap()
}

/// How many violations a profile finds in a pod.
fn violations(profile: &ToolSecurityProfile, pod: &Json) -> usize {
    let accepted = profiles::in_deny(profile).unwrap_or_else(|problems| panic!("{problems:?}"));
    let Ok(judge) = ProfileEvaluator::new(&[accepted], &[tenant()], Minor::DEFAULT, Timestamp::UNIX_EPOCH) else {
        panic!()
    };
    judge.judge(None, pod).unwrap().len()
}

#[test]
fn what_a_row_proposes_admits_the_pod() {
    let mut tries: Vec<(&str, Fixture, Vec<Change>)> = Vec::new();
    let more: Vec<Json> = serde_saphyr::from_str(MORE).unwrap();
    for check in catalogue::ALL {
        let Some(find) = row_of(check.id).and_then(|row| row.find) else { continue };
        let mut fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).unwrap();
        fixtures.extend(more.iter().filter(|one| one["check"] == check.id).map(|one| {
            let fixture = json!({
                "name": one["name"], "settings": one["settings"], "pod": one["pod"], "violations": [check.id],
            });
            serde_json::from_value::<Fixture>(fixture).unwrap()
        }));
        let violating = fixtures
            .into_iter()
            .filter(|one| !one.violations.is_empty() && one.parameters.is_empty() && one.invalid.is_none());
        let proposed = violating.filter_map(|one| {
            let (settings, values, pod) = (profile(&one).spec.effective_settings(), one.values(), pod(&one));
            let subject = Subject { settings: &settings, values: &values, pod: &pod, message: "" };
            let changes = find(&subject).ok().filter(|changes| !changes.is_empty())?;
            Some((check.id, one, changes))
        });
        tries.extend(proposed.take(OF_A_CHECK));
    }
    let tried: BTreeSet<_> = tries.iter().map(|(check, ..)| *check).collect();
    let expected: BTreeSet<_> = catalogue::ALL
        .iter()
        .map(|check| check.id)
        .filter(|id| row_of(id).is_some_and(|row| row.find.is_some()))
        .collect();
    assert_eq!(tried, expected, "each row proposes something for a fixture of its check");
    let results = parallel(threads(), &tries, |(check, fixture, changes)| {
        let (before, pod) = (profile(fixture), pod(fixture));
        let after = applied(&before, changes).unwrap_or_else(|| panic!("{check}: {changes:?}"));
        (violations(&before, &pod), violations(&after, &pod))
    });
    let mut admitted = BTreeSet::new();
    for ((check, fixture, changes), (before, after)) in tries.iter().zip(results) {
        assert!(before > after, "{check}, {}: {before} to {after} with {changes:?}", fixture.name);
        if after == 0 {
            admitted.insert(*check);
        }
    }
    assert_eq!(admitted, expected, "a pod is admitted");
}

#[test]
fn proposed_changes_admit_other_objects() {
    let mut tries: Vec<(&str, ObjectFixture, ToolSecurityProfile, Vec<Change>)> = Vec::new();
    let mut expected = BTreeSet::new();
    let more: Vec<Json> = serde_saphyr::from_str(MORE_OBJECTS).unwrap();
    for check in objects::ALL {
        let Some(find) = row_of(check.id).and_then(|row| row.find) else { continue };
        expected.insert(check.id);
        let mut fixtures: Vec<ObjectFixture> = serde_saphyr::from_str(check.fixtures).unwrap();
        fixtures.extend(more.iter().filter(|one| one["check"] == check.id).map(|one| {
            let fixture = json!({
                "name": one["name"], "settings": one["settings"], "object": one["object"], "violations": [check.id],
            });
            serde_json::from_value::<ObjectFixture>(fixture).unwrap()
        }));
        // An update of the status is not creation, which is evaluated here.
        let created = fixtures.into_iter().filter(|one| one.subresource.is_empty());
        let violating = created.filter(|one| !one.violations.is_empty() && one.parameters.is_empty());
        for one in violating {
            let (before, values, object) = (profile_of(&one.spec(&labels())), one.values(), one.object("a"));
            let settings = before.spec.effective_settings();
            let subject = Subject { settings: &settings, values: &values, pod: &object, message: "" };
            if let Some(changes) = find(&subject).ok().filter(|changes| !changes.is_empty()) {
                tries.push((check.id, one, before, changes));
            }
        }
    }
    let results = parallel(threads(), &tries, |(check, fixture, before, changes)| {
        let object = fixture.object("a");
        let after = applied(before, changes).unwrap_or_else(|| panic!("{check}: {changes:?}"));
        (violations(before, &object), violations(&after, &object))
    });
    let mut admitted = BTreeSet::new();
    for ((check, fixture, _, changes), (before, after)) in tries.iter().zip(results) {
        assert!(before >= after && before > 0, "{check}, {}: {before} to {after} with {changes:?}", fixture.name);
        if after == 0 {
            admitted.insert(*check);
        }
    }
    assert_eq!(admitted, expected, "an object of each check with changes is admitted");
}

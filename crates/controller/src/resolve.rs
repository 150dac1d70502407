//! Stage resolve: what the parameters must be in each namespace, and what is to be done to get there. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{ParameterType, ToolSecurityParams, ToolSecurityParamsSpec, ToolSecurityProfile, names};
use palisade_compiler::{Compiled, Namespace, selects};

use crate::world::{ObservedParams, Tenants};

/// Parameters that a policy in force reads, whether or not the profile still declares them. A policy that cannot
/// read one of its parameters denies.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Keep {
    /// None that the profile does not declare.
    #[default]
    Nothing,
    /// These, as `name:Type`.
    Only(BTreeSet<String>),
    /// It is not known which.
    Everything,
}

impl Keep {
    /// Those of a policy, from its annotation.
    pub fn of_annotation(annotation: Option<&String>) -> Self {
        match annotation {
            None => Self::Everything,
            Some(text) => Self::Only(text.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect()),
        }
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Everything, _) | (_, Self::Everything) => Self::Everything,
            (Self::Nothing, other) => other.clone(),
            (this, Self::Nothing) => this,
            (Self::Only(mut this), Self::Only(other)) => {
                this.extend(other.iter().cloned());
                Self::Only(this)
            }
        }
    }

    fn has(&self, name: &str, type_: ParameterType) -> bool {
        match self {
            Self::Nothing => false,
            Self::Only(parameters) => parameters.contains(&format!("{name}:{type_}")),
            Self::Everything => true,
        }
    }
}

/// Parameters to write.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// In which namespace.
    pub namespace: String,
    /// What they must be.
    pub params: ToolSecurityParams,
    /// What they are.
    pub observed: Option<Arc<ObservedParams>>,
}

impl Write {
    /// Whether the namespace gets a problem that it did not have.
    pub fn new_problem(&self) -> Option<&str> {
        let problem = self.params.spec.problem.as_str();
        let known =
            self.observed.as_ref().and_then(|observed| observed.spec.as_ref()).map(|spec| spec.problem.as_str());
        (!problem.is_empty() && known != Some(problem)).then_some(problem)
    }
}

/// What is to be done in the namespaces, and how it stands there.
#[derive(Debug, Default)]
pub struct Plan {
    /// Parameters to write; those of namespaces that have none come first.
    pub writes: Vec<Write>,
    /// Namespaces with parameters that should not be there.
    pub removable: Vec<String>,
    /// Whether some parameters have values that only the policy before this one reads.
    pub carried: bool,
    /// The namespaces with the right parameters, and what they are.
    pub right: BTreeMap<String, Arc<ObservedParams>>,
    /// How many namespaces the profile selects.
    pub selected: usize,
    /// In how many of them pods can be judged.
    pub ready: usize,
    /// Those that deny every pod, and why.
    pub problems: BTreeMap<String, String>,
}

/// Compares what must be with what is.
pub fn plan(
    profile: &ToolSecurityProfile,
    compiled: &Compiled,
    tenants: &Tenants,
    keep: &Keep,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::default();
    // In a namespace that is being deleted nothing is touched: its pods are judged until they are gone.
    for namespace in tenants.namespaces.iter().filter(|namespace| !namespace.terminating) {
        let namespace = &namespace.namespace;
        let observed = tenants.params.get(&namespace.name);
        let selected = selects(&profile.spec, namespace);
        plan.selected += usize::from(selected);
        let desired = if namespace.name == names::PROBE_NAMESPACE {
            probe_params(compiled, namespace, now)
        } else {
            selected.then(|| compiled.params(namespace, now)).flatten()
        };
        let Some(desired) = desired else {
            plan.ready += usize::from(selected);
            plan.removable.extend(observed.map(|_| namespace.name.clone()));
            continue;
        };
        plan.compare(&namespace.name, desired, observed, keep, selected);
    }
    plan.writes.sort_by_key(|write| write.observed.is_some());
    plan
}

impl Plan {
    fn compare(
        &mut self,
        namespace: &str,
        mut desired: ToolSecurityParams,
        observed: Option<&Arc<ObservedParams>>,
        keep: &Keep,
        selected: bool,
    ) {
        let healthy = desired.spec.problem.is_empty();
        if !healthy {
            // Every policy denies because of the problem and reads nothing else.
            self.problems.insert(namespace.to_owned(), desired.spec.problem.clone());
        } else if let Some(spec) = observed.and_then(|observed| observed.spec.as_ref()) {
            self.carried |= carry(&mut desired.spec, spec, keep);
        }
        match observed {
            Some(observed) if is(&desired, observed) => {
                self.ready += usize::from(selected && healthy);
                self.right.insert(namespace.to_owned(), Arc::clone(observed));
            }
            _ => self.writes.push(Write {
                namespace: namespace.to_owned(),
                params: desired,
                observed: observed.map(Arc::clone),
            }),
        }
    }
}

/// Whether the parameters are as desired.
pub fn is(desired: &ToolSecurityParams, observed: &ObservedParams) -> bool {
    observed.spec.as_ref() == Some(&desired.spec)
}

/// What the probes' pods are judged by.
fn probe_params(compiled: &Compiled, namespace: &Namespace, now: Timestamp) -> Option<ToolSecurityParams> {
    let mut params = compiled.params(namespace, now)?;
    params.spec = compiled.probes.params.clone()?;
    Some(params)
}

/// Adds values that must be kept. Returns whether there were any.
fn carry(desired: &mut ToolSecurityParamsSpec, observed: &ToolSecurityParamsSpec, keep: &Keep) -> bool {
    // Destructured, so that a new type of parameter cannot be forgotten. Exceptions are read where they are there.
    let ToolSecurityParamsSpec { problem: _, integers, strings, booleans, string_lists, exceptions: _ } = observed;
    let carried = [
        carry_map(&mut desired.integers, integers, ParameterType::Integer, keep),
        carry_map(&mut desired.strings, strings, ParameterType::String, keep),
        carry_map(&mut desired.booleans, booleans, ParameterType::Boolean, keep),
        carry_map(&mut desired.string_lists, string_lists, ParameterType::StringList, keep),
    ];
    carried.contains(&true)
}

fn carry_map<V: Clone>(
    desired: &mut BTreeMap<String, V>,
    observed: &BTreeMap<String, V>,
    type_: ParameterType,
    keep: &Keep,
) -> bool {
    let mut carried = false;
    for (name, value) in observed {
        if !desired.contains_key(name) && keep.has(name, type_) {
            desired.insert(name.clone(), value.clone());
            carried = true;
        }
    }
    carried
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::ObservedNamespace;

    fn compiled(spec: &serde_json::Value) -> (ToolSecurityProfile, Compiled) {
        let mut profile = ToolSecurityProfile::new("tools", serde_json::from_value(spec.clone()).unwrap());
        profile.metadata.uid = Some("uid".into());
        profile.metadata.generation = Some(2);
        let compiled = palisade_compiler::compile(&profile).unwrap();
        (profile, compiled)
    }

    fn now() -> Timestamp {
        "2026-06-01T00:00:00Z".parse().unwrap()
    }

    fn profile() -> (ToolSecurityProfile, Compiled) {
        compiled(&serde_json::json!({
            "namespaceSelector": {"matchLabels": {"tenancy": "tool"}},
            "parameters": [
                {"name": "uid", "type": "Integer", "sources": [{"namespaceAnnotation": "example.org/uid"}]},
            ],
        }))
    }

    fn tenants(all: &[(&str, Option<&str>)]) -> Tenants {
        let namespace = |name: &str, uid: Option<&str>| {
            let labels = [("tenancy".to_owned(), "tool".to_owned())].into();
            let annotations = uid.map(|uid| ("example.org/uid".to_owned(), uid.to_owned())).into_iter().collect();
            let namespace = Namespace { name: name.to_owned(), labels, annotations };
            Arc::new(ObservedNamespace { namespace, terminating: false })
        };
        Tenants { namespaces: all.iter().map(|(name, uid)| namespace(name, *uid)).collect(), params: BTreeMap::new() }
    }

    /// What is in the cluster after all that was planned is done.
    fn done(mut tenants: Tenants, plan: &Plan) -> Tenants {
        for write in &plan.writes {
            let observed = ObservedParams { spec: Some(write.params.spec.clone()) };
            tenants.params.insert(write.namespace.clone(), Arc::new(observed));
        }
        tenants
    }

    #[test]
    fn what_is_right_is_not_written_again() {
        let (profile, compiled) = profile();
        let tenants = tenants(&[("a", Some("50000")), ("b", Some("x")), ("palisade-probe", None)]);
        let first = plan(&profile, &compiled, &tenants, &Keep::Nothing, now());
        let counts = (first.writes.len(), first.selected, first.ready, first.problems.len());
        assert_eq!(counts, (3, 2, 0, 1));
        assert!(first.problems["b"].contains("uid"));
        let second = plan(&profile, &compiled, &done(tenants, &first), &Keep::Nothing, now());
        let counts = (second.writes.len(), second.selected, second.ready, second.problems.len());
        assert_eq!(counts, (0, 2, 1, 1));
    }

    #[test]
    fn drift_is_seen() {
        let (profile, compiled) = profile();
        let observed = tenants(&[("a", Some("50000"))]);
        let right =
            done(tenants(&[("a", Some("50000"))]), &plan(&profile, &compiled, &observed, &Keep::Nothing, now()));
        let changes: [fn(&mut ObservedParams); 3] = [
            |params| params.spec = None,
            |params| params.spec.as_mut().unwrap().problem = "x".into(),
            |params| {
                params.spec.as_mut().unwrap().integers.insert("other".into(), 1);
            },
        ];
        for change in changes {
            let mut tenants = Tenants { namespaces: right.namespaces.clone(), params: right.params.clone() };
            change(Arc::make_mut(tenants.params.get_mut("a").unwrap()));
            assert_eq!(plan(&profile, &compiled, &tenants, &Keep::Nothing, now()).writes.len(), 1);
        }
    }

    #[test]
    fn values_of_the_policy_in_force_are_kept_until_it_is_replaced() {
        let (profile, compiled) = profile();
        let mut tenants = tenants(&[("a", Some("50000"))]);
        let mut old = ToolSecurityParamsSpec::default();
        old.strings.insert("uid".into(), "fifty".into());
        old.strings.insert("tool".into(), "abc".into());
        old.strings.insert("foreign".into(), "x".into());
        let observed = ObservedParams { spec: Some(old) };
        tenants.params.insert("a".into(), Arc::new(observed));

        let keep = Keep::of_annotation(Some(&"tool:String,uid:String".to_owned()));
        let union = plan(&profile, &compiled, &tenants, &keep, now());
        let spec = &union.writes[0].params.spec;
        assert!(union.carried);
        assert_eq!(spec.integers["uid"], 50000);
        assert_eq!(spec.strings.keys().collect::<Vec<_>>(), ["tool", "uid"]);

        let exact = plan(&profile, &compiled, &tenants, &Keep::Nothing, now());
        assert!(!exact.carried);
        assert!(exact.writes[0].params.spec.strings.is_empty());
        assert!(plan(&profile, &compiled, &tenants, &Keep::Everything, now()).writes[0].params.spec.strings.len() == 3);
    }

    #[test]
    fn what_is_not_selected_is_removed_and_what_is_deleted_is_left_alone() {
        let (profile, compiled) = profile();
        let mut all = done(tenants(&[("a", Some("1")), ("b", Some("2"))]), &{
            plan(&profile, &compiled, &tenants(&[("a", Some("1")), ("b", Some("2"))]), &Keep::Nothing, now())
        });
        Arc::make_mut(&mut all.namespaces[0]).namespace.labels.clear();
        Arc::make_mut(&mut all.namespaces[1]).terminating = true;
        let plan = plan(&profile, &compiled, &all, &Keep::Nothing, now());
        assert_eq!((plan.removable, plan.writes, plan.selected), (vec!["a".to_owned()], vec![], 0));
    }
}

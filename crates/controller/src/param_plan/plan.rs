//! The plan of parameters for all namespaces of a profile. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use palisade_api::Stage;

use super::namespace_plan::{NamespacePlan, ParamsAction, Rules, Write};
use crate::watch::store::Tenants;

/// The plan for all namespaces, kept up to date one by one.
#[derive(Debug, Default)]
pub struct Plan {
    namespaces: BTreeMap<String, NamespacePlan>,
    /// Number of namespaces that the profile selects.
    pub selected: usize,
    /// Selected namespaces by stage, in the order of [`Stage::ALL`].
    pub by_stage: [usize; Stage::ALL.len()],
    /// Number of selected namespaces in which pods are validated.
    pub ready: usize,
    /// Number of namespaces with parameters that only the previous policy reads.
    pub carried: usize,
    /// Namespaces in which every pod violates the profile, with the reason.
    pub problems: BTreeMap<String, String>,
    /// Namespaces with parameters to remove.
    pub removable: BTreeSet<String>,
}

impl Plan {
    /// The plan for all namespaces.
    pub fn new(rules: Rules<'_>, tenants: &Tenants) -> Self {
        let mut plan = Self::default();
        let mut known = BTreeSet::new();
        for namespace in &tenants.namespaces {
            let name = &namespace.namespace.get().name;
            known.insert(name.clone());
            let exceptions = tenants.exceptions.get(name).map(Vec::as_slice).unwrap_or_default();
            plan.set(name, rules.plan(namespace, tenants.params.get(name), exceptions));
        }
        for name in tenants.params.keys().filter(|name| !known.contains(*name)) {
            plan.set(name, Some(NamespacePlan::without_namespace()));
        }
        plan
    }

    /// Replaces the plan for a namespace. Returns the former one.
    pub fn set(&mut self, namespace: &str, namespace_plan: Option<NamespacePlan>) -> Option<NamespacePlan> {
        let before = self.namespaces.remove(namespace);
        if let Some(before) = &before {
            self.selected -= usize::from(before.stage.is_some());
            if let Some(stage) = before.stage {
                self.by_stage[stage as usize] -= 1;
            }
            self.ready -= usize::from(before.is_ready());
            self.carried -= usize::from(before.carried);
            self.problems.remove(namespace);
            self.removable.remove(namespace);
        }
        if let Some(now) = namespace_plan {
            self.selected += usize::from(now.stage.is_some());
            if let Some(stage) = now.stage {
                self.by_stage[stage as usize] += 1;
            }
            self.ready += usize::from(now.is_ready());
            self.carried += usize::from(now.carried);
            if let Some(problem) = &now.problem {
                self.problems.insert(namespace.to_owned(), problem.clone());
            }
            if now.action == ParamsAction::Remove {
                self.removable.insert(namespace.to_owned());
            }
            self.namespaces.insert(namespace.to_owned(), now);
        }
        before
    }

    pub fn get(&self, namespace: &str) -> Option<&NamespacePlan> {
        self.namespaces.get(namespace)
    }

    /// Where parameters are to be written.
    pub fn writes(&self) -> impl Iterator<Item = (&String, &Arc<Write>)> {
        self.namespaces.iter().filter_map(|(name, namespace_plan)| match &namespace_plan.action {
            ParamsAction::Write(write) => Some((name, write)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use palisade_api::{ToolSecurityParamsSpec, ToolSecurityProfile};
    use palisade_compiler::{Compiled, Namespace};

    use super::*;
    use crate::{
        param_plan::retained::RetainedParams,
        watch::{
            json_box::JsonBox,
            store::{ObservedNamespace, ObservedParams},
        },
    };

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
            Arc::new(ObservedNamespace { namespace: JsonBox::new(&namespace), terminating: false })
        };
        let namespaces = all.iter().map(|(name, uid)| namespace(name, *uid)).collect();
        Tenants { namespaces, ..Tenants::default() }
    }

    fn change(namespace: &mut Arc<ObservedNamespace>, how: impl FnOnce(&mut Namespace)) {
        let mut changed = namespace.namespace.get();
        how(&mut changed);
        Arc::make_mut(namespace).namespace = JsonBox::new(&changed);
    }

    fn plan(
        profile: &ToolSecurityProfile,
        compiled: &Compiled,
        tenants: &Tenants,
        keep: &RetainedParams,
        now: Timestamp,
    ) -> Plan {
        Plan::new(Rules { profile, compiled, keep, now }, tenants)
    }

    /// The cluster after all planned writes.
    fn done(mut tenants: Tenants, plan: &Plan) -> Tenants {
        for (namespace, write) in plan.writes() {
            let observed = ObservedParams { spec: Some(write.params.clone()), held: false };
            tenants.params.insert(namespace.clone(), Arc::new(observed));
        }
        tenants
    }

    fn first(plan: &Plan) -> ToolSecurityParamsSpec {
        plan.writes().next().unwrap().1.params.get()
    }

    #[test]
    fn an_updated_plan_equals_a_new_one() {
        let (profile, compiled) = profile();
        let now = now();
        let rules = Rules { profile: &profile, compiled: &compiled, keep: &RetainedParams::Nothing, now };
        let mut all = tenants(&[("a", Some("1")), ("b", Some("x")), ("c", None)]);
        let mut kept = Plan::new(rules, &all);
        let written = done(tenants(&[("a", Some("1")), ("b", Some("x")), ("c", None)]), &kept);
        let changes: [&dyn Fn(&mut Tenants); 5] = [
            &|all| all.params.clone_from(&written.params),
            &|all| change(&mut all.namespaces[1], |namespace| namespace.annotations.clear()),
            &|all| change(&mut all.namespaces[0], |namespace| namespace.labels.clear()),
            &|all| Arc::make_mut(&mut all.namespaces[2]).terminating = true,
            &|all| drop(all.params.remove("b")),
        ];
        for make in changes {
            make(&mut all);
            for namespace in &all.namespaces {
                let name = &namespace.namespace.get().name;
                kept.set(name, rules.plan(namespace, all.params.get(name), &[]));
            }
            assert_eq!(format!("{kept:?}"), format!("{:?}", Plan::new(rules, &all)));
        }
    }

    #[test]
    fn correct_parameters_are_not_rewritten() {
        let (profile, compiled) = profile();
        let tenants = tenants(&[("a", Some("50000")), ("b", Some("x")), ("palisade-probe", None)]);
        let first = plan(&profile, &compiled, &tenants, &RetainedParams::Nothing, now());
        let counts = (first.writes().count(), first.selected, first.ready, first.problems.len());
        assert_eq!(counts, (3, 2, 0, 1));
        assert!(first.problems["b"].contains("uid"));
        let second = plan(&profile, &compiled, &done(tenants, &first), &RetainedParams::Nothing, now());
        let counts = (second.writes().count(), second.selected, second.ready, second.problems.len());
        assert_eq!(counts, (0, 2, 1, 1));
    }

    #[test]
    fn parameters_with_a_foreign_finalizer_are_rewritten() {
        let (profile, compiled) = profile();
        let one = || tenants(&[("a", Some("50000"))]);
        let mut all = done(one(), &plan(&profile, &compiled, &one(), &RetainedParams::Nothing, now()));
        assert_eq!(plan(&profile, &compiled, &all, &RetainedParams::Nothing, now()).writes().count(), 0);
        Arc::make_mut(all.params.get_mut("a").unwrap()).held = true;
        assert_eq!(plan(&profile, &compiled, &all, &RetainedParams::Nothing, now()).writes().count(), 1);
    }

    #[test]
    fn changed_parameters_are_rewritten() {
        let (profile, compiled) = profile();
        let observed = tenants(&[("a", Some("50000"))]);
        let right = done(
            tenants(&[("a", Some("50000"))]),
            &plan(&profile, &compiled, &observed, &RetainedParams::Nothing, now()),
        );
        let changes: [fn(&mut ToolSecurityParamsSpec) -> bool; 3] = [
            |_| false,
            |spec| {
                spec.problem = "x".into();
                true
            },
            |spec| spec.integers.insert("other".into(), 1).is_none(),
        ];
        for change in changes {
            let mut tenants =
                Tenants { namespaces: right.namespaces.clone(), params: right.params.clone(), ..Tenants::default() };
            let observed = Arc::make_mut(tenants.params.get_mut("a").unwrap());
            let mut spec = observed.spec.as_ref().unwrap().get();
            observed.spec = change(&mut spec).then(|| JsonBox::new(&spec));
            assert_eq!(plan(&profile, &compiled, &tenants, &RetainedParams::Nothing, now()).writes().count(), 1);
        }
    }

    #[test]
    fn values_read_by_the_current_policy_are_kept_until_replaced() {
        let (profile, compiled) = profile();
        let mut tenants = tenants(&[("a", Some("50000"))]);
        let mut old = ToolSecurityParamsSpec::default();
        old.strings.insert("uid".into(), "fifty".into());
        old.strings.insert("tool".into(), "abc".into());
        old.strings.insert("foreign".into(), "x".into());
        let observed = ObservedParams { spec: Some(JsonBox::new(&old)), held: false };
        tenants.params.insert("a".into(), Arc::new(observed));

        let keep = RetainedParams::of_annotation(Some(&"tool:String,uid:String".to_owned()));
        let union = plan(&profile, &compiled, &tenants, &keep, now());
        let spec = first(&union);
        assert_eq!(union.carried, 1);
        assert_eq!(spec.integers["uid"], 50000);
        assert_eq!(spec.strings.keys().collect::<Vec<_>>(), ["tool", "uid"]);

        let exact = plan(&profile, &compiled, &tenants, &RetainedParams::Nothing, now());
        assert_eq!(exact.carried, 0);
        assert!(first(&exact).strings.is_empty());
        let all = plan(&profile, &compiled, &tenants, &RetainedParams::Everything, now());
        assert_eq!(first(&all).strings.len(), 3);
    }

    #[test]
    fn parameters_are_removed_only_from_live_unselected_namespaces() {
        let (profile, compiled) = profile();
        let mut all = done(tenants(&[("a", Some("1")), ("b", Some("2"))]), &{
            plan(&profile, &compiled, &tenants(&[("a", Some("1")), ("b", Some("2"))]), &RetainedParams::Nothing, now())
        });
        change(&mut all.namespaces[0], |namespace| namespace.labels.clear());
        Arc::make_mut(&mut all.namespaces[1]).terminating = true;
        let plan = plan(&profile, &compiled, &all, &RetainedParams::Nothing, now());
        assert_eq!((plan.writes().count(), plan.selected), (0, 0));
        assert_eq!(plan.removable.into_iter().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn parameters_of_a_deleted_namespace_are_removed() {
        let (profile, compiled) = profile();
        let both = tenants(&[("a", Some("1")), ("b", Some("2"))]);
        let mut all = done(
            both,
            &plan(
                &profile,
                &compiled,
                &tenants(&[("a", Some("1")), ("b", Some("2"))]),
                &RetainedParams::Nothing,
                now(),
            ),
        );
        all.namespaces.remove(0);
        let plan = plan(&profile, &compiled, &all, &RetainedParams::Nothing, now());
        assert_eq!((plan.writes().count(), plan.selected, plan.ready), (0, 1, 1));
        assert_eq!(plan.removable.into_iter().collect::<Vec<_>>(), ["a"]);
    }
}

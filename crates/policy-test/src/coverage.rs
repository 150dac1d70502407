//! The parts of the policies, and of the objects that become policies, that no case exercised.

use std::collections::BTreeMap;

use palisade_admission::{
    objects::InspectedRule,
    requests::{Inspected, PolicyKind, Review, Trace},
};
use palisade_cel::eval::{Watch, WatchKind};
use serde_json::Value as Json;

use crate::{
    Check, Suite,
    cluster::{Member, Source},
    places::{Locator, Place},
    test_cluster::TestCluster,
};

/// The parts of policies that the cases of some suites exercised, and the parts that they did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    points: BTreeMap<Point, bool>,
}

/// Something that a case may exercise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Where it is.
    pub place: Place,
    /// The policy, `policy/binding`, or the object that becomes policies.
    pub of: String,
    /// The field that it is in: `validations[0].expression`, `matchConstraints.resourceRules[0]`; in an object that
    /// becomes policies the whole path.
    pub path: String,
    /// The missing case if it was not exercised: `never false`.
    pub missing: &'static str,
    /// A description: `an operand of &&`, `check runAsUser`.
    pub what: String,
}

impl Coverage {
    /// How many points there are.
    pub fn total(&self) -> usize {
        self.points.len()
    }

    /// How many of them were exercised.
    pub fn covered(&self) -> usize {
        self.points.values().filter(|covered| **covered).count()
    }

    /// The percentage of points that were exercised; 100 if there are none.
    #[expect(clippy::cast_precision_loss, reason = "there are not that many points")]
    pub fn percent(&self) -> f64 {
        if self.points.is_empty() { 100.0 } else { 100.0 * self.covered() as f64 / self.total() as f64 }
    }

    /// All points, by place, and whether they were exercised.
    pub fn points(&self) -> impl Iterator<Item = (&Point, bool)> {
        self.points.iter().map(|(point, covered)| (point, *covered))
    }

    /// The points that no case exercised, by place. An expression that was never evaluated is one point.
    pub fn missing(&self) -> Vec<Point> {
        let mut touched: BTreeMap<(&str, &str, &str), bool> = BTreeMap::new();
        let key = |point: &'_ Point| -> (String, String, String) {
            (point.place.file.clone(), point.of.clone(), point.path.clone())
        };
        for (point, covered) in &self.points {
            *touched.entry((&point.place.file, &point.of, &point.path)).or_default() |= covered;
        }
        let mut missing: Vec<Point> = Vec::new();
        for (point, _) in self.points.iter().filter(|(_, covered)| !**covered) {
            if touched[&(&*point.place.file, &*point.of, &*point.path)] || !is_expression(&point.path) {
                missing.push(point.clone());
            } else if missing.last().is_none_or(|last| key(last) != key(point)) {
                missing.push(Point { missing: "never evaluated", what: String::new(), ..point.clone() });
            }
        }
        missing
    }

    /// Adds the coverage of other suites.
    pub fn merge(&mut self, other: Self) {
        for (point, covered) in other.points {
            *self.points.entry(point).or_default() |= covered;
        }
    }

    fn add(&mut self, point: Point, covered: bool) {
        *self.points.entry(point).or_default() |= covered;
    }
}

/// Whether the field of this path is evaluated as a whole.
fn is_expression(path: &str) -> bool {
    path.ends_with("xpression") || path.ends_with("].rule")
}

/// Measures the coverage of a suite's policies, and of the objects that become policies, by its cases.
pub fn measure(suite: &Suite) -> Coverage {
    let mut coverage = Coverage::default();
    let (mut reviews, mut traces) = (Vec::new(), Vec::new());
    for case in suite.cases.iter().filter(|case| case.unjudged.is_none()) {
        let cluster = &suite.clusters[case.cluster];
        let review = case.ask(cluster);
        // An AdmissionReview has the object as it is after mutation.
        traces.extend(cluster.matched(&case.request, &review, !case.decoded));
        reviews.push(review);
    }
    for policy in suite.policies().filter(|policy| !policy.origin.generated) {
        let locator = Locator::new(&policy.origin);
        let own = |one: &Inspected<'_>| (one.kind, one.policy) == (policy.policy_kind(), policy.name());
        for expression in suite.clusters.iter().flat_map(TestCluster::expressions).filter(own) {
            of_expression(&expression, &locator, &mut coverage);
        }
        of_rules(policy, "matchConstraints", policy.name(), &traces, &mut coverage);
    }
    let bindings = suite.members.iter().filter(|member| member.kind().ends_with("AdmissionPolicyBinding"));
    for binding in bindings.filter(|binding| !binding.origin.generated) {
        let policy = binding.object["spec"]["policyName"].as_str().unwrap_or_default();
        of_rules(binding, "matchResources", &format!("{policy}/{}", binding.name()), &traces, &mut coverage);
    }
    for definition in suite.definitions() {
        let locator = Locator::new(&definition.origin);
        let rules = suite.clusters.iter().flat_map(TestCluster::rules);
        for rule in rules.filter(|rule| rule.definition == definition.name()) {
            of_rule(&rule, &locator, &mut coverage);
        }
    }
    for source in suite.sources.iter() {
        of_source(source, suite, &reviews, &mut coverage);
    }
    coverage
}

fn of_expression(expression: &Inspected<'_>, locator: &Locator<'_>, coverage: &mut Coverage) {
    let field = format!("spec.{}", expression.path);
    for watch in expression.watches {
        let place = locator.text(&field, watch.position.line, watch.position.column);
        for (what, missing, covered) in outcomes(expression.path, watch) {
            let (of, path) = (expression.policy.to_owned(), expression.path.to_owned());
            coverage.add(Point { place: place.clone(), of, path, missing, what: what.to_owned() }, covered);
        }
    }
}

/// The coverage of a rule of a definition.
fn of_rule(rule: &InspectedRule<'_>, locator: &Locator<'_>, coverage: &mut Coverage) {
    for watch in &rule.watches {
        let place = locator.text(&rule.path, watch.position.line, watch.position.column);
        for (what, missing, covered) in outcomes(&rule.path, watch) {
            let (of, path) = (rule.definition.to_owned(), rule.path.clone());
            coverage.add(Point { place: place.clone(), of, path, missing, what: what.to_owned() }, covered);
        }
    }
}

/// The coverage of an object that becomes policies, in its own terms: its checks, and the branches in its expressions.
fn of_source(source: &Source, suite: &Suite, reviews: &[Review], coverage: &mut Coverage) {
    let Source { member, made } = source;
    let locator = Locator::new(&member.origin);
    let mut add = |place: Place, path: &str, what: &str, missing: &'static str, covered: bool| {
        let of = member.name().to_owned();
        coverage.add(Point { place, of, path: path.to_owned(), missing, what: what.to_owned() }, covered);
    };
    for Check { path, what, passes, violates } in made.checks(reviews) {
        let place = locator.field(&path);
        add(place.clone(), &path, &what, "never passes", passes);
        add(place, &path, &what, "never finds a violation", violates);
    }
    let expressions = suite.clusters.iter().flat_map(TestCluster::expressions);
    for one in expressions.filter(|one| one.kind == PolicyKind::Validating) {
        for watch in one.watches.iter().filter(|watch| watch.kind != WatchKind::Whole) {
            // A part of the policy that does not come from an expression of the author has no line in the object.
            let Some((path, at)) = made.origin(one.policy, one.path, watch.position) else { continue };
            let place = locator.text(&path, at.line, at.column);
            for (what, missing, covered) in outcomes(&path, watch) {
                add(place.clone(), &path, what, missing, covered);
            }
        }
    }
}

/// The outcomes that a part of an expression should have: what it is, what is missing without it, whether it occurred.
fn outcomes(path: &str, watch: &Watch) -> Vec<(&'static str, &'static str, bool)> {
    let seen = watch.seen();
    let both = |what, yes, no| vec![(what, yes, seen.yes), (what, no, seen.no)];
    match watch.kind {
        WatchKind::Whole if path.starts_with("validations[") && path.ends_with("].expression") => {
            both("the validation", "never passes", "never fails")
        }
        WatchKind::Whole if path.ends_with("].rule") => both("the rule", "never passes", "never fails"),
        WatchKind::Whole if path.starts_with("matchConditions[") => {
            both("the match condition", "never holds", "never excludes a request")
        }
        WatchKind::Whole if path.starts_with("mutations[") => vec![("the mutation", "never evaluated", seen.any())],
        WatchKind::Whole => vec![("the expression", "never evaluated", seen.any())],
        WatchKind::And => both("an operand of &&", "never true", "never false, which decides"),
        WatchKind::Or => both("an operand of ||", "never true, which decides", "never false"),
        WatchKind::Condition => {
            both("a condition", "never true: the branch is not taken", "never false: the other branch is not taken")
        }
    }
}

/// The result of a selector for a request.
type TracePredicate = fn(&Trace) -> Option<bool>;

/// The rules and selectors of a policy or binding.
fn of_rules(member: &Member, field: &str, of: &str, traces: &[Trace], coverage: &mut Coverage) {
    let locator = Locator::new(&member.origin);
    let own = |trace: &&Trace| {
        let name = trace.binding.as_ref().map_or(trace.policy.clone(), |binding| format!("{}/{binding}", trace.policy));
        (trace.kind, name.as_str()) == (member.policy_kind(), of)
    };
    let traces: Vec<_> = traces.iter().filter(own).collect();
    let matched = &member.object["spec"][field];
    let mut add = |path: String, what: &'static str, missing: &'static str, covered: bool| {
        let place = locator.field(&format!("spec.{path}"));
        coverage.add(Point { place, of: of.to_owned(), path, missing, what: what.to_owned() }, covered);
    };
    if field == "matchResources" {
        let covered = traces.iter().any(|trace| trace.matched == Some(true));
        add("policyName".to_owned(), "the binding", "never active", covered);
    }
    let count = |list: &str| matched[list].as_array().map_or(0, Vec::len);
    for index in 0..count("resourceRules") {
        let covered = traces.iter().any(|trace| trace.matched == Some(true) && trace.rules.contains(&index));
        add(format!("{field}.resourceRules[{index}]"), "the rule", "never matched", covered);
    }
    for index in 0..count("excludeResourceRules") {
        let covered = traces.iter().any(|trace| trace.excludes.contains(&index));
        add(format!("{field}.excludeResourceRules[{index}]"), "the rule", "never excluded a request", covered);
    }
    let selectors: [(&str, TracePredicate); 2] =
        [("namespaceSelector", |trace| trace.namespace_selector), ("objectSelector", |trace| trace.object_selector)];
    for (selector, said) in selectors {
        if matched[selector].as_object().is_none_or(|selector| selector.values().all(is_empty)) {
            continue;
        }
        let says = |wanted| traces.iter().any(|trace| said(trace) == Some(wanted));
        add(format!("{field}.{selector}"), "the selector", "never selected a request", says(true));
        add(format!("{field}.{selector}"), "the selector", "never excluded a request", says(false));
    }
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Object(fields) => fields.is_empty(),
        Json::Array(list) => list.is_empty(),
        value => value.is_null(),
    }
}

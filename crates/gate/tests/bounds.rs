//! No expression loops over a list of a pod whose length is not bounded: what that costs the API server grows with the
//! square of the length.

use std::collections::{BTreeMap, BTreeSet};

use palisade_api::{ToolSecurityProfile, catalogue};
use palisade_cel::{
    Environment, Minor, Mode,
    ast::{Comprehension, Expr, Literal, Node},
    format::print,
    parse::{parse, parse_unexpanded},
};
use palisade_checks::{
    Field,
    bounds::{BOUNDS, Bound},
    fixture::Fixture,
};
use palisade_compiler::{Compiled, compile};
use palisade_gate::{Decision, ValidationRequest, Validator};
use palisade_kube_json::pod;
use serde_json::{Value as Json, json};

/// Where a value comes from: paths such as `object.spec.containers[*].ports`.
type Origins = BTreeSet<String>;

/// The expressions of a policy, by the names of variables, and what they loop over.
struct Walk {
    variables: BTreeMap<String, Node>,
    /// The ranges of loops, each with the variable that it is in.
    looped: BTreeSet<(String, String)>,
}

impl Walk {
    fn new(expressions: &[(String, String)]) -> Self {
        let syntax = Environment::kubernetes(Minor::DEFAULT, Mode::New).syntax();
        let parsed = |source: &str| parse(source, syntax).unwrap_or_else(|issues| panic!("{source}: {issues:?}")).root;
        let variables: BTreeMap<_, _> =
            expressions.iter().map(|(name, source)| (name.clone(), parsed(source))).collect();
        let mut walk = Self { variables, looped: BTreeSet::new() };
        for (name, node) in walk.variables.clone() {
            walk.visit(&name, &node, &BTreeMap::new());
        }
        walk
    }

    /// Visits all nodes below.
    fn visit(&mut self, name: &str, node: &Node, scope: &BTreeMap<String, Origins>) {
        match &node.expr {
            Expr::Comprehension(fold) => {
                let range = self.origins(&fold.range, scope);
                self.looped.extend(range.iter().map(|range| (range.clone(), name.to_owned())));
                self.visit(name, &fold.range, scope);
                let element = match &fold.range.expr {
                    Expr::List { elements, .. } => elements.iter().flat_map(|one| self.origins(one, scope)).collect(),
                    _ => range.iter().map(|at| format!("{at}[*]")).collect(),
                };
                let inner = within(fold, element, scope);
                for node in [&fold.init, &fold.condition, &fold.step, &fold.result] {
                    self.visit(name, node, &inner);
                }
            }
            other => children(other).into_iter().for_each(|child| self.visit(name, child, scope)),
        }
    }

    /// Where the elements of a list, or the fields of an object, come from.
    fn origins(&self, node: &Node, scope: &BTreeMap<String, Origins>) -> Origins {
        let below = |of: Origins, field: &str| of.into_iter().map(|at| format!("{at}.{field}")).collect();
        match &node.expr {
            Expr::Ident(name) => scope.get(&**name).cloned().unwrap_or_else(|| [name.to_string()].into()),
            Expr::Select { operand, field, .. } => match &operand.expr {
                Expr::Ident(of) if &**of == "variables" => self.origins(&self.variables[&**field], &BTreeMap::new()),
                _ => below(self.origins(operand, scope), field),
            },
            Expr::Call { function, target, args } => match (&**function, target.as_deref(), args.as_slice()) {
                ("_?._", None, [operand, field]) => match &field.expr {
                    Expr::Literal(Literal::String(field)) => below(self.origins(operand, scope), field),
                    _ => below(self.origins(operand, scope), "*"),
                },
                ("_[_]" | "_[?_]", None, [operand, _]) => below(self.origins(operand, scope), "*"),
                ("_?_:_", None, [_, one, other]) | ("_+_", None, [one, other]) => {
                    &self.origins(one, scope) | &self.origins(other, scope)
                }
                ("or" | "orValue", Some(one), [other]) => &self.origins(one, scope) | &self.origins(other, scope),
                ("value", Some(of), []) | ("dyn", None, [of]) => self.origins(of, scope),
                // A text or a number, or a list that is made of a text.
                (_, target, args) => target.into_iter().chain(args).flat_map(|one| self.origins(one, scope)).collect(),
            },
            // As long as what it is made of; its elements are from there, too.
            Expr::Comprehension(fold) => self.origins(&fold.range, scope),
            // As long as it is written.
            Expr::List { .. } | Expr::Literal(_) | Expr::Map(_) | Expr::Struct { .. } => Origins::new(),
        }
    }
}

fn within(fold: &Comprehension, element: Origins, scope: &BTreeMap<String, Origins>) -> BTreeMap<String, Origins> {
    let mut inner = scope.clone();
    match &fold.second {
        Some(second) => {
            inner.insert(fold.variable.to_string(), Origins::new());
            inner.insert(second.to_string(), element);
        }
        None => {
            inner.insert(fold.variable.to_string(), element);
        }
    }
    inner.insert(fold.accumulator.to_string(), Origins::new());
    inner
}

fn children(expr: &Expr) -> Vec<&Node> {
    match expr {
        Expr::Select { operand, .. } => vec![operand],
        Expr::Call { target, args, .. } => target.iter().map(|one| &**one).chain(args).collect(),
        Expr::List { elements, .. } => elements.iter().collect(),
        Expr::Map(entries) => entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect(),
        Expr::Struct { fields, .. } => fields.iter().map(|field| &field.value).collect(),
        _ => vec![],
    }
}

/// The bound of what a path leads to; `None` for what is as short as a profile, a schema or who authenticates makes it.
///
/// # Panics
/// Nothing bounds it.
fn bound(path: &str) -> Option<&'static Bound> {
    let pod = path
        .strip_prefix("object.spec.jobTemplate.spec.template.")
        .or_else(|| path.strip_prefix("object.spec.template."))
        .or_else(|| path.strip_prefix("object.template."))
        .or_else(|| path.strip_prefix("object."));
    let Some(pod) = pod else {
        let short = path.starts_with("params.")
            || path.starts_with("request.userInfo.groups")
            // None can be taken away, so the new ones are as many.
            || path.starts_with("oldObject.spec.ephemeralContainers");
        assert!(short, "nothing bounds {path}");
        return None;
    };
    let field = |pod: &str| -> Option<Field> {
        let leaked = |path: &str| -> &'static str { Box::leak(path.to_owned().into_boxed_str()) };
        if pod.starts_with("metadata.annotations") {
            return Some(Field::Annotation(""));
        }
        let spec = pod.strip_prefix("spec.")?;
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            if spec == list {
                return Some(Field::Container(""));
            }
            if let Some(path) = spec.strip_prefix(&format!("{list}[*].")) {
                return Some(Field::Container(leaked(path)));
            }
        }
        match spec.strip_prefix("volumes[*].") {
            Some(path) => Some(Field::Volume(leaked(path))),
            None if spec == "volumes" => Some(Field::Volume("")),
            None => Some(Field::Pod(leaked(spec))),
        }
    };
    // The fields of one volume.
    if pod == "spec.volumes[*]" {
        return None;
    }
    let field = field(pod).unwrap_or_else(|| panic!("what is {path}?"));
    let exact = |bound: &&Bound| match (&bound.of, &field) {
        (Field::Annotation(_), Field::Annotation(_)) => true,
        (of, field) => of == field,
    };
    Some(BOUNDS.iter().find(exact).unwrap_or_else(|| panic!("nothing bounds {path}")))
}

fn compiled(spec: &Json) -> Compiled {
    let profile: ToolSecurityProfile = serde_json::from_value(json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "x"}, "spec": spec,
    }))
    .unwrap();
    compile(&profile).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"))
}

/// The profiles of all fixtures, which every check, with all its settings, is in.
fn specs() -> Vec<Json> {
    let fixtures = |check: &&palisade_checks::Check| -> Vec<Fixture> {
        serde_saphyr::from_str(check.fixtures).unwrap_or_else(|error| panic!("fixtures of {}: {error}", check.id))
    };
    let mut specs: Vec<_> =
        catalogue::ALL.iter().flat_map(fixtures).map(|fixture| json!(fixture.spec(&json!({"a": "b"})))).collect();
    for spec in &mut specs {
        spec["enforcement"]["workloads"] = json!("Deny");
    }
    specs
}

/// What loops over a list that is not in the guard.
fn unguarded(expressions: &[(String, String)], guard: &str, sizes: impl Fn(&Bound) -> String) -> Vec<String> {
    let walk = Walk::new(expressions);
    let looped = walk.looped.iter().filter(|(_, name)| !["withinBounds", "overBounds"].contains(&name.as_str()));
    looped
        .filter(|(path, _)| {
            bound(path).is_some_and(|bound| !guard.contains(&format!("{} <= {}", sizes(bound), bound.most)))
        })
        .map(|(path, name)| format!("{name} loops over {path}"))
        .collect()
}

fn judging(compiled: &Compiled) -> Vec<Vec<(String, String)>> {
    let variables = compiled.bundle.pairs().map(|(_, pair)| {
        let variables = pair.policy.spec.as_ref().unwrap().variables.iter().flatten();
        variables.map(|one| (one.name.clone(), one.expression.clone())).collect()
    });
    variables.collect()
}

const JUDGED: palisade_checks::bounds::Names<'_> = palisade_checks::bounds::Names {
    spec: "variables.spec",
    containers: &["variables.containers"],
    volumes: "variables.volumes",
    annotations: "variables.annotations",
};

fn of(expressions: &[(String, String)], name: &str) -> String {
    expressions.iter().find(|(one, _)| one == name).map(|(_, expression)| on_one_line(expression)).unwrap_or_default()
}

/// An expression without comments and line breaks.
fn on_one_line(expression: &str) -> String {
    let syntax = Environment::kubernetes(Minor::DEFAULT, Mode::New).syntax();
    let tree = parse_unexpanded(expression, syntax).unwrap_or_else(|issues| panic!("{expression}: {issues:?}")).root;
    print(&tree, usize::MAX, &[]).map(|printed| printed.text).unwrap_or_default()
}

#[test]
fn every_loop_of_a_check_is_guarded_by_a_bound() {
    let mut loops = 0;
    for spec in specs() {
        for expressions in judging(&compiled(&spec)) {
            let guard = of(&expressions, "withinBounds");
            let found = unguarded(&expressions, &guard, |bound| bound.size(&JUDGED));
            assert!(found.is_empty(), "{found:#?} in {spec}");
            let violations = of(&expressions, "violations");
            let walk = Walk::new(&expressions);
            loops += walk.looped.len();
            let loops_over_pods = walk.looped.iter().any(|(path, name)| name != "violations" && bound(path).is_some());
            let guarded =
                violations.starts_with("variables.exempt ? [] : !variables.withinBounds ? variables.overBounds : ");
            assert!(guarded || !loops_over_pods, "{violations}");
            // What comes before the guard.
            let early: Vec<_> = walk.looped.iter().filter(|(_, name)| name == "exempt").collect();
            assert!(early.iter().all(|(path, _)| bound(path).is_none()), "{early:?}");
        }
    }
    assert!(loops > 1_000, "only {loops} loops were found");
}

#[test]
fn a_loop_without_a_bound_is_found() {
    let spec = json!({
        "namespaceSelector": {"matchLabels": {"a": "b"}},
        "users": {"supplementalGroups": {"rule": "MayRunAs", "ranges": [{"min": 1, "max": 2}]}},
    });
    let pods = judging(&compiled(&spec)).remove(0);
    let found = unguarded(&pods, "", |bound| bound.size(&JUDGED));
    let expected = "supplementalGroups loops over object.spec.securityContext.supplementalGroups";
    assert!(found.iter().any(|text| text == expected), "{found:#?}");
    assert!(found.iter().any(|text| text.ends_with("loops over object.spec.containers")), "{found:#?}");
}

#[test]
fn every_loop_of_a_mutation_is_guarded_by_a_bound() {
    let names = palisade_checks::bounds::Names {
        spec: "object.spec",
        containers: &[
            "object.spec.containers",
            "object.spec.?initContainers.orValue([])",
            "object.spec.?ephemeralContainers.orValue([])",
        ],
        volumes: "object.spec.?volumes.orValue([])",
        annotations: "object.metadata.?annotations.orValue({})",
    };
    let mut policies = 0;
    for mut spec in specs() {
        spec["mutation"] = json!({"defaults": "Secure", "engine": "Native"});
        spec["images"]["redirect"] = json!({"target": "registry.example/x", "skip": ["other.example"]});
        let compiled = compiled(&spec);
        let Some(pair) = &compiled.bundle.mutation else { continue };
        policies += 1;
        let of_policy = pair.policy.spec.as_ref().unwrap();
        let patch = of_policy.mutations.iter().flatten().filter_map(|one| one.json_patch.as_ref()?.expression.clone());
        let mut expressions: Vec<_> = patch.map(|patch| ("patch".to_owned(), patch)).collect();
        let variables = of_policy.variables.iter().flatten();
        expressions.extend(variables.map(|one| (one.name.clone(), one.expression.clone())));
        let conditions = of_policy.match_conditions.iter().flatten();
        let guard =
            conditions.clone().find(|one| one.name == "something-to-change").map(|one| on_one_line(&one.expression));
        let found = unguarded(&expressions, &guard.unwrap_or_default(), |bound| bound.size(&names));
        assert!(found.is_empty(), "{found:#?} in {spec}");
    }
    assert!(policies > 100, "only {policies} policies");
}

/// A pod with a list, or a text, that is as long as may be, or longer.
fn with(bound: &Bound, length: usize) -> Json {
    let value = |name: &str| match bound.counted {
        palisade_checks::bounds::Counted::Characters => Json::String("é".repeat(length)),
        palisade_checks::bounds::Counted::Elements if name == "nodeSelector" => {
            (0..length).map(|index| (format!("k{index}"), json!(""))).collect::<serde_json::Map<_, _>>().into()
        }
        palisade_checks::bounds::Counted::Elements => (0..length).map(|_| json!({"name": "x"})).collect(),
    };
    let mut pod = pod::minimal("x");
    let path = |path: &'static str| path.split('.').collect::<Vec<_>>();
    match &bound.of {
        Field::Container("") => {
            let container = pod["spec"]["containers"][0].clone();
            pod["spec"]["initContainers"] = (1..length).map(|_| container.clone()).collect();
        }
        Field::Volume("") => pod["spec"]["volumes"] = value(""),
        Field::Annotation(_) => {
            for index in 0..length {
                pod["metadata"]["annotations"][format!("a{index}")] = "".into();
            }
        }
        Field::Pod(at) => pod::set(&mut pod, &path(at), value(at)),
        Field::Container(at) => pod::set_container(&mut pod, &path(at), value(at)),
        Field::Volume(at) => {
            let mut volume = json!({"spec": {"name": "v"}});
            pod::set(&mut volume, &path(at), value(at));
            pod["spec"]["volumes"] = json!([volume["spec"]]);
        }
    }
    pod
}

/// An admin's own check may read everything, so all bounds stand before it: by CEL and by the webhook's Rust alike.
#[test]
fn list_or_text_beyond_its_bound_is_denied_and_named() {
    let spec = json!({
        "namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged",
        "customChecks": [{"id": "own", "expression": "true", "message": "never"}],
    });
    let policy = Validator::new(&compiled(&spec).bundle.pods.policy).unwrap();
    for bound in BOUNDS {
        let (may, over) = (with(bound, bound.most), with(bound, bound.most + 1));
        assert!(bound.holds(&may) && !bound.holds(&over), "{bound:?}");
        assert_eq!(policy.evaluate(&ValidationRequest::create("Pod", &may)).unwrap(), Decision::Admit, "{bound:?}");
        let Decision::Deny { message, .. } = policy.evaluate(&ValidationRequest::create("Pod", &over)).unwrap() else {
            panic!("{bound:?} admits what is longer");
        };
        let expected = format!(
            "1 violation of ToolSecurityProfile x: [bounds] {}{} has {} {}, at most {} are allowed",
            match bound.of {
                Field::Container(path) if !path.is_empty() => "container \"main\": ",
                Field::Volume(path) if !path.is_empty() => "volume \"v\": ",
                _ => "pod: ",
            },
            bound.name(),
            bound.most + 1,
            bound.unit(),
            bound.most
        );
        assert_eq!(message, expected);
    }
}

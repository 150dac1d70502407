//! Of each kind of expression: the test that is made of it, and that it holds only where the expression does.

use palisade_cel::{
    Admission, Environment, Minor, Mode, ResultType,
    eval::{Activation, PER_CALL_LIMIT},
    format::print,
    parse::parse_unexpanded,
    types::Type,
    value::Value,
};
use serde_json::{Value as Json, json};

use super::{
    super::{simplify::simplified, sufficient},
    *,
};
use crate::style::SYNTAX;

/// Short names for what is long in CEL, in expressions and tests.
const SHORT: [(&str, &str); 3] =
    [("P.", "object.spec."), ("M.", "object.metadata."), ("params.l", "params.spec.stringLists['l']")];

fn long(text: &str) -> String {
    SHORT.iter().fold(text.to_owned(), |text, (short, long)| text.replace(short, long))
}

fn short(text: &str) -> String {
    SHORT.iter().fold(text.to_owned(), |text, (short, long)| text.replace(long, short))
}

fn test(expression: &str) -> String {
    let root = |text: &str| parse_unexpanded(&long(text), SYNTAX).unwrap().root;
    let definitions = BTreeMap::from([
        ("volumes", root("P.?volumes.orValue([])")),
        ("containers", root("P.containers + P.?initContainers.orValue([])")),
    ]);
    let cases = Cases::new(&definitions, Shape::Pods, &[], 4);
    let test = simplified(cases.holds(&root(expression), true, &Scope::default()));
    short(&print(&test.node(), usize::MAX, &[]).unwrap().text)
}

fn params() -> Json {
    json!({"spec": {"stringLists": {"l": ["a", "c"]}, "strings": {"s": "b"}}})
}

fn pods() -> Vec<Json> {
    let named = |name: &str| json!({"name": name});
    let container = |name: &str| json!({"name": name, "image": format!("{name}/x")});
    let specs = [
        json!({"containers": [container("a")]}),
        json!({"containers": [named("a")], "nodeName": "a", "priority": 4, "hostUsers": true}),
        json!({"containers": [container("b")], "nodeName": "b", "priority": 5, "hostUsers": false}),
        json!({"containers": [container("a")], "nodeName": "abc", "priority": 6, "schedulerName": "a"}),
        json!({"containers": [container("a"), named("b")], "nodeName": "", "schedulerName": "b", "volumes": []}),
        json!({"containers": [container("a")], "initContainers": [container("b")], "volumes": [named("v")]}),
        json!({"containers": [container("a")], "nodeName": "c", "volumes": [{"name": "v", "emptyDir": {}}]}),
        json!({"containers": [container("a")], "nodeName": "n", "volumes": [named("v"), named("w"), named("a")],
            "tolerations": [{"key": "a"}, {}], "imagePullSecrets": [named("a"), {}]}),
        json!({"containers": [container("a"), container("b"), container("c")],
            "initContainers": [container("d"), container("e")], "imagePullSecrets": [named("c")],
            "volumes": [named("v"), named("w"), named("a"), {"name": "h", "hostPath": {}}]}),
    ];
    let metadata = [
        json!({"name": "p"}),
        json!({"name": "p", "annotations": {"x": "a"}, "labels": {"x": "a"}}),
        json!({"name": "p", "annotations": {"a": "x"}, "labels": {"x": ""}}),
        json!({"name": "p", "annotations": {}, "labels": {}}),
    ];
    let every = |spec: &Json| metadata.clone().map(|metadata| json!({"metadata": metadata, "spec": spec}));
    specs.iter().flat_map(every).collect()
}

/// Its value for each pod; `None` where it fails.
fn values(expression: &str, pods: &[Json]) -> Vec<Option<bool>> {
    let environment = Environment::kubernetes(Minor::OLDEST, Mode::New)
        .with_admission(&Admission { params: Some(Type::Dyn), ..Admission::default() });
    let program = environment.compile(&format!("({}) == true", long(expression)), ResultType::Bool);
    let program = program.unwrap_or_else(|error| panic!("{expression}: {error:?}"));
    let of = |pod| {
        let params = params();
        let activation =
            Activation::new().bind("object", Value::from_json(pod)).bind("params", Value::from_json(&params));
        program.evaluate(&activation, PER_CALL_LIMIT).result.ok()?.as_bool()
    };
    pods.iter().map(of).collect()
}

/// Where a test is not as exact as its expression, though it may hold.
const STRICTER: [&str; 2] = [
    "variables.volumes.filter(v, has(v.hostPath)).size() <= 3",
    "(has(P.nodeName) && has(P.priority) ? P.?volumes.orValue([]) : []).all(v, has(v.emptyDir))",
];

#[test]
fn test_of_each_kind_of_expression_is_as_written_and_never_weaker() {
    let pods = pods();
    let mut lines = include_str!("tests.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut tried, mut wrong) = (0, Vec::new());
    while let Some(expression) = lines.next() {
        tried += 1;
        let expected = lines.next().and_then(|line| line.strip_prefix("=> ")).unwrap();
        let found = test(expression);
        if found != expected {
            wrong.push(format!("{expression}\n=> {found}\nbut expected {expected}"));
        }
        let opposite = format!("!({expression})");
        for (expression, found) in [(expression, &found), (&opposite, &test(&opposite))] {
            // Variables are the policy's.
            let inlined = expression
                .replace("variables.volumes", "P.?volumes.orValue([])")
                .replace("variables.containers", "(P.containers + P.?initContainers.orValue([]))");
            let exact = expression != opposite && expected != "false" && !STRICTER.contains(&expression);
            for ((before, after), pod) in values(&inlined, &pods).iter().zip(values(found, &pods)).zip(&pods) {
                let (before, after) = (*before == Some(true), after.unwrap_or_else(|| panic!("{found} fails: {pod}")));
                assert!(before || !after, "{found} holds, and {expression} does not: {pod}");
                assert!(after || !before || !exact, "{expression} holds, and {found} does not: {pod}");
            }
        }
    }
    assert!(tried > 100, "{tried}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_test_of_too_many_values_gives_up() {
    // Each of them is there or not: 2^20 texts.
    let sum: Vec<_> = (0..20).map(|n| format!("object.spec.?f{n}.orValue('')")).collect();
    let root = parse_unexpanded(&format!("{} == 'x'", sum.join(" + ")), SYNTAX).unwrap().root;
    let definitions = BTreeMap::new();
    let cases = Cases::new(&definitions, Shape::Pods, &[], 4);
    cases.holds(&root, true, &Scope::default());
    assert_eq!(cases.left.get(), 0);
}

#[test]
fn test_beyond_the_budget_is_not_used() {
    let loops = |test: &str| format!("object.spec.containers.all(c, object.spec.volumes.all(v, {test}))");
    assert!(sufficient(&loops("c.name == v.name")).is_some());
    let search = ["v.hostPath.path.contains(c.image)"; 8].join(" || ");
    assert_eq!(sufficient(&loops(&format!("has(v.hostPath) && has(c.image) && ({search})"))), None);
}

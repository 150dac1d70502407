//! Small policies whose match conditions are sound, and others that are not: each of these is refuted by a request on which
//! the evaluator of CEL agrees.

use palisade_cel::{
    Admission, Environment, Minor, Mode, ResultType,
    eval::{Activation, PER_CALL_LIMIT},
    schema::{Kind, Schemas},
    value::Value,
};

use crate::{
    Answer, Operation, Policy, Requests,
    formula::{Term, TextTest},
    property::Property,
    text::{Found, Texts},
    universe::{self, Type},
};

fn pod() -> Type {
    universe::of_kind(&Schemas::builtin(Minor::DEFAULT).unwrap(), &Kind::parse("v1/Pod").unwrap()).unwrap()
}

fn answer(object: &Type, condition: &str, validation: &str) -> Answer {
    let policy = Policy::parse([], [condition], [validation]).unwrap();
    let requests = Requests { object, kind: "Pod", operation: Operation::Create, params: None };
    requests.left_out_are_admitted(&policy)
}

/// The result of the evaluator for an expression.
fn evaluated(expression: &str, request: &crate::model::Request) -> Option<bool> {
    let environment = Environment::kubernetes(Minor::DEFAULT, Mode::Stored).with_admission(&Admission::default());
    let program = environment.compile(expression, ResultType::Bool).unwrap();
    let mut activation = Activation::new();
    for (name, value) in &request.variables {
        activation = activation.bind(name.as_str(), Value::from_json(value));
    }
    program.evaluate(&activation, PER_CALL_LIMIT).result.ok()?.as_bool()
}

#[test]
fn sound_conditions_are_proved() {
    let object = pod();
    for (sufficient, validation) in [
        ("!has(object.spec.hostNetwork)", "!object.spec.?hostNetwork.orValue(false)"),
        (
            "object.spec.containers.all(c, has(c.image) && c.image.startsWith('a/b/'))",
            "object.spec.containers.all(c, c.?image.orValue('').startsWith('a/'))",
        ),
        (
            "object.spec.containers.all(c, !c.name.contains('..'))",
            "object.spec.containers.all(c, !('/' + c.name + '/').contains('/../'))",
        ),
        ("object.spec.containers.all(c, c.name == 'x')", "!object.spec.containers.exists(c, c.name.size() > 1)"),
        (
            "object.spec.?terminationGracePeriodSeconds.orValue(3) < 5",
            "object.spec.?terminationGracePeriodSeconds.orValue(3) <= 4",
        ),
        (
            "object.spec.containers.all(c, c.name.contains('/') && c.name.startsWith('ab/'))",
            "object.spec.containers.all(c, c.name.substring(0, c.name.indexOf('/')) == 'ab')",
        ),
        ("object.spec.containers.size() <= 3", "object.spec.containers.size() < 5"),
        // What is not understood has the same value at both places.
        (
            "object.spec.containers.all(c, c.name.matches('^a'))",
            "!object.spec.containers.exists(d, !d.name.matches('^a'))",
        ),
        ("!('x' in object.metadata.?labels.orValue({}))", "object.metadata.?labels[?'x'].orValue('') == ''"),
        (
            "object.spec.containers.all(a, object.spec.containers.all(b, a.name == b.name))",
            "object.spec.containers.all(b, object.spec.containers.all(a, b.name == a.name))",
        ),
    ] {
        let found = answer(&object, &format!("!({sufficient})"), validation);
        assert!(matches!(found, Answer::Proved(_)), "{sufficient} {validation}: {found:?}");
    }
}

#[test]
fn unsound_conditions_are_refuted_by_a_request_on_which_the_evaluator_agrees() {
    let object = pod();
    for (sufficient, validation) in [
        ("true", "!object.spec.?hostNetwork.orValue(false)"),
        ("has(object.spec.hostNetwork)", "!object.spec.?hostNetwork.orValue(false)"),
        (
            "object.spec.containers.all(c, has(c.image) && c.image.startsWith('a'))",
            "object.spec.containers.all(c, c.?image.orValue('').startsWith('a/'))",
        ),
        ("object.spec.containers.size() <= 4", "object.spec.containers.size() < 4"),
        (
            "object.spec.?terminationGracePeriodSeconds.orValue(3) <= 5",
            "object.spec.?terminationGracePeriodSeconds.orValue(3) <= 4",
        ),
        ("object.spec.containers.exists(c, c.name == 'x')", "object.spec.containers.all(c, c.name == 'x')"),
        // A field that can be absent, taken for one that is always present.
        (
            "true",
            "object.spec.containers.all(c, c.?ports.orValue([]).all(p, p.?protocol.orValue('TCP') != 'UDP' || has(p.name)))",
        ),
        // A loop that captured the name of another one.
        (
            "object.spec.containers.all(c, object.spec.containers.all(c, c.name == c.name || !has(c.workingDir)))",
            "object.spec.containers.all(a, object.spec.containers.all(b, a.name == b.name || a.?workingDir.orValue('') == '' || a.?workingDir.orValue('') != b.?workingDir.orValue('')))",
        ),
        // The condition of a ternary, decided by one that is only sufficient.
        (
            "object.spec.containers.size() <= 4000 || true",
            "object.spec.containers.all(c, c.?env.orValue([]).exists(e, e.name == 'VAULT')) ? 'team' in object.metadata.?annotations.orValue({}) : true",
        ),
        (
            "object.spec.containers.size() > 1 || !has(object.spec.shareProcessNamespace)",
            "object.spec.containers.all(c, !c.?stdin.orValue(false)) ? !object.spec.?shareProcessNamespace.orValue(false) : true",
        ),
        (
            "object.metadata.?labels.orValue({}).all(k, k.startsWith('a'))",
            "object.metadata.?labels.orValue({}).all(k, k.startsWith('a') && object.metadata.labels[k] == k)",
        ),
    ] {
        let found = answer(&object, &format!("!({sufficient})"), validation);
        let Answer::Counterexample(request) = found else { panic!("{sufficient} {validation}: {found:?}") };
        assert_eq!(evaluated(sufficient, &request), Some(true), "{sufficient}: {request:?}");
        assert_ne!(evaluated(validation, &request), Some(true), "{validation}: {request:?}");
    }
}

#[test]
fn stricter_policy_implies_the_weaker_one_and_not_the_reverse() {
    let object = pod();
    let requests = Requests { object: &object, kind: "Pod", operation: Operation::Create, params: None };
    let policy = |validations: &[&str]| Policy::parse([], [], validations.iter().copied()).unwrap();
    let ports =
        "object.spec.containers.all(c, c.?ports.orValue([]).all(p, p.containerPort >= MIN && p.containerPort <= 9000))";
    for (stricter, weaker) in [
        (
            vec!["has(object.metadata.labels) && 'a' in object.metadata.labels", "!has(object.spec.hostNetwork)"],
            vec!["!object.spec.?hostNetwork.orValue(false)"],
        ),
        (vec![&*ports.replace("MIN", "400")], vec![&*ports.replace("MIN", "80")]),
        (
            vec!["object.metadata.?labels[?'team'].orValue('') == 'a'"],
            vec!["object.metadata.?labels.orValue({}).size() > 0"],
        ),
    ] {
        let both = [policy(&stricter), policy(&weaker)];
        let [strict, weak] = both.each_ref().map(std::slice::from_ref);
        let proved = requests.admitted_are_admitted_by(strict, weak);
        assert!(matches!(proved, Answer::Proved(_)), "{stricter:?} {weaker:?}: {proved:?}");
        let refuted = requests.admitted_are_admitted_by(weak, strict);
        let Answer::Counterexample(request) = refuted else { panic!("{stricter:?} {weaker:?}: {refuted:?}") };
        assert!(weaker.iter().all(|one| evaluated(one, &request) == Some(true)), "{weaker:?}: {request:?}");
        assert!(stricter.iter().any(|one| evaluated(one, &request) != Some(true)), "{stricter:?}: {request:?}");
    }
}

#[test]
fn refuting_request_has_the_shortest_text() {
    let object = pod();
    let condition = "!object.spec.containers.all(c, c.name.startsWith('team-'))";
    assert!(matches!(
        answer(&object, condition, "object.spec.containers.all(c, c.name.size() >= 5)"),
        Answer::Proved(_)
    ));
    let found = answer(&object, condition, "object.spec.containers.all(c, c.name.size() >= 6)");
    let Answer::Counterexample(request) = found else { panic!("{found:?}") };
    assert_eq!(request.variables["object"]["spec"]["containers"][0]["name"], "team-");
}

#[test]
fn condition_that_can_fail_is_refuted() {
    let object = pod();
    let requests = Requests { object: &object, kind: "Pod", operation: Operation::Create, params: None };
    let asked = |condition: &str| requests.conditions_never_fail(&Policy::parse([], [condition], []).unwrap());
    let named = "object.spec.containers.all(c, c.?ports.orValue([]).all(p, p.name != 'admin'))";
    let Answer::Counterexample(request) = asked(named) else { panic!() };
    assert_eq!(evaluated(named, &request), None, "{request:?}");
    for sound in ["object.spec.containers.all(c, c.name != 'admin')", "oldObject == null || oldObject.spec.hostNetwork"]
    {
        assert!(matches!(asked(sound), Answer::Proved(_)), "{sound}");
    }
}

/// All texts of up to some characters.
fn texts(alphabet: &[char], most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..most {
        last = last.iter().flat_map(|text| alphabet.iter().map(move |char| format!("{text}{char}"))).collect();
        all.extend(last.clone());
    }
    all
}

#[test]
fn search_of_texts_finds_one_if_there_is_one() {
    let tests = ["a", "ab", "b/", "/"].into_iter().flat_map(|part| {
        [TextTest::Equals, TextTest::StartsWith, TextTest::EndsWith, TextTest::Contains].map(|test| test(part.into()))
    });
    let tests: Vec<_> = tests.chain([TextTest::AtLeast(1), TextTest::AtLeast(3)]).collect();
    let text = || std::rc::Rc::new(Term::At([crate::formula::Step::Field("x".into())].into()));
    let constant = |text: &str| std::rc::Rc::new(Term::Text(text.into()));
    let around = Term::Concat(constant("/"), std::rc::Rc::new(Term::Concat(text(), constant("/"))));
    let terms = [(*text()).clone(), around, Term::Before(text(), '/'), Term::Skip(text(), 1), Term::Lower(text())];
    let properties: Vec<_> =
        tests.iter().flat_map(|test| terms.iter().filter_map(|term| Some(Property::new(test, term)?.1))).collect();
    let candidates = texts(&['a', 'b', '/', 'A', 'x'], 4);
    let mut search = Texts::new(&properties);
    let mut compared = 0;
    for one in &properties {
        for other in &properties {
            for (has, also) in [(true, true), (true, false), (false, false)] {
                let wanted = [(one.clone(), has), (other.clone(), also)];
                let fits = |text: &&String| wanted.iter().all(|(of, has)| of.holds(text) == *has);
                let expected = candidates.iter().find(fits);
                match search.search(&wanted) {
                    Found::Text(found) => assert!(fits(&&found), "{found:?} {wanted:?}"),
                    other => assert!(expected.is_none(), "{other:?} {expected:?} {wanted:?}"),
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 5000, "{compared}");
}

#[test]
fn match_conditions_exclude_what_a_validation_would_deny() {
    let object = pod();
    let requests = Requests { object: &object, kind: "Pod", operation: Operation::Create, params: None };
    for (condition, validation, holds) in [
        ("object.spec.?hostNetwork.orValue(false)", "object.spec.?hostNetwork.orValue(false) || 'a' == 'b'", true),
        (
            "object.spec.?hostNetwork.orValue(false)",
            "object.spec.?hostNetwork.orValue(false) || object.metadata.?name.orValue('') != 'a'",
            true,
        ),
        (
            "object.spec.?hostNetwork.orValue(false)",
            "object.spec.?hostNetwork.orValue(false) || object.metadata.name != 'a'",
            true,
        ),
        ("object.spec.?hostNetwork.orValue(false)", "object.metadata.?name.orValue('') != 'a'", false),
    ] {
        let policy = [Policy::parse([], [condition], [validation]).unwrap()];
        let answer = requests.admitted_are_admitted_by(&[], &policy);
        assert_eq!(matches!(answer, Answer::Proved(_)), holds, "{condition}: {validation}: {answer:?}");
    }
}

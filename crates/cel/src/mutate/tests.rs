//! Each kind of edit, with its place and words.

use std::collections::BTreeSet;

use super::*;
use crate::{Admission, Environment, Minor, Mode, ResultType};

fn texts(source: &str) -> BTreeSet<String> {
    mutants(source).iter().map(|mutant| mutant.apply(source)).collect()
}

#[test]
fn expressions_yield_the_expected_mutants() {
    for (source, expected) in [
        ("a < 3", &["!(a < 3)", "a <= 3", "a < 4"][..]),
        ("a == 'x'", &["a != 'x'", "a == ''"]),
        ("a == ''", &["a != ''", "a == 'x'"]),
        ("!a", &["a"]),
        ("a && b", &["b", "!(a) && b", "a", "a || b", "a && !(b)"]),
        (
            "(a || b) && c",
            &[
                "c",
                "(b) && c",
                "(!(a) || b) && c",
                "(a) && c",
                "(a && b) && c",
                "(a || !(b)) && c",
                "(a || b)",
                "(a || b) || c",
                "(a || b) && !(c)",
            ],
        ),
        ("a in ['x', 'y']", &["!(a in ['x', 'y'])", "a in []", "a in ['', 'y']", "a in ['x', '']"]),
        (
            "a.all(x, x > 1)",
            &["!(a.all(x, x > 1))", "a.exists(x, x > 1)", "a.all(x, !(x > 1))", "a.all(x, x >= 1)", "a.all(x, x > 2)"],
        ),
        (
            "c ? true : 1.5 > x",
            &[
                "!(c) ? true : 1.5 > x",
                "c ? false : 1.5 > x",
                "c ? true : !(1.5 > x)",
                "c ? true : 2.5 > x",
                "c ? true : 1.5 >= x",
            ],
        ),
        (
            "a.?b.orValue(0x0Fu) == 1u",
            &["a.?b.orValue(16u) == 1u", "a.?b.orValue(0x0Fu) != 1u", "a.?b.orValue(0x0Fu) == 2u"],
        ),
        ("a[?0].hasValue()", &["!(a[?0].hasValue())", "a[?1].hasValue()"]),
        (
            "Object{spec: Object.spec{a: x, b: y}}",
            &[
                "!(Object{spec: Object.spec{a: x, b: y}})",
                "Object{}",
                "Object{spec: Object.spec{b: y}}",
                "Object{spec: Object.spec{a: x}}",
            ],
        ),
    ] {
        assert_eq!(texts(source), expected.iter().map(|&text| text.to_owned()).collect(), "{source}");
    }
}

#[test]
fn mutant_has_a_position_and_a_description() {
    let found = mutants("has(a.b) &&\n  a.b <= 5");
    let said: Vec<_> = found.iter().map(|mutant| format!("{} {}", mutant.position, mutant.description)).collect();
    assert_eq!(
        said,
        [
            "1:1 negate `has(a.b)`",
            "1:1 remove `has(a.b)`",
            "2:3 remove `a.b <= 5`",
            "1:10 write `||` for `&&`",
            "2:3 negate `a.b <= 5`",
            "2:7 write `<` for `<=`",
            "2:10 write `6` for `5`",
        ]
    );
}

#[test]
fn any_text_yields_mutants_without_panic() {
    for source in [
        "",
        ")",
        "((",
        "a ? b",
        "? : ?",
        "[",
        "{",
        "a.",
        "&&",
        "'",
        "a && && b",
        "//",
        "x[?",
        "{?'a': ?",
        "`a b`",
        "18446744073709551615u + 99999999999999999999",
    ] {
        for mutant in mutants(source) {
            mutant.apply(source);
        }
    }
}

#[test]
fn mutants_of_a_typical_expression_compile() {
    let environment = Environment::kubernetes(Minor::DEFAULT, Mode::New).with_admission(&Admission::default());
    let source = "object.spec.containers.all(c, !has(c.image) || ['a/', 'b/'].exists(p, c.image.startsWith(p)))";
    let all = mutants(source);
    let compile = |mutant: &&Mutant| environment.compile(&mutant.apply(source), ResultType::Bool).is_ok();
    assert_eq!((all.len(), all.iter().filter(compile).count()), (13, 13));
}

//! The expressions that are folded. A folded expression has the same meaning, also if a part of it fails.

use palisade_cel::{
    Environment, Minor, Mode, ResultType,
    eval::{Activation, PER_CALL_LIMIT},
    format,
    types::Type,
    value::Value,
};
use serde_json::json;

use super::*;

fn environment() -> Environment {
    ["object", "variables", "params"]
        .iter()
        .fold(Environment::kubernetes(Minor::OLDEST, Mode::New), |environment, name| {
            environment.declare(name, Type::Dyn)
        })
}

fn folded(source: &str) -> String {
    let parsed = palisade_cel::parse::parse_unexpanded(source, environment().syntax());
    let root = parsed.unwrap_or_else(|issues| panic!("{source}: {issues:?}")).root;
    format::print(&fold(root), usize::MAX, &[]).unwrap_or_else(|| panic!("{source}")).text
}

#[test]
fn redundant_expressions_are_folded() {
    for (source, expected) in [
        ("object.l.exists(x, !(x in []))", "object.l.exists(x, true)"),
        ("'a' + 'b' + object.c + 'd' + 'e'", "'ab' + object.c + 'de'"),
        ("!(false)", "true"),
        ("true && object.a", "object.a && true"),
        ("true && object.a == 1", "object.a == 1"),
        ("false || object.a.startsWith('x')", "object.a.startsWith('x')"),
        ("object.a ? true && object.b : false || object.c", "object.a ? object.b && true : object.c || false"),
        ("true && object.a || object.b", "object.a || object.b"),
        ("object.a && false", "false"),
        ("object.a && object.b && object.a", "object.a && object.b"),
        ("(object.a && object.b) && object.c", "object.a && object.b && object.c"),
        ("!(object.a == 1) && !(1 != object.b)", "object.a != 1 && 1 == object.b"),
        ("object.a != '' && !(object.a in [])", "object.a != ''"),
        ("object.a == '' || object.a in []", "object.a == ''"),
        ("object.a in []", "false"),
        ("has(object.a) && !(object.a.b in [])", "has(object.a)"),
        ("!('ALL' in object.d) && ['ALL'].exists(x, !(x in object.d))", "!('ALL' in object.d)"),
        ("['/a/'].exists(a, (object.p + '/').startsWith(a))", "(object.p + '/').startsWith('/a/')"),
        ("object.p == '/..' || ![].exists(a, object.p.startsWith(a))", "true"),
        ("object.v.map(v, true, v.name)", "object.v.map(v, v.name)"),
        (
            "variables.v.map(v, v.a, 'x') + variables.v.map(v, [].exists(a, a == v) && v.b, 'y')",
            "variables.v.map(v, v.a, 'x')",
        ),
        ("(object.a ? ['x'] : []) + []", "object.a ? ['x'] : []"),
        ("[] + object.l.map(x, x)", "object.l.map(x, x)"),
        ("true ? object.a : object.b", "object.a"),
        ("!(!(object.a in ['b']))", "object.a in ['b']"),
    ] {
        assert_eq!(folded(source), expected, "{source}");
    }
}

#[test]
fn folding_keeps_expressions_that_may_fail_or_be_non_bool() {
    for source in [
        "object.a in (true ? [] : ['a'])",
        "!(!object.a)",
        "object.a + '' + object.b",
        "object.l + []",
        "object.l.map(x, false, x)",
        "object.l.size() + object.l.map(x, false, x)",
        "object.l.exists(x, false)",
        "object.l.filter(x, true)",
        "['', 'b'].exists(x, x == object.a)",
        "[''].exists(x, object.a == x.substring(0, x.size() - 1))",
        "['a'].exists(x, x)",
        "object.a ? object.b : object.b",
        "!(object.a < object.b)",
    ] {
        assert_eq!(folded(source), source);
    }
}

/// A generator of expressions, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn one_of(&mut self, all: &[&str]) -> String {
        let index = usize::try_from(self.below(all.len() as u64)).unwrap_or_default();
        all[index].to_owned()
    }

    fn bool(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.one_of(&["true", "false", "object.t", "object.f", "object.none", "object.s", "object.n == 1"]);
        }
        let below = depth - 1;
        match self.below(12) {
            0 | 1 => format!("({} && {})", self.bool(below), self.bool(below)),
            2 | 3 => format!("({} || {})", self.bool(below), self.bool(below)),
            4 => format!("!{}", self.bool(below)),
            5 => format!("({} ? {} : {})", self.bool(below), self.bool(below), self.bool(below)),
            6 => format!("({} in {})", self.text(below), self.list(below)),
            7 => format!("({} in [])", self.text(below)),
            8 => format!("({} {} {})", self.text(below), self.one_of(&["==", "!="]), self.text(below)),
            9 => {
                let (range, loops) = (self.list(below), self.one_of(&["all", "exists", "exists_one"]));
                let asked = self.one_of(&["x in []", "!(x in [])", "x == object.s", "x.startsWith('a')", "true", "x"]);
                format!("{range}.{loops}(x, {asked} && {})", self.bool(below))
            }
            10 => {
                let text = self.text(0);
                format!("({text} {} '' && !({text} in []))", self.one_of(&["!=", "=="]))
            }
            _ => format!("has(object.{})", self.one_of(&["s", "none", "o.p"])),
        }
    }

    fn text(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.one_of(&[
                "'a'",
                "'b'",
                "''",
                "object.s",
                "object.none",
                "object.n",
                "object.?none.orValue('')",
            ]);
        }
        match self.below(3) {
            0 => format!("({} + {} + {})", self.text(depth - 1), self.text(0), self.text(0)),
            1 => format!("({} ? {} : {})", self.bool(depth - 1), self.text(0), self.text(0)),
            _ => self.text(0),
        }
    }

    fn list(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.one_of(&["[]", "['a']", "['a', 'b']", "object.l", "object.none", "object.s", "object.o"]);
        }
        match self.below(5) {
            0 => format!("({} + {})", self.list(depth - 1), self.list(0)),
            1 => format!("({} ? ['a'] : [])", self.bool(depth - 1)),
            2 => {
                let (range, asked) = (self.list(0), self.bool(depth - 1));
                let other = self.one_of(&["true", "false", "x in []", "[].exists(y, y == x)"]);
                format!("({range}.map(x, {asked}, x) + {range}.map(x, {other}, 'z'))")
            }
            3 => format!("{}.filter(x, {})", self.list(0), self.bool(depth - 1)),
            _ => self.list(0),
        }
    }
}

#[test]
fn folding_preserves_values_and_errors() {
    let environment = environment();
    let object = json!({"t": true, "f": false, "s": "a", "n": 1, "l": ["a", "c"], "o": {"p": 1}});
    let nothing = json!(null);
    let (mut random, mut failed, mut changed, mut costs) = (Random(0x2545_f491_4f6c_dd1d), 0, 0, (0, 0));
    for _ in 0..6_000 {
        let depth = u32::try_from(1 + random.below(4)).unwrap_or(1);
        let source = match random.below(3) {
            0 => random.bool(depth),
            1 => random.text(depth),
            _ => random.list(depth),
        };
        // What no API server takes means nothing.
        let Ok(before) = environment.compile(&source, ResultType::Any) else { continue };
        let text = folded(&source);
        let after =
            environment.compile(&text, ResultType::Any).unwrap_or_else(|issues| panic!("{source}\n{text}: {issues:?}"));
        let activation = Activation::new()
            .bind("object", Value::from_json(&object))
            .bind("variables", Value::from_json(&nothing))
            .bind("params", Value::from_json(&nothing));
        let (before, after) =
            (before.evaluate(&activation, PER_CALL_LIMIT), after.evaluate(&activation, PER_CALL_LIMIT));
        let value = |result: &Result<Value<'_>, _>| result.as_ref().map(Value::canonical).ok();
        assert_eq!(value(&before.result), value(&after.result), "{source}\n{text}");
        // A choice between two fields costs less than one of them, so not each expression gets cheaper.
        costs = (costs.0 + before.cost, costs.1 + after.cost);
        failed += u32::from(before.result.is_err());
        changed += u32::from(text.len() < source.len());
    }
    assert!(costs.1 < costs.0, "{costs:?}");
    assert!(failed > 500 && changed > 2000, "{failed} fail, {changed} are shorter");
}

//! Whether a formula holds for no request: first simplified, then by as few of its parts as suffice.

use std::collections::BTreeSet;

use crate::{
    formula::{FALSE, Formula, Formulas, Node, Path, schema},
    scope::Scopes,
    search::{Outcome, Proved, Solution, search},
};

/// An answer that is not yet a request.
pub(crate) enum Decision {
    Proved(Proved),
    Perhaps(Box<Solution>),
    Unknown(String),
}

/// Whether a formula never holds together with a claim.
pub(crate) fn decide(formulas: &mut Formulas, of: Formula, claim: Formula) -> Decision {
    let opposite = formulas.not(of);
    let question = if claim == opposite { FALSE } else { formulas.and([of, claim]) };
    let [question, of] = [question, of].map(|formula| {
        let normal = formulas.normal(formula, true);
        Scopes::default().smaller(formulas, normal)
    });
    let simple = without_contradictions(formulas, question);
    // Whether another part holds makes no difference if these contradict each other.
    let related = related(formulas, simple, &parts(formulas, of).into_iter().collect());
    if related != simple
        && let Outcome::Nothing(proved) = search(formulas, related)
    {
        return Decision::Proved(proved);
    }
    match search(formulas, simple) {
        Outcome::Nothing(proved) => Decision::Proved(proved),
        Outcome::GaveUp(why) => Decision::Unknown(why.to_owned()),
        Outcome::Perhaps(solution) => match &solution.values.doubt {
            Some(doubt) => Decision::Unknown(doubt.clone()),
            None => Decision::Perhaps(solution),
        },
    }
}

/// The formulas that must all hold.
fn parts(formulas: &Formulas, of: Formula) -> Vec<Formula> {
    match formulas.node(of) {
        Node::And(parts) => parts.to_vec(),
        _ => vec![of],
    }
}

/// The formula without cases that contradict another part of it.
fn without_contradictions(formulas: &mut Formulas, of: Formula) -> Formula {
    let all = parts(formulas, of);
    let opposites: BTreeSet<Formula> = all.iter().map(|part| formulas.normal(*part, false)).collect();
    let possible = all.into_iter().map(|part| match formulas.node(part).clone() {
        Node::Or(cases) => {
            let is_possible = |case: &&Formula| {
                !opposites.contains(*case) && !parts(formulas, **case).iter().any(|part| opposites.contains(part))
            };
            let cases: Vec<_> = cases.iter().filter(is_possible).copied().collect();
            without_repetition(formulas, &cases)
        }
        _ => part,
    });
    let possible: Vec<_> = possible.collect();
    let simple = formulas.and(possible);
    // A single case that is left is a part, which can contradict other cases.
    if simple == of { of } else { without_contradictions(formulas, simple) }
}

/// One of these cases, without what all of them have in common, and that.
fn without_repetition(formulas: &mut Formulas, cases: &[Formula]) -> Formula {
    let mut sets = cases.iter().map(|case| parts(formulas, *case).into_iter().collect::<BTreeSet<_>>());
    let Some(first) = sets.next() else { return FALSE };
    let common = sets.fold(first, |common, parts| common.intersection(&parts).copied().collect());
    let rest = cases.iter().map(|case| {
        let rest: Vec<_> = parts(formulas, *case).into_iter().filter(|part| !common.contains(part)).collect();
        formulas.and(rest)
    });
    let rest: Vec<_> = rest.collect();
    let one = formulas.or(rest);
    formulas.and(common.into_iter().chain([one]))
}

/// The parts of a formula that are not assumed, and those of which an atom is about the same field.
fn related(formulas: &mut Formulas, of: Formula, assumed: &BTreeSet<Formula>) -> Formula {
    let (assumed, claimed): (Vec<_>, Vec<_>) = parts(formulas, of).into_iter().partition(|part| assumed.contains(part));
    let mut about: BTreeSet<Path> = claimed.iter().flat_map(|part| fields(formulas, *part)).collect();
    let inner: BTreeSet<Path> = about.iter().flat_map(|path| (1..path.len()).map(|end| path[..end].into())).collect();
    about.retain(|path| !inner.contains(path));
    let is_related = |part: &Formula| !fields(formulas, *part).is_disjoint(&about);
    let related: Vec<_> = assumed.into_iter().filter(is_related).chain(claimed).collect();
    formulas.and(related)
}

/// The places in the schema that a formula is about.
fn fields(formulas: &Formulas, of: Formula) -> BTreeSet<Path> {
    let mut fields = BTreeSet::new();
    for atom in formulas.atoms(of) {
        atom.paths(&mut |path| {
            fields.insert(schema(path));
        });
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value as Json, json};

    use super::*;
    use crate::{
        concrete::Concrete,
        formula::{Atom, Step, TRUE, child},
    };

    struct Random(u64);

    impl Random {
        fn below(&mut self, count: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % count
        }

        /// A formula about two fields of the object, and two of an element if one is bound.
        fn formula(&mut self, formulas: &mut Formulas, element: Option<&Path>, deep: u64) -> Formula {
            let object: Path = [Step::Field("object".into())].into();
            let field = |of: &Path, name: &str| child(of, Step::Field(name.into()));
            match self.below(if deep == 0 { 2 } else { 7 }) {
                kind @ (0 | 1) => {
                    let of = element.filter(|_| kind == 0).unwrap_or(&object);
                    let name = if self.below(2) == 0 { "p" } else { "q" };
                    formulas.atom(Atom::Holds(field(of, name)))
                }
                2 => {
                    let of = self.formula(formulas, element, deep - 1);
                    formulas.not(of)
                }
                3 if element.is_none() => {
                    let (list, var) = (field(&object, "list"), formulas.fresh());
                    let body = self.formula(formulas, Some(&child(&list, Step::Element(var))), deep - 1);
                    formulas.quantify(self.below(2) == 0, &list, var, body)
                }
                kind => {
                    let count = 2 + self.below(3);
                    let parts: Vec<_> = (0..count).map(|_| self.formula(formulas, element, deep - 1)).collect();
                    if kind == 4 { formulas.and(parts) } else { formulas.or(parts) }
                }
            }
        }
    }

    /// All objects with lists of at most two elements.
    fn requests() -> Vec<BTreeMap<String, Json>> {
        let pair = |bits: usize| json!({"p": bits & 1 == 1, "q": bits & 2 == 2});
        let one = (0..4).map(|one| vec![pair(one)]);
        let two = (0..16).map(|both| vec![pair(both & 3), pair(both >> 2)]);
        let lists: Vec<_> = [vec![]].into_iter().chain(one).chain(two).collect();
        let of = |bits: usize, list: &[Json]| json!({"p": bits & 1 == 1, "q": bits & 2 == 2, "list": list});
        let all = lists.iter().flat_map(|list| (0..4).map(move |bits| of(bits, list)));
        all.map(|object| BTreeMap::from([("object".to_owned(), object)])).collect()
    }

    /// The certificate is about the simplified formula. So it must mean the same.
    #[test]
    fn simplified_formulas_mean_the_same_and_no_satisfiable_one_is_proved() {
        let (mut random, requests, keys) = (Random(7), requests(), BTreeSet::new());
        let (mut proved, mut smaller) = (0, 0);
        for _ in 0..3000 {
            let mut formulas = Formulas::default();
            let [mut of, mut claim] = [(); 2].map(|()| random.formula(&mut formulas, None, 4));
            // As in a comparison of policies: a part that stands in every case, and cases of the opposite.
            let shared = random.formula(&mut formulas, None, 2);
            if random.below(2) == 0 {
                let [one, other] = [of, claim].map(|part| formulas.or([shared, part]));
                of = formulas.and([one, other]);
                let not = formulas.not(shared);
                let cases = [one, claim].map(|part| {
                    let opposite = formulas.not(part);
                    formulas.and([not, opposite])
                });
                claim = formulas.or(cases);
            }
            let question = formulas.and([of, claim]);
            let normal = formulas.normal(question, true);
            let simple = without_contradictions(&mut formulas, normal);
            smaller += usize::from(simple != normal);
            let holds = |formulas: &Formulas, of: Formula| -> Vec<_> {
                let on = |variables| Concrete { variables, keys: &keys }.holds(formulas, of);
                requests.iter().map(on).collect()
            };
            let expected = holds(&formulas, question);
            assert_eq!(holds(&formulas, simple), expected);
            if matches!(decide(&mut formulas, of, claim), Decision::Proved(_)) {
                proved += 1;
                assert!(!expected.contains(&Some(true)));
            }
            assert!(matches!(decide(&mut formulas, TRUE, FALSE), Decision::Proved(_)));
        }
        assert!(proved > 100 && smaller > 100, "{proved} {smaller}");
    }
}

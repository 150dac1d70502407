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

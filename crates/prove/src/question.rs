//! Questions about policies, and their answers.

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::{
    ast::Node,
    parse::{Syntax, parse_unexpanded},
};

use crate::{
    formula::{Atom, Formula, Formulas},
    model,
    search::{Outcome, Proved, search},
    symbolic::{Choice, Evaluator, Unsupported, Value, root},
    universe::{self, Type},
};

/// The expressions of a policy.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The variables, by name.
    pub variables: BTreeMap<String, Node>,
    /// The match conditions.
    pub conditions: Vec<Node>,
    /// The validations.
    pub validations: Vec<Node>,
}

/// The syntax that the questions are asked in.
const SYNTAX: Syntax = Syntax { two_variables: true, sort_by: false, escaped_names: false, before_1_33: false };

impl Policy {
    /// Parses the expressions of a policy; `None` if one does not parse.
    pub fn parse<'e>(
        variables: impl IntoIterator<Item = (&'e str, &'e str)>,
        conditions: impl IntoIterator<Item = &'e str>,
        validations: impl IntoIterator<Item = &'e str>,
    ) -> Option<Self> {
        let parsed = |text: &str| Some(parse_unexpanded(text, SYNTAX).ok()?.root);
        Some(Self {
            variables: variables
                .into_iter()
                .map(|(name, text)| Some((name.to_owned(), parsed(text)?)))
                .collect::<Option<_>>()?,
            conditions: conditions.into_iter().map(parsed).collect::<Option<_>>()?,
            validations: validations.into_iter().map(parsed).collect::<Option<_>>()?,
        })
    }
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// There is no old object.
    Create,
    /// There are both objects.
    Update,
}

/// The requests that a question is about.
#[derive(Clone, Debug)]
pub struct Requests<'a> {
    /// The type of the objects.
    pub object: &'a Type,
    /// Their kind.
    pub kind: &'a str,
    /// The operation.
    pub operation: Operation,
    /// The type of parameters; `None` if the policy has none.
    pub params: Option<&'a Type>,
}

/// The answer to a question about every request.
#[derive(Debug)]
pub enum Answer {
    /// It is so.
    Proved(Proved),
    /// It may not be so of this request. Whoever shows it evaluates the expressions on it first.
    Counterexample(Box<model::Request>),
    /// It is not decided.
    Unknown(String),
}

impl Requests<'_> {
    fn roots(&self, formulas: &mut Formulas, conditions: bool) -> BTreeMap<&'static str, Choice> {
        let object = |name: &str, of: &Type| match of {
            Type::Object(fields) => Value::Object(root(name), fields.clone()),
            _ => Value::Other(root(name)),
        };
        let mut roots = BTreeMap::from([
            ("object", Choice::of(object("object", self.object))),
            ("request", Choice::of(object("request", &universe::request()))),
        ]);
        let old = match self.operation {
            Operation::Create => Value::Null,
            Operation::Update => object("oldObject", self.object),
        };
        roots.insert("oldObject", Choice::of(old));
        // Match conditions do not see the namespace.
        let namespace =
            if conditions { Value::Null } else { object("namespaceObject", &universe::namespace()) };
        roots.insert("namespaceObject", Choice::of(namespace));
        if let Some(params) = self.params {
            let present = formulas.atom(Atom::Present(root("params")));
            let absent = formulas.not(present);
            let values = vec![(present, object("params", params)), (absent, Value::Null)];
            roots.insert("params", Choice { values, error: None });
        }
        roots
    }

    fn known(&self) -> BTreeMap<crate::formula::Path, std::rc::Rc<str>> {
        use crate::formula::Step;
        let path = |names: &[&str]| names.iter().map(|name| Step::Field((*name).into())).collect();
        let operation = match self.operation {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
        };
        BTreeMap::from([
            (path(&["request", "operation"]), operation.into()),
            (path(&["request", "kind", "kind"]), self.kind.into()),
        ])
    }

    /// Evaluates what `of` asks for, until all keys of maps are known that it names.
    fn evaluated<T>(
        &self,
        policy: &Policy,
        formulas: &mut Formulas,
        of: impl Fn(&mut Evaluator<'_>, &Self) -> Result<T, Unsupported>,
    ) -> Result<(T, BTreeSet<String>), Unsupported> {
        let mut keys = BTreeSet::new();
        loop {
            let roots = self.roots(formulas, false);
            let mut evaluator = Evaluator::new(formulas, roots, &policy.variables, &mut keys);
            evaluator.known = self.known();
            let found = of(&mut evaluator, self)?;
            if !evaluator.grown {
                return Ok((found, evaluator.opaque));
            }
        }
    }

    /// Whether each request that the match conditions leave out would be admitted: no validation of it is false or fails.
    /// The requests that `assumed` (CEL of type bool) excludes do not count.
    pub fn left_out_are_admitted(&self, policy: &Policy) -> Answer {
        let mut formulas = Formulas::default();
        let found = self.evaluated(policy, &mut formulas, |evaluator, requests| {
            let validations: Vec<_> =
                policy.validations.iter().map(|one| evaluator.condition(one)).collect::<Result<_, _>>()?;
            let admitted = evaluator.formulas.and(validations.iter().map(|one| one.yes));
            evaluator.roots = requests.roots(evaluator.formulas, true);
            let conditions: Vec<_> =
                policy.conditions.iter().map(|one| evaluator.condition(one)).collect::<Result<_, _>>()?;
            let left_out = evaluator.formulas.or(conditions.iter().map(|one| one.no));
            Ok((left_out, admitted))
        });
        match found {
            Err(Unsupported(why)) => Answer::Unknown(why),
            Ok(((left_out, admitted), opaque)) => {
                let not = formulas.not(admitted);
                decide(&mut formulas, left_out, not, &opaque)
            }
        }
    }

    /// Whether no match condition fails.
    pub fn conditions_never_fail(&self, policy: &Policy) -> Answer {
        let mut formulas = Formulas::default();
        let found = self.evaluated(policy, &mut formulas, |evaluator, requests| {
            evaluator.roots = requests.roots(evaluator.formulas, true);
            let conditions: Vec<_> =
                policy.conditions.iter().map(|one| evaluator.condition(one)).collect::<Result<_, _>>()?;
            Ok(evaluator.formulas.or(conditions.iter().map(|one| one.error)))
        });
        match found {
            Err(Unsupported(why)) => Answer::Unknown(why),
            Ok((fails, opaque)) => decide(&mut formulas, crate::formula::TRUE, fails, &opaque),
        }
    }
}

/// Whether no request satisfies both formulas: case by case of the second.
fn decide(formulas: &mut Formulas, always: Formula, one_of: Formula, opaque: &BTreeSet<String>) -> Answer {
    let always = formulas.normal(always, true);
    let one_of = formulas.normal(one_of, true);
    let both = formulas.and([always, one_of]);
    match search(formulas, both) {
        Outcome::Nothing(proved) => Answer::Proved(proved),
        Outcome::GaveUp(why) => Answer::Unknown(why.to_owned()),
        Outcome::Perhaps(solution) => {
            if !solution.complete {
                return Answer::Unknown("the elements of lists depend on each other".to_owned());
            }
            if let Some(doubt) = &solution.values.doubt {
                return Answer::Unknown(doubt.clone());
            }
            let used = solution.atoms.keys().any(|atom| matches!(atom, Atom::Opaque(..)));
            let mut request = model::Request::of(&solution);
            if used {
                request.doubts = opaque.clone();
            }
            Answer::Counterexample(Box::new(request))
        }
    }
}

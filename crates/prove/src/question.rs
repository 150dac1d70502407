//! Questions about policies, and their answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use palisade_cel::{
    ast::Node,
    parse::{Syntax, parse_unexpanded},
};

use crate::{
    concrete::Concrete,
    decide::{Decision, decide},
    formula::{Atom, Formula, Formulas, Path, Step, TRUE},
    model::{Decoder, Request},
    search::Proved,
    symbolic::{Choice, Evaluator, Truth, Unsupported, Value, root},
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

/// Parses an expression.
pub fn expression(text: &str) -> Option<Node> {
    Some(parse_unexpanded(text, SYNTAX).ok()?.root)
}

impl Policy {
    /// Parses the expressions of a policy; `None` if one does not parse.
    pub fn parse<'e>(
        variables: impl IntoIterator<Item = (&'e str, &'e str)>,
        conditions: impl IntoIterator<Item = &'e str>,
        validations: impl IntoIterator<Item = &'e str>,
    ) -> Option<Self> {
        Some(Self {
            variables: variables
                .into_iter()
                .map(|(name, text)| Some((name.to_owned(), expression(text)?)))
                .collect::<Option<_>>()?,
            conditions: conditions.into_iter().map(expression).collect::<Option<_>>()?,
            validations: validations.into_iter().map(expression).collect::<Option<_>>()?,
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

/// Expressions as formulas.
#[derive(Debug)]
pub struct Encoded {
    /// All formulas.
    pub formulas: Formulas,
    /// When each expression is true, false and fails.
    pub truths: Vec<Truth>,
    /// The named keys of maps.
    pub keys: BTreeSet<Rc<str>>,
}

/// The answer to a question about every request.
#[derive(Debug)]
pub enum Answer {
    /// It is so.
    Proved(Proved),
    /// It may not hold for this request. Callers evaluate the expressions on it before they show it.
    Counterexample(Box<Request>),
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
        let namespace = if conditions { Value::Null } else { object("namespaceObject", &universe::namespace()) };
        roots.insert("namespaceObject", Choice::of(namespace));
        if let Some(params) = self.params {
            let present = formulas.atom(Atom::Present(root("params")));
            let absent = formulas.not(present);
            let values = vec![(present, object("params", params)), (absent, Value::Null)];
            roots.insert("params", Choice { values, error: None });
        }
        roots
    }

    /// The answer whether a formula never holds together with a claim.
    fn answer(&self, formulas: &mut Formulas, of: Formula, claim: Formula, found: &Found) -> Answer {
        let solution = match decide(formulas, of, claim) {
            Decision::Proved(proved) => return Answer::Proved(proved),
            Decision::Unknown(why) => return Answer::Unknown(why),
            Decision::Perhaps(solution) => solution,
        };
        let known = self.known();
        let decoder = Decoder { solution: &solution, known: &known };
        let mut variables = BTreeMap::new();
        let mut add = |name: &str, of: &Type| variables.insert(name.to_owned(), decoder.value(of, &root(name)));
        add("object", self.object);
        add("request", &universe::request());
        add("namespaceObject", &universe::namespace());
        if self.operation == Operation::Update {
            add("oldObject", self.object);
        }
        if let Some(params) = self.params
            && solution.atoms.get(&Atom::Present(root("params"))) != Some(&false)
        {
            add("params", params);
        }
        let request = Request { variables, doubts: found.opaque.clone() };
        // By the definition of the formula, not by the way to this solution.
        let question = formulas.and([of, claim]);
        let concrete = Concrete { variables: &request.variables, keys: &found.keys };
        match concrete.holds(formulas, question) {
            Some(false) => Answer::Unknown("a solution is no request".to_owned()),
            Some(true) => Answer::Counterexample(Box::new(Request { doubts: BTreeSet::new(), ..request })),
            None => Answer::Counterexample(Box::new(request)),
        }
    }

    fn known(&self) -> BTreeMap<Path, Rc<str>> {
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
        found: &mut Found,
        of: impl Fn(&mut Evaluator<'_>) -> Result<T, Unsupported>,
    ) -> Result<T, Unsupported> {
        loop {
            let roots = self.roots(formulas, false);
            let mut evaluator = Evaluator::new(formulas, roots, &policy.variables, &mut found.keys);
            evaluator.known = self.known();
            let value = of(&mut evaluator)?;
            if !evaluator.grown {
                found.opaque.append(&mut evaluator.opaque);
                return Ok(value);
            }
        }
    }

    /// Expressions of a policy as formulas.
    ///
    /// # Errors
    /// An expression in which something is not understood that is no value.
    pub fn encoded(&self, policy: &Policy, expressions: &[Node]) -> Result<Encoded, Unsupported> {
        let (mut formulas, mut found) = (Formulas::default(), Found::default());
        let truths =
            self.evaluated(policy, &mut formulas, &mut found, |evaluator| conditions(evaluator, expressions))?;
        Ok(Encoded { formulas, truths, keys: found.keys })
    }

    fn verdict(&self, policy: &Policy, formulas: &mut Formulas, found: &mut Found) -> Result<Verdict, Unsupported> {
        self.evaluated(policy, formulas, found, |evaluator| {
            let validations = conditions(evaluator, &policy.validations)?;
            let complies = evaluator.formulas.and(validations.iter().map(|one| one.yes));
            evaluator.roots = self.roots(evaluator.formulas, true);
            let matches = conditions(evaluator, &policy.conditions)?;
            let left_out = evaluator.formulas.or(matches.iter().map(|one| one.no));
            let matched = evaluator.formulas.and(matches.iter().map(|one| one.yes));
            let error = evaluator.formulas.or(matches.iter().map(|one| one.error));
            Ok(Verdict { left_out, matched, error, complies })
        })
    }

    /// Whether each request that the match conditions leave out would be admitted: no validation of it is false or fails.
    pub fn left_out_are_admitted(&self, policy: &Policy) -> Answer {
        let (mut formulas, mut found) = (Formulas::default(), Found::default());
        match self.verdict(policy, &mut formulas, &mut found) {
            Err(Unsupported(why)) => Answer::Unknown(why),
            Ok(verdict) => {
                let denied = formulas.not(verdict.complies);
                self.answer(&mut formulas, verdict.left_out, denied, &found)
            }
        }
    }

    /// Whether each request that all of some policies admit is admitted by all of some others. An error denies, as with
    /// `failurePolicy: Fail`.
    pub fn admitted_are_admitted_by(&self, policies: &[Policy], others: &[Policy]) -> Answer {
        let (mut formulas, mut found) = (Formulas::default(), Found::default());
        loop {
            let by_all = self.admitted(policies, &mut formulas, &mut found);
            let known = found.keys.len();
            let by_others = self.admitted(others, &mut formulas, &mut found);
            let (admitted, by_others) = match (by_all, by_others) {
                (Ok(by_all), Ok(by_others)) => (by_all, by_others),
                (Err(Unsupported(why)), _) | (_, Err(Unsupported(why))) => return Answer::Unknown(why),
            };
            // Both sides speak of the same keys of maps.
            if found.keys.len() == known {
                let denied = formulas.not(by_others);
                return self.answer(&mut formulas, admitted, denied, &found);
            }
        }
    }

    /// When all of some policies admit a request. They speak of the same keys of maps.
    fn admitted(
        &self,
        policies: &[Policy],
        formulas: &mut Formulas,
        found: &mut Found,
    ) -> Result<Formula, Unsupported> {
        loop {
            let known = found.keys.len();
            let verdicts = policies.iter().map(|policy| {
                let verdict = self.verdict(policy, formulas, found)?;
                let complies = formulas.and([verdict.matched, verdict.complies]);
                Ok(formulas.or([verdict.left_out, complies]))
            });
            let verdicts = verdicts.collect::<Result<Vec<_>, Unsupported>>()?;
            if found.keys.len() == known || policies.len() == 1 {
                return Ok(formulas.and(verdicts));
            }
        }
    }

    /// Whether no match condition fails.
    pub fn conditions_never_fail(&self, policy: &Policy) -> Answer {
        let (mut formulas, mut found) = (Formulas::default(), Found::default());
        match self.verdict(policy, &mut formulas, &mut found) {
            Err(Unsupported(why)) => Answer::Unknown(why),
            Ok(verdict) => self.answer(&mut formulas, TRUE, verdict.error, &found),
        }
    }
}

/// When each expression is true, false and fails.
fn conditions(evaluator: &mut Evaluator<'_>, of: &[Node]) -> Result<Vec<Truth>, Unsupported> {
    of.iter().map(|one| evaluator.condition(one)).collect()
}

/// The verdict of a policy.
struct Verdict {
    /// When a match condition is false.
    left_out: Formula,
    /// When all match conditions are true.
    matched: Formula,
    /// When a match condition fails.
    error: Formula,
    /// When all validations are true.
    complies: Formula,
}

/// Remarks of an evaluation.
#[derive(Default)]
struct Found {
    /// The expressions that are not understood.
    opaque: BTreeSet<String>,
    /// The named keys of maps.
    keys: BTreeSet<Rc<str>>,
}

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
    decide::Decider,
    formula::{Atom, Formula, Formulas, Path, Step, TRUE},
    model::{Decoder, Request},
    search::{Outcome, Proved, Solution},
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

/// The name of parameters in expressions, and another name for those of the other side of a comparison.
pub const PARAMS: &str = "params";
/// See [`PARAMS`].
pub const OTHER_PARAMS: &str = "otherParams";

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
    /// Their kind; empty if it can be any.
    pub kind: &'a str,
    /// The operation.
    pub operation: Operation,
    /// The type of parameters; `None` if the policy has none.
    pub params: Option<&'a Type>,
}

/// Policies that evaluate the same requests, with the same parameters.
#[derive(Clone, Copy, Debug)]
pub struct Side<'p> {
    /// The policies. A request is admitted if all of them admit it.
    pub policies: &'p [Policy],
    /// The name of the parameters: those of two sides are the same object if it is the same name.
    pub params: &'p str,
}

/// The formulas and proofs that several questions share. Equal parts of them are proved once.
#[derive(Debug, Default)]
pub struct Questions {
    formulas: Formulas,
    keys: BTreeSet<Rc<str>>,
    decider: Decider,
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
    /// `named`: the name under which a request has the parameters.
    fn roots(&self, formulas: &mut Formulas, conditions: bool, named: &str) -> BTreeMap<&'static str, Choice> {
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
            let present = formulas.atom(Atom::Present(root(named)));
            let absent = formulas.not(present);
            let values = vec![(present, object(named, params)), (absent, Value::Null)];
            roots.insert("params", Choice { values, error: None });
        }
        roots
    }

    /// The answer whether no request satisfies both formulas.
    fn answer(&self, questions: &mut Questions, always: Formula, one_of: Formula, opaque: &BTreeSet<String>) -> Answer {
        let Questions { formulas, keys, decider } = questions;
        let question = formulas.and([always, one_of]);
        let solution = match decided(decider.decide(formulas, always, one_of)) {
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
        for named in [PARAMS, OTHER_PARAMS] {
            if let Some(params) = self.params
                && solution.atoms.get(&Atom::Present(root(named))) != Some(&false)
            {
                add(named, params);
            }
        }
        let request = Request { variables, doubts: opaque.clone() };
        // By the definition of the formula, not by the way to this solution.
        let concrete = Concrete { variables: &request.variables, keys };
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
        let kind = (path(&["request", "kind", "kind"]), self.kind.into());
        let kind = Some(kind).filter(|_| !self.kind.is_empty());
        [(path(&["request", "operation"]), operation.into())].into_iter().chain(kind).collect()
    }

    /// Evaluates expressions, until all keys of maps are known that one names.
    fn evaluated<T>(
        &self,
        policy: &Policy,
        questions: &mut Questions,
        of: impl Fn(&mut Evaluator<'_>, &Self) -> Result<T, Unsupported>,
    ) -> Result<(T, BTreeSet<String>), Unsupported> {
        let Questions { formulas, keys, decider: _ } = questions;
        loop {
            let roots = self.roots(formulas, false, PARAMS);
            let mut evaluator = Evaluator::new(formulas, roots, &policy.variables, keys);
            evaluator.known = self.known();
            let value = of(&mut evaluator, self)?;
            if !evaluator.grown {
                let opaque = evaluator.opaque;
                return Ok((value, opaque));
            }
        }
    }

    /// Expressions of a policy as formulas.
    ///
    /// # Errors
    /// An expression in which something is not understood that is no value.
    pub fn encoded(&self, policy: &Policy, expressions: &[Node]) -> Result<Encoded, Unsupported> {
        let mut questions = Questions::default();
        let (truths, _) = self.evaluated(policy, &mut questions, |evaluator, _| truths(evaluator, expressions))?;
        Ok(Encoded { formulas: questions.formulas, truths, keys: questions.keys })
    }

    /// Whether each request that the match conditions leave out would be admitted: no validation of it is false or fails.
    pub fn left_out_are_admitted(&self, policy: &Policy) -> Answer {
        let mut questions = Questions::default();
        let found = self.evaluated(policy, &mut questions, |evaluator, requests| {
            let validations = truths(evaluator, &policy.validations)?;
            let admitted = evaluator.formulas.and(validations.iter().map(|one| one.yes));
            evaluator.roots = requests.roots(evaluator.formulas, true, PARAMS);
            let conditions = truths(evaluator, &policy.conditions)?;
            let left_out = evaluator.formulas.or(conditions.iter().map(|one| one.no));
            Ok((left_out, evaluator.formulas.not(admitted)))
        });
        match found {
            Err(Unsupported(why)) => Answer::Unknown(why),
            Ok(((left_out, denied), opaque)) => self.answer(&mut questions, left_out, denied, &opaque),
        }
    }

    /// For each premise and each conclusion, whether each request of which the premise is true satisfies the conclusion, and
    /// the premise never fails. Premises are evaluated as match conditions, and conclusions as validations.
    pub fn imply(
        &self,
        questions: &mut Questions,
        policy: &Policy,
        premises: &[Node],
        conclusions: &[Node],
    ) -> Vec<Vec<Answer>> {
        let found = self.evaluated(policy, questions, |evaluator, requests| {
            let wanted = truths(evaluator, conclusions)?;
            let wanted: Vec<_> = wanted.iter().map(|one| evaluator.formulas.not(one.yes)).collect();
            evaluator.roots = requests.roots(evaluator.formulas, true, PARAMS);
            Ok((truths(evaluator, premises)?, wanted))
        });
        let (premises, wanted, opaque) = match found {
            Err(Unsupported(why)) => {
                let unknown = || conclusions.iter().map(|_| Answer::Unknown(why.clone())).collect();
                return premises.iter().map(|_| unknown()).collect();
            }
            Ok(((premises, wanted), opaque)) => (premises, wanted, opaque),
        };
        let mut answers = Vec::new();
        for premise in premises {
            let mut answer = |denied: Formula| {
                let fails = self.answer(questions, premise.error, TRUE, &opaque);
                if matches!(fails, Answer::Proved(_)) {
                    self.answer(questions, premise.yes, denied, &opaque)
                } else {
                    fails
                }
            };
            answers.push(wanted.iter().map(|denied| answer(*denied)).collect());
        }
        answers
    }

    /// For each conclusion about a policy of one side, whether each request that the other side admits satisfies it.
    /// `assumed` are expressions about requests of the other side that hold for all of them.
    pub fn admitted_satisfy(
        &self,
        questions: &mut Questions,
        admitting: Side<'_>,
        assumed: &[Node],
        (policy, params): (&Policy, &str),
        conclusions: &[Node],
    ) -> Vec<Answer> {
        let mut doubts = BTreeSet::new();
        let mut found = || {
            // A key that one side names is one that the other side must know.
            loop {
                let before = questions.keys.len();
                let mut admitted = Vec::new();
                for (index, of) in admitting.policies.iter().enumerate() {
                    let assumed = if index == 0 { assumed } else { &[] };
                    let (yes, opaque) = self.evaluated(of, questions, |evaluator, requests| {
                        evaluator.roots = requests.roots(evaluator.formulas, false, admitting.params);
                        let all = truths(evaluator, assumed)?.into_iter().chain(truths(evaluator, &of.validations)?);
                        Ok(all.map(|one| one.yes).collect::<Vec<_>>())
                    })?;
                    admitted.extend(yes);
                    doubts.extend(opaque);
                }
                let (wanted, opaque) = self.evaluated(policy, questions, |evaluator, requests| {
                    evaluator.roots = requests.roots(evaluator.formulas, false, params);
                    truths(evaluator, conclusions)
                })?;
                doubts.extend(opaque);
                if questions.keys.len() == before {
                    return Ok((admitted, wanted));
                }
            }
        };
        let (admitted, wanted) = match found() {
            Ok(found) => found,
            Err(Unsupported(why)) => return conclusions.iter().map(|_| Answer::Unknown(why.clone())).collect(),
        };
        let admitted = questions.formulas.and(admitted);
        let mut answer = |one: &Truth| {
            let denied = questions.formulas.not(one.yes);
            self.answer(questions, admitted, denied, &doubts)
        };
        wanted.iter().map(&mut answer).collect()
    }

    /// Whether no match condition fails.
    pub fn conditions_never_fail(&self, policy: &Policy) -> Answer {
        let mut questions = Questions::default();
        let found = self.evaluated(policy, &mut questions, |evaluator, requests| {
            evaluator.roots = requests.roots(evaluator.formulas, true, PARAMS);
            let conditions = truths(evaluator, &policy.conditions)?;
            Ok(evaluator.formulas.or(conditions.iter().map(|one| one.error)))
        });
        match found {
            Err(Unsupported(why)) => Answer::Unknown(why),
            Ok((fails, opaque)) => self.answer(&mut questions, TRUE, fails, &opaque),
        }
    }
}

fn truths(evaluator: &mut Evaluator<'_>, of: &[Node]) -> Result<Vec<Truth>, Unsupported> {
    of.iter().map(|one| evaluator.condition(one)).collect()
}

fn decided(outcome: Outcome) -> Decision {
    match outcome {
        Outcome::Nothing(proved) => Decision::Proved(proved),
        Outcome::GaveUp(why) => Decision::Unknown(why.to_owned()),
        Outcome::Perhaps(solution) if !solution.complete => {
            Decision::Unknown("the elements of lists depend on each other".to_owned())
        }
        Outcome::Perhaps(solution) => match &solution.values.doubt {
            Some(doubt) => Decision::Unknown(doubt.clone()),
            None => Decision::Perhaps(solution),
        },
    }
}

/// An answer that is not yet a request.
enum Decision {
    Proved(Proved),
    Perhaps(Box<Solution>),
    Unknown(String),
}

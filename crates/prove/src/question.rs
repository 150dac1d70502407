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
    formula::{Atom, Formula, Formulas, Path, Step},
    model::{Decoder, Request},
    scope::Scopes,
    search::{Outcome, Proved, Solution, search},
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

    /// The answer whether no request satisfies a formula.
    fn answer(&self, formulas: &mut Formulas, question: Formula, found: &Found) -> Answer {
        let solution = match decide(formulas, question) {
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
        of: impl Fn(&mut Evaluator<'_>, &Self) -> Result<T, Unsupported>,
    ) -> Result<(T, Found), Unsupported> {
        let mut keys = BTreeSet::new();
        loop {
            let roots = self.roots(formulas, false);
            let mut evaluator = Evaluator::new(formulas, roots, &policy.variables, &mut keys);
            evaluator.known = self.known();
            let value = of(&mut evaluator, self)?;
            if !evaluator.grown {
                let opaque = evaluator.opaque;
                return Ok((value, Found { opaque, keys }));
            }
        }
    }

    /// Expressions of a policy as formulas.
    ///
    /// # Errors
    /// An expression in which something is not understood that is no value.
    pub fn encoded(&self, policy: &Policy, expressions: &[Node]) -> Result<Encoded, Unsupported> {
        let mut formulas = Formulas::default();
        let (truths, found) = self.evaluated(policy, &mut formulas, |evaluator, _| {
            expressions.iter().map(|one| evaluator.condition(one)).collect::<Result<_, _>>()
        })?;
        Ok(Encoded { formulas, truths, keys: found.keys })
    }

    /// Whether each request that the match conditions leave out would be admitted: no validation of it is false or fails.
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
            Ok(((left_out, admitted), found)) => {
                let not = formulas.not(admitted);
                let question = formulas.and([left_out, not]);
                self.answer(&mut formulas, question, &found)
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
            Ok((fails, found)) => self.answer(&mut formulas, fails, &found),
        }
    }
}

/// Whether no request satisfies a formula.
fn decide(formulas: &mut Formulas, of: Formula) -> Decision {
    let normal = formulas.normal(of, true);
    let smaller = Scopes::default().smaller(formulas, normal);
    match search(formulas, smaller) {
        Outcome::Nothing(proved) => Decision::Proved(proved),
        Outcome::GaveUp(why) => Decision::Unknown(why.to_owned()),
        Outcome::Perhaps(solution) => match &solution.values.doubt {
            Some(doubt) => Decision::Unknown(doubt.clone()),
            None => Decision::Perhaps(solution),
        },
    }
}

/// Remarks of an evaluation.
struct Found {
    /// The expressions that are not understood.
    opaque: BTreeSet<String>,
    /// The named keys of maps.
    keys: BTreeSet<Rc<str>>,
}

/// An answer that is not yet a request.
enum Decision {
    Proved(Proved),
    Perhaps(Box<Solution>),
    Unknown(String),
}

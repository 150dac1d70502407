//! The verdict of one policy with one set of parameters (apiserver
//! `pkg/admission/plugin/policy/validating/validator.go`).

use super::{
    authorizer::Authority,
    expression::{Evaluator, Expression, Inputs, OUT_OF_BUDGET, OutOfBudget},
    policy::validating::Policy,
};

/// The maximum cost of the validations and messages of a policy with one binding and one set of parameters. Its audit
/// annotations have a separate budget of the same size (apiserver `pkg/apis/cel/config.go`, `RuntimeCELCostBudget`).
pub const BUDGET: u64 = 10_000_000;

/// The maximum cost of the match conditions of a policy (`RuntimeCELCostBudgetMatchConditions`).
pub const MATCH_CONDITIONS_BUDGET: u64 = 2_500_000;

/// The longest message of an expression that is shown, in bytes (`MaxEvaluatedMessageExpressionSizeBytes`).
pub const MAX_MESSAGE: usize = 5 * 1024;

/// The decision of a validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Admit,
    Deny { message: String, reason: String },
}

/// The result of an audit annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Annotation {
    Publish { key: String, value: String },
    Exclude,
    Error(String),
}

/// The verdict of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub decisions: Vec<Decision>,
    pub annotations: Vec<Annotation>,
}

/// Evaluates a policy. Match conditions see no namespace, and the request as it was addressed (`of_conditions`).
pub(crate) fn validate(
    policy: &Policy,
    inputs: &Inputs<'_>,
    of_conditions: &Inputs<'_>,
    authority: &Authority,
    evaluator: &mut Evaluator<'_>,
) -> Verdict {
    match conditions_match(&policy.match_conditions, policy.fails_closed(), of_conditions, authority, evaluator) {
        Ok(true) => {}
        Ok(false) => return Verdict::default(),
        Err(error) => return Verdict::of(failure(policy, error)),
    }
    validate_matched(policy, inputs, authority, evaluator)
}

/// Evaluates a policy after its match conditions.
pub(super) fn validate_matched(
    policy: &Policy,
    inputs: &Inputs<'_>,
    authority: &Authority,
    evaluator: &mut Evaluator<'_>,
) -> Verdict {
    let Ok(decisions) = decide(policy, inputs, authority, evaluator) else {
        return Verdict::of(failure(policy, OUT_OF_BUDGET.to_owned()));
    };
    match annotate(policy, inputs, evaluator) {
        Ok(annotations) => Verdict { decisions, annotations },
        Err(OutOfBudget) => Verdict::of(failure(policy, OUT_OF_BUDGET.to_owned())),
    }
}

impl Verdict {
    fn of(decision: Decision) -> Self {
        Self { decisions: vec![decision], annotations: vec![] }
    }
}

/// The decision after an error. The reason that a client sees is the default one.
fn failure(policy: &Policy, message: String) -> Decision {
    if policy.fails_closed() { Decision::Deny { message, reason: String::new() } } else { Decision::Admit }
}

/// Whether all match conditions hold (apiserver `pkg/admission/plugin/webhook/matchconditions/matcher.go`). All are
/// evaluated, and one that does not hold wins over errors.
pub(super) fn conditions_match(
    conditions: &[Expression],
    fails_closed: bool,
    inputs: &Inputs<'_>,
    authority: &Authority,
    evaluator: &mut Evaluator<'_>,
) -> Result<bool, String> {
    let ends = |error: String| if fails_closed { Err(error) } else { Ok(false) };
    let activation = authority.bind(inputs.activation());
    let mut budget = MATCH_CONDITIONS_BUDGET;
    let mut errors = Vec::new();
    let mut holds = true;
    for condition in conditions {
        match evaluator.evaluate(condition, inputs, &activation, &mut budget) {
            Err(OutOfBudget) => return ends(OUT_OF_BUDGET.to_owned()),
            Ok(Ok(value)) => holds &= value.as_bool() != Some(false),
            Ok(Err(error)) => errors.push(error),
        }
    }
    match errors.len() {
        _ if !holds => Ok(false),
        0 => Ok(true),
        _ => ends(aggregate(errors)),
    }
}

/// As `utilerrors.NewAggregate` prints errors: each once, in brackets if there are several.
fn aggregate(errors: Vec<String>) -> String {
    let mut unique: Vec<String> = Vec::new();
    for error in errors {
        if !unique.contains(&error) {
            unique.push(error);
        }
    }
    if let [error] = unique.as_slice() { error.clone() } else { format!("[{}]", unique.join(", ")) }
}

fn decide(
    policy: &Policy,
    inputs: &Inputs<'_>,
    authority: &Authority,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Decision>, OutOfBudget> {
    let mut budget = BUDGET;
    let activation = authority.bind(inputs.activation());
    let mut results = Vec::new();
    for expression in &policy.validations {
        results.push(evaluator.evaluate(expression, inputs, &activation, &mut budget)?);
    }
    // Messages are evaluated for validations that hold, too, with what is left of the budget.
    let messages = say(&policy.messages, inputs, evaluator, &mut budget);
    let mut decisions = Vec::new();
    for (index, result) in results.into_iter().enumerate() {
        decisions.push(match (result, &messages) {
            (Err(error), _) => failure(policy, error),
            (_, Err(OutOfBudget)) => failure(policy, format!("failed messageExpression: {OUT_OF_BUDGET}")),
            (Ok(value), _) if value.as_bool() == Some(true) => Decision::Admit,
            (Ok(_), Ok(messages)) => deny(policy, index, messages[index].as_deref()),
        });
    }
    Ok(decisions)
}

/// The texts of the messages, as far as they have one.
fn say(
    messages: &[Option<Expression>],
    inputs: &Inputs<'_>,
    evaluator: &mut Evaluator<'_>,
    budget: &mut u64,
) -> Result<Vec<Option<String>>, OutOfBudget> {
    let activation = inputs.activation();
    let mut texts = Vec::new();
    for message in messages {
        let Some(message) = message else {
            texts.push(None);
            continue;
        };
        let result = evaluator.evaluate(message, inputs, &activation, budget)?;
        texts.push(result.ok().and_then(|value| value.as_str().map(|text| text.trim().to_owned())));
    }
    Ok(texts)
}

fn deny(policy: &Policy, index: usize, evaluated: Option<&str>) -> Decision {
    let validation = policy.spec.validations.as_ref().and_then(|validations| validations.get(index));
    let fixed = validation.and_then(|validation| validation.message.as_deref()).map(str::trim);
    let shown = |text: &&str| text.len() <= MAX_MESSAGE && !text.contains('\n');
    let message = evaluated.filter(shown).filter(|text| !text.is_empty()).or(fixed).filter(|text| !text.is_empty());
    let message = message
        .map_or_else(|| format!("failed expression: {}", policy.validations[index].source.trim()), str::to_owned);
    let reason = validation.and_then(|validation| validation.reason.clone()).unwrap_or_else(|| "Invalid".to_owned());
    Decision::Deny { message, reason }
}

/// Evaluates the audit annotations, which have a budget of their own and no authorizer, although they compile with one.
fn annotate(
    policy: &Policy,
    inputs: &Inputs<'_>,
    evaluator: &mut Evaluator<'_>,
) -> Result<Vec<Annotation>, OutOfBudget> {
    let activation = inputs.activation();
    let mut budget = BUDGET;
    let mut annotations = Vec::new();
    for (expression, annotation) in policy.audit_annotations.iter().zip(policy.spec.audit_annotations.iter().flatten())
    {
        annotations.push(match evaluator.evaluate(expression, inputs, &activation, &mut budget)? {
            Err(_) if !policy.fails_closed() => Annotation::Exclude,
            Err(error) => Annotation::Error(error),
            Ok(value) => match value.as_str().map(str::trim) {
                None | Some("") => Annotation::Exclude,
                Some(text) => Annotation::Publish { key: annotation.key.clone(), value: text.to_owned() },
            },
        });
    }
    Ok(annotations)
}

//! The highest cost of all rules of a schema (`cel_validation.go`, `TotalCost`).

use crate::validation::FieldError as Error;

/// The most that a rule may cost, or a message, times how often it may be evaluated for an object.
const EXPRESSION_LIMIT: u64 = 10_000_000;
/// The most that all of them in a schema may cost together.
const TOTAL_LIMIT: u64 = 100_000_000;
const FACTOR_SHOWN: f64 = 100.0;

/// The costs of the expressions of a schema.
#[derive(Debug, Default)]
pub(super) struct Costs {
    total: u64,
    /// The four that cost most, those that cost a hundredth of what all may.
    most: Vec<(u64, String)>,
}

impl Costs {
    /// Adds what an expression may cost.
    pub(super) fn add(&mut self, field: &str, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL_LIMIT / 100 {
            self.most.push((cost, field.to_owned()));
            self.most.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.most.truncate(4);
        }
    }

    /// The errors if they cost too much together.
    pub(super) fn errors(&self, field: &str) -> Vec<Error> {
        if self.total <= TOTAL_LIMIT {
            return Vec::new();
        }
        let contributed = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: Vec<_> = self.most.iter().map(|(_, field)| Error::forbidden(field, contributed)).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(Error::forbidden(field, &message(what, self.total, TOTAL_LIMIT)));
        errors
    }
}

/// The message for an expression that costs too much.
pub(super) fn excess(what: &str, cost: u64) -> Option<String> {
    (cost > EXPRESSION_LIMIT).then(|| message(what, cost, EXPRESSION_LIMIT))
}

fn message(what: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "as the API server does")]
    let factor = cost as f64 / limit as f64;
    let factor = if factor > FACTOR_SHOWN {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

//! The cases that a real API server is asked as well (`tests/apiserver/cases/mutation`), judged offline.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests read files")]

use std::path::Path;

use palisade_apiserver::admission::{Cluster, Operation, Outcome};
use palisade_cel::Minor;
use serde_json::Value as Json;

#[path = "../../../tests/apiserver/src/mutations.rs"]
#[expect(dead_code, reason = "the live suite uses the rest")]
mod mutations;

#[test]
fn mutation_cases_yield_the_expected_objects() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/apiserver/cases/mutation");
    let cases = mutations::cases(&directory);
    assert!(cases.len() > 100, "cases are missing");
    let mut wrong = Vec::new();
    for case in &cases {
        let unmet = match judged(case) {
            Ok(found) => case.expected.unmet(&found),
            Err(why) => vec![format!("no verdict: {why}")],
        };
        wrong.extend(unmet.into_iter().map(|unmet| format!("{}: {unmet}", case.name)));
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// What becomes of a case: the object, or the text of a denial.
fn judged(case: &mutations::Case) -> Result<Result<Json, String>, String> {
    let mut cluster = Cluster::new(Minor::V1_36);
    for object in std::iter::once(mutations::definition()).chain(case.cluster.iter().cloned()) {
        cluster.apply(object).map_err(|error| format!("{error:?}"))?;
    }
    let operation = Operation::parse(&case.operation).unwrap();
    let request = cluster.request(operation, &case.subresource, &case.object, case.old.as_ref())?;
    let review = cluster.admit(&request);
    match review.outcome {
        Outcome::Allowed => Ok(Ok(review.object.unwrap_or_default())),
        Outcome::Denied(denials) => Ok(Err(denials[0].message.clone())),
        Outcome::NoVerdict(why) => Err(why),
    }
}

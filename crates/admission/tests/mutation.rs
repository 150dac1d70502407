//! The cases that a real API server is asked as well (`tests/apiserver/cases/mutation`), judged offline.
#![allow(clippy::disallowed_methods, reason = "cases are files")]

use std::path::Path;

use palisade_admission::requests::{Cluster, Misfit, Operation, Outcome, misfits};
use palisade_cel::{
    Admission, Environment, Minor, Mode,
    schema::{Kind, Schemas},
    types::Type,
};
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

/// The API server's words for a mutation that does not fit the schema.
const WORDS: [&str; 4] =
    ["may not mutate atomic", "field not declared in schema", "unexpected type name", "expected numeric"];

#[test]
fn only_mutations_that_the_api_server_denies_have_misfits() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/apiserver/cases/mutation");
    let mut schemas = Schemas::builtin(Minor::V1_36).unwrap();
    schemas.add_crd(&mutations::definition());
    let (mut wrong, mut found) = (Vec::new(), 0);
    for case in mutations::cases(&directory) {
        let policy = case.cluster.iter().find(|object| object["kind"] == "MutatingAdmissionPolicy").unwrap();
        let misfits = misfits_of(policy, &case.object, &schemas);
        match &case.expected {
            // Ignored failures have an object, too; and so has a custom object without an unknown field.
            mutations::Expected::Object(_)
                if policy["spec"]["failurePolicy"] == "Fail"
                    && !misfits.is_empty()
                    && case.name != "policy-custom-unknown-field-of-a-patch" =>
            {
                wrong.push(format!("{}: {misfits:?}", case.name));
            }
            mutations::Expected::Denied(text) if WORDS.iter().any(|word| text.contains(word)) => {
                if misfits.iter().any(|misfit| text.contains(&misfit.message) || misfit.message.contains(text)) {
                    found += 1;
                } else {
                    wrong.push(format!("{}: denied with {text:?}, but {misfits:?}", case.name));
                }
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found > 5, "only {found}");
}

/// The misfits of a policy's mutations for the kind of an object.
fn misfits_of(policy: &Json, object: &Json, schemas: &Schemas) -> Vec<Misfit> {
    let spec = &policy["spec"];
    let kind = Kind::parse(&format!("{}/{}", object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap()));
    let params = spec["paramKind"].is_object().then_some(Type::Dyn);
    let mut environment = Environment::kubernetes(Minor::V1_36, Mode::Stored)
        .with_admission(&Admission { params, ..Admission::default() });
    for variable in spec["variables"].as_array().into_iter().flatten() {
        let checked = environment.check(variable["expression"].as_str().unwrap()).ok();
        let output = checked.as_ref().map(palisade_cel::check::Checked::output_type);
        environment = environment.compose(variable["name"].as_str().unwrap(), output);
    }
    let environment = environment.with_mutation();
    let mutations = spec["mutations"].as_array().into_iter().flatten();
    let sources = mutations.filter_map(|one| {
        one[if one["jsonPatch"].is_null() { "applyConfiguration" } else { "jsonPatch" }]["expression"].as_str()
    });
    let checked = sources.filter_map(|source| environment.check(source).ok());
    checked.flat_map(|checked| misfits(schemas, kind.as_ref().unwrap(), &checked)).collect()
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

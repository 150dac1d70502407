//! Policies and bindings of cases: whether they are created, with which text they are refused, and which warnings the
//! check of their types gives.

use std::{collections::BTreeMap, sync::LazyLock};

use palisade_admission::create::{self, Names, Refused};
use palisade_cel::{Minor, schema::Schemas};
use serde_json::Value as Json;

use super::{Case, Tally};

/// The minor version of the server that answered.
const MINOR: Minor = Minor::V1_36;

static BUILTIN: LazyLock<Schemas> = LazyLock::new(|| Schemas::builtin(MINOR).unwrap_or_default());

/// Compares the API server's answers to the policies and bindings of a case, by aspect.
pub fn agree(case: &Case) -> BTreeMap<&'static str, Tally> {
    let mut schemas = BUILTIN.clone();
    let mut names = Names::default();
    names.add_builtin(schemas.kinds().cloned());
    for crd in &case.crds {
        schemas.add_crd(crd);
        names.add_crd(crd);
    }
    let mut compare = Compare { case, schemas, names, tallies: BTreeMap::new() };
    for (list, objects) in [("policies", &case.policies), ("bindings", &case.bindings)] {
        for answer in case.apiserver[list].as_array().into_iter().flatten() {
            if let Some(object) = objects.iter().find(|object| object["metadata"]["name"] == answer["name"]) {
                compare.one(object, answer);
            }
        }
    }
    compare.tallies
}

struct Compare<'a> {
    case: &'a Case,
    schemas: Schemas,
    names: Names,
    tallies: BTreeMap<&'static str, Tally>,
}

impl Compare<'_> {
    fn one(&mut self, object: &Json, answer: &Json) {
        let is_policy = object["kind"] == "ValidatingAdmissionPolicy";
        let mut object = object.clone();
        // What the API server does not serve was sent to it as v1.
        object["apiVersion"] = "admissionregistration.k8s.io/v1".into();
        let name = answer["name"].as_str().unwrap_or_default();
        let said = create::create(MINOR, &object, None);
        if let Err(Refused::NoVerdict(why)) = &said {
            let aspect = if is_policy { "policy accepted" } else { "binding accepted" };
            let line = self.line(name, aspect, why);
            let tally = self.tallies.entry(aspect).or_default();
            tally.compared += 1;
            return tally.no_verdict.push(line);
        }
        let (code, text) = match &said {
            Err(Refused::Status(status)) => (u64::from(status.code), status.message.as_str()),
            _ => (201, ""),
        };
        let expected = answer["http_status"].as_u64().unwrap_or(if answer["accepted"] == true { 201 } else { 422 });
        let aspects =
            if is_policy { ["policy accepted", "policy refusal"] } else { ["binding accepted", "binding refusal"] };
        self.compare(name, aspects[0], &expected.to_string(), &code.to_string());
        if answer["accepted"] != true {
            return self.compare(name, aspects[1], answer["error"].as_str().unwrap_or_default(), text);
        }
        let expected: Vec<_> = answer["warnings"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        self.compare(name, "warnings at creation", &expected.join("\n"), &said.unwrap_or_default().join("\n"));
        if is_policy && answer["observed"] == true {
            let expected = answer["type_checking"]["expressionWarnings"].as_array().into_iter().flatten();
            let expected: Vec<_> = expected
                .map(|warning| {
                    let text = warning["warning"].as_str().unwrap_or_default().replace("<nanoseconds>", "");
                    format!("{}: {text}", warning["fieldRef"].as_str().unwrap_or_default())
                })
                .collect();
            let actual: Vec<_> = create::type_check(MINOR, &self.schemas, &self.names, &object)
                .into_iter()
                .map(|warning| format!("{}: {}", warning.field_ref, warning.warning))
                .collect();
            self.compare(name, "type-check warnings", &expected.join("\n"), &actual.join("\n"));
        }
    }

    fn compare(&mut self, name: &str, aspect: &'static str, expected: &str, actual: &str) {
        let line = self.line(name, aspect, &format!("the API server says {expected:?}, Palisade {actual:?}"));
        let tally = self.tallies.entry(aspect).or_default();
        tally.compared += 1;
        if expected == actual {
            tally.equal += 1;
        } else {
            tally.different.push(line);
        }
    }

    fn line(&self, name: &str, aspect: &str, what: &str) -> String {
        format!("{}/{} {name}: {aspect}: {what}", self.case.source, self.case.name)
    }
}

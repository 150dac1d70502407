//! Policies and bindings of cases: whether they are created, with which text they are refused, and which warnings the
//! check of their types gives.

use palisade_cel::schema::Schemas;
use palisade_harness::create::{self, Names, Refused};
use serde_json::Value as Json;

/// What a case has besides its requests.
#[derive(Clone, Copy, Debug)]
pub struct Policies<'a> {
    /// The minor version of the server that answered.
    pub minor: u8,
    /// The schemas of that minor's kinds.
    pub builtin: &'a Schemas,
    /// `crds.yaml`.
    pub crds: &'a [Json],
    /// `policy.yaml` and `binding.yaml`.
    pub objects: &'a [Json],
    /// `apiserver.json`.
    pub answers: &'a Json,
}

/// One thing that was compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// What: `policy accepted`, `policy refusal`, `warnings`, `type check`, `binding`.
    pub aspect: &'static str,
    /// The name of the policy or binding.
    pub name: String,
    /// What the API server said.
    pub expected: String,
    /// What the harness says; `no verdict: ...` never equals anything.
    pub actual: String,
}

impl Compared {
    /// Whether both said the same.
    pub fn is_equal(&self) -> bool {
        self.expected == self.actual
    }
}

/// Compares what the API server said of the policies and bindings of a case.
pub fn agree(case: &Policies<'_>) -> Vec<Compared> {
    let mut schemas = case.builtin.clone();
    let mut names = Names::default();
    names.add_builtin(schemas.kinds().cloned());
    for crd in case.crds {
        schemas.add_crd(crd);
        names.add_crd(crd);
    }
    let mut compared = Vec::new();
    for (list, kind) in [("policies", "ValidatingAdmissionPolicy"), ("bindings", "ValidatingAdmissionPolicyBinding")] {
        for answer in case.answers[list].as_array().into_iter().flatten() {
            let name = answer["name"].as_str().unwrap_or_default();
            let of_name = |object: &&Json| object["metadata"]["name"] == *name && object["kind"] == *kind;
            let Some(object) = case.objects.iter().find(of_name) else { continue };
            let mut object = object.clone();
            // What the API server does not serve was sent to it as v1.
            object["apiVersion"] = "admissionregistration.k8s.io/v1".into();
            one(case.minor, &object, answer, &schemas, &names, &mut compared);
        }
    }
    compared
}

fn one(minor: u8, object: &Json, answer: &Json, schemas: &Schemas, names: &Names, compared: &mut Vec<Compared>) {
    let is_policy = object["kind"] == "ValidatingAdmissionPolicy";
    let mut compare = |aspect, expected: String, actual: String| {
        let name = answer["name"].as_str().unwrap_or_default().to_owned();
        compared.push(Compared { aspect, name, expected, actual });
    };
    let said = create::create(minor, object, None);
    let (accepted, text) = match &said {
        Ok(_) => ("accepted".to_owned(), String::new()),
        Err(Refused::Status(status)) => (format!("refused with {}", status.code), status.message.clone()),
        Err(Refused::NoVerdict(why)) => (format!("no verdict: {why}"), format!("no verdict: {why}")),
    };
    let expected = match answer["accepted"].as_bool() {
        Some(true) => "accepted".to_owned(),
        _ => format!("refused with {}", answer["http_status"]),
    };
    let refused = expected != "accepted";
    compare(if is_policy { "policy accepted" } else { "binding accepted" }, expected, accepted);
    if refused {
        let expected = answer["error"].as_str().unwrap_or_default().to_owned();
        return compare(if is_policy { "policy refusal" } else { "binding refusal" }, expected, text);
    }
    let lines = |texts: Vec<String>| texts.join("\n");
    let expected = answer["warnings"].as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned);
    compare("warnings", lines(expected.collect()), lines(said.unwrap_or_default()));
    if is_policy && answer["observed"] == true {
        let expected = answer["type_checking"]["expressionWarnings"].as_array().into_iter().flatten().map(|warning| {
            let text = warning["warning"].as_str().unwrap_or_default().replace("<nanoseconds>", "");
            format!("{}: {text}", warning["fieldRef"].as_str().unwrap_or_default())
        });
        let actual = create::type_check(minor, schemas, names, object)
            .into_iter()
            .map(|warning| format!("{}: {}", warning.field_ref, warning.warning));
        compare("type check", lines(expected.collect()), lines(actual.collect()));
    }
}

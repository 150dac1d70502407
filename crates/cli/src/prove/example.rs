//! A request that refutes a statement: evaluated, and as small as possible.

use std::collections::BTreeSet;

use palisade_admission::requests::Operation;
use palisade_gate::{Decision, ValidationRequest, Validator, Violation};
use palisade_kube_json::json::set;
use serde_json::{Map, Value as Json, json};

use super::side::Side;

/// A pod that one version of a profile admits, and the other one denies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The operation.
    pub operation: Operation,
    /// The user, the group, the namespace, and other parts of the request.
    request: Json,
    /// The pod.
    pub object: Json,
    /// The pod before an update; null on creation.
    pub old_object: Json,
    /// The parameters of the namespace; null if the profile has none.
    pub params: Json,
    /// The violations.
    pub violations: Vec<Violation>,
}

impl Example {
    /// The example with its violations, if one version admits the request, and the other one denies it by a check that is
    /// not in `compared`: as small as possible, and like a pod that complies, if that makes no difference.
    pub fn confirmed(
        operation: Operation,
        request: palisade_prove::Request,
        [admits, denies]: [&Side; 2],
        compared: &BTreeSet<String>,
    ) -> Option<Self> {
        let mut variables = request.variables;
        let mut take = |name: &str| variables.remove(name).unwrap_or_default();
        let mut found = Self {
            operation,
            request: take("request"),
            object: take("object"),
            old_object: take("oldObject"),
            params: take("params"),
            violations: Vec::new(),
        };
        // An empty text stands for any text.
        if found.request["namespace"] == "" {
            set(&mut found.request, &["namespace"], "example");
        }
        for pod in [&mut found.object, &mut found.old_object] {
            if let Some(pod) = pod.as_object_mut() {
                pod.extend([("apiVersion".to_owned(), json!("v1")), ("kind".to_owned(), json!("Pod"))]);
            }
        }
        let mut parts_of_found = found.object.clone();
        for exempting in ["os", "hostUsers"] {
            removed(&mut parts_of_found, &[Ok("spec".to_owned()), Ok(exempting.to_owned())]);
        }
        let usual = [denies, admits].map(|side| {
            let mut usual = Self { object: side.complying.clone(), ..found.clone() };
            add(&mut usual.object, &parts_of_found);
            usual
        });
        let judged = |of: Self| of.judged([&admits.policies, &denies.policies], compared);
        let mut example = usual.into_iter().chain([found]).find_map(judged)?;
        for part in [Self::object_mut, Self::old_object_mut] {
            let mut paths = Vec::new();
            parts(part(&mut example), &mut Vec::new(), &mut paths);
            for path in paths {
                let mut smaller = example.clone();
                if removed(part(&mut smaller), &path)
                    && let Some(smaller) = judged(smaller)
                {
                    example = smaller;
                }
            }
        }
        Some(example)
    }

    fn object_mut(&mut self) -> &mut Json {
        &mut self.object
    }

    fn old_object_mut(&mut self) -> &mut Json {
        &mut self.old_object
    }

    fn judged(mut self, [admits, denies]: [&[Validator]; 2], compared: &BTreeSet<String>) -> Option<Self> {
        let is_admitted = violations(admits, &self)?.is_empty();
        self.violations = violations(denies, &self)?;
        let is_new = self.violations.iter().any(|one| !compared.contains(&one.check));
        (is_admitted && is_new).then_some(self)
    }

    /// As JSON, without the rest of the request.
    pub fn json(&self) -> Json {
        let mut json = Map::from_iter([("operation".to_owned(), json!(self.operation.name()))]);
        for (name, value) in [("object", &self.object), ("oldObject", &self.old_object), ("params", &self.params)] {
            if !value.is_null() {
                json.insert(name.to_owned(), value.clone());
            }
        }
        let violations = self.violations.iter();
        let violations = violations.map(|one| json!({"check": one.check, "message": one.message})).collect();
        json.insert("violations".to_owned(), violations);
        Json::Object(json)
    }
}

/// The violations of a request. `None` if a policy gives no verdict on it: an expression fails, so that the API server
/// denies it without naming a check.
fn violations(policies: &[Validator], example: &Example) -> Option<Vec<Violation>> {
    let text = |pointer: &str| example.request.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
    let groups = example.request.pointer("/userInfo/groups").and_then(Json::as_array);
    let groups: Vec<_> = groups.into_iter().flatten().filter_map(Json::as_str).collect();
    let mut all = Vec::new();
    for policy in policies {
        let decision = policy.evaluate(&ValidationRequest {
            namespace: text("/namespace"),
            operation: example.operation,
            user: text("/userInfo/username"),
            groups: &groups,
            old_object: &example.old_object,
            params: (!example.params.is_null()).then_some(&example.params),
            ..ValidationRequest::create("Pod", &example.object)
        });
        match decision.ok()? {
            Decision::Admit => {}
            Decision::Deny { violations, .. } if violations.is_empty() => return None,
            Decision::Deny { violations, .. } => all.extend(violations),
        }
    }
    Some(all)
}

/// Adds what another value has. Empty texts of the other one stand for any text.
fn add(to: &mut Json, other: &Json) {
    match (to, other) {
        (Json::Object(to), Json::Object(other)) => {
            for (key, value) in other {
                add(to.entry(key.clone()).or_insert(Json::Null), value);
            }
        }
        (Json::Array(to), Json::Array(other)) => {
            let missing = other.iter().skip(to.len()).cloned().collect::<Vec<_>>();
            to.iter_mut().zip(other).for_each(|(to, other)| add(to, other));
            to.extend(missing);
        }
        (Json::String(_), Json::String(other)) if other.is_empty() => {}
        (to, other) => *to = other.clone(),
    }
}

/// A key of an object, or an index of a list.
type Step = Result<String, usize>;

/// The paths of all parts that can be removed: the last elements first, and each whole before its parts.
fn parts(of: &Json, at: &mut Vec<Step>, paths: &mut Vec<Vec<Step>>) {
    let steps: Vec<(Step, &Json)> = match of {
        Json::Object(fields) => fields.iter().map(|(key, value)| (Ok(key.clone()), value)).collect(),
        Json::Array(elements) => elements.iter().enumerate().rev().map(|(index, value)| (Err(index), value)).collect(),
        _ => return,
    };
    for (step, value) in steps {
        at.push(step);
        if !at.iter().all(|step| step.as_ref().is_ok_and(|key| key == "apiVersion" || key == "kind")) {
            paths.push(at.clone());
        }
        parts(value, at, paths);
        at.pop();
    }
}

/// Removes a part; false if it is gone already.
fn removed(of: &mut Json, path: &[Step]) -> bool {
    match (path, of) {
        ([Ok(key)], Json::Object(fields)) => fields.remove(key).is_some(),
        ([Err(index)], Json::Array(elements)) if *index < elements.len() => {
            elements.remove(*index);
            true
        }
        ([Ok(key), rest @ ..], Json::Object(fields)) => fields.get_mut(key).is_some_and(|of| removed(of, rest)),
        ([Err(index), rest @ ..], Json::Array(elements)) => {
            elements.get_mut(*index).is_some_and(|of| removed(of, rest))
        }
        _ => false,
    }
}

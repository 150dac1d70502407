//! # tolerations
//!
//! A taint keeps pods off a node, for example a node of the control plane or of another tenant. A toleration allows a
//! pod on it. Each toleration of a pod must be covered by one toleration of the profile's list. A listed toleration
//! with the operator `Exists` covers any value, without an effect it covers all effects, and without a key it covers
//! all keys.
//!
//! The API server adds two tolerations to every pod, for the taints `node.kubernetes.io/not-ready` and
//! `node.kubernetes.io/unreachable` with the effect NoExecute. They determine how long a pod stays on a failed node and
//! give access to no node. They are always allowed. List the tolerations that the DaemonSet controller, a runtime class
//! or the admission plugin PodTolerationRestriction adds, if tenants may have them.
//!
//! ## If your pod was denied
//!
//! Remove the toleration, or narrow it to one that the message lists: with a key, a value and an effect. A toleration
//! without a key and with the operator `Exists` tolerates all taints.

use serde_json::{Value as Json, json};

use crate::settings::{AllowedToleration, TolerationOperator};
use crate::{Check, Diagnostic, Field, FindingScope, Lowering, Meaning, Resolve, Rule, Template, Values, cel, pod};

/// The tolerations that the API server adds (admission plugin DefaultTolerationSeconds).
const ADDED: &str = "t.?key.orValue('') in ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'] \
                     && t.?effect.orValue('') == 'NoExecute'";

/// The check.
pub static CHECK: Check = Check {
    id: "tolerations",
    title: "Tolerations",
    settings: &["scheduling.tolerations"],
    psp: None,
    pss: &[],
    fields: &[Field::Pod("tolerations")],
    fixtures: include_str!("tolerations.yaml"),
    compile: |settings, cx| {
        let allowed = settings.scheduling.tolerations.as_ref()?;
        if allowed.iter().any(covers_everything) {
            return None;
        }
        let (mut terms, mut says) = (vec![format!("({ADDED})")], Vec::new());
        for (index, toleration) in allowed.iter().enumerate() {
            if index > 0 {
                says.push(Ok(", ".to_owned()));
            }
            terms.push(lower(cx, &format!("spec.scheduling.tolerations[{index}]"), toleration, &mut says));
        }
        if says.is_empty() {
            says.push(Ok("none".to_owned()));
        }
        let says = joined(says);
        Some(Rule {
            variables: vec![(
                "tolerationsNotAllowed",
                format!("variables.spec.?tolerations.orValue([]).filter(t, !({}))", terms.join(" || ")),
            )],
            ..Rule::one(
                FindingScope::Pod,
                "variables.tolerationsNotAllowed.size() > 0",
                format!(
                    "'spec.tolerations of ' + variables.tolerationsNotAllowed.map(t, \
                     (t.?key.orValue('') == '' ? 'every taint' : t.key) \
                     + (t.?value.orValue('') == '' ? '' : '=' + t.value) \
                     + (t.?effect.orValue('') == '' ? '' : ':' + t.effect)).join(', ') \
                     + ' are not allowed, allowed: ' + {says}"
                ),
            )
        })
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let Some(allowed) = settings.scheduling.tolerations.as_ref() else { return false };
        let candidates = ["violation.palisade.invalid", "violation2.palisade.invalid"]
            .into_iter()
            .flat_map(|key| ["NoSchedule", "NoExecute"].map(|effect| (key, effect)));
        let bad = candidates
            .map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect}))
            .find(|bad| !allowed.iter().any(|one| covers_any_value(one, bad, values)));
        match bad {
            Some(bad) => {
                pod::set(pod, &["tolerations"], json!([bad]));
                true
            }
            None => false,
        }
    },
};

fn covers_everything(toleration: &AllowedToleration) -> bool {
    toleration.operator == TolerationOperator::Exists && toleration.key.is_none() && toleration.effect.is_none()
}

/// Whether a toleration of any value of this key is covered.
fn covers_any_value(allowed: &AllowedToleration, bad: &Json, values: &Values) -> bool {
    allowed.operator == TolerationOperator::Exists
        && allowed.key.as_ref().is_none_or(|key| bad["key"] == json!(key.resolve(values)))
        && allowed.effect.is_none_or(|effect| bad["effect"] == json!(effect))
}

/// A constant text, or one that differs by namespace.
type Part = Result<String, Template>;

/// CEL of type string: the parts one after another.
fn joined(parts: Vec<Part>) -> String {
    let (mut out, mut constant) = (Vec::new(), String::new());
    for part in parts {
        match part {
            Ok(text) => constant.push_str(&text),
            Err(template) => out.extend([cel::quote(&std::mem::take(&mut constant)), template.cel]),
        }
    }
    out.push(cel::quote(&constant));
    cel::concat(&out)
}

/// CEL of type bool: whether the toleration `t` is covered. A description of the allowed tolerations is added to
/// `says`.
fn lower(cx: &mut Lowering<'_>, path: &str, allowed: &AllowedToleration, says: &mut Vec<Part>) -> String {
    let AllowedToleration { key, operator, value, effect } = allowed;
    let is = |field: &str, part: &Part| match part {
        Ok(constant) => vec![format!("t.?{field}.orValue('') == {}", cel::quote(constant))],
        Err(Template { cel, filled }) => {
            let filled = (filled != "true").then(|| filled.clone());
            filled.into_iter().chain([format!("t.?{field}.orValue('') == {cel}")]).collect()
        }
    };
    let mut terms = Vec::new();
    match key {
        Some(key) => {
            let key = cx.text(&format!("{path}.key"), key, Meaning::Word);
            terms.extend(is("key", &key));
            says.push(key);
        }
        None => says.push(Ok("every taint".to_owned())),
    }
    match (operator, value) {
        (TolerationOperator::Exists, None) => {}
        (TolerationOperator::Equal, value) => {
            let value = value
                .as_ref()
                .map_or(Ok(String::new()), |value| cx.text(&format!("{path}.value"), value, Meaning::Word));
            // The API server takes an empty operator for this one.
            terms.push("t.?operator.orValue('') in ['', 'Equal']".to_owned());
            terms.extend(is("value", &value));
            says.extend([Ok("=".to_owned()), value]);
        }
        (TolerationOperator::Exists, Some(_)) => cx.report(
            Diagnostic::new(format!("{path}.value"), "is set beside the operator Exists")
                .help("remove it, or say operator: Equal"),
        ),
    }
    if key.is_none() && *operator == TolerationOperator::Equal {
        cx.report(Diagnostic::new(path, "has no key").help("set key, or set operator: Exists"));
    }
    if let Some(effect) = effect {
        let effect: &str = effect.into();
        terms.push(format!("t.?effect.orValue('') == {}", cel::quote(effect)));
        says.push(Ok(format!(":{effect}")));
    }
    format!("({})", terms.join(" && "))
}

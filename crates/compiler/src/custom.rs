//! Custom checks: the positions of their expressions in the policy and in the profile.
//!
//! Each is one variable, like a check of the catalogue. An expression has separate lines, so that a position in the
//! policy can be translated to its position in the profile, and so that a comment at its end ends with it.

use palisade_api::{
    CustomCheck, CustomDefault, CustomTarget, Diagnostic, Location, ToolSecurityProfileSpec, catalogue, names, objects,
};
use palisade_cel::{
    ast::{Expr, Node},
    format::Verbatim,
    parse::parse,
};
use palisade_checks::{DefaultValue, FieldDefault, Subject, cel};
use palisade_kube_json::field_path::FieldPath;

use crate::{
    ExpressionStyle,
    exceptions::{ExemptionScope, unless_lifted},
    kinds,
    style::SYNTAX,
};

/// A custom check in a profile and in its policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Custom {
    /// The check.
    pub check: CustomCheck,
    /// Its place in the profile: `spec.customChecks[2]`.
    pub path: FieldPath,
    lift: ExemptionScope,
    /// CEL of type list(string): the violations.
    violations: String,
    /// The lines of `violations` on which the expression and the message's expression begin; 0 for none.
    lines: [usize; 2],
}

/// The variable of a policy for objects that holds for the requests that a check evaluates.
pub fn applies(id: &str) -> String {
    format!("applies_{id}")
}

/// Placeholders for the expression and the message's expression, while the text around them is written.
const NAMES: [&str; 2] = ["palisade_expression", "palisade_message"];

impl Custom {
    /// The name of the variable. No other variable's name has an underscore.
    pub fn variable(&self) -> String {
        format!("custom_{}", self.check.id)
    }

    /// Its expression, and that of its message.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &str> {
        [self.check.expression.as_str()].into_iter().chain(self.check.message_expression.as_deref())
    }

    /// Whether an expression may read parameters: it has the name, be it of a loop variable. A field can have it, too.
    pub fn mentions_params(&self) -> bool {
        let is_name = |node: &Node| matches!(&node.expr, Expr::Ident(name) if name.trim_start_matches('.') == "params");
        let reads = |text: &str| parse(text, SYNTAX).map_or(true, |tree| tree.root.descendants().any(is_name));
        self.expressions().any(|expression| expression.contains("params") && reads(expression))
    }

    /// The default of the check for an unset field, if it has one.
    pub(crate) fn field_default(&self) -> Option<FieldDefault> {
        let CustomDefault { path, value } = self.check.default.as_ref()?;
        let path: Vec<_> = path.split('.').collect();
        let of = match self.check.target {
            CustomTarget::Pod => Subject::Pod,
            CustomTarget::Containers if NOT_OF_EPHEMERAL.contains(&path[0]) => Subject::LastingContainer,
            CustomTarget::Containers => Subject::Container,
            CustomTarget::Volumes | CustomTarget::Object => return None,
        };
        Some(FieldDefault::new(of, &path, DefaultValue::Constant(value.clone()), vec![]))
    }

    /// The same check with other expressions.
    pub(crate) fn with_expressions(&self, expression: String, message: Option<String>, style: ExpressionStyle) -> Self {
        let check = CustomCheck { expression, message_expression: message, ..self.check.clone() };
        if check == self.check { self.clone() } else { Self::new(&check, self.path.clone(), self.lift, style) }
    }

    /// `lift` says whether exceptions lift the check in some namespace.
    fn new(check: &CustomCheck, path: FieldPath, lift: ExemptionScope, style: ExpressionStyle) -> Self {
        let CustomCheck { id, target, expression, message, message_expression, .. } = check;
        let [complies, says] = NAMES;
        let of_object = *target == CustomTarget::Object;
        let message = match message_expression {
            Some(_) => says.to_owned(),
            None => cel::quote(message.as_deref().unwrap_or_default()),
        };
        let of_each = |list: &str, item: &str| {
            let unless = if (lift, item) == (ExemptionScope::Containers, "container") {
                unless_lifted(id, item)
            } else {
                String::new()
            };
            format!(
                "variables.{list}.map({item}, !{complies}{unless}, '[{id}] {item} \"' + {item}.name + '\": ' + {message})"
            )
        };
        let found = match target {
            CustomTarget::Pod => format!("{complies} ? [] : ['[{id}] pod: ' + {message}]"),
            CustomTarget::Containers => of_each("containers", "container"),
            CustomTarget::Volumes => of_each("volumes", "volume"),
            // The loops hide the types of the kinds that the other checks of the policy are about: in a policy for
            // several kinds, the API server checks each expression against the schema of each kind.
            CustomTarget::Object => {
                let reads_old = [Some(expression), message_expression.as_ref()]
                    .map(|text| text.is_some_and(|text| text.contains("oldObject")));
                let complies = if reads_old[0] {
                    format!("[dyn(oldObject)].all(oldObject, {complies})")
                } else {
                    complies.to_owned()
                };
                let message = if reads_old[1] {
                    format!("[dyn(oldObject)].map(oldObject, {message})[0]")
                } else {
                    message.clone()
                };
                format!("[dyn(object)].map(object, !{complies}, '[{id}] ' + request.kind.kind + ': ' + {message})")
            }
        };
        let mut lowered = if of_object {
            // It has no probes.
            found
        } else {
            // The controller's probe pods comply with the checks of the catalogue; nobody knows a pod that complies with
            // custom checks.
            format!("request.namespace == '{}' ? [] : ({found})", names::PROBE_NAMESPACE)
        };
        if lift != ExemptionScope::Never {
            lowered = format!("'{id}' in variables.excepted ? [] : ({lowered})");
        }
        if of_object {
            lowered = format!("!variables.{} ? [] : ({lowered})", applies(id));
        }
        let texts = [Some(expression.as_str()), message_expression.as_deref()];
        let verbatim: Vec<_> =
            NAMES.into_iter().zip(texts).filter_map(|(name, text)| Some(Verbatim { name, text: text? })).collect();
        let about = format!("check {id}: {path} of the profile; docs/custom-checks.md");
        let printed = style.around(&about, &lowered, &verbatim);
        let line = |index: usize| printed.lines.get(index).copied().unwrap_or_default();
        Self { check: check.clone(), path, lift, lines: [line(0), line(1)], violations: printed.text }
    }

    /// CEL of type list(string): the violations.
    pub(crate) fn violations(&self) -> &str {
        &self.violations
    }

    /// Translates a position in the variable's expression to its location in the profile.
    pub fn relocate(&self, position: Option<(usize, usize)>) -> Location {
        let fields = ["expression", "messageExpression"].into_iter().zip(self.expressions()).zip(self.lines);
        let within = |((field, text), first): ((&str, &str), usize)| {
            let (line, column) = position?;
            let line = line.checked_sub(first).filter(|line| *line <= text.trim_end().matches('\n').count())?;
            Some(Location { position: Some((line + 1, column)), ..self.path.child(field).into() })
        };
        fields.into_iter().find_map(within).unwrap_or_else(|| self.path.child("expression").into())
    }
}

/// The custom checks of a profile, and the errors in them outside their expressions.
pub(crate) fn customs(spec: &ToolSecurityProfileSpec, style: ExpressionStyle) -> (Vec<Custom>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut customs: Vec<Custom> = Vec::new();
    for (index, check) in spec.custom_checks.iter().enumerate() {
        let path = FieldPath::from("spec.customChecks").index(index);
        let mut say = |path: FieldPath, message: String, help: &str| {
            diagnostics.push(Diagnostic::new(path, message).help(help));
        };
        let well_formed = check.id.len() <= 63
            && check.id.starts_with(|first: char| first.is_ascii_lowercase())
            && check.id.chars().all(|c| c.is_ascii_alphanumeric());
        if !well_formed {
            say(
                path.child("id"),
                format!("{:?} is not a valid id", check.id),
                "an id has at most 63 letters and digits, and begins with a lower-case letter",
            );
        } else if catalogue::ALL
            .iter()
            .map(|known| known.id)
            .chain(objects::ALL.iter().map(|known| known.id))
            .any(|id| id == check.id)
        {
            say(path.child("id"), format!("{} is the id of a built-in check", check.id), "choose another id");
        } else if customs.iter().any(|other| other.check.id == check.id) {
            say(path.child("id"), format!("{} is the id of another custom check", check.id), "choose another id");
        }
        if check.message.is_some() == check.message_expression.is_some() {
            let found = if check.message.is_some() { "both are" } else { "neither is" };
            say(
                path.clone(),
                format!("exactly one of message and messageExpression must be set; {found}"),
                "describe how to fix the violation",
            );
        }
        for (path, message, help) in kinds::mistakes(check, &path) {
            say(path, message, help);
        }
        if let Some((field, message, help)) = check.default.as_ref().and_then(|one| of_default(check.target, one)) {
            let path = path.child("default");
            say(field.map_or(path.clone(), |field| path.child(field)), message, help);
        }
        customs.push(Custom::new(check, path, ExemptionScope::of(spec, &check.id), style));
    }
    (customs, diagnostics)
}

/// The error in a default, independent of the check: its field, the message, and advice.
fn of_default(target: CustomTarget, default: &CustomDefault) -> Option<(Option<&'static str>, String, &'static str)> {
    let CustomDefault { path, value } = default;
    let first = path.split('.').next().unwrap_or_default();
    let key = |key: &str| {
        key.starts_with(|first: char| first.is_ascii_lowercase()) && key.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let of_list = |list: &[&str]| list.contains(&first);
    if matches!(target, CustomTarget::Volumes | CustomTarget::Object) {
        return Some((None, "a check of volumes or objects cannot have a default".to_owned(), "remove the default"));
    }
    if path.len() > 256 || !path.split('.').all(key) {
        let help = "write names of fields with dots between them, for example securityContext.procMount; to default an element \
                    of a list or map, set the whole list or map";
        return Some((Some("path"), format!("{path:?} is not a field"), help));
    }
    if target == CustomTarget::Pod && of_list(&EARLY) {
        let help =
            "the API server reads it before pods are mutated; require it in the check, and set it in pod templates";
        return Some((Some("path"), format!("{first} cannot have a default"), help));
    }
    if target == CustomTarget::Containers && of_list(&NOT_OF_ALL) {
        let help = "not all init containers can have it; require it in the check, and set it in pod templates";
        return Some((Some("path"), format!("{first} cannot have a default"), help));
    }
    let empty = value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(serde_json::Map::is_empty);
    if value.is_null() || empty {
        return Some((
            Some("value"),
            format!("{value} has the same meaning as an unset field"),
            "write the default value",
        ));
    }
    (value.to_string().len() > MAX_VALUE)
        .then(|| (Some("value"), format!("longer than {MAX_VALUE} bytes as JSON"), "make it shorter"))
}

/// The longest value of a default, in bytes as JSON: it is part of the policy for each kind of container.
const MAX_VALUE: usize = 4096;
/// Fields of a container that an ephemeral one cannot have (`allowedEphemeralContainerFields` in Kubernetes
/// `pkg/apis/core/validation`), and that all others can.
const NOT_OF_EPHEMERAL: [&str; 2] = ["ports", "resources"];
/// Fields that only some containers can have (`validateInitContainers`).
const NOT_OF_ALL: [&str; 7] = [
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "startupProbe",
];
/// Fields of a pod that admission plugins read before mutating policies and webhooks run, and the lists of containers,
/// because those plugins would not see a new one.
const EARLY: [&str; 5] =
    ["automountServiceAccountToken", "containers", "ephemeralContainers", "initContainers", "priorityClassName"];
#[cfg(test)]
mod tests {
    use super::*;

    fn custom(target: CustomTarget, lift: ExemptionScope, style: ExpressionStyle) -> Custom {
        let check = CustomCheck {
            id: "own".to_owned(),
            target,
            expression: "first\n&& second // why\n\n\n\n\n\n".to_owned(),
            message: None,
            message_expression: Some("'a'\n+ 'b'".to_owned()),
            kinds: Vec::new(),
            default: None,
        };
        Custom::new(&check, "spec.customChecks[0]".into(), lift, style)
    }

    #[test]
    fn position_in_the_policy_maps_to_the_profile_field() {
        let targets = [CustomTarget::Pod, CustomTarget::Containers, CustomTarget::Volumes, CustomTarget::Object];
        let styles = [ExpressionStyle::Readable, ExpressionStyle::AsLowered];
        let all = targets.into_iter().flat_map(|target| styles.map(|style| (target, style)));
        for (custom, style) in all.flat_map(|(target, style)| {
            [ExemptionScope::Never, ExemptionScope::Whole, ExemptionScope::Containers]
                .map(|lift| (custom(target, lift, style), style))
        }) {
            let violations = custom.violations();
            let cases = [
                ("second", "spec.customChecks[0].expression:2:"),
                ("'b'", "spec.customChecks[0].messageExpression:2:"),
                ("'a'", "spec.customChecks[0].messageExpression:1:"),
            ];
            for (text, expected) in cases {
                let (line, column) = violations
                    .lines()
                    .enumerate()
                    .find_map(|(line, of)| Some((line + 1, of.find(text)? + 1)))
                    .unwrap_or_default();
                assert_eq!(
                    custom.relocate(Some((line, column))).to_string(),
                    format!("{expected}{column}"),
                    "{violations}"
                );
            }
            assert_eq!(custom.relocate(None).to_string(), "spec.customChecks[0].expression");
            assert_eq!(custom.relocate(Some((1, 4))).to_string(), "spec.customChecks[0].expression");
            let comment = "// check own: spec.customChecks[0] of the profile; docs/custom-checks.md\n";
            assert_eq!(violations.starts_with(comment), style == ExpressionStyle::Readable, "{violations}");
        }
    }
}

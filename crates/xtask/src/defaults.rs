//! The defaults of a check, for its page.

use std::fmt::Write as _;

use palisade_checks::{
    Check, Condition, Constant, FieldDefault, Resolved, Settings, Subject, Values,
    settings::mutation::{AdditionalDefault, Defaults},
};
use serde_json::Value as Json;

use crate::{examples::Example, flow::flow};

/// The section of a page, with the example's settings; empty if the check has no defaults.
pub(crate) fn section(check: &Check, example: &Example) -> Result<String, serde_json::Error> {
    let mut settings: Settings = serde_json::from_value(example.settings.clone())?;
    let values: Values = example.parameters.iter().map(|(name, value)| (name.clone(), resolved(value))).collect();
    let declared = values.iter().map(|(name, value)| (name.clone(), value.kind())).collect();
    let by_itself = (check.defaults)(&settings, &declared);
    settings.mutation.defaults = Defaults::Secure;
    let defaults = (check.defaults)(&settings, &declared);
    if defaults.is_empty() {
        return Ok(String::new());
    }
    let mut out = "## Defaults\n\n".to_owned();
    for default in &defaults {
        let when = if by_itself.contains(default) { "" } else { "with `mutation.defaults: Secure`, " };
        let of = match default.of {
            Subject::Pod => "the pod",
            Subject::PodOrContainer => "the pod, and a new ephemeral container that does not inherit it",
            Subject::Container | Subject::LastingContainer => "each container",
        };
        let value = flow(&default.value.resolve(&values));
        let _ =
            writeln!(out, "- {when}`{}: {value}`, in {of}, if it is unset{}", default.path.join("."), unless(default));
    }
    let additional = additional(check);
    if let Some(additional) = additional {
        let _ = writeln!(
            out,
            "\n`mutation.additionalDefaults: [{additional}]` sets it even if this check does not require it."
        );
    }
    out.push_str(
        "\nThe values come from the settings below. A value that a pod sets is never changed. Windows pods and pod templates \
         get no defaults.\n\n",
    );
    Ok(out)
}

fn resolved(value: &Json) -> Resolved {
    match value {
        Json::Number(number) => Resolved::Integer(number.as_i64().unwrap_or_default()),
        Json::Bool(flag) => Resolved::Boolean(*flag),
        Json::Array(items) => Resolved::StringList(items.iter().filter_map(Json::as_str).map(str::to_owned).collect()),
        other => Resolved::String(other.as_str().unwrap_or_default().to_owned()),
    }
}

/// The additional default that the check sets without requiring it.
fn additional(check: &Check) -> Option<&'static str> {
    let all = [
        (AdditionalDefault::AllowPrivilegeEscalation, "AllowPrivilegeEscalation"),
        (AdditionalDefault::ReadOnlyRootFilesystem, "ReadOnlyRootFilesystem"),
        (AdditionalDefault::RunAsNonRoot, "RunAsNonRoot"),
        (AdditionalDefault::SeccompProfile, "SeccompProfile"),
    ];
    all.into_iter().find_map(|(additional, name)| {
        let mut settings = Settings::default();
        settings.mutation.additional_defaults.push(additional);
        (!(check.defaults)(&settings, &std::collections::BTreeMap::new()).is_empty()).then_some(name)
    })
}

/// The cases without a default.
fn unless(default: &FieldDefault) -> String {
    let places: Vec<_> = default.when.iter().filter_map(but).collect();
    if places.is_empty() { String::new() } else { format!("; but not if {}", places.join(", or if ")) }
}

fn but(condition: &Condition) -> Option<String> {
    let is = |path: &[&str], constant: &Constant| {
        let value = match constant {
            Constant::Flag(value) => value.to_string(),
            Constant::Integer(value) => value.to_string(),
        };
        format!("`{}: {value}`", path.join("."))
    };
    match condition {
        Condition::Setting(..) | Condition::NoException(_) | Condition::NotEmpty(_) | Condition::PodUnset(_) => None,
        Condition::NotZero(_) => Some("it would be 0 and root is not allowed".to_owned()),
        Condition::PodIsNot(path, constant) => Some(format!("the pod sets {}", is(path, constant))),
        Condition::NotAnnotated(key) => Some(format!("the pod has the annotation `{key}`")),
        Condition::ContainerIsNot(path, constant) => Some(format!("the container sets {}", is(path, constant))),
        Condition::ContainerLacks(path, texts) => {
            let texts: Vec<_> = texts.iter().map(|text| format!("`{}`", text.0)).collect();
            Some(format!("`{}` contains {}", path.join("."), texts.join(" or ")))
        }
        Condition::NoContainerIs(path, constant) => Some(format!("a container sets {}", is(path, constant))),
        Condition::NoContainerHas(path) => Some(format!("a container sets `{}`", path.join("."))),
        Condition::Any(some) => some.last().and_then(but),
    }
}

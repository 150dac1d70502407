//! Pods that are free of what a check asks for: those for Windows, and those in a separate user namespace.

use serde_json::{Value as Json, json};

use crate::{
    Flag, Lowering, Resolve, Values,
    settings::{Settings, WindowsRule},
};

/// `violated`, but not by a pod for Windows where such pods are exempt.
pub(crate) fn unless_windows(settings: &Settings, violated: &str) -> String {
    match settings.privileges.windows {
        Some(WindowsRule::Exempt) => format!("variables.spec.?os.?name.orValue('') != 'windows' && {violated}"),
        Some(WindowsRule::Check) | None => violated.to_owned(),
    }
}

/// `violated`, but not by a pod in a separate user namespace where the flag at `path` frees such pods.
pub(crate) fn unless_user_namespace(cx: &mut Lowering<'_>, path: &str, relax: Option<&Flag>, violated: &str) -> String {
    let of_node = "variables.spec.?hostUsers.orValue(true)";
    match relax.map(|relax| cx.flag(path, relax)) {
        None | Some(Ok(false)) => violated.to_owned(),
        Some(Ok(true)) => format!("{of_node} && {violated}"),
        Some(Err(differs)) => format!("(!{differs} || {of_node}) && {violated}"),
    }
}

/// Whether a pod is in a separate user namespace, and the flag frees such pods in a namespace.
pub(crate) fn is_relaxed(relax: Option<&Flag>, values: &Values, pod: &Json) -> bool {
    relax.is_some_and(|relax| relax.resolve(values)) && pod["spec"]["hostUsers"] == json!(false)
}

//! Shared code of the checks of seccomp and AppArmor profiles: types, and the names of profiles of type Localhost.

use super::defaulted::first_text;
use crate::{Lowering, Meaning, Text, TextList, cel, defaults::Declared, settings::any};

/// The allowed types and profiles, lowered to CEL. `None` allows every one.
pub(crate) struct Profiles {
    types: Option<TextList>,
    localhost: Option<TextList>,
}

impl Profiles {
    pub(crate) fn lower(cx: &mut Lowering<'_>, path: &str, types: &[Text], localhost: &[Text]) -> Self {
        Self {
            types: (!any(types)).then(|| cx.texts(&format!("{path}.allowed"), types, Meaning::Word)),
            localhost: (!any(localhost))
                .then(|| cx.texts(&format!("{path}.localhostProfiles"), localhost, Meaning::Profile)),
        }
    }

    /// Whether nothing is forbidden.
    pub(crate) fn allow_anything(&self) -> bool {
        self.types.is_none() && self.localhost.is_none()
    }

    /// CEL of type bool: whether a profile in a field is forbidden.
    pub(crate) fn forbid(&self, profile: &str) -> String {
        self.forbidden(
            &format!("{profile}.type"),
            &format!("{profile}.type == 'Localhost'"),
            &format!("{profile}.?localhostProfile.orValue('')"),
        )
    }

    /// CEL of type bool: whether a profile in an annotation is forbidden. `defaults` are the texts by which an
    /// annotation names the profile of the runtime.
    pub(crate) fn forbid_annotation(&self, value: &str, defaults: &[&str]) -> String {
        let local = format!("{value}.startsWith('localhost/')");
        self.forbidden(
            &format!(
                "({value} in {} ? 'RuntimeDefault' : {local} ? 'Localhost' : {value} == 'unconfined' ? 'Unconfined' : '')",
                cel::list(defaults)
            ),
            &local,
            &format!("{value}.substring(10)"),
        )
    }

    fn forbidden(&self, kind: &str, is_localhost: &str, name: &str) -> String {
        let mut terms = Vec::new();
        if let Some(types) = &self.types {
            terms.push(format!("!({kind} in {})", types.cel()));
        }
        if let Some(localhost) = &self.localhost {
            terms.push(format!("({is_localhost} && !({name} in {}))", localhost.cel()));
        }
        cel::any(&terms)
    }

    /// CEL of type string: the profile in a field.
    pub(crate) fn found(profile: &str) -> String {
        format!(
            "{profile}.type + ({profile}.?localhostProfile.orValue('') == '' ? '' : ' ' + {profile}.localhostProfile)"
        )
    }

    /// CEL of type string that names what is allowed.
    pub(crate) fn says(&self) -> String {
        let types = self.types.as_ref().map_or_else(|| cel::quote("any"), TextList::says);
        match &self.localhost {
            None => types,
            Some(localhost) => format!("{types} + ', Localhost profiles: ' + {}", localhost.says()),
        }
    }
}

/// A profile that a pod which complies may set: of the first allowed type of which there is one.
pub(crate) fn first(types: &[String], localhost: &[String]) -> Option<serde_json::Value> {
    types.iter().find_map(|kind| match kind.as_str() {
        "*" => Some(serde_json::json!({"type": "RuntimeDefault"})),
        "Localhost" => {
            let profile = localhost.first()?.replace('*', "probe.json");
            Some(serde_json::json!({"type": "Localhost", "localhostProfile": profile}))
        }
        other => Some(serde_json::json!({"type": other})),
    })
}

/// The profile of the runtime, as it is defaulted.
pub(crate) fn of_runtime() -> Vec<(&'static str, Text)> {
    vec![("type", "RuntimeDefault".into())]
}

/// The profile that is defaulted: the first that is allowed and confines; `None` if there is none, or none that is the
/// same kind of thing in each namespace.
pub(crate) fn defaulted(types: &[Text], localhost: &[Text], declared: &Declared) -> Option<Vec<(&'static str, Text)>> {
    types.iter().find_map(|kind| match kind.0.as_str() {
        "*" | "RuntimeDefault" => Some(of_runtime()),
        "Localhost" => Some(vec![("type", "Localhost".into()), ("localhostProfile", first_text(localhost, declared)?)]),
        _ => None,
    })
}

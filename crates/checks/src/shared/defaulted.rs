//! The defaults of fields that checks demand.

use crate::{
    Condition, Flag, ParameterType, Settings, Text,
    defaults::Declared,
    settings::mutation::{AdditionalDefault, Defaults},
    value::whole_reference,
};

/// The conditions, in addition to those of the field, under which a field is defaulted; `None` if it never is.
/// `demanded` is the setting of a check that demands the field if the setting is equal to `wanted`.
pub(crate) fn defaulted_when(
    settings: &Settings,
    additional: AdditionalDefault,
    demanded: Option<&Flag>,
    wanted: bool,
) -> Option<Vec<Condition>> {
    if settings.mutation.additional_defaults.contains(&additional) {
        return Some(vec![]);
    }
    where_flag(demanded.filter(|_| is_secure(settings)), wanted)
}

/// Whether what checks demand is defaulted.
pub(crate) fn is_secure(settings: &Settings) -> bool {
    settings.mutation.defaults == Defaults::Secure
}

/// Whether an element of a list refers to a list that differs by namespace.
fn is_list(text: &Text, declared: &Declared) -> bool {
    whole_reference(&text.0).is_some_and(|name| declared.get(name) == Some(&ParameterType::StringList))
}

/// The first of a list, if that is one text in each namespace.
pub(crate) fn first_text(texts: &[Text], declared: &Declared) -> Option<Text> {
    texts.first().filter(|text| !is_list(text, declared) && text.0 != "*").cloned()
}

/// Whether a list may have no element in some namespace.
pub(crate) fn may_be_empty(texts: &[Text], declared: &Declared) -> bool {
    texts.iter().all(|text| is_list(text, declared))
}

/// The conditions for a default that a flag demands (`wanted`) or forbids; `None` if it never applies.
pub(crate) fn where_flag(flag: Option<&Flag>, wanted: bool) -> Option<Vec<Condition>> {
    match flag? {
        Flag::Constant(value) => (*value == wanted).then(Vec::new),
        flag @ Flag::Parameter(_) => Some(vec![Condition::Setting(flag.clone(), wanted)]),
    }
}

//! Classes of objects, which select the controllers that serve them.

use crate::{Kinds, Lowering, Meaning, ObjectRule, Text, cel, settings::any};

/// The classes of an object that has them in an annotation and in a field of its spec: CEL of type list(string). An unset
/// class is the empty string.
pub(super) fn by_annotation_or_field(annotation: &str, field: &str) -> String {
    let by_annotation = format!("variables.object.metadata.?annotations[?{}]", cel::quote(annotation));
    let by_field = format!("variables.object.?spec.?{field}");
    format!(
        "({by_annotation}.hasValue() ? [string({by_annotation}.orValue(''))] : []) \
         + ({by_field}.hasValue() || !{by_annotation}.hasValue() ? [string({by_field}.orValue(''))] : [])"
    )
}

/// Forbids all classes except those in a setting. `found` is CEL of type list(string).
pub(super) fn only(
    of: impl Into<Kinds>,
    (setting, field): (&str, &str),
    found: &str,
    classes: &[Text],
    cx: &mut Lowering<'_>,
    rule: &mut ObjectRule,
) {
    if any(classes) {
        return;
    }
    let allowed = cx.texts(setting, classes, Meaning::Word);
    let bad = format!("({found}).filter(c, !(c in {})).map(c, c == '' ? '(unset)' : c)", allowed.cel());
    rule.forbid(of, (field, "classes"), &bad, &allowed.says_unset());
}

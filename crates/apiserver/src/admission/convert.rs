//! Objects in other versions than they were sent in, as `matchPolicy: Equivalent` shows them.

use palisade_cel::schema::Kind;
use palisade_objects::json::Change as _;
use serde_json::Value as Json;

use super::matching::MatchError;

/// An object in another version of its kind: of a definition without a webhook whose versions have the same schema
/// nothing but `apiVersion` is different. How built-in kinds differ is not known here.
///
/// # Errors
/// It cannot be told.
pub(crate) fn convert<'a>(
    object: &Json,
    from: &Kind,
    to: &Kind,
    mut definitions: impl Iterator<Item = &'a Json>,
) -> Result<Json, MatchError> {
    let unknown = || MatchError::NoVerdict(format!("how {from} becomes {to} is not known"));
    let of_kind = |crd: &&Json| {
        from.group == to.group
            && from.kind == to.kind
            && crd["spec"]["group"] == *to.group
            && crd["spec"]["names"]["kind"] == *to.kind
    };
    let crd = definitions.find(of_kind).ok_or_else(unknown)?;
    let schema = |version: &str| {
        crd["spec"]["versions"].as_array()?.iter().find(|one| one["name"] == *version).map(|one| &one["schema"])
    };
    let by_name = matches!(crd["spec"]["conversion"]["strategy"].as_str(), None | Some("None"));
    if !by_name || schema(&from.version) != schema(&to.version) {
        return Err(unknown());
    }
    let mut object = object.clone();
    *object.at_mut(&["apiVersion"]) = format!("{}/{}", to.group, to.version).into();
    Ok(object)
}

//! Objects in another version than they were sent in, as `matchPolicy: Equivalent` shows them.

use palisade_cel::schema::Kind;
use palisade_kube_json::json::Change as _;
use serde_json::Value as Json;

use super::refusal::MatchError;

/// An object in another version of its kind. If a definition has no webhook and its versions have the same schema, only
/// `apiVersion` differs. How built-in kinds differ is unknown here.
///
/// # Errors
/// The other version is unknown.
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

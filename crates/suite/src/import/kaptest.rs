use crate::{Suite, load::Loader};
use palisade_manifest::{Object, Problem};
pub(crate) fn is(_: &Object<'_>) -> bool {
    false
}
pub(crate) fn suite(loader: Loader<'_>) -> Result<Suite, Vec<Problem>> {
    Err(loader.problems)
}

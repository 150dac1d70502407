//! init
use palisade_manifest::{Problem, Source};
use std::sync::Arc;
/// x
pub fn scaffold(_: &Arc<Source>, _: &str, _: u8) -> Result<String, Vec<Problem>> {
    Err(vec![])
}

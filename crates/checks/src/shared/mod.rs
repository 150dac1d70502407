//! Code that several checks of the catalogue share.

pub(crate) mod cidrs;
pub(crate) mod defaulted;
pub(crate) mod exempt;
pub(crate) mod ids;
pub(crate) mod profiles;
pub(crate) mod ranges;

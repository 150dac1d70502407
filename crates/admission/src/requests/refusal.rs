//! How a request is rejected, and why there may be no verdict on it.

use palisade_cel::quote;

use super::{Denial, Request};
use crate::{
    create::{self, Status},
    objects::Refused,
};

/// Why something cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MatchError {
    /// The API server says this, and follows `failurePolicy`.
    Configuration(String),
    /// Nothing can be said offline.
    NoVerdict(String),
}

/// Why a request ends here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Denied(Vec<Denial>),
    NoVerdict(String),
}

/// The text of an error of the reason Forbidden (`NewForbidden` in apimachinery `pkg/api/errors`).
pub(crate) fn forbidden(request: &Request, cause: &str) -> String {
    format!("{} {} is forbidden: {cause}", request.resource.group_resource(), quote(request.shown_name()))
}

/// An error of the API server itself.
pub(super) fn internal(text: &str) -> Denial {
    let message = format!("Internal error occurred: {text}");
    Denial { cause: text.to_owned(), reason: "InternalError".to_owned(), ..failed(&message) }
}

/// An error that the API server did not foresee.
pub(super) fn failed(text: &str) -> Denial {
    let message = text.to_owned();
    Denial {
        policy: String::new(),
        binding: None,
        param: None,
        cause: message.clone(),
        said: message.clone(),
        message,
        reason: String::new(),
        code: 500,
        causes: Vec::new(),
    }
}

/// The answer to a request that no policy matches.
pub(super) fn stop(refused: Refused) -> Stop {
    denial(refused).map_or_else(Stop::NoVerdict, |denial| Stop::Denied(vec![denial]))
}

/// The client's message for a denial that no policy causes.
///
/// # Errors
/// Why there is no verdict.
pub(super) fn denial(refused: Refused) -> Result<Denial, String> {
    match create::Refused::from(refused) {
        create::Refused::NoVerdict(why) => Err(why),
        create::Refused::Status(Status { code, reason, message, causes }) => {
            Ok(Denial { reason, code, causes, ..failed(&message) })
        }
    }
}

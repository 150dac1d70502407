//! The time by the clock of an API server.

use http::{Request, header::DATE};
use k8s_openapi::jiff::{Timestamp, fmt::rfc2822};
use kube::{Client, client::Body};

use crate::api_request::{ApiError, call};

/// The time at which an API server answers, in whole seconds. All answers have it (RFC 9110, section 6.6.1), and
/// anybody may ask for the version.
///
/// # Errors
/// There was no answer. Without a readable date in the answer: [`ApiError::NoDate`].
pub async fn now(client: &Client) -> Result<Timestamp, ApiError> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = http::Uri::from_static("/version");
    let answer = call(client.send(request)).await?;
    let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
    let zoned = date.and_then(|date| rfc2822::parse(date).ok()).ok_or(ApiError::NoDate)?;
    Ok(zoned.timestamp())
}

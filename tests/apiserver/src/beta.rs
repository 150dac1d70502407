//! An API server as one of 1.34 or 1.35 looks where MutatingAdmissionPolicy is turned on: it serves `v1beta1`, and no
//! `v1`.
//!
//! A server of a newer version that emulates these acts by such policies only if it serves `v1`, too. A client of this
//! module does not get to see that.

use http::{Request, Response, StatusCode};
use kube::{Client, client::Body};
use serde_json::{Value as Json, json};
use tower::{BoxError, service_fn};

const V1: &str = "/apis/admissionregistration.k8s.io/v1";
const HIDDEN: &str = "mutatingadmissionpolic";

/// A client without the `v1` of MutatingAdmissionPolicy.
pub fn without_v1(client: &Client) -> Client {
    let client = client.clone();
    let service = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let path = request.uri().path().to_owned();
            if path.starts_with(&format!("{V1}/{HIDDEN}")) {
                let status = json!({
                    "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
                    "message": "the server could not find the requested resource",
                });
                let response = Response::builder().status(StatusCode::NOT_FOUND);
                return Ok::<_, BoxError>(response.body(Body::from(status.to_string().into_bytes()))?);
            }
            let response = client.send(request).await?;
            if path != V1 {
                return Ok(response);
            }
            let (mut head, body) = response.into_parts();
            let mut list: Json = serde_json::from_slice(&body.collect_bytes().await?)?;
            if let Some(resources) = list["resources"].as_array_mut() {
                resources.retain(|one| !one["name"].as_str().is_some_and(|name| name.starts_with(HIDDEN)));
            }
            head.headers.remove("content-length");
            Ok(Response::from_parts(head, Body::from(list.to_string().into_bytes())))
        }
    });
    Client::new(service, "default")
}

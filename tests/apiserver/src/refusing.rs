//! An API server that refuses something that a real one would take.

use http::{Request, Response, StatusCode};
use kube::{Client, client::Body};
use serde_json::json;
use tower::{BoxError, service_fn};

/// A client whose requests to a path are rejected as invalid if their body contains this text.
pub fn refusing(client: &Client, method: &'static str, path: &str, text: &str) -> Client {
    let (client, path, text) = (client.clone(), path.to_owned(), text.to_owned());
    let service = service_fn(move |request: Request<Body>| {
        let (client, path, text) = (client.clone(), path.clone(), text.clone());
        async move {
            if request.method() != method || request.uri().path() != path {
                return Ok::<_, BoxError>(client.send(request).await?);
            }
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            if !String::from_utf8_lossy(&body).contains(&text) {
                return Ok(client.send(Request::from_parts(head, Body::from(body.to_vec()))).await?);
            }
            let status = json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 422, "reason": "Invalid",
                "message": format!("{text} is refused by a test"),
            });
            let response = Response::builder().status(StatusCode::UNPROCESSABLE_ENTITY);
            Ok(response.body(Body::from(status.to_string().into_bytes()))?)
        }
    });
    Client::new(service, "default")
}

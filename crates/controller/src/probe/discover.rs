//! Where the API servers are: at the configured addresses, or at those in the EndpointSlice of their service.

use http::Uri;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client};
use tokio::time::timeout;

use super::wait::{ANSWER_TIMEOUT, no_answer};
use crate::api_request::ApiError;

/// The addresses of the API servers, or why they are unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The API servers have these addresses.
    At(Vec<Uri>),
    /// No addresses can be found, for this reason.
    Alone(String),
    /// The addresses could not be read this time, for this reason.
    Unknown(String),
}

/// Reads the EndpointSlice.
pub async fn discover(client: &Client) -> Found {
    let api: Api<EndpointSlice> = Api::namespaced(client.clone(), "default");
    let read = timeout(ANSWER_TIMEOUT, api.get("kubernetes")).await;
    found(read.map_err(|_| no_answer()).map(|read| read.map_err(ApiError::from)))
}

/// The addresses in the EndpointSlice, or that it could not be read.
fn found(read: Result<Result<EndpointSlice, ApiError>, String>) -> Found {
    const WHAT: &str = "EndpointSlice kubernetes in namespace default";
    let slice = match read {
        Ok(Ok(slice)) => slice,
        Ok(Err(error)) if error.is_not_found() => return Found::Alone(format!("{WHAT} does not exist")),
        // Only an admin can change that.
        Ok(Err(error @ ApiError::Refused(_))) if matches!(&error, ApiError::Refused(status) if status.is_forbidden()) =>
        {
            return Found::Alone(format!("{WHAT} cannot be read: {error}"));
        }
        Ok(Err(error)) => return Found::Unknown(format!("{WHAT} cannot be read: {error}")),
        Err(why) => return Found::Unknown(format!("{WHAT} cannot be read: {why}")),
    };
    let ports = slice.ports.as_deref().unwrap_or_default();
    let named = ports.iter().find(|port| port.name.as_deref() == Some("https"));
    let Some(port) = named.or(ports.first()).and_then(|port| port.port) else {
        return Found::Alone(format!("{WHAT} has no port"));
    };
    // Ready unless it says otherwise.
    let endpoints = slice.endpoints.as_deref().unwrap_or_default();
    let ready = endpoints.iter().filter(|one| one.conditions.as_ref().and_then(|now| now.ready) != Some(false));
    let addresses: Vec<Uri> = ready
        .flat_map(|one| &one.addresses)
        .filter_map(|address| {
            let host = if address.contains(':') { format!("[{address}]") } else { address.clone() };
            format!("https://{host}:{port}").parse().ok()
        })
        .collect();
    if addresses.is_empty() { Found::Alone(format!("{WHAT} has no ready address")) } else { Found::At(addresses) }
}

#[cfg(test)]
mod tests {
    use kube::core::response::Status;
    use serde_json::json;

    use super::*;

    fn slice(endpoints: &serde_json::Value, ports: &serde_json::Value) -> Found {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "kubernetes", "namespace": "default"}, "endpoints": endpoints, "ports": ports,
        });
        found(Ok(Ok(serde_json::from_value(slice).unwrap())))
    }

    fn at(addresses: &[&str]) -> Found {
        Found::At(addresses.iter().map(|address| address.parse().unwrap()).collect())
    }

    #[test]
    fn only_ready_endpoints_give_addresses() {
        let https = json!([{"name": "https", "port": 6443, "protocol": "TCP"}]);
        let two = json!([
            {"addresses": ["10.0.0.1", "10.0.0.2"], "conditions": {"ready": true}},
            {"addresses": ["10.0.0.3"], "conditions": {"ready": false}},
            {"addresses": ["fd00::7"]},
        ]);
        let all = ["https://10.0.0.1:6443", "https://10.0.0.2:6443", "https://[fd00::7]:6443"];
        assert_eq!(slice(&two, &https), at(&all));
        let ports = json!([{"name": "konnectivity", "port": 1}, {"name": "https", "port": 6443}]);
        assert_eq!(slice(&two, &ports), at(&all));
        assert_eq!(
            slice(&json!([{"addresses": ["10.0.0.1"]}]), &json!([{"port": 443}])),
            at(&["https://10.0.0.1:443"])
        );
        for (endpoints, ports) in [
            (json!([]), https.clone()),
            (json!([{"addresses": ["10.0.0.3"], "conditions": {"ready": false}}]), https),
            (two, json!([])),
        ] {
            assert!(matches!(slice(&endpoints, &ports), Found::Alone(_)));
        }
    }

    #[test]
    fn missing_or_forbidden_slice_falls_back_to_configured_address() {
        let refused = |code, reason: &str| {
            let status = Status::failure("no", reason).with_code(code);
            found(Ok(Err(ApiError::Refused(status.boxed()))))
        };
        assert!(matches!(refused(404, "NotFound"), Found::Alone(_)));
        assert!(matches!(refused(403, "Forbidden"), Found::Alone(_)));
        assert!(matches!(refused(500, "InternalError"), Found::Unknown(_)));
        assert!(matches!(refused(429, "TooManyRequests"), Found::Unknown(_)));
        assert!(matches!(found(Err(no_answer())), Found::Unknown(_)));
    }
}

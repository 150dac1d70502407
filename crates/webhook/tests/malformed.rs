//! What is malformed in the cluster does not stop the webhook.

use serde_json::json;

use crate::common::{Webhook, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_parameters_do_not_block_readiness() {
    // As the API server stored them before the definition had its schema.
    let malformed = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityParams",
        "metadata": {"name": "palisade-a", "namespace": "tool-1", "resourceVersion": "1"}, "spec": "nonsense",
    });
    let webhook = Webhook::start_with(json!([malformed]), |_| {}).await;
    eventually("the parameters were read", async || {
        webhook.get("/readyz").await.is_ok_and(|answer| answer.ends_with("ok\n"))
    })
    .await;
    webhook.running.stop().await.unwrap();
}

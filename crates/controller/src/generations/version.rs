//! The version of the cluster. An older one makes the check of profiles stricter.

use std::{sync::Arc, time::Duration};

use kube::Client;
use palisade_runtime::Supervisor;

use crate::{api_request::call, generations::compile::Compiler, queue::ProfileQueue, watch::store::Store};

/// Time between two polls. The version changes when the cluster is upgraded.
const INTERVAL: Duration = Duration::from_mins(1);

/// Polls the version until the end, and checks all profiles again if it is another minor.
pub fn start(
    client: &Client,
    compiler: &Arc<Compiler>,
    store: &Arc<Store>,
    queue: &Arc<ProfileQueue>,
    supervisor: &Supervisor,
) {
    let (client, compiler, store, queue) = (client.clone(), Arc::clone(compiler), Arc::clone(store), Arc::clone(queue));
    let stop = supervisor.stop().clone();
    supervisor.spawn("version of the cluster", async move {
        let polls = async {
            loop {
                match call(client.apiserver_version()).await {
                    Ok(info) if compiler.set_cluster(&info.git_version) => {
                        tracing::info!(
                            version = info.git_version,
                            "profiles are checked for this version of Kubernetes"
                        );
                        queue.trigger(store.profiles());
                    }
                    Ok(_) => {}
                    Err(error) => tracing::debug!(%error, "could not read the version of the cluster"),
                }
                tokio::time::sleep(INTERVAL).await;
            }
        };
        let _: Option<()> = stop.run_until_cancelled(polls).await;
    });
}

//! The place of the attacks: a control plane with Palisade, its controller as a process that can be killed, and a
//! tenant with the role `admin` in its namespace.

use std::time::Duration;

use kube::Client;
use palisade_controlplane::ControlPlane;
use palisade_tests::{Cluster, ControllerProcess, TestResult, ensure, within};
use serde_json::{Value as Json, json};

use crate::{
    pods::{UID, complying, hostile},
    table::{Attack, Expect, Tally, Window, make},
    wire::{Answer, Request, client_of, pods, send},
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How long something may take that must happen, on a machine that does other things as well.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What `make test-all` has time for.
    Quick,
    /// Everything, by `cargo xtask redteam`.
    Full,
}

impl Extent {
    pub(crate) fn of_environment() -> Self {
        if std::env::var("PALISADE_REDTEAM").as_deref() == Ok("full") { Self::Full } else { Self::Quick }
    }

    /// One of two numbers.
    pub(crate) fn pick<T>(self, quick: T, full: T) -> T {
        if self == Self::Quick { quick } else { full }
    }
}

/// The minor to emulate.
pub(crate) fn emulated() -> Option<String> {
    std::env::var("PALISADE_REDTEAM_EMULATED").ok()
}

/// The control plane, the controller and the tenant.
pub(crate) struct Arena {
    pub(crate) cluster: Cluster,
    pub(crate) tenant: Client,
    pub(crate) extent: Extent,
    controller: Option<ControllerProcess>,
}

impl Arena {
    pub(crate) async fn start(extent: Extent) -> Result<Self> {
        // The role `admin` is put together by a controller.
        let mut control_plane = ControlPlane::builder().controllers(["clusterrole-aggregation-controller"]);
        if let Some(version) = emulated() {
            control_plane = control_plane.emulated_version(version);
        }
        let cluster = Cluster::start_on(control_plane).await?;
        let tenant = client_of(&cluster, "tenant", &["system:authenticated"]).await?;
        let mut arena = Self { cluster, tenant, extent, controller: None };
        arena.start_controller()?;
        Ok(arena)
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.kill_controller();
        self.cluster.stop().await
    }

    /// The administrator.
    pub(crate) fn admin(&self) -> &Client {
        &self.cluster.admin
    }

    /// Starts the controller if it does not run.
    pub(crate) fn start_controller(&mut self) -> Result<()> {
        if let Some(process) = &mut self.controller {
            if process.is_running()? {
                return Ok(());
            }
            eprintln!("the controller has ended by itself");
        }
        self.controller = Some(ControllerProcess::start(&self.cluster)?);
        Ok(())
    }

    /// Ends the controller at once, wherever it is.
    pub(crate) fn kill_controller(&mut self) {
        self.controller = None;
    }

    /// Sends a request as the administrator.
    pub(crate) async fn ask(&self, request: &Request) -> Answer {
        send(&self.cluster.admin, request).await
    }

    /// Sends a request of which the administrator depends.
    pub(crate) async fn demand(&self, request: &Request) -> Result<Json> {
        let answer = self.ask(request).await;
        ensure!(answer.is_admitted(), "{} {}: {}", request.method, request.path, answer.short());
        Ok(answer.body)
    }

    /// A namespace of a tool, in which the tenant has the role `admin`.
    pub(crate) async fn tool(&self, test: &str, name: &str) -> TestResult {
        self.cluster.create_tool(test, name, UID).await?;
        self.admit_tenant(name).await
    }

    /// Makes the tenant an admin of a namespace, and more than that: of the subresources by which pods change, too.
    pub(crate) async fn admit_tenant(&self, namespace: &str) -> TestResult {
        let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
        let subresources = ["binding", "ephemeralcontainers", "resize", "status"].map(|name| format!("pods/{name}"));
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "subresources"},
            "rules": [
                {"apiGroups": [""], "resources": subresources, "verbs": ["*"]},
                {"apiGroups": [""], "resources": ["podtemplates"], "verbs": ["*"]},
            ],
        });
        self.demand(&Request::create(&format!("{rbac}/roles"), &role)).await?;
        for (kind, name) in [("ClusterRole", "admin"), ("Role", "subresources")] {
            let binding = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}],
            });
            self.demand(&Request::create(&format!("{rbac}/rolebindings"), &binding)).await?;
        }
        within(LIMIT, &format!("rights of the tenant in {namespace}"), || async {
            let [pods, ephemeral] = ["", "/x/ephemeralcontainers"].map(|rest| pods(namespace) + rest);
            let answers = [
                send(&self.tenant, &Request::get(pods)).await,
                send(&self.tenant, &Request::new("PATCH", ephemeral, crate::wire::MERGE, &json!({}))).await,
            ];
            // There is no pod x.
            if [answers[0].status, answers[1].status] == [200, 404] { Ok(()) } else { Err(format!("{answers:?}")) }
        })
        .await?;
        Ok(())
    }

    /// Waits until the tenant may create a pod: until RBAC, service account and parameters are there.
    pub(crate) async fn admitted(&self, namespace: &str, pod: &Json) -> TestResult {
        within(LIMIT, &format!("a complying pod admitted in {namespace}"), || async {
            let answer = send(&self.tenant, &Request::pod(namespace, pod)).await;
            if answer.is_admitted() { Ok(()) } else { Err(answer.short()) }
        })
        .await?;
        Ok(())
    }

    /// Waits until a hostile pod is denied by a profile.
    pub(crate) async fn denied(&self, namespace: &str) -> TestResult {
        within(LIMIT, &format!("a hostile pod denied in {namespace}"), || async {
            let answer = send(self.admin(), &Request::pod(namespace, &hostile("hostile"))).await;
            answer.denial().map(drop).ok_or_else(|| answer.short())
        })
        .await?;
        Ok(())
    }

    /// Writes a profile, and waits until it is enforced.
    pub(crate) async fn enforce(&self, profile: &Json) -> TestResult {
        self.cluster.apply_profile(profile).await?;
        let name = profile["metadata"]["name"].as_str().unwrap_or_default();
        self.condition(name, "Enforced", "True").await.map(drop)
    }

    /// Waits until a condition of a profile's generation has a status, and returns the condition.
    pub(crate) async fn condition(&self, profile: &str, kind: &str, status: &str) -> Result<Json> {
        let path = format!("/apis/toolsecurity.dev/v1alpha1/toolsecurityprofiles/{profile}");
        let (found, _) = within(LIMIT, &format!("{kind}={status} of {profile}"), || async {
            let found = self.ask(&Request::get(&path)).await.body;
            let of = |condition: &&Json| {
                condition["type"] == kind && condition["observedGeneration"] == found["metadata"]["generation"]
            };
            let condition = found["status"]["conditions"].as_array().into_iter().flatten().find(of);
            condition
                .filter(|condition| condition["status"] == status)
                .cloned()
                .ok_or_else(|| found["status"]["conditions"].to_string())
        })
        .await?;
        Ok(found)
    }

    /// The namespace and profile of a test: the example for tools, with one tool and the pod `target` in it.
    pub(crate) async fn stage(&self, test: &str, change: impl FnOnce(&mut Json)) -> Result<String> {
        let namespace = format!("{test}-tool");
        let mut profile = Cluster::toolforge_profile(test)?;
        change(&mut profile["spec"]);
        self.tool(test, &namespace).await?;
        self.enforce(&profile).await?;
        self.admitted(&namespace, &complying("first")).await?;
        self.target(&namespace).await?;
        Ok(namespace)
    }

    /// Creates the pod `target`, which complies.
    pub(crate) async fn target(&self, namespace: &str) -> TestResult {
        self.demand(&Request::create(&pods(namespace), &complying("target"))).await.map(drop)
    }

    /// Sends hostile pods until something is restored, as [`Window`] determines. After that, none may be admitted.
    pub(crate) async fn window<F, Fut>(
        &self,
        what: &str,
        namespace: &str,
        limit: Duration,
        restored: F,
    ) -> Result<Tally>
    where
        F: Fn() -> Fut,
        Fut: Future<Output = bool>,
    {
        let (mut tried, mut admitted) = (0, 0);
        let start = std::time::Instant::now();
        let mut tally = Tally::default();
        while !restored().await {
            tried += 1;
            if send(self.admin(), &Request::pod(namespace, &hostile("hostile"))).await.is_admitted() {
                admitted += 1;
            }
            if start.elapsed() > limit {
                tally.must(false, format!("{what}: not restored within {limit:?}"));
                break;
            }
        }
        let length = start.elapsed();
        // The API server reads the restored object later, and may even notice its absence only now.
        let fenced = self.fence(namespace).await;
        tally.must(fenced.is_ok(), format!("{what}: {fenced:?}"));
        let denied = self.denied(namespace).await;
        tally.must(denied.is_ok(), format!("{what}: {denied:?}"));
        let hostile = (0..5).map(|_| {
            let expect = Expect::check("hostNamespaces");
            Attack::new(format!("{what}, restored"), Request::pod(namespace, &hostile("hostile")), expect)
        });
        tally.add(make(self.admin(), hostile.collect()).await);
        tally.windows.push(Window { what: what.to_owned(), length, tried, admitted });
        Ok(tally)
    }

    /// CPU time that the API server has used.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        self.cluster.apiserver_cpu()
    }

    /// Deletes a profile, if the API server took it, and waits for nothing: what is left of it selects nobody who is asked
    /// about later.
    pub(crate) async fn delete_profile(&self, name: &str) -> TestResult {
        let path = format!("/apis/toolsecurity.dev/v1alpha1/toolsecurityprofiles/{name}");
        let answer = self.ask(&Request::delete(&path)).await;
        ensure!(answer.is_admitted() || answer.status == 404, "profile {name}: {}", answer.short());
        Ok(())
    }
}

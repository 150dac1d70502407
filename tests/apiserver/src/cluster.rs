//! The cluster.

use std::{collections::BTreeMap, error::Error, path::PathBuf};

use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    core::v1::Namespace,
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use palisade_api::{ToolSecurityParams, ToolSecurityProfile, names};
use palisade_cel::{Minor, NotAMinor};
use palisade_controller::{Access, Controller, Options, Running};
use palisade_controlplane::{Builder, ControlPlane, Feature};
use serde_json::{Value as Json, json};

use crate::{
    Verdict, eventually, plain_get,
    requests::{add_ephemeral, create_pod, send},
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// As a command that reads from a cluster of this minor.
fn nearest(minor: u8) -> Minor {
    format!("1.{minor}").parse().unwrap_or_else(|unknown: NotAMinor| unknown.nearest())
}

/// A control plane with Palisade in it.
pub struct Cluster {
    pub control_plane: ControlPlane,
    /// A client that may do everything.
    pub admin: Client,
    controller: Option<Running>,
}

impl Cluster {
    /// Starts a control plane of a minor version (the newest if none), and installs the CRDs and the manifests.
    pub async fn start(emulated_version: Option<&str>) -> Result<Self> {
        let mut builder = ControlPlane::builder();
        if let Some(version) = emulated_version {
            builder = builder.emulated_version(version);
        }
        Self::start_on(builder).await
    }

    /// [`Self::start`] on a control plane with other options.
    pub async fn start_on(control_plane: Builder) -> Result<Self> {
        let control_plane = control_plane.start().await?;
        let admin = client(control_plane.kubeconfig()).await?;
        let cluster = Self { control_plane, admin, controller: None };
        cluster.install()?;
        Ok(cluster)
    }

    /// Installs Palisade, as `make install` does.
    pub fn install(&self) -> Result<()> {
        self.kubectl(&["apply", "--server-side", "-k", &root().join("crds").display().to_string()])?;
        self.wait_established(&["crd", "--all"])?;
        self.kubectl(&["apply", "--server-side", "-k", &root().join("manifests").display().to_string()])?;
        Ok(())
    }

    pub async fn client_as(&self, kubeconfig: &str) -> Result<Client> {
        client(kubeconfig).await
    }

    /// A client with this user's identity, and only the permissions that RBAC gives it.
    pub async fn client_of_tenant(&self, user: &str) -> Result<Client> {
        let mut config = config(self.control_plane.kubeconfig()).await?;
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(vec!["system:authenticated".to_owned()]);
        Ok(Client::try_from(config)?)
    }

    /// Somebody sends a request. The body of a PATCH is a merge patch.
    pub async fn ask_as(&self, client: &Client, method: &str, path: &str, body: &Json) -> Verdict {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        Verdict::of(send(client, method, path, kind, body).await)
    }

    /// A client that the API server takes for this user. Everything is allowed to it that RBAC decides.
    pub async fn client_of(&self, user: &str, groups: &[&str]) -> Result<Client> {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("test-{}", user.replace(':', "."))},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        match send(&self.admin, "POST", path, "application/json", &binding).await {
            // For the same user with other groups.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            made => drop(made?),
        }
        let mut config = config(self.control_plane.kubeconfig()).await?;
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(groups.iter().map(|&group| group.to_owned()).collect());
        Ok(Client::try_from(config)?)
    }

    /// Asks about an object that somebody creates at a path like `/apis/apps/v1/namespaces/x/deployments`.
    pub async fn dry_run_at(&self, client: &Client, path: &str, object: &Json) -> Verdict {
        Verdict::of(send(client, "POST", &format!("{path}?dryRun=All"), "application/json", object).await)
    }

    /// Applies a merge patch at a path.
    pub async fn patch_at(&self, path: &str, patch: &Json) -> Verdict {
        Verdict::of(send(&self.admin, "PATCH", path, "application/merge-patch+json", patch).await)
    }

    /// Applies a strategic merge patch at a path.
    pub async fn strategic_patch_at(&self, path: &str, patch: &Json) -> Verdict {
        Verdict::of(send(&self.admin, "PATCH", path, "application/strategic-merge-patch+json", patch).await)
    }

    /// Sends a request with a JSON body, and returns what the API server answers.
    ///
    /// # Errors
    /// Its refusal.
    pub async fn answer(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: &Json,
    ) -> std::result::Result<Json, kube::Error> {
        send(&self.admin, method, path, kind, body).await
    }

    /// Sends an object as the admin: the object that comes back, or the text of the refusal.
    ///
    /// # Errors
    /// The text of the refusal.
    pub async fn answer_to(&self, method: &str, path: &str, object: &Json) -> std::result::Result<Json, String> {
        send(&self.admin, method, path, "application/json", object).await.map_err(|error| match error {
            kube::Error::Api(status) => status.message.clone(),
            other => other.to_string(),
        })
    }

    pub async fn create_at(&self, path: &str, object: &Json) -> Verdict {
        Verdict::of(send(&self.admin, "POST", path, "application/json", object).await)
    }

    /// Runs kubectl as the admin.
    ///
    /// # Errors
    /// What kubectl writes to its standard error, if it fails.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        Ok(self.kubectl_both(arguments)?.0)
    }

    /// Waits until the API server serves these definitions.
    pub fn wait_established(&self, definitions: &[&str]) -> Result<()> {
        let arguments = [&["wait", "--for=condition=Established", "--timeout=120s"], definitions].concat();
        loop {
            match self.kubectl(&arguments) {
                // kubectl fails, instead of waiting, for one that has no conditions yet: it gets them at once.
                Err(error) if error.to_string().contains(".status.conditions accessor error") => {}
                other => return other.map(drop),
            }
        }
    }

    /// [`Self::kubectl`], with standard output and standard error, where warnings stand.
    pub fn kubectl_both(&self, arguments: &[&str]) -> Result<(String, String)> {
        let mut command = self.control_plane.kubectl().ok_or("no kubectl")?;
        let output = command.args(arguments).output()?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() { Ok((out.into(), err.into())) } else { Err(err.into()) }
    }

    /// The minor version of Kubernetes that the API server serves, or the offline minor that is nearest to it.
    pub async fn minor(&self) -> Result<Minor> {
        Ok(nearest(self.served().await?))
    }

    /// The minor of the API server's program, also if it emulates another one, or the offline minor that is nearest to it.
    pub async fn program_minor(&self) -> Result<Minor> {
        Ok(nearest(self.minor_in(&["minor"]).await?))
    }

    /// Whether the API server has a feature.
    pub async fn has(&self, feature: &Feature) -> Result<bool> {
        Ok(feature.is_in(self.served().await?))
    }

    /// The number of the minor that the API server serves.
    pub async fn served(&self) -> Result<u8> {
        self.minor_in(&["emulationMinor", "minor"]).await
    }

    async fn minor_in(&self, keys: &[&str]) -> Result<u8> {
        let version: Json = self.admin.request(http::Request::get("/version").body(Vec::new())?).await?;
        let minor = keys.iter().find_map(|key| version[*key].as_str());
        Ok(minor.ok_or_else(|| format!("no minor version in {version}"))?.parse()?)
    }

    /// What the controller says at an HTTP path.
    pub async fn controller_get(&self, path: &str) -> Result<String> {
        let address = self.controller.as_ref().ok_or("the controller does not run")?.addr;
        Ok(plain_get(address, path).await?)
    }

    /// A kubeconfig with the rights that the manifests give the controller.
    pub fn controller_kubeconfig(&self) -> Result<String> {
        self.kubeconfig_of(names::CONTROLLER)
    }

    /// A kubeconfig with the rights that the manifests give a service account in the operator's namespace.
    pub fn kubeconfig_of(&self, account: &str) -> Result<String> {
        let token =
            self.kubectl(&["create", "token", account, "--namespace", names::OPERATOR_NAMESPACE, "--duration=24h"])?;
        let mut kubeconfig: Json = serde_saphyr::from_str(self.control_plane.kubeconfig())?;
        for user in kubeconfig["users"].as_array_mut().into_iter().flatten() {
            user["user"] = json!({"token": token.trim()});
        }
        Ok(kubeconfig.to_string())
    }

    /// Starts the controller, if it does not run.
    pub async fn start_controller(&mut self) -> Result<()> {
        self.start_controller_with(|client| client).await
    }

    /// [`Self::start_controller`], with another client than the one of its kubeconfig.
    pub async fn start_controller_with(&mut self, with: impl FnOnce(Client) -> Client) -> Result<()> {
        if self.controller.is_none() {
            let client = with(client(&self.controller_kubeconfig()?).await?);
            let config = Some(config(&self.controller_kubeconfig()?).await?);
            let access = Access { client, config, own_connections: false };
            self.controller = Some(Controller::start(access, Self::options()?).await?);
        }
        Ok(())
    }

    /// The options with which the controller is started here.
    pub fn options() -> Result<Options> {
        Ok(Options { listen: "127.0.0.1:0".parse()?, ..Options::default() })
    }

    /// Stops the controller, if it runs, and starts it with other options.
    pub async fn restart_controller(&mut self, options: Options) -> Result<()> {
        self.stop_controller().await?;
        let config = config(&self.controller_kubeconfig()?).await?;
        let access = Access { client: Client::try_from(config.clone())?, config: Some(config), own_connections: true };
        self.controller = Some(Controller::start(access, options).await?);
        Ok(())
    }

    /// Stops the controller, if it runs.
    pub async fn stop_controller(&mut self) -> Result<()> {
        if let Some(running) = self.controller.take() {
            running.stop().await?;
        }
        Ok(())
    }

    pub async fn stop(mut self) -> Result<()> {
        self.stop_controller().await?;
        Ok(self.control_plane.stop().await?)
    }

    pub async fn create_namespace(&self, name: &str, labels: &Json, annotations: &Json) -> Result<()> {
        let namespace: Namespace = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
        }))?;
        Api::<Namespace>::all(self.admin.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(())
    }

    /// Creates a namespace of a tool, as Toolforge does, that [`Self::toolforge_profile`] of this test selects.
    pub async fn create_tool(&self, test: &str, name: &str, uid: i64) -> Result<()> {
        self.create_namespace(name, &json!({"tenancy": test}), &json!({"toolforge.org/uid": uid.to_string()})).await
    }

    /// Merges a patch into a namespace.
    pub async fn patch_namespace(&self, name: &str, patch: &Json) -> Result<()> {
        Api::<Namespace>::all(self.admin.clone()).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Deletes a namespace without waiting for it.
    pub async fn delete_namespace(&self, name: &str) -> Result<()> {
        Api::<Namespace>::all(self.admin.clone()).delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    pub fn profiles(&self) -> Api<ToolSecurityProfile> {
        Api::all(self.admin.clone())
    }

    /// Writes a profile, as `kubectl apply` does.
    pub async fn apply_profile(&self, profile: &Json) -> Result<ToolSecurityProfile> {
        let name = profile["metadata"]["name"].as_str().ok_or("a profile has a name")?;
        Ok(self.profiles().patch(name, &PatchParams::apply("tests").force(), &Patch::Apply(profile)).await?)
    }

    /// The checks of Toolforge's profile from the examples, under the name of a test and for its namespaces only. It
    /// mutates nothing, so that a pod is judged as a test writes it, and only warns of workloads.
    pub fn toolforge_profile(test: &str) -> Result<Json> {
        let text = std::fs::read_to_string(root().join("examples/toolforge/profile.yaml"))?;
        let mut profile: Json = serde_saphyr::from_str(&text)?;
        profile["metadata"]["name"] = test.into();
        profile["spec"]["namespaceSelector"]["matchLabels"] = json!({"tenancy": test});
        profile["spec"]["enforcement"] = json!({"pods": "Deny"});
        // Its namespaces have other names than those of Toolforge, which have the parameter for hosts.
        if let Some(spec) = profile["spec"].as_object_mut() {
            for field in ["mutation", "network", "overrides"] {
                spec.remove(field);
            }
        }
        if let Some(parameters) = profile["spec"]["parameters"].as_array_mut() {
            parameters.retain(|parameter| parameter["name"] == "uid");
        }
        Ok(profile)
    }

    /// A profile of a few checks, of which [`hostile_pod`](crate::hostile_pod) violates each and
    /// [`tool_pod`](crate::tool_pod) none, for the namespaces of a test. For scenarios about what becomes of a profile
    /// and its objects: API server and controller have far fewer expressions to compile than of Toolforge's. Where a
    /// verdict is watched while policies are compiled, Toolforge's is the harder case.
    pub fn small_profile(test: &str) -> Json {
        let own = json!({"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]});
        json!({
            "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": test},
            "spec": {
                "namespaceSelector": {"matchLabels": {"tenancy": test}},
                "enforcement": {"pods": "Deny"},
                "baseline": "Privileged",
                "parameters": [{
                    "name": "uid", "type": "Integer", "sources": [{"namespaceAnnotation": "toolforge.org/uid"}],
                    "minimum": 50_000, "maximum": 65_533,
                }],
                "users": {"runAsUser": own},
                "privileges": {"privileged": false},
                "host": {"network": false, "ports": []},
                "images": {"allowedRegistries": ["docker-registry.svc.toolforge.org"]},
            },
        })
    }

    /// Waits until a condition of a profile has a status, for its current generation.
    pub async fn wait_condition(&self, profile: &str, condition: &str, status: &str) -> Result<ToolSecurityProfile> {
        let found = eventually(&format!("{condition}={status} of {profile}"), || async {
            let found = self.profiles().get(profile).await.map_err(|error| error.to_string())?;
            let generation = found.metadata.generation;
            let conditions = found.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
            let now = conditions.iter().find(|c| c.type_ == condition);
            match now {
                Some(now) if now.status == status && now.observed_generation == generation => Ok(found),
                _ => Err(format!("generation {generation:?}, conditions {conditions:?}")),
            }
        })
        .await?;
        Ok(found)
    }

    /// Writes a profile and waits until it is enforced.
    pub async fn enforce(&self, profile: &Json) -> Result<ToolSecurityProfile> {
        let applied = self.apply_profile(profile).await?;
        self.wait_condition(applied.metadata.name.as_deref().unwrap_or_default(), "Enforced", "True").await
    }

    /// Writes a profile and waits until its policies are in force, whether or not anybody mutates pods yet.
    pub async fn enforce_policies(&self, profile: &Json) -> Result<()> {
        let applied = self.apply_profile(profile).await?;
        let name = applied.metadata.name.unwrap_or_default();
        eventually(&format!("the policies of {name} in force"), || async {
            let found = self.profiles().get(&name).await.map_err(|error| error.to_string())?;
            let conditions = found.status.map(|status| status.conditions).unwrap_or_default();
            let now = conditions.iter().find(|condition| condition.type_ == "Enforced");
            let now = now.filter(|now| now.observed_generation == applied.metadata.generation);
            match now {
                Some(now) if now.status == "True" || now.reason == "NotMutated" => Ok(()),
                _ => Err(format!("{conditions:?}")),
            }
        })
        .await?;
        Ok(())
    }

    /// A profile's policy and binding as anybody but kube-controller-manager wrote them, to compare. It checks the
    /// types of a policy's expressions some time after each edit, and its status gets a new resource version.
    pub async fn policy_versions(&self, profile: &str) -> Result<(Json, Json)> {
        let name = names::policy(profile, names::Shape::Pods);
        let mut policy = self.policies().get(&name).await?;
        policy.status = None;
        policy.metadata.resource_version = None;
        if let Some(fields) = &mut policy.metadata.managed_fields {
            fields.retain(|entry| entry.subresource.as_deref() != Some("status"));
        }
        let binding = self.bindings().get(&name).await?;
        Ok((serde_json::to_value(policy)?, serde_json::to_value(binding)?))
    }

    pub fn policies(&self) -> Api<ValidatingAdmissionPolicy> {
        Api::all(self.admin.clone())
    }

    pub fn bindings(&self) -> Api<ValidatingAdmissionPolicyBinding> {
        Api::all(self.admin.clone())
    }

    pub async fn wait_admitted(&self, namespace: &str, pod: &Json) -> Result<()> {
        eventually(&format!("a pod admitted in {namespace}"), || async {
            match self.dry_run(namespace, pod).await {
                Verdict::Admitted => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
        Ok(())
    }

    /// Deletes a profile and waits until it is gone.
    pub async fn delete_profile(&self, name: &str) -> Result<()> {
        self.profiles().delete(name, &DeleteParams::default()).await?;
        eventually(&format!("profile {name} gone"), || async {
            match self.profiles().get_opt(name).await {
                Ok(None) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
        Ok(())
    }

    pub async fn params(&self, namespace: &str, profile: &str) -> std::result::Result<ToolSecurityParams, String> {
        Api::<ToolSecurityParams>::namespaced(self.admin.clone(), namespace)
            .get(profile)
            .await
            .map_err(|error| error.to_string())
    }

    /// The resource versions of all parameters of a profile, by namespace. They show which ones were written.
    pub async fn params_versions(&self, profile: &str) -> Result<BTreeMap<String, String>> {
        let named = ListParams::default().fields(&format!("metadata.name={profile}"));
        let all = Api::<ToolSecurityParams>::all(self.admin.clone()).list(&named).await?;
        let version =
            |params: ToolSecurityParams| Some((params.metadata.namespace?, params.metadata.resource_version?));
        Ok(all.into_iter().filter_map(version).filter(|(namespace, _)| namespace != names::PROBE_NAMESPACE).collect())
    }

    /// The names of all that there is of a profile, but itself.
    pub fn left_of(&self, profile: &str) -> Result<String> {
        let get =
            |kinds: &str, selector: &str| self.kubectl(&["get", kinds, "--all-namespaces", "-o", "name", selector]);
        let labelled = "validatingadmissionpolicies,validatingadmissionpolicybindings,controllerrevisions";
        let params = get("toolsecurityparams", &format!("--field-selector=metadata.name={profile}"))?;
        Ok(params + &get(labelled, &format!("--selector={}={profile}", names::PROFILE_LABEL))?)
    }

    /// Asks about a pod.
    pub async fn dry_run(&self, namespace: &str, pod: &Json) -> Verdict {
        create_pod(&self.admin, namespace, pod, true).await
    }

    /// Creates a pod for real.
    pub async fn create_pod(&self, namespace: &str, pod: &Json) -> Verdict {
        create_pod(&self.admin, namespace, pod, false).await
    }

    /// Asks about ephemeral containers of a pod that exists.
    pub async fn dry_run_ephemeral(&self, namespace: &str, pod: &str, containers: &Json) -> Verdict {
        add_ephemeral(&self.admin, namespace, pod, containers).await
    }

    /// Merges a patch into a pod.
    pub async fn patch_pod(&self, namespace: &str, pod: &str, patch: &Json) -> Verdict {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}");
        Verdict::of(send(&self.admin, "PATCH", &path, "application/merge-patch+json", patch).await)
    }

    pub async fn json_patch_pod(&self, namespace: &str, pod: &str, patch: &Json) -> Verdict {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}");
        Verdict::of(send(&self.admin, "PATCH", &path, "application/json-patch+json", patch).await)
    }
}

async fn client(kubeconfig: &str) -> Result<Client> {
    Ok(Client::try_from(config(kubeconfig).await?)?)
}

async fn config(kubeconfig: &str) -> Result<Config> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

//! A profile that changes pods, and what puts it in force.

use k8s_openapi::jiff::Timestamp;
use palisade_api::{Published, ToolSecurityParams, ToolSecurityProfile, names, revision::Revision};
use palisade_compiler::{Compiled, Namespace};
use palisade_gate::{Decision, ValidationRequest, Validator};
use palisade_kube_json::pod;
use palisade_mutation::{MutationRequest, Plan};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually};
use serde_json::{Value as Json, json};

use super::{CONTROL, Engine, JSON, Result, pods_of};

/// What the generated policies of the cases, and the records of the profiles, are labelled with. Nothing of a controller's, or it would
/// take them for its own.
pub(crate) const LABEL: &str = "toolsecurity.dev/test";

/// A profile of the cases, and what it is in its namespace, where it sets defaults and judges nothing, and in another,
/// where it does both.
pub(crate) struct Case {
    pub(crate) compiled: Compiled,
    /// What judges, for the harness.
    policy: Validator,
    params: Option<ToolSecurityParams>,
    revision: Json,
    pub(crate) mutated: String,
    pub(crate) judged: String,
}

impl Case {
    pub(crate) fn new(name: &str, spec: &Json) -> Result<Self> {
        let mut spec = spec.clone();
        spec["namespaceSelector"] = json!({"matchLabels": {"mutated": name}});
        let profile = json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile",
            "metadata": {"name": name}, "spec": spec,
        });
        let typed: ToolSecurityProfile = serde_json::from_value(profile)?;
        let compiled = palisade_compiler::compile(&typed).map_err(|found| format!("{name}: {found:?}"))?;
        let namespace = Namespace {
            name: format!("mutated-{name}"),
            annotations: [("uid".to_owned(), "50001".to_owned())].into(),
            ..Namespace::default()
        };
        let params = compiled.params(&namespace, [], Timestamp::now());
        ensure!(compiled.mutation.is_some(), "{name} changes nothing");
        let policy = Validator::new(&compiled.bundle.pods.policy).map_err(|error| format!("{name}: {error:?}"))?;
        let (mutated, judged) = (namespace.name, format!("judged-{name}"));
        // A profile in a cluster has a uid, and what is made for it an owner; these objects have none.
        let revision = Revision { uid: format!("uid-of-{name}"), generation: 1, ..Revision::of(&typed) };
        let revision = json!(revision.object(name, None));
        Ok(Self { compiled, policy, params, revision, mutated, judged })
    }

    /// Puts it in force: what sets defaults, in both namespaces, and the policy that judges, in one.
    pub(crate) async fn install(&self, cluster: &Cluster, engine: Engine) -> TestResult {
        let name = &self.compiled.profile;
        let labels = json!({"mutated": name});
        cluster.create_namespace(&self.mutated, &labels, &json!({})).await?;
        let judged = json!({"mutated": name, "judged": name});
        cluster.create_namespace(&self.judged, &judged, &json!({})).await?;
        for namespace in [&self.mutated, &self.judged] {
            // Before anything is in force.
            let verdict = cluster.create_pod(namespace, &pod::minimal("debugged")).await;
            ensure!(verdict == Verdict::Admitted, "{verdict:?}");
            if let Some(params) = &self.params {
                let mut params = json!(params);
                params["metadata"]["namespace"] = json!(namespace);
                let path = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{namespace}/toolsecurityparams");
                cluster.answer("POST", &path, JSON, &params).await?;
            }
        }
        let mut judging = json!(self.compiled.bundle.pods.policy);
        judging["spec"]["matchConstraints"]["namespaceSelector"]["matchLabels"] = json!({"judged": name});
        let mut objects = vec![
            ("admissionregistration.k8s.io/v1/validatingadmissionpolicies".to_owned(), judging),
            (
                "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings".to_owned(),
                json!(self.compiled.bundle.pods.binding),
            ),
        ];
        match engine {
            Engine::Policy(version) => {
                let pair = self.compiled.bundle.mutation.as_ref().ok_or("no policy")?;
                let [policy, binding] = pair.objects(version);
                let group = format!("admissionregistration.k8s.io/{version}");
                objects.push((format!("{group}/mutatingadmissionpolicies"), policy));
                objects.push((format!("{group}/mutatingadmissionpolicybindings"), binding));
            }
            // As the controller records what is in force.
            Engine::Webhook => {
                let path = format!("apps/v1/namespaces/{}/controllerrevisions", names::OPERATOR_NAMESPACE);
                objects.push((path, self.revision.clone()));
            }
        }
        for (path, mut object) in objects {
            if object["kind"] != "ControllerRevision" {
                object["metadata"]["labels"] = json!({});
            }
            object["metadata"]["labels"][LABEL] = json!("mutation");
            let path = format!("/apis/{path}");
            cluster.answer("POST", &path, JSON, &object).await.map_err(|error| format!("{name} {path}: {error}"))?;
        }
        Ok(())
    }

    /// Its entry in the registration of a webhook that has said this of itself.
    pub(crate) fn entry(&self, published: &Published) -> Result<Json> {
        Ok(json!(self.compiled.mutation.as_ref().ok_or("changes nothing")?.webhook(published)))
    }

    /// Waits until the API server follows all of it.
    pub(crate) async fn in_force(&self, cluster: &Cluster) -> TestResult {
        let mut canary = pod::minimal("canary");
        canary["spec"]["containers"][0]["image"] = json!("nginx");
        let ask = |namespace: &str, pod: &Json| {
            let (path, pod) = (pods_of(namespace), pod.clone());
            async move { cluster.answer("POST", &path, JSON, &pod).await }
        };
        let control = eventually("a service account", || async {
            ask(CONTROL, &canary).await.map_err(|error| error.to_string())
        })
        .await?;
        for namespace in [&self.mutated, &self.judged] {
            eventually(&format!("{namespace} defaulted"), || async {
                match ask(namespace, &canary).await {
                    Ok(answer) if answer["spec"] == control["spec"] => Err("nothing is defaulted".to_owned()),
                    Err(error) if !error.to_string().contains("ValidatingAdmissionPolicy") => Err(error.to_string()),
                    _ => Ok(()),
                }
            })
            .await?;
        }
        let mut violating = canary.clone();
        for (field, value) in
            [("hostPID", json!(true)), ("securityContext", json!({"runAsUser": 0, "runAsNonRoot": false}))]
        {
            violating["spec"][field] = value;
        }
        violating["spec"]["containers"][0]["securityContext"] = json!({"capabilities": {"add": ["NET_RAW"]}});
        if self.denies(&violating)? {
            eventually(&format!("{} judged", self.judged), || async {
                let verdict = Verdict::of(ask(&self.judged, &violating).await);
                verdict.denial().map(|_| ()).ok_or(format!("{verdict:?}"))
            })
            .await?;
        }
        Ok(())
    }

    /// The pod after it was defaulted as the patch does it.
    pub(crate) fn patched(&self, asked: &MutationRequest<'_>) -> Result<Json> {
        let mut pod = asked.pod.clone();
        let mutation = self.compiled.mutation.as_ref().ok_or("changes nothing")?;
        let plan = Plan::new([(mutation, self.params.as_ref().map(|params| &params.spec))]);
        plan.patch(asked).apply(&mut pod)?;
        let again = plan.patch(&MutationRequest { pod: &pod, ..*asked });
        ensure!(again.is_empty(), "defaulted twice: {:?}", again.operations);
        Ok(pod)
    }

    /// Whether the harness says that the policy denies a pod.
    pub(crate) fn denies(&self, pod: &Json) -> Result<bool> {
        let params = self.params.as_ref().map(|params| json!(params));
        // The API server sets it before it asks a policy; exceptions go by it.
        let mut pod = pod.clone();
        pod["metadata"]["creationTimestamp"] = json!(Timestamp::now().to_string());
        let decision = self
            .policy
            .evaluate(&ValidationRequest { params: params.as_ref(), ..ValidationRequest::create("Pod", &pod) });
        Ok(matches!(decision.map_err(|error| error.to_string())?, Decision::Deny { .. }))
    }
}

//! What people do meanwhile: they edit profiles, well and badly, create and delete namespaces, and tamper.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
        core::v1::Namespace,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use palisade_api::{
    ToolSecurityParams, ToolSecurityProfile,
    names::{self, Shape},
};
use palisade_tests::{TestResult, dry_run_once, root, tool_pod, within};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tokio::{sync::Mutex, time::sleep};

use crate::{
    Result, ask,
    profiles::{EDITED, Revision, SHORT, STAGED, TOOLS, VICTIM, WEBHOOK},
    schedule::{Fault, Mistake, Tamper},
    timeline::Timeline,
    watch::{self, Definition},
};

/// The user of all tools here.
pub(crate) const UID: i64 = 50_001;
/// How long somebody tries, when the API server does not answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long somebody looks whether what must happen has happened, while things are broken. Whether it does is seen in the end.
const LIMIT: Duration = Duration::from_mins(1);
/// How many namespaces are deleted at once.
const AT_ONCE: usize = 200;
/// Its definition is what is deleted by hand.
const DEFINITION: &str = "toolsecurityparams.toolsecurity.dev";

/// How long the definition may take to go with all parameters, and somebody tries to install it again.
const WAY_BACK: Duration = Duration::from_mins(10);

/// The watched namespaces, and others whose labels or annotations change: name, profile, stage.
const NAMESPACES: [(&str, &str, Option<&str>); 11] = [
    ("tools-0", TOOLS, None),
    ("tools-1", TOOLS, None),
    ("webhook-0", WEBHOOK, None),
    ("staged-deny", STAGED, Some("Deny")),
    ("staged-0", STAGED, None),
    ("staged-1", STAGED, None),
    ("staged-2", STAGED, None),
    ("victim-0", VICTIM, None),
    ("short-0", SHORT, None),
    ("broken-0", TOOLS, None),
    ("broken-1", TOOLS, None),
];

/// Those who do all that.
pub(crate) struct Users {
    client: Client,
    timeline: Arc<Timeline>,
    pub(crate) definition: Arc<Definition>,
    revisions: Mutex<Vec<Revision>>,
    created: AtomicUsize,
    storms: AtomicUsize,
}

impl Users {
    pub(crate) fn new(client: Client, timeline: Arc<Timeline>) -> Self {
        Self {
            client,
            timeline,
            definition: Arc::default(),
            revisions: Mutex::new(EDITED.map(Revision::first).into()),
            created: AtomicUsize::new(0),
            storms: AtomicUsize::new(0),
        }
    }

    /// Creates namespaces and profiles.
    pub(crate) async fn prepare(&self) -> Result {
        for (name, profile, stage) in NAMESPACES {
            let mut labels = watch::labels(profile);
            if let Some(stage) = stage {
                labels[names::stage_label(profile)] = json!(stage);
            }
            self.namespace(name, &labels).await?;
        }
        for profile in EDITED.into_iter().chain([VICTIM, SHORT]) {
            self.apply(&Revision::first(profile).object()?).await?;
        }
        Ok(())
    }

    /// How many namespaces the storms have created.
    pub(crate) fn created(&self) -> usize {
        self.created.load(Ordering::Relaxed)
    }

    /// Undoes what is left wrong: the last profiles are good ones, at the stage Deny.
    pub(crate) async fn put_right(&self) -> Result {
        for revision in self.revisions.lock().await.iter_mut() {
            revision.stage = "Deny";
            revision.ports += 1;
            self.apply(&revision.object()?).await?;
        }
        self.apply(&Revision::first(VICTIM).object()?).await?;
        self.apply(&Revision::first(SHORT).object()?).await
    }

    async fn namespace(&self, name: &str, labels: &Json) -> Result {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": labels, "annotations": {"toolforge.org/uid": UID.to_string()}},
        });
        ask::insist(PATIENCE, async || {
            palisade_tests::send(&self.client, "POST", "/api/v1/namespaces", ask::JSON, &object).await
        })
        .await
        .map(drop)
    }

    async fn apply(&self, profile: &Json) -> Result {
        let name = profile["metadata"]["name"].as_str().ok_or("a profile has a name")?;
        let api: Api<ToolSecurityProfile> = Api::all(self.client.clone());
        let params = PatchParams::apply("chaos").force();
        ask::insist(PATIENCE, async || api.patch(name, &params, &Patch::Apply(profile)).await).await.map(drop)
    }

    /// Does what a fault says. What does not succeed is noted: people fail, too, while the API server is away.
    pub(crate) async fn act(&self, fault: &Fault) {
        let done = match fault {
            Fault::GoodEdit { profile } => self.edit(*profile, |revision| revision.ports += 1).await,
            Fault::ParameterRenamed { profile } => {
                self.edit(*profile, |revision| revision.renamed = !revision.renamed).await
            }
            Fault::BadEdit { profile, how } => self.edit_badly(*profile, *how).await,
            Fault::ProfileStage { stage } => self.edit(2, |revision| revision.stage = stage).await,
            Fault::NamespaceStage { namespace, stage } => {
                let patch = json!({"metadata": {"labels": {names::stage_label(STAGED): stage}}});
                self.patch_namespace(&format!("staged-{namespace}"), patch).await
            }
            Fault::ParameterEdited { namespace, valid } => {
                let uid = if *valid { UID.to_string() } else { "everybody".to_owned() };
                let patch = json!({"metadata": {"annotations": {"toolforge.org/uid": uid}}});
                self.patch_namespace(&format!("broken-{namespace}"), patch).await
            }
            Fault::Tampered { what } => self.tamper(*what).await,
            Fault::ProfileDeleted => self.delete_profile().await,
            Fault::DefinitionDeleted { ms } => self.delete_definition(Duration::from_millis(*ms)).await,
            Fault::Storm { namespaces } => self.storm(*namespaces).await,
            Fault::NamespacesDeleted => self.delete_namespaces().await,
            _ => Ok(()),
        };
        if let Err(error) = done {
            self.timeline.note(format!("not done: {fault}: {error}"));
        }
    }

    async fn edit(&self, profile: usize, change: impl FnOnce(&mut Revision)) -> Result {
        let mut revisions = self.revisions.lock().await;
        let revision = revisions.get_mut(profile).ok_or("no such profile")?;
        change(revision);
        self.apply(&revision.object()?).await
    }

    async fn edit_badly(&self, profile: usize, how: Mistake) -> Result {
        let revisions = self.revisions.lock().await;
        let object = revisions.get(profile).ok_or("no such profile")?.with(how)?;
        self.apply(&object).await
    }

    async fn patch_namespace(&self, name: &str, patch: Json) -> Result {
        let path = format!("/api/v1/namespaces/{name}");
        ask::insist(PATIENCE, async || {
            palisade_tests::send(&self.client, "PATCH", &path, "application/merge-patch+json", &patch).await
        })
        .await
        .map(drop)
    }

    async fn tamper(&self, what: Tamper) -> Result {
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(self.client.clone());
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.client.clone());
        let params: Api<ToolSecurityParams> = Api::namespaced(self.client.clone(), "victim-0");
        let name = names::policy(VICTIM, Shape::Pods);
        let never = json!({"spec": {"matchConditions": [{"name": "never", "expression": "false"}]}});
        let audit = json!({"spec": {"validationActions": ["Audit"]}});
        let other = json!({"spec": {"integers": {"uid": 0}}});
        match what {
            Tamper::PolicyDeleted => self.attack(what, &policies, &name, None, |now| json!(now.spec)).await,
            Tamper::PolicyEdited => self.attack(what, &policies, &name, Some(never), |now| json!(now.spec)).await,
            Tamper::BindingDeleted => self.attack(what, &bindings, &name, None, |now| json!(now.spec)).await,
            Tamper::BindingEdited => self.attack(what, &bindings, &name, Some(audit), |now| json!(now.spec)).await,
            Tamper::ParametersDeleted => self.attack(what, &params, VICTIM, None, |now| json!(now.spec)).await,
            Tamper::ParametersEdited => self.attack(what, &params, VICTIM, Some(other), |now| json!(now.spec)).await,
        }
    }

    /// Deletes or edits an object, and waits until it is as it was.
    async fn attack<K>(
        &self,
        what: Tamper,
        api: &Api<K>,
        name: &str,
        edit: Option<Json>,
        spec: fn(&K) -> Json,
    ) -> Result
    where
        K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let before = ask::insist(PATIENCE, async || api.get(name).await).await?;
        match edit {
            Some(edit) => {
                let (params, edit) = (PatchParams::default(), Patch::Merge(edit));
                ask::insist(PATIENCE, async || api.patch(name, &params, &edit).await).await.map(drop)?;
            }
            None => ask::insist(PATIENCE, async || api.delete(name, &DeleteParams::default()).await).await.map(drop)?,
        }
        let back = within(LIMIT, "it is as before", || async {
            match api.get(name).await {
                Ok(now) if spec(&now) == spec(&before) => Ok(()),
                Ok(_) => Err("it is not as before".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        });
        match back.await {
            Ok(((), took)) => self.timeline.repaired(format!("{what:?}"), took),
            Err(error) => self.timeline.late(&format!("{what:?}: {error}")),
        }
        Ok(())
    }

    async fn delete_profile(&self) -> Result {
        let api: Api<ToolSecurityProfile> = Api::all(self.client.clone());
        ask::insist(PATIENCE, async || api.delete(SHORT, &DeleteParams::default()).await).await.map(drop)?;
        let gone = within(LIMIT, "the profile is gone", || async {
            match api.get_opt(SHORT).await {
                Ok(None) => Ok(()),
                Ok(Some(found)) => Err(format!("finalizers {:?}", found.metadata.finalizers)),
                Err(error) => Err(error.to_string()),
            }
        });
        match gone.await {
            Ok(((), took)) => self.timeline.note(format!("{SHORT} was gone after {:.1} s", took.as_secs_f64())),
            Err(error) => {
                self.timeline.late(&format!("{SHORT} is not gone yet: {error}"));
                return Ok(());
            }
        }
        self.apply(&Revision::first(SHORT).object()?).await?;
        // Whoever tampers next must find it.
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(self.client.clone());
        let name = names::policy(SHORT, Shape::Pods);
        if let Err(error) = within(LIMIT, "it is there again", || async {
            policies.get(&name).await.map(drop).map_err(|error| error.to_string())
        })
        .await
        {
            self.timeline.late(&format!("{SHORT} has no policy yet: {error}"));
        }
        Ok(())
    }

    /// Deletes the definition of parameters, and with it all parameters; installs it again a little later.
    async fn delete_definition(&self, away: Duration) -> Result {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let text = std::fs::read_to_string(root().join("crds/toolsecurityparams.yaml"))?;
        let definition: Json = serde_saphyr::from_str(&text)?;
        self.definition.set_gone(true);
        if let Err(error) = ask::insist(WAY_BACK, async || api.delete(DEFINITION, &DeleteParams::default()).await).await
        {
            self.timeline.note(format!("the definition: {error}"));
        }
        let gone = within(WAY_BACK, "the definition is gone", || async {
            match api.get_opt(DEFINITION).await {
                Ok(None) => Ok(()),
                Ok(Some(found)) => Err(format!("{:?}", found.status.and_then(|status| status.conditions))),
                Err(error) => Err(error.to_string()),
            }
        });
        if let Err(error) = gone.await {
            self.timeline.late(&error);
        }
        sleep(away).await;
        let params = PatchParams::apply("chaos").force();
        ask::insist(WAY_BACK, async || api.patch(DEFINITION, &params, &Patch::Apply(&definition)).await)
            .await
            .map(drop)?;
        let installed = Instant::now();
        self.timeline.note("the definition is installed again");
        self.definition.set_gone(false);
        let back = within(LIMIT, "pods that comply are admitted again", || async {
            for namespace in ["tools-0", "tools-1", "webhook-0"] {
                let verdict = dry_run_once(&self.client, namespace, &tool_pod("job", UID)).await;
                if verdict != palisade_tests::Verdict::Admitted {
                    return Err(format!("{namespace}: {verdict:?}"));
                }
            }
            Ok(())
        });
        match back.await {
            Ok(_) => {
                let took = installed.elapsed().as_secs_f64();
                self.timeline.note(format!("namespaces were open again {took:.1} s after that"));
            }
            Err(error) => self.timeline.late(&error),
        }
        Ok(())
    }

    async fn storm(&self, count: u64) -> Result {
        let storm = self.storms.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let created = stream::iter(0..count)
            .map(|index| async move {
                let name = format!("storm-{storm}-{index}");
                if begun.elapsed() > Duration::from_mins(1)
                    || self.namespace(&name, &watch::labels(TOOLS)).await.is_err()
                {
                    return 0;
                }
                if index.is_multiple_of(20) {
                    watch::hostile_once(&self.client, &name, &self.timeline).await;
                }
                1
            })
            .buffer_unordered(16)
            .fold(0, |sum, one| async move { sum + one })
            .await;
        self.created.fetch_add(created, Ordering::Relaxed);
        self.timeline.note(format!("{created} namespaces created in {:.1} s", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Deletes half of what storms have created, and not more than Kubernetes can clear away meanwhile.
    async fn delete_namespaces(&self) -> Result {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let selector = ListParams::default().labels(&format!("tenancy={TOOLS}"));
        let found = ask::insist(PATIENCE, async || api.list(&selector).await).await?;
        let storms = found.items.into_iter().filter_map(|namespace| namespace.metadata.name);
        let half: Vec<_> = storms.filter(|name| name.starts_with("storm-")).step_by(2).take(AT_ONCE).collect();
        let deleted = stream::iter(&half)
            .map(|name| async { usize::from(api.delete(name, &DeleteParams::default()).await.is_ok()) })
            .buffer_unordered(16)
            .fold(0, |sum, one| async move { sum + one })
            .await;
        self.timeline.note(format!("{deleted} namespaces deleted"));
        Ok(())
    }

    /// A namespace whose parameter was wrong gets a valid one again.
    pub(crate) async fn mend_namespaces(&self) -> TestResult {
        for name in ["broken-0", "broken-1"] {
            let right = json!({"metadata": {"annotations": {"toolforge.org/uid": UID.to_string()}}});
            self.patch_namespace(name, right).await?;
        }
        Ok(())
    }
}

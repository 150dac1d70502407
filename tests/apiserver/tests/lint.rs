//! What `palisade lint` says of policies is what happens.

use std::{collections::BTreeSet, sync::Arc};

use palisade_admission::objects::Kinds;
use palisade_lint::{Options, control_plane_writes, lint};
use palisade_manifest::{Severity, Source, objects};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    finalizers_are_blocked_where_lint_predicts: Answers 150;
    lint_error_means_every_request_is_denied: Answers 160;
    control_plane_writes_match_the_lint_table: Answers 170;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const NAMESPACE: &str = "lint";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const FINALIZER: &str = "example.com/hold";

/// When the object is created whose finalizer is removed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Created {
    /// Before the policy was there.
    Before,
    /// Under the policy, which has to admit it.
    Under,
}

/// A policy for ConfigMaps, what lint says of the removal of finalizers, and what comes of one.
struct Case {
    name: &'static str,
    operations: &'static [&'static str],
    expression: &'static str,
    said: Option<Severity>,
    created: Created,
    /// `data.a` of the object.
    value: &'static str,
    is_denied: bool,
}

const BOTH: &[&str] = &["CREATE", "UPDATE"];

const CASES: &[Case] = &[
    Case {
        name: "plain",
        operations: BOTH,
        expression: "object.data.a == 'good'",
        said: Some(Severity::Info),
        created: Created::Before,
        value: "bad",
        is_denied: true,
    },
    Case {
        name: "plain-admitted",
        operations: BOTH,
        expression: "object.data.a == 'good'",
        said: Some(Severity::Info),
        created: Created::Under,
        value: "good",
        is_denied: false,
    },
    Case {
        name: "deletion-passes",
        operations: BOTH,
        expression: "has(object.metadata.deletionTimestamp) || object.data.a == 'good'",
        said: None,
        created: Created::Before,
        value: "bad",
        is_denied: false,
    },
    Case {
        name: "unchanged-passes",
        operations: BOTH,
        expression: "(request.operation == 'UPDATE' && object.data == oldObject.data) || object.data.a == 'good'",
        said: None,
        created: Created::Before,
        value: "bad",
        is_denied: false,
    },
    Case {
        name: "labels-only",
        operations: BOTH,
        expression: "request.operation == 'CREATE' || object.metadata.labels == oldObject.metadata.labels",
        said: None,
        created: Created::Under,
        value: "bad",
        is_denied: false,
    },
    Case {
        name: "metadata",
        operations: BOTH,
        expression: "request.operation == 'CREATE' || object.metadata == oldObject.metadata",
        said: Some(Severity::Warning),
        created: Created::Under,
        value: "bad",
        is_denied: true,
    },
    Case {
        name: "updates-only",
        operations: &["UPDATE"],
        expression: "object.data.a == 'good'",
        said: Some(Severity::Warning),
        created: Created::Under,
        value: "bad",
        is_denied: true,
    },
];

impl Case {
    fn labels(&self) -> Json {
        json!({"lint-case": self.name})
    }

    fn policy(&self) -> [(String, Json); 2] {
        policy(self.name, self.operations, self.expression)
    }

    fn map(&self, name: &str) -> Json {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("{}-{name}", self.name), "labels": self.labels(), "finalizers": [FINALIZER]},
            "data": {"a": self.value},
        })
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{}-{name}", maps(), self.name)
    }

    async fn create(&self, cluster: &Cluster, name: &str) -> TestResult {
        let created = cluster.create_at(&maps(), &self.map(name)).await;
        ensure!(created == Verdict::Admitted, "{}: {name} is not created: {created:?}", self.name);
        Ok(())
    }
}

fn maps() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

/// A policy for the ConfigMaps of a case, and its binding, each with where it is created.
fn policy(name: &str, operations: &[&str], expression: &str) -> [(String, Json); 2] {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": ["configmaps"]});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": format!("lint-{name}")},
        "spec": {
            "matchConstraints": {"resourceRules": [rule], "objectSelector": {"matchLabels": {"lint-case": name}}},
            "validations": [{"expression": expression}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": format!("lint-{name}")},
        "spec": {"policyName": format!("lint-{name}"), "validationActions": ["Deny"]},
    });
    [
        (format!("{GROUP}/validatingadmissionpolicies"), policy),
        (format!("{GROUP}/validatingadmissionpolicybindings"), binding),
    ]
}

/// What a rule of lint says of objects.
fn said(rule: &str, given: &[(String, Json)]) -> Result<Option<Severity>> {
    let text: Vec<_> = given.iter().map(|(_, object)| object.to_string()).collect();
    let source = Arc::new(Source::new("policy.yaml", text.join("\n---\n")));
    let objects = objects(&source).map_err(|problem| problem.message().to_owned())?;
    let report = lint(&objects, &Options::default());
    let found = report.findings.iter().filter(|finding| finding.rule.id == rule);
    Ok(found.map(|finding| finding.severity).max())
}

async fn apply(cluster: &Cluster, objects: &[(String, Json)]) -> TestResult {
    for (path, object) in objects {
        let created = cluster.create_at(path, object).await;
        ensure!(created == Verdict::Admitted, "{object}: {created:?}");
    }
    Ok(())
}

async fn remove(cluster: &Cluster, objects: &[(String, Json)]) -> TestResult {
    for (path, object) in objects.iter().rev() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        cluster.answer_to("DELETE", &format!("{path}/{name}"), &json!({})).await?;
    }
    Ok(())
}

pub(crate) async fn finalizers_are_blocked_where_lint_predicts(cluster: &mut Cluster) -> TestResult {
    cluster.create_namespace(NAMESPACE, &json!({}), &json!({})).await?;
    for case in CASES {
        case.create(cluster, "canary").await?;
        if case.created == Created::Before {
            case.create(cluster, "object").await?;
        }
        let found = said("blocks-finalizers", &case.policy())?;
        ensure!(found == case.said, "{}: lint says {found:?}", case.name);
        apply(cluster, &case.policy()).await?;
    }
    let mut wrong = Vec::new();
    for case in CASES {
        // It changes all that any of the policies looks at.
        let change = json!({"metadata": {"labels": {"changed": "yes"}}, "data": {"a": "worse"}});
        let canary = format!("{}?dryRun=All", case.path("canary"));
        eventually("the policy is in force", || async {
            let verdict = cluster.patch_at(&canary, &change).await;
            verdict.denial().map(|_| ()).ok_or_else(|| format!("{}: {verdict:?}", case.name))
        })
        .await?;
        if case.created == Created::Under {
            case.create(cluster, "object").await?;
        }
        cluster.answer_to("DELETE", &case.path("object"), &json!({})).await?;
        let removed = cluster.patch_at(&case.path("object"), &json!({"metadata": {"finalizers": null}})).await;
        if removed.denial().is_some() != case.is_denied {
            wrong.push(format!("{}: {removed:?}", case.name));
        }
    }
    for case in CASES {
        remove(cluster, &case.policy()).await?;
    }
    for case in CASES {
        for name in ["canary", "object"] {
            eventually("nothing holds the objects", || async {
                let free = json!({"metadata": {"finalizers": null}});
                let verdict = cluster.patch_at(&case.path(name), &free).await;
                if verdict.denial().is_none() { Ok(()) } else { Err(format!("{verdict:?}")) }
            })
            .await?;
        }
    }
    cluster.delete_namespace(NAMESPACE).await?;
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// An undefined field is an error if no request passes, and only then.
pub(crate) async fn lint_error_means_every_request_is_denied(cluster: &mut Cluster) -> TestResult {
    const SPACE: &str = "lint-types";
    cluster.create_namespace(SPACE, &json!({}), &json!({})).await?;
    let path = format!("/api/v1/namespaces/{SPACE}/configmaps?dryRun=All");
    for (name, expression, severity) in [
        ("certain", "object.dta.a == 'x'", Severity::Error),
        ("conjunction", "has(object.data) && object.dta.a == 'x'", Severity::Error),
        ("asked", "!has(object.dta)", Severity::Warning),
        ("alternative", "has(object.data) || object.dta.a == 'x'", Severity::Warning),
    ] {
        let policy = policy(name, BOTH, expression);
        let found = said("type-check", &policy)?;
        ensure!(found == Some(severity), "{expression}: lint says {found:?}");
        let map = |data: Json| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"lint-case": name}}, "data": data,
            })
        };
        // A second binding's policy shows when the first is in force, of which some deny nothing.
        let mut both = policy.to_vec();
        both[0].1["spec"]["validations"] = json!([
            {"expression": expression},
            {"expression": "!has(object.metadata.annotations) || !('probe' in object.metadata.annotations)"},
        ]);
        apply(cluster, &both).await?;
        let mut probe = map(json!({"a": "b"}));
        probe["metadata"]["annotations"] = json!({"probe": "yes"});
        eventually("the policy is in force", || async {
            let verdict = cluster.create_at(&path, &probe).await;
            verdict.denial().map(|_| ()).ok_or_else(|| format!("{verdict:?}"))
        })
        .await?;
        let mut denied = BTreeSet::new();
        for data in [json!({}), json!({"a": "b"}), Json::Null] {
            denied.insert(cluster.create_at(&path, &map(data)).await.denial().is_some());
        }
        remove(cluster, &both).await?;
        let expected = severity == Severity::Error;
        ensure!(
            if expected { denied == BTreeSet::from([true]) } else { denied.contains(&false) },
            "{expression}: {denied:?}"
        );
    }
    cluster.delete_namespace(SPACE).await?;
    Ok(())
}

/// The table of what the control plane writes is what its roles allow it to write in namespaces.
pub(crate) async fn control_plane_writes_match_the_lint_table(cluster: &mut Cluster) -> TestResult {
    let roles = cluster.answer_to("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", &json!({})).await?;
    let of_control_plane = |name: &str| {
        let everything = ["generic-garbage-collector", "namespace-controller"];
        match name.strip_prefix("system:controller:") {
            Some(controller) => !everything.contains(&controller),
            None => ["kube-controller-manager", "kube-scheduler", "node", "volume-scheduler"]
                .iter()
                .any(|one| name.strip_prefix("system:") == Some(*one)),
        }
    };
    let mut allowed = BTreeSet::new();
    for role in roles["items"].as_array().ok_or("no roles")? {
        if !of_control_plane(role["metadata"]["name"].as_str().unwrap_or_default()) {
            continue;
        }
        for rule in role["rules"].as_array().into_iter().flatten() {
            for (group, resource, verb) in texts(rule) {
                let operation = match verb.as_str() {
                    "create" => "CREATE",
                    "update" | "patch" => "UPDATE",
                    "delete" | "deletecollection" => "DELETE",
                    _ => continue,
                };
                allowed.insert((group, resource, operation));
            }
        }
    }
    ensure!(allowed.len() > 50, "only {} permissions", allowed.len());
    let minor = cluster.minor().await?;
    let writes: Vec<_> = control_plane_writes(minor).collect();
    let mut wrong = Vec::new();
    for (group, resource, operations) in &writes {
        // The API server's own start writes these two, as nobody whom a role is bound to.
        if matches!(*resource, "roles" | "rolebindings") {
            continue;
        }
        for operation in operations.split(' ') {
            // Tokens of bootstrapping are deleted by a role in kube-system.
            let in_namespace = (*resource, operation) == ("secrets", "DELETE");
            if !in_namespace && !allowed.contains(&((*group).to_owned(), (*resource).to_owned(), operation)) {
                wrong.push(format!("no role allows {operation} {resource} of {group:?}"));
            }
        }
    }
    let kinds = Kinds::builtin(minor);
    for (group, resource, operation) in &allowed {
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let served = kinds.resources().iter().find(|one| one.group == *group && one.plural == plural);
        // What is not a request of its own, has a rule of its own, or asks only.
        let other = matches!(subresource, "finalizers" | "restricted" | "scale")
            || matches!(group.as_str(), "coordination.k8s.io" | "authorization.k8s.io");
        if other || !served.is_some_and(|one| one.namespaced && one.by_default) {
            continue;
        }
        let said = writes.iter().any(|(g, r, operations)| {
            g == group && r == resource && operations.split(' ').any(|one| one == *operation)
        });
        if !said {
            wrong.push(format!("a role allows {operation} {resource} of {group:?}, which lint does not know"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Each group, resource and verb of a rule.
fn texts(rule: &Json) -> Vec<(String, String, String)> {
    let list = |key: &str| -> Vec<String> {
        rule[key].as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
    };
    let mut found = Vec::new();
    for group in list("apiGroups") {
        for resource in list("resources") {
            found.extend(list("verbs").into_iter().map(|verb| (group.clone(), resource.clone(), verb)));
        }
    }
    found
}

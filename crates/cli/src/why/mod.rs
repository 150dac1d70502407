//! `palisade why`: shows the active settings of a namespace, with the source of each.

mod tenant;

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use palisade_api::{
    Stage, ToolSecurityParamsSpec, ToolSecurityReportSpec,
    conditions::ExceptionReason,
    names::{self, Shape},
};
use palisade_cel::Minor;
use palisade_kube_json::{
    existing::anew,
    json::{Change as _, set},
    workload::Workload,
};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::{
    cluster::{ClusterArgs, could_not_run, failed},
    evaluator::{self, ProfileEvaluator},
    explained::Explained,
    input, live,
    namespaces::{self, Tenant},
    output::{self, FormatArgs},
    pods,
    profiles::{self, Accepted},
    report::{self, Failure, Problem, Source, harmless},
};

const EXAMPLES: &str = "\
Examples:
  palisade why tool-a
  palisade why tool-a --pod pod.yaml      # also explain this pod
  palisade why tool-a --pod pod/encoder   # also explain an existing pod, as if it were created now
  palisade why tool-a --object web.yaml   # also explain an object of another kind

Reads the namespace and the profiles, and the exceptions and reports of the namespace as far as permitted. With only \
the role view in the namespace, which cannot read profiles, it shows the content of the parameters and reports \
there.

Exit codes: 0 shown, 1 the pod or object is denied, 2 could not run.";

/// The arguments of `palisade why`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct WhyArgs {
    /// Namespace. The default is the namespace of the context.
    #[arg(value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Also explain a pod: a YAML or JSON file, a directory with one, - for standard input, or pod/NAME for an existing
    /// pod in the namespace.
    #[arg(long, value_name = "FILE|DIR|pod/NAME")]
    pub pod: Option<String>,
    /// Also explain an object of another kind, for example an Ingress: a YAML or JSON file, a directory with one, or - for
    /// standard input.
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "pod")]
    pub object: Option<String>,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The active settings of a namespace.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Why {
    namespace: String,
    /// Whether the profiles could be read. If not, those without parameters and without a report here are missing.
    profiles_read: bool,
    profiles: Vec<ActiveProfile>,
    /// Profiles that do not select it.
    not_selected_by: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<Explained>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ExplainedObject>,
}

/// The explanation of an object that is not a pod.
#[derive(Debug, Serialize)]
struct ExplainedObject {
    #[serde(flatten)]
    explained: Explained,
    /// Its kind, if it creates pods.
    #[serde(skip)]
    workload: Option<&'static Workload>,
}

impl Why {
    /// The explained pod or object.
    fn explained(&self) -> Option<(&Explained, Option<&'static Workload>)> {
        let of_object = || self.object.as_ref().map(|one| (&one.explained, one.workload));
        self.pod.as_ref().map(|pod| (pod, None)).or_else(of_object)
    }
}

/// The active settings of one profile.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ActiveProfile {
    profile: String,
    /// The condition Ready, and its message.
    ready: String,
    message: String,
    /// The reason why the current profile cannot be active; then all other settings are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<ActiveStage>,
    /// The reason why every pod violates the profile.
    #[serde(skip_serializing_if = "String::is_empty")]
    problem: String,
    parameters: Vec<ActiveParameter>,
    exceptions: Vec<String>,
    /// The state of the rollout, and the reason why it holds the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
    /// The violations that the background scan found.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<ToolSecurityReportSpec>,
}

#[derive(Debug, Serialize)]
struct ActiveStage {
    pods: Stage,
    /// Omitted if workloads are not evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    workloads: Option<Stage>,
    /// Omitted if no other objects are evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<Stage>,
    /// The stages of checks with a separate stage, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    checks: BTreeMap<String, Stage>,
    /// The source of the value, and the time and user of its last change if the API server recorded them.
    from: String,
}

#[derive(Debug, Serialize)]
struct ActiveParameter {
    name: String,
    value: Option<Json>,
    from: Option<String>,
}

/// The objects of a cluster, as JSON.
#[derive(Debug, Default)]
struct Live {
    namespace: Json,
    profiles: Vec<Json>,
    exceptions: Vec<Json>,
    reports: Vec<Json>,
    /// The parameters in the namespace; `None` if the profiles define all of them.
    params: Option<Vec<Json>>,
    pod: Option<Json>,
    object: Option<Json>,
    /// The version of the API server, if there is a pod or an object.
    version: Option<Minor>,
}

/// Runs the command.
pub fn run(args: &WhyArgs) -> Result<(), Failure> {
    let file = args.pod.as_ref().filter(|pod| live_pod(pod).is_none());
    let of_file = file.map(|path| pods::read(&[path.to_owned()])).transpose()?.unwrap_or_default();
    if of_file.len() > 1 {
        let message = format!("{}: must have one pod, not {}", file.map_or("", String::as_str), of_file.len());
        return Err(could_not_run(message));
    }
    let object = args.object.as_deref().map(pods::single).transpose()?;
    let mut live = args.cluster.ask(async |client| read(&client, args).await)?;
    live.pod = live.pod.or_else(|| of_file.into_iter().next());
    live.object = object;
    let why = if live.params.is_some() { tenant::answer(&live)? } else { answer(&live)? };
    output::print(&args.format.text(|| human(&why), || json!(why))?)?;
    if why.explained().is_some_and(|(explained, _)| explained.is_denied()) {
        let what = if why.pod.is_some() { "the pod" } else { "the object" };
        Err(Failure::Wrong(vec![Problem::new(format!("{what} violates a profile"))]))
    } else {
        Ok(())
    }
}

fn live_pod(argument: &str) -> Option<&str> {
    argument.strip_prefix("pod/").filter(|name| !name.contains('/') && !name.contains('.'))
}

async fn read(client: &Client, args: &WhyArgs) -> Result<Live, Failure> {
    let namespace = args.namespace.as_deref().unwrap_or_else(|| client.default_namespace());
    let core = format!("/api/v1/namespaces/{namespace}");
    let own = format!("/apis/{}", names::API_VERSION);
    let found = get(client, &core).await.map_err(|error| failed("cannot read the namespace", &error));
    let profiles = items(client, &format!("{own}/toolsecurityprofiles"), "ToolSecurityProfile").await;
    let mut live = Live::default();
    match (found, profiles) {
        (Ok(found), Err(kube::Error::Api(status))) if status.is_forbidden() => {
            report::note(&format!(
                "note: only the parameters and reports of the namespace are used: {}",
                status.message
            ));
            live.namespace = found;
            let params = format!("{own}/namespaces/{namespace}/toolsecurityparams");
            let params = items(client, &params, "ToolSecurityParams").await;
            live.params = Some(params.map_err(|error| failed("cannot list toolsecurityparams", &error))?);
        }
        (found, profiles) => {
            let profiles = profiles.map_err(|error| failed("cannot list profiles", &error));
            (live.namespace, live.profiles) = report::both(found, profiles)?;
        }
    }
    set(&mut live.namespace, &["apiVersion"], "v1");
    set(&mut live.namespace, &["kind"], "Namespace");
    for (into, resource, kind) in [
        (&mut live.exceptions, "toolsecurityexceptions", "ToolSecurityException"),
        (&mut live.reports, "toolsecurityreports", "ToolSecurityReport"),
    ] {
        match items(client, &format!("{own}/namespaces/{namespace}/{resource}"), kind).await {
            Ok(found) => *into = found,
            Err(kube::Error::Api(status)) => {
                report::note(&format!("note: {resource} are skipped: {}", status.message));
            }
            Err(error) => return Err(failed(&format!("cannot list {resource}"), &error)),
        }
    }
    if let Some(name) = args.pod.as_deref().and_then(live_pod) {
        let pod = get(client, &format!("{core}/pods/{name}")).await;
        live.pod = Some(anew(pod.map_err(|error| failed(&format!("cannot read pod {name}"), &error))?));
    }
    if args.pod.is_some() || args.object.is_some() {
        live.version = Some(live::version(client).await?);
    }
    Ok(live)
}

async fn get(client: &Client, path: &str) -> Result<Json, kube::Error> {
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    client.request(request).await
}

async fn items(client: &Client, path: &str, kind: &str) -> Result<Vec<Json>, kube::Error> {
    let mut list: Json = get(client, path).await?;
    let mut items: Vec<Json> = list.at_mut(&["items"]).as_array_mut().map(std::mem::take).unwrap_or_default();
    for item in &mut items {
        set(item, &["apiVersion"], names::API_VERSION);
        set(item, &["kind"], kind);
    }
    Ok(items)
}

/// The conclusions.
fn answer(live: &Live) -> Result<Why, Failure> {
    let all: Vec<&Json> = [&live.namespace].into_iter().chain(&live.exceptions).chain(&live.profiles).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
    let source = Arc::new(Source::new("the cluster", list.to_string()));
    let objects = input::objects(&source).map_err(Failure::fatal)?;
    let (tenants, problems) = namespaces::among(&objects);
    let name = live.namespace["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let Some(tenant) = tenants.into_iter().next() else {
        let deleted = || vec![Problem::new(format!("namespace {name} is being deleted: no profile is applied to it"))];
        return Err(Failure::CouldNotRun(if problems.is_empty() { deleted() } else { problems }));
    };
    let mut why = Why { namespace: name, profiles_read: true, ..Why::default() };
    let mut selecting = Vec::new();
    for (object, raw) in objects.iter().filter(|object| object.kind == profiles::KIND).zip(&live.profiles) {
        match profiles::accept(object) {
            Ok(accepted) if palisade_compiler::selects(&accepted.profile.spec, &tenant) => {
                why.profiles.push(of_profile(&accepted, raw, &tenant, live));
                selecting.push(accepted);
            }
            Ok(accepted) => why.not_selected_by.push(accepted.checked.profile.clone()),
            Err(found) => why.profiles.push(rejected(raw, &found)),
        }
    }
    let Some(mut object) = live.pod.clone().or_else(|| live.object.clone()) else { return Ok(why) };
    set(&mut object, &["metadata", "namespace"], why.namespace.as_str());
    let judge = ProfileEvaluator::new(&selecting, &[tenant], live.version.unwrap_or(Minor::DEFAULT), Timestamp::now())?;
    if live.pod.is_some() {
        why.pod = Some(judge.explain(None, &object).map_err(could_not_run)?);
        return Ok(why);
    }
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if selecting.is_empty() || !judge.evaluates(api_version, kind) {
        return Err(could_not_run(format!("no profile in this namespace evaluates {api_version} {kind}")));
    }
    let workload = evaluator::workload(api_version, kind);
    let explained = judge.explain(workload, &object).map_err(could_not_run)?;
    why.object = Some(ExplainedObject { explained, workload });
    Ok(why)
}

fn ready(raw: &Json) -> (String, String) {
    let conditions = raw["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    let text = |key: &str| ready.and_then(|ready| ready[key].as_str()).unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

fn rejected(raw: &Json, problems: &[Problem]) -> ActiveProfile {
    let (ready, message) = ready(raw);
    let profile = raw["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let why: Vec<_> = problems.iter().take(3).map(ToString::to_string).collect();
    ActiveProfile {
        profile,
        ready,
        message,
        rejected: Some(why.join("; ")),
        stage: None,
        problem: String::new(),
        parameters: vec![],
        exceptions: vec![],
        rollout: None,
        held: None,
        report: None,
    }
}

fn of_profile(accepted: &Accepted, raw: &Json, tenant: &Tenant, live: &Live) -> ActiveProfile {
    let (compiled, now) = (&accepted.checked, Timestamp::now());
    let profile = compiled.profile.clone();
    let (ready, message) = ready(raw);
    let params = compiled.params(tenant, tenant.requests.iter().map(|(_, request)| request), now);
    let params = params.map(|params| params.spec).unwrap_or_default();
    let report = live.reports.iter().find(|report| report["metadata"]["name"] == json!(profile));
    let report = report.and_then(|report| serde_json::from_value(report["spec"].clone()).ok());
    let rollout = raw["status"]["rollout"].as_object().filter(|_| accepted.profile.spec.rollout.is_some());
    let rollout = rollout.map(|rollout| {
        let message = rollout.get("message").and_then(Json::as_str).map(|text| format!(": {text}")).unwrap_or_default();
        let text = |key: &str| rollout.get(key).map(ToString::to_string).unwrap_or_default();
        format!("{}, wave {} of {}{message}", text("phase").replace('"', ""), text("wave"), text("waves"))
    });
    ActiveProfile {
        stage: Some(stage(accepted, tenant, &live.namespace)),
        parameters: parameters(accepted, tenant, &params),
        exceptions: exceptions(accepted, tenant, &params, now),
        problem: params.problem,
        held: tenant.annotations.get(&names::rollout_annotation(&profile)).cloned(),
        rejected: None,
        profile,
        ready,
        message,
        rollout,
        report,
    }
}

fn stage(accepted: &Accepted, tenant: &Tenant, namespace: &Json) -> ActiveStage {
    let compiled = &accepted.checked;
    let (stages, label) = (compiled.stages_in(tenant), names::stage_label(&compiled.profile));
    let from = match tenant.labels.get(&label) {
        Some(value) if !compiled.enforcement.namespace_stages.is_uniform() => {
            format!("label {label}={value}{}", written(namespace, "f:labels", &label))
        }
        _ => "the profile".to_owned(),
    };
    let checks = compiled.enforcement.checks.clone();
    let objects = stages.objects.filter(|_| compiled.bundle.judging(Shape::Objects).next().is_some());
    ActiveStage { pods: stages.pods, workloads: stages.workloads, objects, checks, from }
}

/// The manager and time of the last change of a label or annotation, from `managedFields`.
fn written(object: &Json, fields: &str, key: &str) -> String {
    let entries = object["metadata"]["managedFields"].as_array();
    let owns = |entry: &&Json| !entry["fieldsV1"]["f:metadata"][fields][format!("f:{key}")].is_null();
    let Some(entry) = entries.into_iter().flatten().find(owns) else { return String::new() };
    let text = |key: &str| entry[key].as_str().unwrap_or("unknown").to_owned();
    format!(", by {}; its labels last changed {}", text("manager"), text("time"))
}

/// The values of parameters, by name.
fn values(params: &ToolSecurityParamsSpec) -> BTreeMap<&str, Json> {
    let ToolSecurityParamsSpec { integers, strings, booleans, string_lists, .. } = params;
    let mut values: BTreeMap<&str, Json> = BTreeMap::new();
    values.extend(integers.iter().map(|(name, value)| (name.as_str(), json!(value))));
    values.extend(strings.iter().map(|(name, value)| (name.as_str(), json!(value))));
    values.extend(booleans.iter().map(|(name, value)| (name.as_str(), json!(value))));
    values.extend(string_lists.iter().map(|(name, value)| (name.as_str(), json!(value))));
    values
}

fn parameters(accepted: &Accepted, tenant: &Tenant, params: &ToolSecurityParamsSpec) -> Vec<ActiveParameter> {
    let values = values(params);
    let origins = accepted.checked.resolver.origins(tenant).into_iter();
    let parameter =
        |(name, from): (String, Option<String>)| ActiveParameter { value: values.get(&*name).cloned(), name, from };
    origins.map(parameter).collect()
}

/// The exceptions with an effect.
fn in_force(params: &ToolSecurityParamsSpec) -> impl Iterator<Item = String> + '_ {
    let everywhere = params.exceptions.iter().map(|(check, end)| format!("{check}, everywhere here, until {end}"));
    let workloads = params.workload_exceptions.iter().flat_map(|(workload, checks)| {
        checks.iter().map(move |(check, end)| format!("{check}, of {workload}, until {end}"))
    });
    let containers = params.container_exceptions.iter().map(|one| {
        let part = |name: &str, value: &str| if value.is_empty() { String::new() } else { format!(", {name} {value}") };
        let (workload, container) = (part("of", &one.workload), part("container", &one.container));
        format!("{}{workload}{container}{}, until {}", one.check, part("images", &one.image_prefix), one.expires)
    });
    everywhere.chain(workloads).chain(containers)
}

fn exceptions(accepted: &Accepted, tenant: &Tenant, params: &ToolSecurityParamsSpec, now: Timestamp) -> Vec<String> {
    let compiled = &accepted.checked;
    let asked = tenant.requests.iter().filter(|(_, request)| request.profile == compiled.profile);
    let without_effect = asked.filter_map(|(name, request)| {
        let (reason, why) = compiled.exceptions.standing(request, now);
        (reason != ExceptionReason::InForce)
            .then(|| format!("ToolSecurityException {name} has no effect; {reason}: {why}"))
    });
    in_force(params).chain(without_effect).collect()
}

fn human(why: &Why) -> String {
    let mut out = format!("namespace {}\n", why.namespace);
    if why.profiles.is_empty() && why.profiles_read {
        out.push_str("\nno profile selects it: Palisade does not evaluate its pods and other objects\n");
    }
    for profile in &why.profiles {
        section(&mut out, profile);
    }
    if !why.not_selected_by.is_empty() {
        let _ = writeln!(out, "\nnot selected by: {}", why.not_selected_by.join(", "));
    }
    if let Some((explained, workload)) = why.explained() {
        let _ = write!(out, "\n{}", explained.human(workload));
    }
    // Text of a tenant must not move the terminal's cursor.
    out.chars().map(|c| if c == '\n' { c } else { harmless(c) }).collect()
}

fn section(out: &mut String, profile: &ActiveProfile) {
    let flat = |text: &str| text.replace('\n', " ");
    let _ = writeln!(out, "\nprofile {}", profile.profile);
    let mut line = |name: &str, text: &str| {
        let _ = writeln!(out, "  {name:11} {}", flat(text));
    };
    match profile.ready.as_str() {
        "True" => line("ready", "yes"),
        tenant::UNKNOWN => {}
        _ => line("not ready", &profile.message),
    }
    if let Some(why) = &profile.rejected {
        line("rejected", &format!("{why}; the last accepted generation is active (see palisade history)"));
        return;
    }
    if let Some(ActiveStage { pods, workloads, objects, checks, from }) = &profile.stage {
        // The report in a namespace has the stage of pods only.
        let of = |name: &str, stage: &Option<Stage>| match stage {
            Some(stage) => format!(", {name} {stage}"),
            None if profile.ready == tenant::UNKNOWN => String::new(),
            None => format!(", {name} not evaluated"),
        };
        let (workloads, objects) = (of("workloads", workloads), of("other objects", objects));
        line("stage", &format!("pods {pods}{workloads}{objects} (from {from})"));
        for (check, stage) in checks {
            line("", &format!("check {check} {stage} (from the profile)"));
        }
    }
    if !profile.problem.is_empty() {
        let consequence = profile.stage.as_ref().map_or("violates the profile", |stage| stage.pods.consequence());
        line("every pod", &format!("{consequence}: {}", profile.problem));
    }
    for ActiveParameter { name, value, from } in &profile.parameters {
        let value = value.as_ref().map_or_else(|| "no value".to_owned(), ToString::to_string);
        let from = from.as_ref().map(|from| format!(" (from {from})")).unwrap_or_default();
        line("parameter", &format!("{name} = {value}{from}"));
    }
    for exception in &profile.exceptions {
        line("exception", exception);
    }
    if let Some(rollout) = &profile.rollout {
        line("rollout", rollout);
    }
    if let Some(held) = &profile.held {
        line("held", held);
    }
    if let Some(report) = &profile.report {
        let since = &report.observed_time.0;
        let workloads = if report.workloads == 1 { "workload" } else { "workloads" };
        line("violations", &format!("{} {workloads}, since {since}", report.workloads));
        for one in &report.violations {
            let stage = one.stage.map(|stage| format!(", {stage}")).unwrap_or_default();
            line("", &format!("{} [{}{stage}] {}", one.workload, one.check, one.message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(pod: Option<Json>) -> Live {
        let profile = |name: &str, spec: Json| {
            json!({
                "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile",
                "metadata": {"name": name, "generation": 1, "uid": "u"}, "spec": spec,
                "status": {"conditions": [{
                    "type": "Ready", "status": "True", "reason": "X", "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }]},
            })
        };
        let tools = profile(
            "tools",
            json!({
                "namespaceSelector": {"matchLabels": {"tenancy": "tool"}}, "baseline": "Privileged",
                "enforcement": {"pods": "Audit", "namespaceStages": "ByLabel", "checks": {"runAsUser": "Deny"}},
                "privileges": {"privileged": false},
                "parameters": [
                    {"name": "uid", "type": "Integer", "sources": [{"namespaceAnnotation": "example.org/uid"}]},
                    {"name": "team", "type": "String", "default": "nobody"},
                ],
                "users": {"runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]}},
                "exceptionRequests": {"checks": ["privileged"]},
            }),
        );
        let other = profile("other", json!({"namespaceSelector": {"matchLabels": {"tenancy": "batch"}}}));
        let broken = profile(
            "broken",
            json!({"namespaceSelector": {"matchLabels": {"tenancy": "tool"}},
                "users": {"runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$nope", "max": 7}]}}}),
        );
        Live {
            params: None,
            namespace: json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {
                    "name": "tool-a", "labels": {"tenancy": "tool", "stage.toolsecurity.dev/tools": "Warn"},
                    "annotations": {"example.org/uid": "50001", "rollout.toolsecurity.dev/tools": "wait for us"},
                    "managedFields": [{"manager": "kubectl-label", "operation": "Update", "time": "2026-02-03T04:05:06Z",
                        "fieldsV1": {"f:metadata": {"f:labels": {"f:stage.toolsecurity.dev/tools": {}}}}}],
                },
            }),
            profiles: vec![tools, other, broken],
            exceptions: vec![json!({
                "apiVersion": names::API_VERSION, "kind": "ToolSecurityException",
                "metadata": {"name": "encoder", "namespace": "tool-a", "uid": "e", "generation": 1},
                "spec": {"profile": "tools", "checks": ["privileged"], "scope": {"kind": "Pod", "name": "encoder"},
                    "reason": "x", "expires": "2099-01-01T00:00:00Z"},
            })],
            reports: vec![json!({"metadata": {"name": "tools"}, "spec": {
                "stage": "Warn", "observedTime": "2026-03-01T00:00:00Z", "workloads": 1, "checks": {"privileged": 1},
                "violations": [{"workload": "Deployment/web", "check": "privileged", "message": "is \u{1b}[2J", "objects": 2, "stage": "Audit"}],
            }})],
            pod,
            object: None,
            version: None,
        }
    }

    #[test]
    fn each_part_says_where_it_comes_from() {
        let why = answer(&live(None)).expect("an answer");
        let text = human(&why);
        for line in [
            "  stage       pods Warn, workloads Warn, other objects not evaluated (from label stage.toolsecurity.dev/tools=Warn, by kubectl-label; its labels last changed 2026-02-03T04:05:06Z)",
            "              check runAsUser Deny (from the profile)",
            "  parameter   uid = 50001 (from annotation example.org/uid)",
            "  parameter   team = \"nobody\" (from the default)",
            "  exception   ToolSecurityException encoder has no effect; AwaitingApproval: ",
            "  held        wait for us",
            "  violations  1 workload, since 2026-03-01T00:00:00Z",
            "Deployment/web [privileged, Audit] is ",
            "not selected by: other",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let broken = text.split("profile broken").nth(1).expect("a section");
        assert!(
            broken.contains("$nope is not a declared parameter")
                && broken.contains("the last accepted generation is active"),
            "{text}"
        );
    }

    #[test]
    fn a_pod_is_explained_by_the_profiles_of_the_namespace() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"securityContext": {"runAsUser": 7}, "containers": [{"name": "a", "image": "b"}]},
        });
        let why = answer(&live(Some(pod))).expect("an answer");
        let violations = &why.pod.as_ref().expect("a pod").violations;
        assert_eq!(violations.iter().map(|one| (&*one.check, one.denied)).collect::<Vec<_>>(), [("runAsUser", true)]);
        let text = human(&why);
        assert!(text.contains("Pod/p in namespace tool-a: denied (profiles: tools)\n"), "{text}");
        assert!(text.contains("~ spec.securityContext.runAsUser: 7 -> 50001"), "{text}");
    }

    #[test]
    fn other_objects_have_a_stage_and_are_explained() {
        let mut live = live(None);
        let spec = live.profiles[0].at_mut(&["spec"]);
        set(spec, &["network"], json!({"allowedServiceTypes": ["ClusterIP"]}));
        let stage = |live: &Live| {
            let why = answer(live).expect("an answer");
            let text = human(&why);
            let line = text.lines().find(|line| line.starts_with("  stage")).expect("a stage").to_owned();
            (json!(why)["profiles"][0]["stage"]["objects"].clone(), line)
        };
        let (objects, line) = stage(&live);
        assert!(objects == "Warn" && line.contains("workloads Warn, other objects Warn (from label"), "{line}");
        set(live.profiles[0].at_mut(&["spec", "enforcement"]), &["objects"], "Off");
        let (objects, line) = stage(&live);
        assert!(objects.is_null() && line.contains(", other objects not evaluated (from"), "{line}");
        live.object = Some(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]},
        }));
        assert!(answer(&live).is_err(), "no profile evaluates Services");
        set(live.profiles[0].at_mut(&["spec", "enforcement"]), &["objects"], "Deny");
        set(&mut live.namespace, &["metadata", "labels"], json!({"tenancy": "tool"}));
        let why = answer(&live).expect("an answer");
        let text = human(&why);
        assert!(text.contains("Service/web in namespace tool-a: denied (profiles: tools)\n"), "{text}");
        assert!(text.contains("[networkServices] Service: spec.type is NodePort, allowed: ClusterIP"), "{text}");
        live.object = Some(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}));
        assert!(answer(&live).is_err(), "no profile evaluates ConfigMaps");
    }

    #[test]
    fn a_namespace_that_goes_is_not_judged() {
        let mut gone = live(None);
        set(&mut gone.namespace, &["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z");
        let Err(Failure::CouldNotRun(problems)) = answer(&gone) else { panic!("an answer") };
        assert!(problems[0].to_string().contains("tool-a is being deleted"));
    }

    #[test]
    fn pod_slash_name_is_a_pod_of_the_cluster() {
        assert_eq!(live_pod("pod/encoder"), Some("encoder"));
        for file in ["pod.yaml", "-", "pod/a.yaml", "pod/a/b"] {
            assert_eq!(live_pod(file), None, "{file}");
        }
    }
}

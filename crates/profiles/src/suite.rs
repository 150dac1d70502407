//! Profiles in `palisade test`: the suite's cluster has the policies that they become, and coverage and mutants are
//! reported in terms of the profile.

use std::sync::Arc;

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use palisade_admission::requests::{Cluster, Evaluation, PolicyKind, Review, Webhook};
use palisade_api::{
    CustomCheck, Diagnostic, Location, ToolSecurityException, ToolSecurityProfile, catalogue, crd, names, objects,
};
use palisade_cel::{Minor, Position};
use palisade_compiler::{ChangedBy, Compiled, Namespace, Request};
use palisade_kube_json::{
    field_path::{FieldPath, Segment},
    json::Change as _,
};
use palisade_policy_test::{Check, Extension, Made, Replaced, Scaffolded, Text, TextKind, Wrong};
use serde_json::{Value as Json, json};

/// Profiles, for `palisade test`.
#[derive(Clone, Copy, Debug)]
pub struct Profiles;

impl Extension for Profiles {
    fn cluster(&self, minor: Minor) -> Cluster {
        palisade_gate::cluster(minor)
    }

    fn kind(&self) -> &'static str {
        "ToolSecurityProfile"
    }

    fn read(&self, object: &Json) -> Result<Arc<dyn Made>, Vec<Wrong>> {
        let typed: ToolSecurityProfile = serde_json::from_value(object.clone())
            .map_err(|error| vec![Wrong { message: error.to_string(), help: Some("see palisade render") }])?;
        let wrong = |found: Vec<Diagnostic>| {
            found.iter().map(|one| Wrong { message: one.to_string(), help: None }).collect::<Vec<_>>()
        };
        let compiled = compile(&typed).map_err(wrong)?;
        Ok(Arc::new(Profile { object: object.clone(), typed, compiled }))
    }
}

/// The compiled profile without the fast path. With it, compliant requests would skip the evaluation, so that no case
/// would execute a check or detect an error in one.
fn compile(profile: &ToolSecurityProfile) -> Result<Compiled, Vec<Diagnostic>> {
    let compiled = palisade_compiler::compile(profile)?;
    Ok(Compiled { bundle: compiled.bundle.clone().in_full(), ..compiled })
}

/// A profile, and its compiled form.
#[derive(Clone, Debug)]
struct Profile {
    object: Json,
    typed: ToolSecurityProfile,
    compiled: Compiled,
}

/// An expression: the policy, the path and the text.
type Variable<'a> = (&'a str, String, &'a str);

impl Profile {
    /// The expressions of a variable of the evaluating policies.
    fn variables(&self, variable: &str) -> Vec<Variable<'_>> {
        let policies = self.compiled.bundle.pairs().map(|(_, pair)| &pair.policy);
        let found = policies.filter_map(|policy| {
            let variables = policy.spec.as_ref()?.variables.as_ref()?;
            let index = variables.iter().position(|one| one.name == variable)?;
            let source = variables[index].expression.as_str();
            Some((policy.metadata.name.as_deref()?, format!("variables[{index}].expression"), source))
        });
        found.collect()
    }

    /// The path of the setting that turns a check on; the first one that the profile has, if there are several.
    fn setting(&self, id: &str) -> String {
        let of_pods = catalogue::ALL.iter().map(|check| (check.id, check.settings));
        let mut all = of_pods.chain(objects::ALL.iter().map(|check| (check.id, check.settings)));
        let settings = all.find(|(check, _)| *check == id).map_or(&[][..], |(_, settings)| settings);
        let is_written = |setting: &&&str| {
            let pointer = format!("/spec/{}", setting.replace('.', "/"));
            self.object.pointer(&pointer).is_some()
        };
        let setting = settings.iter().find(is_written).or(settings.first()).copied().unwrap_or_default();
        format!("spec.{setting}")
    }

    /// Results of a check: true if it found no violation (except those that an exception waives), and true if it found
    /// one.
    fn found(&self, variable: &str, id: &str, reviews: &[Review]) -> (bool, bool) {
        let (checks, exceptions) = (self.variables(variable), self.variables("excepted"));
        // Of a policy for objects: for requests of other kinds, a check has no result.
        let applies = self.variables(&palisade_compiler::applies(id));
        let is_of = |variables: &[Variable<'_>], one: &Evaluation| {
            let same = |(policy, path, _): &Variable<'_>| (*policy, path) == (&*one.policy, &one.path);
            one.kind == PolicyKind::Validating && variables.iter().any(same)
        };
        let (mut nothing, mut violation) = (false, false);
        for review in reviews {
            let some = |variables: &[Variable<'_>], of: &Evaluation, holds: &dyn Fn(&Json) -> bool| {
                let same =
                    |one: &&Evaluation| (&one.policy, &one.binding, &one.param) == (&of.policy, &of.binding, &of.param);
                review.evaluations.iter().filter(|one| is_of(variables, one)).filter(same).any(|one| holds(&one.json()))
            };
            let is_excepted = |of: &Evaluation| {
                let is_listed = |ids: &Json| ids.as_array().is_some_and(|ids| ids.contains(&Json::from(id)));
                some(&exceptions, of, &is_listed)
            };
            let is_skipped = |of: &Evaluation| some(&applies, of, &|holds| *holds == Json::Bool(false));
            for evaluation in review.evaluations.iter().filter(|one| is_of(&checks, one)) {
                let Json::Array(violations) = evaluation.json() else { continue };
                violation |= !violations.is_empty();
                nothing |= violations.is_empty() && !is_excepted(evaluation) && !is_skipped(evaluation);
            }
        }
        (nothing, violation)
    }
}

impl Made for Profile {
    fn objects(&self, others: &[&Json], now: Timestamp) -> Result<Vec<Json>, String> {
        let mut objects: Vec<Result<Json, serde_json::Error>> = Vec::new();
        let of_tenants = ["ToolSecurityException", "ToolSecurityParams"];
        let crds = crd::all().into_iter().filter(|crd| of_tenants.contains(&crd.spec.names.kind.as_str()));
        objects.extend(crds.map(serde_json::to_value));
        let namespaces: Vec<_> = others.iter().filter_map(|object| namespace(object)).collect();
        let asked: Vec<_> = others.iter().filter_map(|object| request(object)).collect();
        for one in namespaces.iter().filter(|one| palisade_compiler::selects(&self.typed.spec, one)) {
            let requests = asked.iter().filter(|(of, _)| *of == one.name).map(|(_, request)| request);
            objects.extend(self.compiled.params(one, requests, now).map(serde_json::to_value));
        }
        for (_, pair) in self.compiled.bundle.pairs() {
            objects.push(serde_json::to_value(&pair.policy).map(|json| with_type(json, "ValidatingAdmissionPolicy")));
            let bindings = pair.bindings().map(serde_json::to_value);
            objects.extend(bindings.map(|json| json.map(|json| with_type(json, "ValidatingAdmissionPolicyBinding"))));
        }
        objects.into_iter().collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    fn objects_of(&self, minor: Minor) -> Vec<Json> {
        let Some(mutation) = &self.compiled.mutation else { return vec![] };
        match (mutation.by(minor), &self.compiled.bundle.mutation) {
            (ChangedBy::Policy(served), Some(pair)) => pair.objects(served).into(),
            _ => vec![],
        }
    }

    fn webhook(&self, minor: Minor) -> Option<(String, Arc<dyn Webhook>)> {
        let mutation = self.compiled.mutation.as_ref().filter(|one| one.by(minor) == ChangedBy::Webhook)?;
        Some((mutation.profile.clone(), palisade_gate::webhook(mutation.clone())))
    }

    fn checks(&self, reviews: &[Review]) -> Vec<Check> {
        let checks = self.compiled.checks.iter().chain(&self.compiled.object_checks);
        let checks = checks.map(|id| ((*id).to_owned(), *id, self.setting(id)));
        let customs = self.compiled.customs.iter();
        let customs = customs.map(|custom| (custom.variable(), custom.check.id.as_str(), custom.path.to_string()));
        let of = |(variable, id, path): (String, &str, String)| {
            let (passes, violates) = self.found(&variable, id, reviews);
            Check { path, what: format!("check {id}"), passes, violates }
        };
        checks.chain(customs).map(of).collect()
    }

    fn origin(&self, policy: &str, path: &str, position: Position) -> Option<(String, Position)> {
        let custom = self.compiled.customs.iter().find(|custom| {
            let variables = self.variables(&custom.variable());
            variables.iter().any(|one| (one.0, one.1.as_str()) == (policy, path))
        })?;
        let Location { path, position, .. } = custom.relocate(Some((position.line, position.column)));
        let (line, column) = position?;
        Some((path.to_string(), Position { line, column }))
    }

    fn texts(&self) -> Vec<Text> {
        let mut texts = Vec::new();
        for custom in &self.compiled.customs {
            let CustomCheck { expression, message_expression, message, .. } = &custom.check;
            let mut add = |field: &str, kind, text: Option<&String>| {
                let path = custom.path.child(field).to_string();
                texts.extend(text.map(|text| Text { path, kind, text: text.clone() }));
            };
            add("expression", TextKind::Expression, Some(expression));
            add("messageExpression", TextKind::MessageExpression, message_expression.as_ref());
            add("message", TextKind::Message, message.as_ref());
        }
        texts
    }

    fn with_text(&self, path: &str, text: &str) -> Vec<Replaced> {
        let path = FieldPath::from(path);
        let Some([Segment::Index(index), Segment::Field(field)]) = path.after("customChecks") else { return vec![] };
        let mut typed = self.typed.clone();
        let Some(check) = typed.spec.custom_checks.get_mut(*index) else { return vec![] };
        match field.as_str() {
            "expression" => text.clone_into(&mut check.expression),
            "messageExpression" => check.message_expression = Some(text.to_owned()),
            _ => check.message = Some(text.to_owned()),
        }
        let Ok(compiled) = compile(&typed) else { return vec![] };
        let Some(variable) = compiled.customs.get(*index).map(palisade_compiler::Custom::variable) else {
            return vec![];
        };
        let changed = Self { compiled, ..self.clone() };
        let replaced = |(policy, path, source): Variable<'_>| Replaced {
            policy: policy.to_owned(),
            path,
            source: source.to_owned(),
        };
        changed.variables(&variable).into_iter().map(replaced).collect()
    }

    /// A compliant pod, and a violating pod for each check.
    fn scaffold(&self) -> Scaffolded {
        let (compiled, name) = (&self.compiled, self.object["metadata"]["name"].as_str().unwrap_or_default());
        let mut labels = compiled.probes.labels.clone().unwrap_or_default();
        labels.remove("kubernetes.io/metadata.name");
        let namespace = "tenant";
        let mut resources =
            vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})];
        resources.extend(compiled.probes.params.as_ref().map(|spec| {
            json!({
                "apiVersion": names::API_VERSION,
                "kind": "ToolSecurityParams",
                "metadata": {"name": names::params(name), "namespace": namespace},
                "spec": spec,
            })
        }));
        let named = |pod: &Json, name: &str| {
            let mut pod = pod.clone();
            *pod.at_mut(&["metadata"]) = json!({"name": name, "namespace": namespace});
            pod
        };
        let compliant = &compiled.probes.compliant.pod;
        let mut cases = vec![("a pod that complies".to_owned(), named(compliant, "complies"), json!("allow"))];
        let (settings, values) = (self.typed.spec.effective_settings(), compiled.resolver.sample());
        for check in catalogue::ALL.iter().filter(|check| compiled.checks.contains(&check.id)) {
            let mut violating = compliant.clone();
            if (check.violate)(&settings, &values, &mut violating) {
                let expect = json!({"verdict": "deny", "messageContains": format!("[{}]", check.id)});
                let name = format!("{}: a pod that violates it", check.id);
                cases.push((name, named(&violating, "violates"), expect));
            }
        }
        Scaffolded { resources, cases }
    }
}

fn with_type(mut object: Json, kind: &str) -> Json {
    *object.at_mut(&["apiVersion"]) = "admissionregistration.k8s.io/v1".into();
    *object.at_mut(&["kind"]) = kind.into();
    object
}

/// The parts of a Namespace that a profile reads.
fn namespace(object: &Json) -> Option<Namespace> {
    if object["kind"] != "Namespace" || object["metadata"]["deletionTimestamp"].is_string() {
        return None;
    }
    let metadata: ObjectMeta = serde_json::from_value(object["metadata"].clone()).ok()?;
    let name = metadata.name?;
    let mut labels = metadata.labels.unwrap_or_default();
    labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
    Some(Namespace { name, labels, annotations: metadata.annotations.unwrap_or_default() })
}

/// The request of a `ToolSecurityException`, and its namespace.
fn request(object: &Json) -> Option<(String, Request)> {
    if object["kind"] != "ToolSecurityException" || object["apiVersion"] != names::API_VERSION {
        return None;
    }
    let exception: ToolSecurityException = serde_json::from_value(object.clone()).ok()?;
    let namespace = exception.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
    Some((namespace, Request::from(&exception)))
}

//! First suites: for each validation of a policy an object that passes and one that does not, found by trying.

use std::{fmt::Write as _, sync::Arc};

use palisade_admission::requests::Outcome;
use palisade_kube_json::{json::Change as _, text::one_line};
use palisade_manifest::{Problem, Source as File};
use serde_json::{Value as Json, json};

use crate::{
    Extension, Scaffolded, Server,
    cluster::{self, Member, Source},
    format,
    request::{self, RequestFields},
    test_cluster::TestCluster,
};

mod guess;
pub(crate) mod objects;

/// How many objects to try a policy on. More would take too long.
const TRIES: usize = 1200;

/// The text of a suite for the policies in a file, and for the objects that an extension turns into policies. The suite
/// names it `file`.
///
/// # Errors
/// The error in the file.
pub fn scaffold(source: &Arc<File>, file: &str, server: &Server) -> Result<String, Vec<Problem>> {
    let members = cluster::members(source)?;
    let is = |kind: &'static str| members.iter().filter(move |member| member.kind() == kind);
    let mut suite = Scaffold::default();
    if let Some(extension) = server.extension {
        for member in is(extension.kind()) {
            suite.source(member, extension)?;
        }
    }
    for policy in is("ValidatingAdmissionPolicy") {
        suite.policy(policy, &members, server)?;
    }
    if suite.cases.is_empty() {
        let other = server.extension.map(|extension| format!(" and no {}", extension.kind())).unwrap_or_default();
        let message = format!("{}: there is no ValidatingAdmissionPolicy{other}", source.name());
        return Err(vec![Problem::new(message)]);
    }
    suite.write(file, !cluster::unbound(&members).is_empty())
}

/// The suite to write.
#[derive(Default)]
struct Scaffold {
    name: String,
    resources: Vec<Json>,
    /// The kinds of parameters of policies.
    params: Vec<String>,
    /// Each with a comment.
    cases: Vec<(String, Json)>,
}

impl Scaffold {
    fn write(&self, file: &str, generate_bindings: bool) -> Result<String, Vec<Problem>> {
        let yaml = |json: &Json| serde_saphyr::to_string(json).map_err(|error| vec![Problem::new(error.to_string())]);
        let mut text = format!(
            "# Written by palisade test --init {file}; run with palisade test. The objects were found automatically: replace \
             them with\n# typical objects.\n"
        );
        let _ = writeln!(text, "apiVersion: {}\nkind: {}", format::API_VERSION, format::KIND);
        text += &yaml(&json!({"metadata": {"name": self.name}, "policies": [file]}))?;
        if generate_bindings {
            text += "# Without a binding, a policy is never evaluated.\ngenerateBindings: true\n";
        }
        if !self.resources.is_empty() {
            text += &yaml(&json!({"resources": self.resources}))?;
        }
        for kind in &self.params {
            let _ = writeln!(
                text,
                "# The policy has parameters: list the files with its {kind} and its CRD.\n# resources: [params.yaml]"
            );
        }
        text += "cases:\n";
        for (comment, case) in &self.cases {
            for line in comment.lines() {
                let _ = writeln!(text, "# {line}");
            }
            for (field, value) in
                ["name", "object", "expect"].iter().filter_map(|field| Some((field, case.get(field)?)))
            {
                let lines = yaml(&json!({ *field: value }))?;
                for (index, line) in lines.lines().enumerate() {
                    let dash = if index == 0 && *field == "name" { "- " } else { "  " };
                    let _ = writeln!(text, "{dash}{line}");
                }
            }
        }
        Ok(text)
    }

    /// The cases of an extension.
    fn source(&mut self, member: &Member, extension: &dyn Extension) -> Result<(), Vec<Problem>> {
        let Scaffolded { resources, cases } = Source::new(member, extension)?.made.scaffold();
        member.name().clone_into(&mut self.name);
        self.resources.extend(resources);
        for (name, object, expect) in cases {
            self.cases.push((String::new(), json!({"name": name, "object": object, "expect": expect})));
        }
        Ok(())
    }

    /// For each validation an object that passes and one that does not.
    fn policy(&mut self, policy: &Member, members: &[Member], server: &Server) -> Result<(), Vec<Problem>> {
        if self.name.is_empty() {
            policy.name().clone_into(&mut self.name);
        }
        self.params.extend(policy.object.pointer("/spec/paramKind/kind").and_then(Json::as_str).map(str::to_owned));
        let trial = Trial::new(policy, members, server)?;
        let validations = policy.object["spec"]["validations"].as_array().map_or(&[][..], Vec::as_slice);
        let passing = trial.find(&|answer| answer.allowed && answer.evaluated);
        for (index, validation) in validations.iter().enumerate() {
            let expression = validation["expression"].as_str().unwrap_or_default();
            let name = |what: &str| format!("{}: validations[{index}]: {what}", policy.name());
            let hint =
                |what: &str| format!("{}\nFound no object that {what} this: change this one.", one_line(expression));
            let comment = if passing.is_some() { one_line(expression) } else { hint("passes") };
            let object = passing.as_ref().unwrap_or(&trial.base);
            self.cases.push((comment, json!({"name": name("passes"), "object": object, "expect": "allow"})));
            let failing = trial
                .find(&|answer| answer.denied_only_by == Some(index))
                .or_else(|| trial.find(&|answer| answer.failed.contains(&index)));
            let comment = if failing.is_some() { String::new() } else { hint("violates") };
            let mut expect = json!({"verdict": "deny", "policy": policy.name()});
            if let Some(message) = validation["message"].as_str().filter(|_| failing.is_some()) {
                *expect.at_mut(&["messageContains"]) = message.trim().into();
            }
            let object = failing.as_ref().unwrap_or(&trial.base);
            self.cases.push((comment, json!({"name": name("fails"), "object": object, "expect": expect})));
        }
        Ok(())
    }
}

/// A policy, and the objects that it was tried on.
struct Trial {
    cluster: TestCluster,
    policy: String,
    /// The smallest objects of the kinds that it matches come first.
    tried: Vec<(Json, Answer)>,
    base: Json,
}

/// A policy's answer to an object.
struct Answer {
    allowed: bool,
    evaluated: bool,
    /// The validations that are false.
    failed: Vec<usize>,
    /// The validation that alone is false, if the object is denied.
    denied_only_by: Option<usize>,
}

impl Trial {
    fn new(policy: &Member, members: &[Member], server: &Server) -> Result<Self, Vec<Problem>> {
        let (mut cluster, _, refused) = cluster::build(server, members, &[]);
        if let Some((member, why)) = refused.first() {
            let message = format!("the API server rejects {} {}: {why}", member.kind(), member.name());
            return Err(vec![member.problem(message)]);
        }
        if cluster::unbound(members).iter().any(|member| member.name() == policy.name()) {
            cluster.apply(cluster::generated_binding(policy)).map_err(|why| vec![policy.problem(why)])?;
        }
        let bases = objects::of_policy(&policy.object, cluster.kinds());
        let expressions: Vec<_> = cluster
            .expressions()
            .filter(|one| one.policy == policy.name())
            .map(|one| (one.variable.map(str::to_owned), one.source.to_owned()))
            .collect();
        let (policy, base) = (policy.name().to_owned(), bases[0].clone());
        let mut trial = Self { cluster, policy, tried: Vec::new(), base };
        let share = TRIES / bases.len();
        let candidates = bases.iter().flat_map(|base| guess::candidates(base, &expressions, share));
        for object in bases.iter().cloned().chain(candidates) {
            if let Some(answer) = trial.ask(&object) {
                trial.tried.push((object, answer));
            }
        }
        Ok(trial)
    }

    /// The first object with such an answer.
    fn find(&self, wanted: &dyn Fn(&Answer) -> bool) -> Option<Json> {
        self.tried.iter().find(|(_, answer)| wanted(answer)).map(|(object, _)| object.clone())
    }

    /// None if the API server rejects the object itself, or its answer is unknown.
    fn ask(&self, object: &Json) -> Option<Answer> {
        let asked = RequestFields {
            object: Some(object.clone()),
            user: request::user(None, None, None, None),
            ..RequestFields::default()
        };
        let review = self.cluster.admit(&asked.request(self.cluster.kinds()).ok()?);
        if crate::run::unasked(&review).is_some() || matches!(review.outcome, Outcome::NoVerdict(_)) {
            return None;
        }
        let validations: Vec<_> = review
            .evaluations
            .iter()
            .filter(|one| one.policy == self.policy && crate::expect::is_validation(one))
            .collect();
        let errors = validations.iter().any(|one| one.result.is_err());
        let failed: Vec<usize> = validations
            .iter()
            .filter(|one| matches!(&one.result, Ok(value) if value.as_bool() == Some(false)))
            .filter_map(|one| one.path["validations[".len()..].split(']').next()?.parse().ok())
            .collect();
        let only = failed.first().copied().filter(|_| failed.len() == 1 && !errors);
        let denied = matches!(review.outcome, Outcome::Denied(_));
        Some(Answer {
            allowed: review.outcome.is_allowed() && !errors,
            evaluated: !validations.is_empty(),
            denied_only_by: only.filter(|_| denied),
            failed: if denied { failed } else { Vec::new() },
        })
    }
}

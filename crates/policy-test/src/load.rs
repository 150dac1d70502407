//! From a file to a suite that can run.

use std::sync::Arc;

use palisade_cel::Minor;
use palisade_kube_json::json;
use palisade_manifest::{Problem, Source};
use serde_json::Value as Json;

use crate::{
    assemble::{Draft, MissingBinding, Question},
    assertion::Assertion,
    cluster::{DEFINITION, Member},
    format::{self, Expect, ExpectFields, Manifest, Verdict},
    import,
    loader::{Files, Loader},
    patch,
    places::Origin,
    request::{self, RequestFields},
    suite::Suite,
    test_cluster::Server,
};

/// Reads a suite of any format. None if the file has no suite.
///
/// # Errors
/// All errors in the suite, each with its place.
pub fn load(source: &Arc<Source>, files: &dyn Files, server: &Server) -> Result<Vec<Suite>, Vec<Problem>> {
    let objects = palisade_manifest::objects(source).map_err(|problem| vec![problem])?;
    let (mut suites, mut problems) = (Vec::new(), Vec::new());
    for (index, object) in objects.iter().enumerate() {
        let loader = Loader {
            files,
            source,
            index,
            object,
            server: server.clone(),
            imported: false,
            problems: Vec::new(),
            notes: Vec::new(),
        };
        let loaded = if object.kind == format::KIND || object.api_version.starts_with("test.toolsecurity.dev") {
            loader.suite()
        } else if import::kaptest::is(object) {
            import::kaptest::suite(loader)
        } else if import::kyverno::is(object) {
            import::kyverno::suite(loader)
        } else {
            continue;
        };
        match loaded {
            Ok(suite) => suites.push(suite),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(suites) } else { Err(problems) }
}

impl Loader<'_> {
    /// The objects that are named or in place at `path`.
    fn manifest(&mut self, path: &str, manifest: &Manifest) -> Vec<Member> {
        match manifest {
            Manifest::File(file) => self.file(path, file),
            Manifest::Inline(object) => {
                if !object["apiVersion"].is_string() || !object["kind"].is_string() {
                    self.problem(
                        path,
                        format!("{path}: this is not a Kubernetes object: it has no apiVersion and kind"),
                    );
                    return Vec::new();
                }
                let origin = Origin { prefix: path.to_owned(), ..Origin::new(self.source, self.index) };
                vec![Member { object: object.clone(), origin }]
            }
            Manifest::Of(wanted) => {
                let before = self.problems.len();
                let mut found = self.file(path, &wanted.file);
                found.retain(|member| {
                    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|one| one == found);
                    is(&wanted.kind, member.kind())
                        && is(&wanted.name, member.name())
                        && is(
                            &wanted.namespace,
                            member.object.pointer("/metadata/namespace").and_then(Json::as_str).unwrap_or_default(),
                        )
                });
                if found.is_empty() && self.problems.len() == before {
                    self.problem(path, format!("{path}: there is no such object in {:?}", wanted.file));
                }
                found
            }
        }
    }

    /// The one object at `path`.
    fn object(&mut self, path: &str, manifest: Option<&Manifest>) -> Option<Json> {
        let before = self.problems.len();
        let mut found = self.manifest(path, manifest?);
        match found.len() {
            1 => found.pop().map(|member| member.object),
            0 => {
                if self.problems.len() == before {
                    self.problem(path, format!("{path}: there is no object in this file"));
                }
                None
            }
            many => {
                let message = format!("{path}: there are {many} objects in this file");
                let problem = self.object.problem(path, message);
                self.problems.push(problem.help("name one: {file: ..., kind: ..., name: ...}"));
                None
            }
        }
    }

    fn suite(mut self) -> Result<Suite, Vec<Problem>> {
        let suite: format::Suite = self.object.parse_own().map_err(|mistake| vec![mistake.problem])?;
        for (path, found, expected) in
            [("apiVersion", &suite.api_version, format::API_VERSION), ("kind", &suite.kind, format::KIND)]
        {
            if found != expected {
                self.problem(path, format!("{path}: {found:?} is not {expected}"));
            }
        }
        self.server.minor = self.minor("kubeVersion", suite.kube_version.as_ref());
        let mut members = Vec::new();
        for (list, manifests) in [("policies", &suite.policies), ("resources", &suite.resources)] {
            for (index, manifest) in manifests.iter().enumerate() {
                members.extend(self.manifest(&format!("{list}[{index}]"), manifest));
            }
        }
        let mut drafts = Vec::new();
        for (index, case) in suite.cases.iter().enumerate() {
            self.case(&format!("cases[{index}]"), case, &suite.defaults, &mut drafts);
        }
        if suite.cases.is_empty() {
            self.problem("cases", "cases: must not be empty");
        }
        let is_tested = |member: &Member| member.kind() == DEFINITION;
        if suite.policies.is_empty()
            && !members.iter().any(is_tested)
            && drafts.iter().all(|draft| draft.expect.verdict != Verdict::Invalid)
        {
            let problem = self.object.problem("metadata", "policies: must not be empty: nothing is tested");
            self.problems.push(problem.help(
                "add policies, a CustomResourceDefinition in resources, or a case that expects an invalid object",
            ));
        }
        let name = if suite.metadata.name.is_empty() { self.source.name().to_owned() } else { suite.metadata.name };
        let unbound = if suite.generate_bindings { MissingBinding::Bind } else { MissingBinding::Note };
        self.finish(name, members, drafts, unbound)
    }

    fn case(&mut self, path: &str, case: &format::Case, defaults: &format::Defaults, drafts: &mut Vec<Draft>) {
        let asked = RequestFields {
            object: self.object(&format!("{path}.object"), case.object.as_ref()),
            old: self.object(&format!("{path}.old"), case.old.as_ref()),
            operation: case.operation,
            subresource: case.subresource.clone().unwrap_or_default(),
            namespace: case.namespace.clone().or_else(|| defaults.namespace.clone()),
            user: request::user(
                case.user.clone().or_else(|| defaults.user.clone()),
                case.uid.clone(),
                case.groups.clone().or_else(|| defaults.groups.clone()),
                case.extra.clone(),
            ),
            dry_run: case.dry_run,
        };
        let minor = self.minor(&format!("{path}.kubeVersion"), case.kube_version.as_ref());
        if case.expect.is_none() && case.variants.is_empty() {
            self.problem(path, format!("{path}: nothing is expected: add expect, or variants"));
        }
        if case.object.is_none() && case.old.is_none() && case.review.is_none() {
            self.problem(path, format!("{path}: nothing is requested: add object, old or review"));
        }
        let range = self.object.node.place(&format!("{path}.name"));
        let expected = case.expect.as_ref().map(|expect| self.expectation(path, expect, minor));
        if let Some(review) = self.object(&format!("{path}.review"), case.review.as_ref()) {
            if case.object.is_some() || case.old.is_some() || !case.variants.is_empty() {
                self.problem(path, format!("{path}: review cannot be combined with object, old or variants"));
            }
            match request::of_review(&review) {
                Err(error) => self.problem(&format!("{path}.review"), format!("{path}.review: {error}")),
                Ok(request) => drafts.extend(expected.map(|(expect, assertions)| Draft {
                    name: case.name.clone(),
                    range,
                    minor,
                    asked: Question::Review(Box::new(request)),
                    expect,
                    assertions,
                    extra: vec![],
                    open: None,
                })),
            }
            return;
        }
        drafts.extend(expected.map(|(expect, assertions)| Draft {
            name: case.name.clone(),
            range,
            minor,
            asked: Question::Fields(Box::new(asked.clone())),
            expect,
            assertions,
            extra: vec![],
            open: None,
        }));
        for (index, variant) in case.variants.iter().enumerate() {
            let path = format!("{path}.variants[{index}]");
            let Some(asked) = self.variant(&path, &asked, variant) else { continue };
            let minor = match &variant.kube_version {
                Some(_) => self.minor(&format!("{path}.kubeVersion"), variant.kube_version.as_ref()),
                None => minor,
            };
            let (expect, assertions) = self.expectation(&path, &variant.expect, minor);
            drafts.push(Draft {
                name: format!("{}: {}", case.name, variant.name),
                range: self.object.node.place(&format!("{path}.name")),
                minor,
                asked: Question::Fields(Box::new(asked)),
                expect,
                assertions,
                extra: vec![],
                open: None,
            });
        }
    }

    /// The expectation of a case or variant, and its assertions compiled.
    fn expectation(&mut self, path: &str, expect: &Expect, minor: Minor) -> (ExpectFields, Vec<Assertion>) {
        let Expect(expect) = expect;
        if expect.field.is_some() && expect.verdict != Verdict::Invalid {
            let path = format!("{path}.expect.field");
            self.problem(&path, format!("{path}: only an invalid object has field errors"));
        }
        let mut assertions = Vec::new();
        for (index, source) in expect.assert.0.iter().enumerate() {
            let list = format!("{path}.expect.assert[{index}]");
            let place = if self.object.node.at(&list).is_some() { list } else { format!("{path}.expect.assert") };
            match Assertion::new(source, minor) {
                Ok(assertion) => assertions.push(assertion),
                Err(issues) => {
                    for issue in issues {
                        let at = format!("{place}:{}", issue.position);
                        let problem = self.object.problem(&at, format!("{place}: {}", issue.message));
                        self.problems.push(match issue.help {
                            Some(help) => problem.help(help),
                            None => problem,
                        });
                    }
                }
            }
        }
        (expect.clone(), assertions)
    }

    fn variant(&mut self, path: &str, base: &RequestFields, variant: &format::Variant) -> Option<RequestFields> {
        let mut asked = base.clone();
        let before = self.problems.len();
        if let Some(operation) = variant.operation {
            asked.operation = Some(operation);
        }
        if let Some(subresource) = &variant.subresource {
            asked.subresource.clone_from(subresource);
        }
        for (given, place) in [(&variant.user, &mut asked.user.name)]
            .into_iter()
            .filter_map(|(given, place)| Some((given.as_ref()?, place)))
        {
            place.clone_from(given);
        }
        if let Some(groups) = &variant.groups {
            asked.user.groups.clone_from(groups);
        }
        for (field, patch, target) in
            [("patch", &variant.patch, &mut asked.object), ("patchOld", &variant.patch_old, &mut asked.old)]
        {
            match (patch, target) {
                (Some(patch), Some(target)) => json::merge(target, patch),
                (Some(_), None) => {
                    self.problem(&format!("{path}.{field}"), format!("{path}.{field}: there is no object"));
                }
                (None, _) => {}
            }
        }
        // The object of a deletion is the old one.
        let target = if asked.object.is_some() { &mut asked.object } else { &mut asked.old };
        if let Some(object) = target {
            for (field, value) in &variant.set {
                if let Err(error) = patch::set(object, field, value.clone()) {
                    self.problem(&format!("{path}.set.{field}"), format!("{path}.set: {field}: {error}"));
                }
            }
            for (index, field) in variant.unset.iter().enumerate() {
                if let Err(error) = patch::unset(object, field) {
                    self.problem(&format!("{path}.unset[{index}]"), format!("{path}.unset: {error}"));
                }
            }
            if let Some(namespace) = &variant.namespace {
                request::set_namespace(object, namespace);
            }
        }
        (self.problems.len() == before).then_some(asked)
    }
}

//! The linted objects, as rules see them.

use std::{cell::OnceCell, collections::BTreeMap};

use palisade_admission::{
    create::{self, Names, Refused},
    objects::{Kinds, Submission},
};
use palisade_cel::{
    Minor,
    schema::{Kind, Schemas, TypeCheck},
};
use palisade_manifest::{Mistake, Object};
use serde_json::Value as Json;

use crate::{
    Extension, ExtensionFinding, NotMade, Options, Report, discovery,
    item::{DEFINITION, Item},
    policy::Policy,
    presence::{Known, Presence},
};

/// The group of admission policies.
const GROUP: &str = "admissionregistration.k8s.io";

/// The end of the kinds `ValidatingWebhookConfiguration` and `MutatingWebhookConfiguration`.
const WEBHOOKS: &str = "WebhookConfiguration";

/// The most bytes of a request (apiserver `MaxRequestBodyBytes`).
pub(crate) const MAX_OBJECT: usize = 3 << 20;

/// All that is linted.
pub(crate) struct Cluster<'a> {
    /// The minor version of Kubernetes.
    pub minor: Minor,
    /// The schemas of built-in kinds, and those that CRDs in the input define.
    pub schemas: Schemas,
    /// The resources of those kinds.
    pub names: Names,
    /// The kinds that CRDs in the input define.
    pub crds: Vec<Item<'a>>,
    /// Policies that the API server accepts.
    pub policies: Vec<Policy<'a>>,
    /// Their bindings, as far as the API server accepts them.
    pub bindings: Vec<Item<'a>>,
    /// Objects of other kinds, parameters among them.
    pub others: Vec<Item<'a>>,
    /// The API server's answer to each policy, binding, registration of webhooks and CRD: its rejection, or its
    /// warnings.
    pub said: Vec<(Item<'a>, Result<Vec<String>, Refused>)>,
    /// The same for parameters with their CRD in the input.
    pub said_of_params: Vec<(Item<'a>, Result<Vec<String>, Refused>)>,
    /// Objects that could not be read.
    pub unreadable: Vec<(&'a Object<'a>, Box<Mistake>)>,
    /// The findings of the extension's rules.
    pub of_extension: Vec<(Item<'a>, ExtensionFinding)>,
    /// The extension of a product.
    pub extension: Option<&'static dyn Extension>,
    /// Objects of kinds that no rule checks; they are not parsed.
    pub skipped: Vec<&'a Object<'a>>,
    kinds: OnceCell<Kinds>,
    presence: OnceCell<Presence>,
}

/// Whether an object is of a kind that is always linted.
fn is_linted(object: &Object<'_>, extension: Option<&dyn Extension>) -> bool {
    let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
    match group {
        GROUP => object.kind.contains("AdmissionPolicy") || object.kind.ends_with(WEBHOOKS),
        _ if makes_policies(object, extension) => true,
        // Earlier versions have other fields, and none is served.
        _ => object.api_version == "apiextensions.k8s.io/v1" && object.kind == DEFINITION,
    }
}

/// Whether policies are generated from objects of its kind.
fn makes_policies(object: &Object<'_>, extension: Option<&dyn Extension>) -> bool {
    let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
    let mut kinds = extension.map_or(&[][..], Extension::kinds).iter();
    kinds.any(|one| one.makes_policies && one.group == group && one.kind == object.kind)
}

impl<'a> Cluster<'a> {
    /// Sorts objects by what rules do with them.
    pub fn new(objects: &'a [Object<'a>], options: &Options, report: &mut Report) -> Self {
        let minor = options.minor;
        let mut cluster = Self {
            minor,
            schemas: Schemas::builtin(minor).unwrap_or_default(),
            names: Names::default(),
            crds: Vec::new(),
            policies: Vec::new(),
            bindings: Vec::new(),
            others: Vec::new(),
            said: Vec::new(),
            said_of_params: Vec::new(),
            unreadable: Vec::new(),
            of_extension: Vec::new(),
            extension: options.extension,
            skipped: Vec::new(),
            kinds: OnceCell::new(),
            presence: OnceCell::new(),
        };
        cluster.names.add_builtin(cluster.schemas.kinds().cloned());
        let (own, others): (Vec<_>, Vec<_>) = objects.iter().partition(|object| is_linted(object, options.extension));
        let items = cluster.read(&own);
        // Definitions first, whatever the order of the files.
        let (crds, rest): (Vec<_>, Vec<_>) = items.into_iter().partition(Item::is_definition);
        for item in crds {
            report.objects += 1;
            cluster.define(&item.json);
            cluster.said.push((item.copy(), create::create(minor, &item.json, None)));
            cluster.crds.push(item);
        }
        let of_extension = |item: &Item<'_>| makes_policies(item.object, options.extension);
        if rest.iter().any(of_extension) {
            for crd in options.extension.map(Extension::definitions).unwrap_or_default() {
                cluster.define(&crd);
            }
        }
        report.objects += rest.len();
        let mut made = Vec::new();
        for item in rest {
            match options.extension.filter(|_| of_extension(&item)) {
                Some(extension) => made.extend(cluster.make(item, extension)),
                None => cluster.judge(item),
            }
        }
        let objects: Vec<_> = made.iter().map(|item| item.object).collect();
        let reported = options.extension.map(|extension| extension.findings(&objects)).unwrap_or_default();
        cluster
            .of_extension
            .extend(reported.into_iter().filter_map(|(index, reported)| Some((made.get(index)?.copy(), reported))));
        // Objects that are not parameters of any policy are not even parsed: their size and depth cost nothing.
        let known = cluster.param_kinds();
        let is_param = |object: &&Object<'_>| known.contains_key(&(object.api_version.clone(), object.kind.clone()));
        let (params, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_param);
        drop(known);
        cluster.others = cluster.read(&params);
        report.objects += cluster.others.len();
        cluster.validate_params();
        for object in others {
            let kind = if object.kind.is_empty() { "without kind" } else { &object.kind };
            *report.skipped.entry(kind.to_owned()).or_default() += 1;
            cluster.skipped.push(object);
        }
        cluster
    }

    fn read(&mut self, objects: &[&'a Object<'a>]) -> Vec<Item<'a>> {
        let mut items = Vec::new();
        for object in objects {
            if object.node.span.len() > MAX_OBJECT {
                let message = format!("larger than {} MiB, the limit of the API server", MAX_OBJECT >> 20);
                let problem = object.problem("", message);
                self.unreadable.push((object, Box::new(Mistake { unknown_field: false, problem })));
                continue;
            }
            match object.json_without_repetition() {
                Ok(json) => items.push(Item { object, generated: false, kind: object.kind.clone(), json }),
                Err(mistake) => self.unreadable.push((object, mistake)),
            }
        }
        items
    }

    /// Collects the API server's answers to parameters whose definition is in the input and accepted.
    fn validate_params(&mut self) {
        let accepted = |said: &&(Item<'a>, Result<_, Refused>)| !matches!(said.1, Err(Refused::Status(_)));
        let crds = self.said.iter().filter(accepted).map(|(item, _)| item).filter(|item| item.is_definition());
        let defined: Vec<Json> = crds.map(|item| item.json.clone()).collect();
        let is_of = |crd: &Json, item: &Item<'_>| {
            let group = item.object.api_version.split_once('/').map_or("", |(group, _)| group);
            crd["spec"]["group"] == *group && crd["spec"]["names"]["kind"] == *item.kind
        };
        if !self.others.iter().any(|item| defined.iter().any(|crd| is_of(crd, item))) {
            return;
        }
        let mut kinds = Kinds::builtin(self.minor);
        // If a definition cannot be served, the API server has rejected it already.
        for crd in &defined {
            drop(kinds.add_crd(crd));
        }
        for item in self.others.iter().filter(|item| defined.iter().any(|crd| is_of(crd, item))) {
            let Some(resource) = kinds.by_kind(&item.object.api_version, &item.kind) else { continue };
            let namespace = item.json["metadata"]["namespace"].as_str().unwrap_or("default");
            let namespace = if resource.namespaced { namespace } else { "" };
            let sent = Submission { resource, subresource: "", namespace, object: &item.json, old: None };
            let said = kinds.decode(sent).and_then(|received| {
                kinds.validate(Submission { object: &received.object, ..sent }, &received.object)?;
                Ok(received.warnings)
            });
            self.said_of_params.push((item.copy(), said.map_err(Refused::from)));
        }
    }

    fn define(&mut self, crd: &Json) {
        self.schemas.add_crd(crd);
        self.names.add_crd(crd);
    }

    /// Collects the API server's answer to a policy, a binding or a registration of webhooks.
    fn judge(&mut self, item: Item<'a>) {
        let said = create::create(self.minor, &item.json, None);
        let taken = !matches!(said, Err(Refused::Status(_)));
        self.said.push((item.copy(), said));
        if !taken || item.kind.ends_with(WEBHOOKS) {
            return;
        }
        if item.kind.ends_with("Binding") {
            self.bindings.push(item);
        } else {
            self.policies.push(Policy::new(item, self.minor));
        }
    }

    /// Lints the policies that an object becomes like those in the input. Returns the object, if it becomes some.
    fn make(&mut self, item: Item<'a>, extension: &dyn Extension) -> Option<Item<'a>> {
        match extension.make(item.object) {
            Ok(objects) => {
                for json in objects {
                    let kind = json["kind"].as_str().unwrap_or_default().to_owned();
                    self.judge(Item { object: item.object, generated: true, kind, json });
                }
                return Some(item);
            }
            Err(NotMade::Unreadable(mistake)) => self.unreadable.push((item.object, mistake)),
            Err(NotMade::Rejected(reported)) => {
                self.of_extension.extend(reported.into_iter().map(|one| (item.copy(), one)));
            }
        }
        None
    }

    /// The kinds that the API server serves.
    pub fn kinds(&self) -> &Kinds {
        self.kinds.get_or_init(|| discovery::served(self.minor, &self.crds))
    }

    /// Whether each object of a kind has a field: see [`Presence::always`].
    pub fn always_has(&self, kind: &Kind, path: &str, field: &str) -> Option<bool> {
        let presence = self.presence.get_or_init(|| Presence::new(self.minor));
        presence.always(Known { schemas: &self.schemas, kinds: self.kinds() }, kind, path, field)
    }

    /// The check of a policy's types.
    pub fn type_check<'p>(&self, policy: &'p Policy<'_>) -> Option<&'p TypeCheck> {
        policy.type_check(self.minor, &self.schemas, &self.names)
    }

    /// The kinds of parameters, with the policies that have them.
    pub fn param_kinds(&self) -> BTreeMap<(String, String), Vec<&Policy<'a>>> {
        let mut kinds = BTreeMap::<_, Vec<_>>::new();
        for policy in &self.policies {
            if let Some(kind) = policy.param_kind() {
                kinds.entry(kind).or_default().push(policy);
            }
        }
        kinds
    }

    /// The bindings of a policy.
    pub fn bindings_of<'s>(&'s self, policy: &'s Policy<'a>) -> impl Iterator<Item = &'s Item<'a>> {
        self.bindings.iter().filter(|binding| {
            binding.kind == format!("{}Binding", policy.item.kind)
                && binding.json["spec"]["policyName"] == *policy.item.name()
        })
    }

    /// The policy of a binding.
    pub fn policy_of(&self, binding: &Item<'_>) -> Option<&Policy<'a>> {
        self.policies.iter().find(|policy| {
            binding.kind == format!("{}Binding", policy.item.kind)
                && binding.json["spec"]["policyName"] == *policy.item.name()
        })
    }
}

//! `spec.generate`: from templates and the parameters of a namespace to the objects that it must have.
//!
//! Parameters are inserted into strings of the parsed template, so that a value never changes its structure.

mod mistakes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use palisade_api::{
    DeletionPolicy, Diagnostic, ObjectTemplate, ParameterName, ParameterType, Resolved, ToolSecurityProfileSpec, names,
};
use palisade_checks::{Piece, pieces};
use palisade_kube_json::{json::set, selector::matches, text::fnv1a};
use serde_json::{Map, Value as Json};

use crate::resolve::{Namespace, Resolver};

/// The longest object, in bytes of JSON.
const MAX_OBJECT: usize = 64 * 1024;

/// The templates of a profile.
#[derive(Clone, Debug, Default)]
pub struct Templates {
    profile: String,
    all: Vec<Template>,
}

#[derive(Clone, Debug)]
struct Template {
    template: ObjectTemplate,
    object_type: ObjectType,
}

/// A kind of objects, as manifests name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectType {
    /// `apiVersion`
    pub api_version: String,
    /// `kind`
    pub kind: String,
}

impl std::fmt::Display for ObjectType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}

/// An object that a namespace must have.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedObject {
    /// The name of its template.
    pub template: String,
    /// Its kind.
    pub object_type: ObjectType,
    /// `metadata.name`
    pub name: String,
    /// The whole object, with the labels and annotations of the controller.
    pub object: Json,
    /// A digest of it, which it also has as an annotation.
    pub digest: String,
    /// Whether it takes over an object of another owner.
    pub adopt: bool,
}

/// A template in a namespace: its object, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedTemplate {
    /// The name of the template.
    pub template: String,
    /// The object, or a message for the administrator.
    pub object: Result<GeneratedObject, String>,
}

impl Templates {
    /// The templates of a profile, and the errors in them.
    pub(crate) fn new(
        profile: &str,
        spec: &ToolSecurityProfileSpec,
        parameters: &BTreeMap<ParameterName, ParameterType>,
    ) -> (Self, Vec<Diagnostic>) {
        let diagnostics = mistakes::of(&spec.generate, parameters);
        let template = |template: &ObjectTemplate| Template {
            object_type: object_type(&template.template),
            template: template.clone(),
        };
        (Self { profile: profile.to_owned(), all: spec.generate.iter().map(template).collect() }, diagnostics)
    }

    /// True if the profile generates no objects.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The kinds of the objects, each with the index of its first template.
    pub fn object_types(&self) -> BTreeMap<&ObjectType, usize> {
        let all = self.all.iter().enumerate().rev();
        all.map(|(index, template)| (&template.object_type, index)).collect()
    }

    /// The selectors of namespaces, each with the index of its template.
    pub fn selectors(&self) -> impl Iterator<Item = (usize, &LabelSelector)> {
        self.all.iter().enumerate().filter_map(|(index, one)| Some((index, one.template.namespace_selector.as_ref()?)))
    }

    /// The objects of a namespace that the profile selects, in the order of the templates. A template whose selector
    /// does not match the namespace gives none.
    pub fn resolve(&self, resolver: &Resolver, namespace: &Namespace) -> Vec<ResolvedTemplate> {
        let mut seen = BTreeMap::new();
        let mut resolved = Vec::new();
        for one in &self.all {
            let selector = one.template.namespace_selector.as_ref();
            if selector.is_some_and(|selector| !matches(selector, &namespace.labels)) {
                continue;
            }
            let name = &one.template.name;
            let mut object = self.object(one, resolver, namespace);
            if let Ok(found) = &object
                && let Some(other) = seen.insert((found.object_type.clone(), found.name.clone()), name.clone())
            {
                object = Err(format!("gives {} {}, as template {other} does", found.object_type.kind, found.name));
            }
            resolved.push(ResolvedTemplate { template: name.clone(), object });
        }
        resolved
    }

    fn object(&self, one: &Template, resolver: &Resolver, namespace: &Namespace) -> Result<GeneratedObject, String> {
        let Template { template, object_type } = one;
        let mut values = BTreeMap::new();
        let mut used = BTreeSet::new();
        references(&Json::Object(template.template.clone()), &mut used);
        for name in used {
            let value = resolver.value(namespace, &name).map_err(|problem| format!("parameter {name} {problem}"))?;
            values.insert(name, value);
        }
        let mut object = Json::Object(
            template
                .template
                .iter()
                .map(|(key, value)| (key.clone(), substituted(value, &values, key != "metadata")))
                .collect(),
        );
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if !mistakes::is_name(&name) {
            return Err(format!("metadata.name is {name:?}, which is not a valid name"));
        }
        set(&mut object, &["metadata", "namespace"], namespace.name.clone());
        for (key, value) in [
            (names::MANAGED_BY_LABEL, names::MANAGED_BY),
            (names::PROFILE_LABEL, self.profile.as_str()),
            (names::TEMPLATE_LABEL, template.name.as_str()),
        ] {
            set(&mut object, &["metadata", "labels", key], value);
        }
        if template.deletion_policy == DeletionPolicy::Orphan {
            set(&mut object, &["metadata", "annotations", names::DELETION_POLICY_ANNOTATION], "Orphan");
        }
        let text = object.to_string();
        if text.len() > MAX_OBJECT {
            return Err(format!("has {} bytes, more than {MAX_OBJECT}", text.len()));
        }
        let digest = format!("{:016x}", fnv1a(text.as_bytes()));
        set(&mut object, &["metadata", "annotations", names::DIGEST_ANNOTATION], digest.clone());
        let (template, adopt) = (template.name.clone(), template.adopt);
        Ok(GeneratedObject { template, object_type: object_type.clone(), name, object, digest, adopt })
    }
}

fn object_type(template: &Map<String, Json>) -> ObjectType {
    let text = |field: &str| template.get(field).and_then(Json::as_str).unwrap_or_default().to_owned();
    ObjectType { api_version: text("apiVersion"), kind: text("kind") }
}

/// Adds the parameters that the strings of a value refer to.
fn references(value: &Json, found: &mut BTreeSet<ParameterName>) {
    match value {
        Json::String(text) => {
            let of_text = pieces(text).unwrap_or_default();
            found.extend(of_text.into_iter().filter_map(|piece| match piece {
                Piece::Reference(name) => Some(name.to_owned()),
                Piece::Literal(_) => None,
            }));
        }
        Json::Array(values) => values.iter().for_each(|value| references(value, found)),
        Json::Object(fields) => fields.values().for_each(|value| references(value, found)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// The value with the values of parameters. `typed`: a string that is exactly one reference becomes a value of the
/// parameter's type.
fn substituted(value: &Json, values: &BTreeMap<ParameterName, Resolved>, typed: bool) -> Json {
    match value {
        Json::String(text) => string(text, values, typed),
        Json::Array(elements) => elements.iter().map(|element| substituted(element, values, typed)).collect(),
        Json::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), substituted(value, values, typed)));
            Json::Object(fields.collect())
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => value.clone(),
    }
}

fn string(text: &str, values: &BTreeMap<ParameterName, Resolved>, typed: bool) -> Json {
    // Texts that are no references are errors of the profile.
    let pieces = pieces(text).unwrap_or_default();
    if let ([Piece::Reference(name)], true) = (pieces.as_slice(), typed) {
        return match values.get(*name) {
            Some(Resolved::Integer(number)) => (*number).into(),
            Some(Resolved::Boolean(value)) => (*value).into(),
            Some(Resolved::String(text)) => text.clone().into(),
            Some(Resolved::StringList(texts)) => texts.clone().into(),
            None => Json::Null,
        };
    }
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Literal(text) => (*text).to_owned(),
        Piece::Reference(name) => match values.get(*name) {
            Some(Resolved::Integer(number)) => number.to_string(),
            Some(Resolved::Boolean(value)) => value.to_string(),
            Some(Resolved::String(text)) => text.clone(),
            Some(Resolved::StringList(texts)) => texts.join(","),
            None => String::new(),
        },
    });
    texts.collect::<String>().into()
}

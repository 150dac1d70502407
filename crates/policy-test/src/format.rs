//! The file format of a suite, `palisade-test.yaml` or `*.test.yaml`.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value as Json;

/// The `apiVersion` of a suite.
pub const API_VERSION: &str = "test.toolsecurity.dev/v1alpha1";
/// The `kind` of a suite.
pub const KIND: &str = "PolicyTest";

/// Tests of admission policies: a cluster built from files, and requests with the expected answers of the API server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suite {
    /// The version of the format: test.toolsecurity.dev/v1alpha1.
    #[schemars(extend("const" = API_VERSION))]
    pub api_version: String,
    /// PolicyTest
    #[schemars(extend("const" = KIND))]
    pub kind: String,
    /// The name of the suite. Default: the name of its file.
    #[serde(default)]
    pub metadata: Metadata,
    /// The objects under test: files, or inline objects. ValidatingAdmissionPolicies, MutatingAdmissionPolicies, their
    /// bindings, and ToolSecurityProfiles. File names are relative to the suite. Optional if the resources include a
    /// CustomResourceDefinition, or if a case expects an invalid object.
    #[serde(default)]
    pub policies: Vec<Manifest>,
    /// Other objects in the cluster: parameters, CustomResourceDefinitions, Namespaces. If no file has the namespace of
    /// a request, it exists without labels.
    #[serde(default)]
    pub resources: Vec<Manifest>,
    /// Create a binding for each policy without one in the files, for a ValidatingAdmissionPolicy with validationActions
    /// [Deny]. Without a binding, a policy is never evaluated.
    #[serde(default)]
    pub generate_bindings: bool,
    /// The version of the API server, such as 1.36. A case can override it. Default: --kube-version.
    pub kube_version: Option<String>,
    /// Defaults for all cases.
    #[serde(default)]
    pub defaults: Defaults,
    /// The tests.
    pub cases: Vec<Case>,
}

/// The metadata of a suite.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// The name.
    #[serde(default)]
    pub name: String,
    /// Ignored; for the reader.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Ignored; for the reader.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// Defaults for all cases.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Defaults {
    /// The namespace of objects without one. Default: default.
    pub namespace: Option<String>,
    /// The user of the request. Default: test-user.
    pub user: Option<String>,
    /// The groups of the user. Default: system:authenticated, and the groups of service accounts if the user is one.
    pub groups: Option<Vec<String>>,
}

/// One request with the expected answer of the API server, or, with variants, a table of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// A description of the test.
    pub name: String,
    /// The object that a client sends.
    pub object: Option<Manifest>,
    /// The existing object in the cluster. The request is an UPDATE if object is also set, and a DELETE otherwise.
    pub old: Option<Manifest>,
    /// An AdmissionReview, instead of object, old and the other fields of the request.
    pub review: Option<Manifest>,
    /// CREATE, UPDATE, DELETE or CONNECT. Default: derived from object and old.
    pub operation: Option<Operation>,
    /// The subresource: status, scale, ephemeralcontainers ...
    pub subresource: Option<String>,
    /// The namespace, if the object has none.
    pub namespace: Option<String>,
    /// The user of the request.
    pub user: Option<String>,
    /// The uid of the user.
    pub uid: Option<String>,
    /// The groups of the user.
    pub groups: Option<Vec<String>>,
    /// Extra attributes of the user from the authenticator.
    pub extra: Option<BTreeMap<String, Vec<String>>>,
    /// Whether this is a dry run.
    #[serde(default)]
    pub dry_run: bool,
    /// The version of the API server, such as 1.36.
    pub kube_version: Option<String>,
    /// The expected answer of the API server. Optional if there are variants.
    pub expect: Option<Expect>,
    /// The same request with changes. Each variant is a separate case.
    #[serde(default)]
    pub variants: Vec<Variant>,
}

/// A variant of a case, which is a separate case. Unset fields are inherited from the case.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Variant {
    /// A description of the difference.
    pub name: String,
    /// A JSON merge patch (RFC 7396) of the object.
    #[schemars(with = "Option<BTreeMap<String, Json>>")]
    pub patch: Option<Json>,
    /// A JSON merge patch of the old object.
    #[schemars(with = "Option<BTreeMap<String, Json>>")]
    pub patch_old: Option<Json>,
    /// Fields of the object and their values, by path: spec.containers[0].image. A key with dots in it is quoted in
    /// brackets, as in `metadata.labels['example.org/team']`.
    #[serde(default)]
    pub set: BTreeMap<String, Json>,
    /// Paths of fields that the object does not have.
    #[serde(default)]
    pub unset: Vec<String>,
    /// CREATE, UPDATE, DELETE or CONNECT.
    pub operation: Option<Operation>,
    /// The subresource.
    pub subresource: Option<String>,
    /// The namespace, which replaces the namespace of the object.
    pub namespace: Option<String>,
    /// The user of the request.
    pub user: Option<String>,
    /// The groups of the user.
    pub groups: Option<Vec<String>>,
    /// The minor version of the API server.
    pub kube_version: Option<String>,
    /// The expected answer of the API server.
    pub expect: Expect,
}

/// The operation on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of an object.
    Update,
    /// A deletion of an object.
    Delete,
    /// A connection to an object: pods/exec, services/proxy.
    Connect,
}

/// The expected answer of the API server: a word, or a mapping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect(pub ExpectFields);

impl JsonSchema for Expect {
    fn schema_name() -> Cow<'static, str> {
        "Expect".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (word, more) = (generator.subschema_for::<Verdict>(), generator.subschema_for::<ExpectFields>());
        json_schema!({"description": "The expected answer of the API server: a word, or a mapping.", "anyOf": [word, more]})
    }
}

/// The expected answer of the API server. Only the fields that are set are compared.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpectFields {
    /// allow, deny, warn, error or invalid.
    pub verdict: Verdict,
    /// The policy that denies, warns or fails.
    pub policy: Option<String>,
    /// The binding of that policy.
    pub binding: Option<String>,
    /// The exact message: of the policy or rule, or the complete text that the client gets.
    pub message: Option<String>,
    /// A part of the message, or several.
    #[serde(default)]
    pub message_contains: Texts,
    /// For an invalid object: the path of a field with an error, such as spec.containers[0].name. Only the messages of
    /// this field are then compared.
    pub field: Option<String>,
    /// The reason in the API server's answer: Invalid, Forbidden ...
    pub reason: Option<String>,
    /// The HTTP status code.
    pub code: Option<u16>,
    /// Parts of warnings: each must occur in a warning. An empty list means no warnings.
    pub warnings: Option<Vec<String>>,
    /// Audit annotations with their values.
    #[serde(default)]
    pub audit_annotations: BTreeMap<String, String>,
    /// Fields of the final object, after mutation. Lists are compared as a whole.
    #[schemars(with = "Option<BTreeMap<String, Json>>")]
    pub object: Option<Json>,
    /// Fields that the final object contains. Each element of a list must be contained in an element of the object's
    /// list.
    #[schemars(with = "Option<BTreeMap<String, Json>>")]
    pub object_contains: Option<Json>,
    /// One or more CEL expressions that must be true. Variables: object, which is the final object, and oldObject.
    #[serde(default)]
    pub assert: Texts,
}

/// Whether the request is admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is admitted.
    #[default]
    Allow,
    /// A policy denies it.
    Deny,
    /// It is admitted with a warning.
    Warn,
    /// An expression fails, regardless of the failurePolicy.
    Error,
    /// The object is invalid: its schema, a rule of its CustomResourceDefinition or built-in validation rejects it.
    Invalid,
    /// Only in imported suites: no validation of the policy is evaluated.
    #[serde(skip)]
    #[schemars(skip)]
    Skip,
    /// Only in imported suites: the policy finds a violation, regardless of the binding.
    #[serde(skip)]
    #[schemars(skip)]
    Violation,
    /// Only in imported suites: the policy finds no violation.
    #[serde(skip)]
    #[schemars(skip)]
    NoViolation,
}

impl Verdict {
    /// As suites write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Invalid => "invalid",
            Self::Skip => "skip",
            Self::Violation => "a violation",
            Self::NoViolation => "no violation",
        }
    }
}

impl<'de> Deserialize<'de> for Expect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Expect;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("allow, deny, warn, error, invalid, or a mapping with a verdict")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Expect, E> {
                let all = [Verdict::Allow, Verdict::Deny, Verdict::Warn, Verdict::Error, Verdict::Invalid];
                let verdict = all.into_iter().find(|verdict| verdict.word() == text);
                let known = &["allow", "deny", "warn", "error", "invalid"];
                let verdict = verdict.ok_or_else(|| E::unknown_variant(text, known))?;
                Ok(Expect(ExpectFields { verdict, ..ExpectFields::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Expect, A::Error> {
                ExpectFields::deserialize(MapAccessDeserializer::new(map)).map(Expect)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A text, or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts(pub Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(vec![text.to_owned()]))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut texts: A) -> Result<Texts, A::Error> {
                let mut found = Vec::new();
                while let Some(text) = texts.next_element()? {
                    found.push(text);
                }
                Ok(Texts(found))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Texts {
    fn schema_name() -> Cow<'static, str> {
        "Texts".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
    }
}

/// An inline object, a file, or one object of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Manifest {
    /// A file, relative to the suite.
    File(String),
    /// The object of a kind or name in a file.
    Of(Selected),
    /// The object itself.
    Inline(Json),
}

/// The object of a kind or name in a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Selected {
    /// The file, relative to the suite.
    pub file: String,
    /// The kind of the object.
    pub kind: Option<String>,
    /// The name of the object.
    pub name: Option<String>,
    /// The namespace of the object.
    pub namespace: Option<String>,
}

impl<'de> Deserialize<'de> for Manifest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Manifest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a file, an object, or a mapping with a file")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Manifest, E> {
                Ok(Manifest::File(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Manifest, A::Error> {
                let object = Json::deserialize(MapAccessDeserializer::new(map))?;
                if object.get("file").is_none() {
                    return Ok(Manifest::Inline(object));
                }
                serde_json::from_value(object).map(Manifest::Of).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Manifest {
    fn schema_name() -> Cow<'static, str> {
        "Manifest".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let selected = generator.subschema_for::<Selected>();
        json_schema!({"anyOf": [{"type": "string"}, selected, {"type": "object", "required": ["apiVersion", "kind"]}]})
    }
}

/// The JSON schema of a suite, for editors.
pub fn schema() -> Json {
    schemars::schema_for!(Suite).to_value()
}

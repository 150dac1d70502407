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

/// Tests of admission policies: a cluster made of files, and requests with what the API server is to say of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suite {
    /// The version of the format: test.toolsecurity.dev/v1alpha1.
    #[schemars(extend("const" = API_VERSION))]
    pub api_version: String,
    /// PolicyTest
    #[schemars(extend("const" = KIND))]
    pub kind: String,
    /// The suite's name; without it, that of its file is shown.
    #[serde(default)]
    pub metadata: Metadata,
    /// What is tested: files, or objects in place. ValidatingAdmissionPolicies, MutatingAdmissionPolicies, their
    /// bindings, and ToolSecurityProfiles; files are named relative to the suite's. May be left out if there is a
    /// CustomResourceDefinition among the resources, or a case that expects an invalid object.
    #[serde(default)]
    pub policies: Vec<Manifest>,
    /// What else is in the cluster: parameters, CustomResourceDefinitions, Namespaces. A namespace that requests name
    /// and no file has is there, without labels.
    #[serde(default)]
    pub resources: Vec<Manifest>,
    /// Bind each policy that has no binding in the files, a ValidatingAdmissionPolicy with validationActions [Deny]. Without a
    /// binding a policy is never evaluated.
    #[serde(default)]
    pub generate_bindings: bool,
    /// The version of the API server, such as 1.36, if a case has no other. Default: --kube-version.
    pub kube_version: Option<String>,
    /// What holds for each case that does not say otherwise.
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
    /// For people.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// For people.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// What holds for each case that does not say otherwise.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Defaults {
    /// The namespace of objects that name none. Default: default.
    pub namespace: Option<String>,
    /// Who asks. Default: test-user.
    pub user: Option<String>,
    /// The groups of who asks. Default: [system:authenticated].
    pub groups: Option<Vec<String>>,
}

/// One request and what the API server is to say of it; or, with variants, a table of such.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// What is tested, in words.
    pub name: String,
    /// The object as a client sends it.
    pub object: Option<Manifest>,
    /// The object as it is in the cluster. With an object this is an UPDATE, without one a DELETE.
    pub old: Option<Manifest>,
    /// An AdmissionReview, in place of object, old and all that says who does what.
    pub review: Option<Manifest>,
    /// CREATE, UPDATE, DELETE or CONNECT; by default what object and old suggest.
    pub operation: Option<Operation>,
    /// The subresource: status, scale, ephemeralcontainers ...
    pub subresource: Option<String>,
    /// The namespace, if the object names none.
    pub namespace: Option<String>,
    /// Who asks.
    pub user: Option<String>,
    /// The uid of who asks.
    pub uid: Option<String>,
    /// The groups of who asks.
    pub groups: Option<Vec<String>>,
    /// What the authenticator says besides of who asks.
    pub extra: Option<BTreeMap<String, Vec<String>>>,
    /// Whether this is a dry run.
    #[serde(default)]
    pub dry_run: bool,
    /// The version of the API server, such as 1.36.
    pub kube_version: Option<String>,
    /// What the API server is to say. May be left out if there are variants.
    pub expect: Option<Expect>,
    /// The same request with changes, each a case of its own.
    #[serde(default)]
    pub variants: Vec<Variant>,
}

/// A change of a case, which is a case of its own. What it does not say is as in the case.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Variant {
    /// What is different, in words.
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
    /// The namespace, which replaces that of the object.
    pub namespace: Option<String>,
    /// Who asks.
    pub user: Option<String>,
    /// The groups of who asks.
    pub groups: Option<Vec<String>>,
    /// The minor version of the API server.
    pub kube_version: Option<String>,
    /// What the API server is to say.
    pub expect: Expect,
}

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of an object.
    Update,
    /// The end of an object.
    Delete,
    /// A connection to an object: pods/exec, services/proxy.
    Connect,
}

/// What the API server is to say: a word, or more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect(pub ExpectFields);

impl JsonSchema for Expect {
    fn schema_name() -> Cow<'static, str> {
        "Expect".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (word, more) = (generator.subschema_for::<Verdict>(), generator.subschema_for::<ExpectFields>());
        json_schema!({"description": "What the API server is to say: a word, or more.", "anyOf": [word, more]})
    }
}

/// What the API server is to say. Only what is given is compared.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpectFields {
    /// allow, deny, warn, error or invalid.
    pub verdict: Verdict,
    /// The policy that denies, warns or fails.
    pub policy: Option<String>,
    /// The binding through which it does.
    pub binding: Option<String>,
    /// The message, exactly: that of the policy or rule, or the complete text that a client reads.
    pub message: Option<String>,
    /// A part of the message, or several.
    #[serde(default)]
    pub message_contains: Texts,
    /// Of an invalid object: the path of a field with an error, such as spec.containers[0].name. The messages are then
    /// those of this field.
    pub field: Option<String>,
    /// The reason in the API server's answer: Invalid, Forbidden ...
    pub reason: Option<String>,
    /// The HTTP status code.
    pub code: Option<u16>,
    /// Parts of warnings, each of which some warning has. An empty list: there is no warning.
    pub warnings: Option<Vec<String>>,
    /// Audit annotations with their values.
    #[serde(default)]
    pub audit_annotations: BTreeMap<String, String>,
    /// Fields that the object has in the end, after mutation. Lists are compared as a whole.
    #[schemars(with = "Option<BTreeMap<String, Json>>")]
    pub object: Option<Json>,
    /// Fields that the object contains in the end. Each element of a list is contained in some element of the object's list.
    #[schemars(with = "Option<BTreeMap<String, Json>>")]
    pub object_contains: Option<Json>,
    /// A CEL expression that is true, or several. Variables: object, which is the object in the end, and oldObject.
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
    /// An expression fails, whatever the failurePolicy makes of that.
    Error,
    /// The object is invalid: its schema, a rule of its CustomResourceDefinition or built-in validation rejects it.
    Invalid,
    /// Only of imported suites: no validation of the policy is evaluated.
    #[serde(skip)]
    #[schemars(skip)]
    Skip,
    /// Only of imported suites: the policy finds a violation, whatever the binding makes of that.
    #[serde(skip)]
    #[schemars(skip)]
    Violation,
    /// Only of imported suites: the policy finds no violation.
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
                f.write_str("a text or a list of texts")
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

/// An object in place, a file, or one object of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Manifest {
    /// A file, relative to the suite's.
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
    /// The file, relative to the suite's.
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

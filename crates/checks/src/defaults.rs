//! Defaults for unset fields of a pod, as data of the checks. The same data is lowered to the operations of a webhook's
//! patch and to the CEL of a MutatingAdmissionPolicy.
//!
//! A field is defaulted only if it is unset: absent, null or an empty list. Pods for Windows get no defaults, because
//! the API server lets them set almost none of these fields. All conditions look at the original pod; each of them has
//! the form "is not", so that a default can only make conditions false, and defaulting twice changes nothing more.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde_json::{Map, Value as Json, json};

use crate::{
    Flag, Integer, Lowering, Meaning, ParameterName, ParameterType, Resolve, Settings, Text, Values, cel,
    settings::mutation::AdditionalDefault,
};

/// The declared parameters of a profile.
pub type Declared = BTreeMap<ParameterName, ParameterType>;

/// A field with its default.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDefault {
    /// The object with the field.
    pub of: Subject,
    /// The path below `spec`, or below the container.
    pub path: Vec<String>,
    /// The value.
    pub value: DefaultValue,
    /// All of these must hold.
    pub when: Vec<Condition>,
}

impl FieldDefault {
    /// A field that is defaulted if all of `when` holds.
    pub fn new(of: Subject, path: &[&str], value: DefaultValue, when: Vec<Condition>) -> Self {
        Self { of, path: path.iter().map(|&key| key.to_owned()).collect(), value, when }
    }
}

/// The object that has the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The pod.
    Pod,
    /// The pod, and its containers inherit it. Nothing else of a pod can change when it gets an ephemeral container, so
    /// the container gets the value itself, unless it inherits one.
    PodOrContainer,
    /// Each init and normal container, and each new ephemeral one.
    Container,
    /// Each init and normal container; an ephemeral one cannot have the field.
    LastingContainer,
}

/// A value to default.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultValue {
    /// A switch.
    Flag(bool),
    /// A word of the Kubernetes API.
    Word(&'static str),
    /// A number.
    Integer(Integer),
    /// A list of one number.
    Integers(Integer),
    /// A list of texts.
    Texts(Vec<Text>),
    /// An object with texts as fields.
    Fields(Vec<(&'static str, Text)>),
    /// Anything, the same in all namespaces.
    Constant(Json),
}

/// A condition for a default.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A setting that differs by namespace has this value in the namespace.
    Setting(Flag, bool),
    /// The namespace has no exception from this check.
    NoException(String),
    /// The list is not empty in the namespace.
    NotEmpty(Vec<Text>),
    /// The number is not 0 in the namespace.
    NotZero(Integer),
    /// A field below the pod's `spec` is something else, or unset.
    PodIsNot(&'static [&'static str], Constant),
    /// A field below the pod's `spec` is unset.
    PodUnset(Vec<String>),
    /// The pod has no such annotation.
    NotAnnotated(&'static str),
    /// A field of the container is something else, or unset.
    ContainerIsNot(&'static [&'static str], Constant),
    /// A list of the container has none of these.
    ContainerLacks(&'static [&'static str], Vec<Text>),
    /// In each container of the pod, the field is something else, or unset.
    NoContainerIs(&'static [&'static str], Constant),
    /// In each container of the pod, the list is unset.
    NoContainerHas(&'static [&'static str]),
    /// One of these holds.
    Any(Vec<Self>),
}

/// A value to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// A switch.
    Flag(bool),
    /// A number.
    Integer(i64),
}

impl Constant {
    fn is(self, found: &Json) -> bool {
        match self {
            Self::Flag(value) => found.as_bool() == Some(value),
            Self::Integer(value) => found.as_i64() == Some(value),
        }
    }

    /// CEL of this value, and of a different one.
    fn cel(self) -> (String, String) {
        match self {
            Self::Flag(value) => (value.to_string(), (!value).to_string()),
            Self::Integer(value) => (value.to_string(), value.wrapping_add(1).to_string()),
        }
    }
}

/// The objects that conditions look at.
#[derive(Clone, Copy, Debug)]
pub struct ConditionContext<'a> {
    /// The values of parameters in the namespace.
    pub values: &'a Values,
    /// The checks that exceptions lift in the namespace.
    pub excepted: &'a BTreeSet<String>,
    /// The pod.
    pub pod: &'a Json,
    /// The container, if the condition is about one.
    pub container: &'a Json,
}

/// How the CEL of conditions names the parts of the pod.
#[derive(Clone, Copy, Debug)]
pub struct PodNames {
    /// Its spec.
    pub spec: &'static str,
    /// Its annotations: a map, empty if the pod has none.
    pub annotations: &'static str,
}

/// The names of a pod's lists of containers.
pub const CONTAINER_LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// The field at a path below an object; null if there is none.
pub fn field<'a>(object: &'a Json, path: &[impl AsRef<str>]) -> &'a Json {
    path.iter().fold(object, |at, key| at.get(key.as_ref()).unwrap_or(&Json::Null))
}

/// Whether a field is unset, as the API server reads it.
pub fn is_unset(found: &Json) -> bool {
    found.is_null() || found.as_array().is_some_and(Vec::is_empty)
}

/// Whether a pod is for Windows.
pub fn is_windows(pod: &Json) -> bool {
    field(pod, &["spec", "os", "name"]) == "windows"
}

impl Condition {
    /// Whether it holds.
    pub fn holds(&self, context: ConditionContext<'_>) -> bool {
        let of_pod = |path: &[&str]| field(field(context.pod, &["spec"]), path);
        let mut containers = CONTAINER_LISTS.iter().filter_map(|list| of_pod(&[list]).as_array()).flatten();
        match self {
            Self::Setting(flag, wanted) => flag.resolve(context.values) == *wanted,
            Self::NoException(check) => !context.excepted.contains(check),
            Self::NotEmpty(texts) => !texts.resolve(context.values).is_empty(),
            Self::NotZero(number) => number.resolve(context.values) != 0,
            Self::PodIsNot(path, constant) => !constant.is(of_pod(path)),
            Self::PodUnset(path) => is_unset(field(field(context.pod, &["spec"]), path)),
            Self::NotAnnotated(key) => field(context.pod, &["metadata", "annotations", key]).is_null(),
            Self::ContainerIsNot(path, constant) => !constant.is(field(context.container, path)),
            Self::ContainerLacks(path, texts) => {
                let found = field(context.container, path).as_array();
                let texts = texts.resolve(context.values);
                !found.into_iter().flatten().any(|one| texts.iter().any(|text| one == text))
            }
            Self::NoContainerIs(path, constant) => !containers.any(|one| constant.is(field(one, path))),
            Self::NoContainerHas(path) => containers.all(|one| is_unset(field(one, path))),
            Self::Any(some) => some.iter().any(|one| one.holds(context)),
        }
    }

    /// CEL of type bool. The container is `c`, and the pod's containers are `variables.containers`.
    pub fn cel(&self, pod: PodNames, cx: &mut Lowering<'_>) -> String {
        let is_not = |object: &str, path: &[&str], constant: &Constant| {
            let (value, another) = constant.cel();
            format!("{}.orValue({another}) != {value}", select(object, path))
        };
        match self {
            Self::Setting(flag, wanted) => match (cx.flag("", flag), wanted) {
                (Ok(constant), wanted) => (constant == *wanted).to_string(),
                (Err(cel), true) => cel,
                (Err(cel), false) => format!("!{cel}"),
            },
            Self::NoException(check) => format!("!({} in params.spec.?exceptions.orValue({{}}))", cel::quote(check)),
            Self::NotEmpty(texts) => format!("{}.size() > 0", cx.texts("", texts, Meaning::Word).cel()),
            Self::NotZero(number) => format!("{} != 0", cx.integer("", number)),
            Self::PodIsNot(path, constant) => is_not(pod.spec, path, constant),
            Self::PodUnset(path) => unset(pod.spec, path, false),
            Self::NotAnnotated(key) => format!("!({} in {})", cel::quote(key), pod.annotations),
            Self::ContainerIsNot(path, constant) => is_not("c", path, constant),
            Self::ContainerLacks(path, texts) => {
                format!(
                    "!{}.orValue([]).exists(x, x in {})",
                    select("c", path),
                    cx.texts("", texts, Meaning::Word).cel()
                )
            }
            Self::NoContainerIs(path, constant) => {
                format!("variables.containers.all(o, {})", is_not("o", path, constant))
            }
            Self::NoContainerHas(path) => {
                format!("variables.containers.all(o, {})", unset("o", path, true))
            }
            Self::Any(some) => {
                let terms: Vec<_> = some.iter().map(|one| one.cel(pod, cx)).collect();
                cel::any(&terms)
            }
        }
    }
}

impl DefaultValue {
    /// The value in the namespace that has these parameters.
    pub fn resolve(&self, values: &Values) -> Json {
        match self {
            Self::Flag(value) => json!(value),
            Self::Word(word) => json!(word),
            Self::Integer(value) => json!(value.resolve(values)),
            Self::Integers(value) => json!([value.resolve(values)]),
            Self::Texts(texts) => json!(texts.resolve(values)),
            Self::Fields(fields) => fields
                .iter()
                .map(|(name, text)| ((*name).to_owned(), json!(text.resolve(values))))
                .collect::<Map<_, _>>()
                .into(),
            Self::Constant(value) => value.clone(),
        }
    }

    /// CEL of the value.
    pub fn cel(&self, cx: &mut Lowering<'_>) -> String {
        match self {
            Self::Flag(value) => value.to_string(),
            Self::Word(word) => cel::quote(word),
            Self::Integer(value) => cx.integer("", value),
            Self::Integers(value) => format!("[{}]", cx.integer("", value)),
            Self::Texts(texts) => cx.texts("", texts, Meaning::Word).cel(),
            Self::Fields(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, text)| {
                        let text = cx.text("", text, Meaning::Word);
                        let text = text.map_or_else(|template| template.cel, |constant| cel::quote(&constant));
                        format!("{}: {text}", cel::quote(name))
                    })
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
            Self::Constant(value) => cel::literal(value),
        }
    }

    /// Whether it is a list; an empty list counts as unset.
    pub fn is_list(&self) -> bool {
        matches!(self, Self::Integers(_) | Self::Texts(_) | Self::Constant(Json::Array(_)))
    }
}

/// One operation of a patch: an object on the way to a field, or the field.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// The path below the pod's `spec` or the container.
    pub path: &'a [String],
    /// The value; `None` for an empty object on the path to a field.
    pub value: Option<&'a DefaultValue>,
    /// It applies if the field is unset, and all conditions of one of these hold.
    pub when: Vec<&'a [Condition]>,
}

/// The operations that set these defaults, each object before its fields.
pub fn steps<'a>(defaults: &[&'a FieldDefault]) -> Vec<Step<'a>> {
    let mut steps: Vec<Step<'a>> = Vec::new();
    for default in defaults {
        for length in 1..default.path.len() {
            let path = &default.path[..length];
            if !steps.iter().any(|step| step.path == path) {
                let below = defaults.iter().filter(|other| other.path.len() > length && other.path.starts_with(path));
                steps.push(Step { path, value: None, when: below.map(|other| &other.when[..]).collect() });
            }
        }
        steps.push(Step { path: &default.path, value: Some(&default.value), when: vec![&default.when] });
    }
    steps
}

impl Step<'_> {
    /// The value to add below `object`, if it applies.
    pub fn of(&self, object: &Json, context: ConditionContext<'_>) -> Option<Json> {
        // A value on the path that is not an object cannot get the field; a missing one was defaulted before.
        let on_the_way = (1..self.path.len()).map(|length| field(object, &self.path[..length]));
        let found = field(object, self.path);
        let unset = if self.value.is_some_and(DefaultValue::is_list) { is_unset(found) } else { found.is_null() };
        let wanted = object.is_object()
            && unset
            && on_the_way.into_iter().all(|one| one.is_null() || one.is_object())
            && self.when.iter().any(|all| all.iter().all(|condition| condition.holds(context)));
        wanted.then(|| self.value.map_or_else(|| json!({}), |value| value.resolve(context.values)))
    }

    /// CEL of type bool: whether it applies to `object`.
    pub fn cel(&self, object: &str, pod: PodNames, cx: &mut Lowering<'_>) -> String {
        let mut out = unset(object, self.path, self.value.is_some_and(DefaultValue::is_list));
        if !self.when.iter().any(|all| all.is_empty()) {
            let mut terms = Vec::new();
            for all in &self.when {
                let all: Vec<_> = all.iter().map(|condition| condition.cel(pod, cx)).collect();
                let all = if all.len() == 1 || self.when.len() == 1 {
                    all.join(" && ")
                } else {
                    format!("({})", all.join(" && "))
                };
                if !terms.contains(&all) {
                    terms.push(all);
                }
            }
            let _ = write!(out, " && {}", cel::any(&terms));
        }
        out
    }

    /// The path as a JSON pointer, below that of the object.
    pub fn pointer(&self) -> String {
        format!("/{}", self.path.join("/"))
    }
}

/// CEL of type optional: a field below an object.
pub(crate) fn select(object: &str, path: &[impl AsRef<str>]) -> String {
    path.iter().fold(object.to_owned(), |at, key| at + ".?" + key.as_ref())
}

fn unset(object: &str, path: &[impl AsRef<str>], list: bool) -> String {
    if list {
        format!("{}.orValue([]).size() == 0", select(object, path))
    } else {
        format!("!{}.hasValue()", select(object, path))
    }
}

/// Fields that no check asks about.
pub fn unchecked(settings: &Settings) -> Vec<FieldDefault> {
    let additional = |one| settings.mutation.additional_defaults.contains(&one);
    let mut defaults = Vec::new();
    if additional(AdditionalDefault::HostUsers) {
        // What the API server refuses together with it (`validateHostUsers`).
        let node = [&["hostNetwork"][..], &["hostPID"], &["hostIPC"]];
        let mut when: Vec<_> = node.into_iter().map(|path| Condition::PodIsNot(path, Constant::Flag(true))).collect();
        when.push(Condition::NoContainerHas(&["volumeDevices"]));
        defaults.push(FieldDefault::new(Subject::Pod, &["hostUsers"], DefaultValue::Flag(false), when));
    }
    defaults
}

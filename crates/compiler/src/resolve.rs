//! From a namespace to the values of a profile's parameters in it.

use std::collections::{BTreeMap, BTreeSet};

use palisade_api::{
    Diagnostic, IntOrText, Parameter, ParameterName, ParameterType, Resolved, Source, ToolSecurityParamsSpec,
    ToolSecurityProfileSpec, Values,
};
use palisade_checks::{Author, Use, Uses};
use palisade_kube_json::{selector::Labels, text::truncated};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// The longest text of a parameter, in characters.
const MAX_TEXT: usize = 256;
/// The most texts in a list.
const MAX_LIST: usize = 64;
/// The longest problem, in characters. The CRD allows no more than 1024.
const MAX_PROBLEM: usize = 1000;
/// The most of a value in a problem, in characters.
const MAX_VALUE: usize = 40;

/// The parts of a namespace that parameters and selectors read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// `metadata.name`
    pub name: String,
    /// `metadata.labels`
    pub labels: Labels,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
}

/// Finds the values of a profile's parameters.
#[derive(Clone, Debug)]
pub struct Resolver {
    parameters: Vec<Declared>,
    /// Namespace -> parameter -> text.
    overrides: BTreeMap<String, BTreeMap<ParameterName, String>>,
}

/// A declared parameter.
#[derive(Clone, Debug)]
struct Declared {
    parameter: Parameter,
    pattern: Option<Regex>,
    /// Where the profile uses it in a text.
    uses: Vec<Use>,
}

impl Resolver {
    /// The resolver of a profile, and the errors in its parameters and overrides.
    pub(crate) fn new(spec: &ToolSecurityProfileSpec) -> (Self, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let mut seen = BTreeSet::new();
        let mut parameters = Vec::new();
        for (index, parameter) in spec.parameters.iter().enumerate() {
            let at = format!("spec.parameters[{index}]");
            if !seen.insert(parameter.name.as_str()) {
                diagnostics
                    .push(Diagnostic::new(format!("{at}.name"), format!("{:?} is declared twice", parameter.name)));
            }
            if !matches!(palisade_checks::pieces(&format!("${}", parameter.name)).as_deref(), Ok([_])) {
                diagnostics.push(
                    Diagnostic::new(format!("{at}.name"), format!("{:?} is not a valid name", parameter.name))
                        .help("a name must be a lower-case letter followed by letters and digits"),
                );
            }
            for (source_index, source) in parameter.sources.iter().enumerate() {
                if source_fields(source) != 1 {
                    diagnostics.push(
                        Diagnostic::new(format!("{at}.sources[{source_index}]"), "must have exactly one source")
                            .help("set one of namespaceAnnotation, namespaceLabel and namespaceNameTrimPrefix"),
                    );
                }
            }
            let pattern = parameter.pattern.as_deref().and_then(|pattern| {
                RegexBuilder::new(&format!("^(?:{pattern})$"))
                    .size_limit(1 << 16)
                    .build()
                    .map_err(|error| {
                        let error = error.to_string();
                        let last = error.lines().last().unwrap_or_default().to_owned();
                        diagnostics.push(Diagnostic::new(format!("{at}.pattern"), format!("{pattern:?}: {last}")));
                    })
                    .ok()
            });
            let declared = Declared { parameter: parameter.clone(), pattern, uses: Vec::new() };
            if let Some(default) = &parameter.default
                && let Err(problem) = declared.parse(&default.to_string(), Author::Profile)
            {
                diagnostics.push(Diagnostic::new(format!("{at}.default"), problem));
            }
            parameters.push(declared);
        }
        let mut resolver = Self { parameters, overrides: BTreeMap::new() };
        resolver.read_overrides(spec, &mut diagnostics);
        (resolver, diagnostics)
    }

    fn read_overrides(&mut self, spec: &ToolSecurityProfileSpec, diagnostics: &mut Vec<Diagnostic>) {
        for (index, one) in spec.overrides.iter().enumerate() {
            for (name, value) in &one.parameters {
                let at = format!("spec.overrides[{index}].parameters.{name}");
                let Some(declared) = self.declared(name) else {
                    diagnostics.push(
                        Diagnostic::new(at, format!("{name:?} is not a declared parameter"))
                            .help("declare it in spec.parameters"),
                    );
                    continue;
                };
                if let Err(problem) = declared.parse(&value.to_string(), Author::Profile) {
                    diagnostics.push(Diagnostic::new(at, problem));
                }
                for namespace in &one.namespaces {
                    let values = self.overrides.entry(namespace.clone()).or_default();
                    if values.insert(name.clone(), value.to_string()).is_some() {
                        diagnostics.push(Diagnostic::new(
                            format!("spec.overrides[{index}]"),
                            format!("duplicate value for parameter {name:?} of namespace {namespace:?}"),
                        ));
                    }
                }
            }
        }
    }

    fn declared(&self, name: &str) -> Option<&Declared> {
        self.parameters.iter().find(|declared| declared.parameter.name == name)
    }

    /// From now on, rejects values that must not be in the texts where the profile uses its parameters. Returns the
    /// errors in defaults and overrides.
    pub(crate) fn restrict(&mut self, spec: &ToolSecurityProfileSpec, mut uses: Uses) -> Vec<Diagnostic> {
        for declared in &mut self.parameters {
            declared.uses = uses.remove(&declared.parameter.name).into_iter().flatten().collect();
        }
        let mut diagnostics = Vec::new();
        let mut look = |declared: &Declared, value: &IntOrText, at: String| {
            diagnostics.extend(declared.misused(&value.to_string()).map(|problem| Diagnostic::new(at, problem)));
        };
        for (index, declared) in self.parameters.iter().enumerate() {
            if let Some(default) = &declared.parameter.default {
                look(declared, default, format!("spec.parameters[{index}].default"));
            }
        }
        for (index, one) in spec.overrides.iter().enumerate() {
            for (name, value) in &one.parameters {
                if let Some(declared) = self.declared(name) {
                    look(declared, value, format!("spec.overrides[{index}].parameters.{name}"));
                }
            }
        }
        diagnostics
    }

    /// The types of the parameters.
    pub fn types(&self) -> BTreeMap<ParameterName, ParameterType> {
        let parameters = self.parameters.iter().map(|declared| &declared.parameter);
        parameters.map(|parameter| (parameter.name.clone(), parameter.type_)).collect()
    }

    /// The values in a namespace.
    ///
    /// # Errors
    /// The missing or malformed parameters, in a message for the namespace's owner.
    pub fn resolve(&self, namespace: &Namespace) -> Result<Values, String> {
        let mut values = Values::new();
        let mut problems = Vec::new();
        for declared in &self.parameters {
            let name = &declared.parameter.name;
            match self.resolve_one(namespace, declared) {
                Ok(value) => drop(values.insert(name.clone(), value)),
                Err(problem) => problems.push(format!("parameter {name} {problem}")),
            }
        }
        if problems.is_empty() {
            return Ok(values);
        }
        Err(truncated(&problems.join("; "), MAX_PROBLEM).to_owned())
    }

    /// The value of one parameter in a namespace.
    ///
    /// # Errors
    /// Why there is none, as the end of a sentence about the parameter.
    pub(crate) fn value(&self, namespace: &Namespace, name: &str) -> Result<Resolved, String> {
        let declared = self.declared(name).ok_or_else(|| "is not declared".to_owned())?;
        self.resolve_one(namespace, declared)
    }

    /// The parameters of a namespace: its values, or why every pod of it violates the profile.
    pub fn params(&self, namespace: &Namespace) -> ToolSecurityParamsSpec {
        match self.resolve(namespace) {
            Ok(values) => ToolSecurityParamsSpec::of(&values),
            Err(problem) => ToolSecurityParamsSpec::denying(problem),
        }
    }

    fn resolve_one(&self, namespace: &Namespace, declared: &Declared) -> Result<Resolved, String> {
        let parameter = &declared.parameter;
        if let Some(Given { origin, text, author }) = self.given(namespace, parameter) {
            return declared.parse(text, author).map_err(|problem| format!("({origin}) {problem}"));
        }
        match &parameter.default {
            Some(default) => declared.parse(&default.to_string(), Author::Profile),
            None => Err(format!("is missing: {}", sources(&parameter.sources))),
        }
    }

    /// The value from an override or a source, if there is one.
    fn given<'a>(&'a self, namespace: &'a Namespace, parameter: &'a Parameter) -> Option<Given<'a>> {
        let overridden = self.overrides.get(&namespace.name).and_then(|values| values.get(&parameter.name));
        let overridden =
            overridden.map(|text| Given { origin: "an override".to_owned(), text, author: Author::Profile });
        overridden.or_else(|| parameter.sources.iter().find_map(|source| read(source, namespace)))
    }

    /// Where the value of each parameter in a namespace comes from; `None` if it has none.
    pub fn origins(&self, namespace: &Namespace) -> BTreeMap<ParameterName, Option<String>> {
        let origin = |parameter: &Parameter| {
            let default = parameter.default.as_ref().map(|_| "the default".to_owned());
            self.given(namespace, parameter).map(|given| given.origin).or(default)
        };
        let parameters = self.parameters.iter().map(|declared| &declared.parameter);
        parameters.map(|parameter| (parameter.name.clone(), origin(parameter))).collect()
    }

    /// Values that the parameters could have in some namespace.
    pub fn sample(&self) -> Values {
        let sample = |declared: &Declared| {
            let parameter = &declared.parameter;
            let default = parameter.default.as_ref().map(IntOrText::to_string);
            if let Some(Ok(value)) = default.map(|default| declared.parse(&default, Author::Profile)) {
                return value;
            }
            match parameter.type_ {
                ParameterType::Integer => {
                    let lowest = parameter.minimum.unwrap_or(i64::MIN);
                    Resolved::Integer(1000.max(lowest).min(parameter.maximum.unwrap_or(i64::MAX)))
                }
                // A text that is valid as a host, a path segment and a name.
                ParameterType::String => Resolved::String("palisade.invalid".to_owned()),
                ParameterType::Boolean => Resolved::Boolean(false),
                ParameterType::StringList => Resolved::StringList(vec!["palisade.invalid".to_owned()]),
            }
        };
        self.parameters.iter().map(|declared| (declared.parameter.name.clone(), sample(declared))).collect()
    }
}

impl Declared {
    /// Reads the text of a value.
    fn parse(&self, text: &str, author: Author) -> Result<Resolved, String> {
        let value = parse(&self.parameter, self.pattern.as_ref(), text)?;
        match self.refusal(&value, author) {
            Some(problem) => Err(problem),
            None => Ok(value),
        }
    }

    /// Why a value of the profile that can be read must not be where the profile uses it.
    fn misused(&self, text: &str) -> Option<String> {
        let value = parse(&self.parameter, self.pattern.as_ref(), text).ok()?;
        self.refusal(&value, Author::Profile)
    }

    /// Why a value must not be where the profile uses it.
    fn refusal(&self, value: &Resolved, author: Author) -> Option<String> {
        let texts = match value {
            Resolved::String(text) => vec![text.clone()],
            Resolved::StringList(texts) => texts.clone(),
            Resolved::Integer(number) => vec![number.to_string()],
            Resolved::Boolean(_) => vec![],
        };
        let refused = |text: &String| {
            let of = |one: &Use| Some((one.refusal(text, author)?, one.path.clone()));
            let (allowed, path) = self.uses.iter().find_map(of)?;
            Some(format!("is {}, which {path} must not contain; must be {allowed}", shown(text)))
        };
        texts.iter().find_map(refused)
    }
}

/// A value as it is given.
struct Given<'a> {
    /// Its place, for people.
    origin: String,
    text: &'a str,
    author: Author,
}

fn source_fields(source: &Source) -> usize {
    let Source { namespace_annotation, namespace_label, namespace_name_trim_prefix } = source;
    [namespace_annotation, namespace_label, namespace_name_trim_prefix].into_iter().flatten().count()
}

/// The value that a source has in a namespace.
fn read<'a>(source: &'a Source, namespace: &'a Namespace) -> Option<Given<'a>> {
    let given = |origin: String, text| Given { origin, text, author: Author::Namespace };
    if let Some(key) = &source.namespace_annotation {
        return Some(given(format!("annotation {key}"), namespace.annotations.get(key)?));
    }
    if let Some(key) = &source.namespace_label {
        return Some(given(format!("label {key}"), namespace.labels.get(key)?));
    }
    let rest = namespace.name.strip_prefix(source.namespace_name_trim_prefix.as_deref()?)?;
    (!rest.is_empty()).then(|| given("the name of the namespace".to_owned(), rest))
}

/// Names the sources that have no value.
fn sources(sources: &[Source]) -> String {
    let names: Vec<_> = sources
        .iter()
        .map(|source| match (&source.namespace_annotation, &source.namespace_label) {
            (Some(key), _) => format!("no annotation {key}"),
            (_, Some(key)) => format!("no label {key}"),
            _ => format!("a name without {}", source.namespace_name_trim_prefix.as_deref().unwrap_or_default()),
        })
        .collect();
    match names.as_slice() {
        [] => "it has neither a source nor a default, and no override names this namespace".to_owned(),
        names => format!("the namespace has {}", names.join(" and ")),
    }
}

/// Reads the text of a value.
fn parse(parameter: &Parameter, pattern: Option<&Regex>, text: &str) -> Result<Resolved, String> {
    let text = text.trim();
    match parameter.type_ {
        ParameterType::Integer => {
            let number: i64 = text.parse().map_err(|_| format!("is {}, must be an integer", shown(text)))?;
            if parameter.minimum.is_some_and(|minimum| number < minimum) {
                return Err(format!("is {number}, below the minimum {}", parameter.minimum.unwrap_or_default()));
            }
            if parameter.maximum.is_some_and(|maximum| number > maximum) {
                return Err(format!("is {number}, above the maximum {}", parameter.maximum.unwrap_or_default()));
            }
            Ok(Resolved::Integer(number))
        }
        ParameterType::Boolean => {
            text.parse().map(Resolved::Boolean).map_err(|_| format!("is {}, must be true or false", shown(text)))
        }
        ParameterType::String => one_text(parameter, pattern, text).map(Resolved::String),
        ParameterType::StringList => {
            let items: Vec<_> = text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
            if items.len() > MAX_LIST {
                return Err(format!("has {} elements, more than {MAX_LIST}", items.len()));
            }
            let items = items.into_iter().map(|item| one_text(parameter, pattern, item)).collect::<Result<_, _>>()?;
            Ok(Resolved::StringList(items))
        }
    }
}

fn one_text(parameter: &Parameter, pattern: Option<&Regex>, text: &str) -> Result<String, String> {
    // An empty text would widen the setting that contains it: /data/project/$tool would be /data/project/.
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.chars().count() > MAX_TEXT {
        return Err(format!("is {}, longer than {MAX_TEXT} characters", shown(text)));
    }
    match pattern {
        Some(compiled) if !compiled.is_match(text) => Err(format!(
            "is {}, which does not match {:?}",
            shown(text),
            parameter.pattern.as_deref().unwrap_or_default()
        )),
        _ => Ok(text.to_owned()),
    }
}

/// A text in quotes, cut if it is long.
fn shown(text: &str) -> String {
    let start = truncated(text, MAX_VALUE);
    let ellipsis = if start.len() < text.len() { "..." } else { "" };
    format!("{start:?}{ellipsis}")
}

//! Validation by a schema, in the words of `k8s.io/kube-openapi/pkg/validation` and `apiextensions`.

use palisade_cel::{Minor, Regex};
use serde_json::{Map, Value};

use crate::validation::{FieldError, quote, shown};

use super::{
    correlation::Correlation,
    schema::{INT_OR_STRING, additional, is, items, property},
};

/// Adds the mistakes in an object. Leaves out those in parts that an update did not change.
pub(super) fn validate(
    minor: Minor,
    schema: &Value,
    object: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    let mut causes = Causes { minor, errors: Vec::new() };
    value(schema, object, "", old.map(|old| Correlation { schema, new: object, old }), &mut causes);
    let mut before = causes.none();
    if let Some(old) = old {
        duplicates(schema, old, "", &mut before);
    }
    if before.errors.is_empty() {
        duplicates(schema, object, "", &mut causes);
    }
    errors.extend(causes.errors);
}

/// Adds the mistakes in a value by its schema alone.
pub(super) fn by_schema(minor: Minor, schema: &Value, given: &Value, errors: &mut Vec<FieldError>) {
    let mut causes = Causes { minor, errors: Vec::new() };
    value(schema, given, "", None, &mut causes);
    errors.extend(causes.errors);
}

/// What is wrong, in the words of a minor.
struct Causes {
    minor: Minor,
    errors: Vec<FieldError>,
}

impl Causes {
    fn none(&self) -> Self {
        Self { minor: self.minor, errors: Vec::new() }
    }

    fn push(&mut self, error: FieldError) {
        self.errors.push(error);
    }
}

fn value(schema: &Value, given: &Value, path: &str, correlation: Option<Correlation<'_>>, causes: &mut Causes) {
    if given.is_null() && is(schema, "nullable") {
        return;
    }
    let mut found = causes.none();
    of_type(schema, given, path, &mut found);
    allowed(schema, given, path, &mut found);
    match given {
        Value::String(given) => text(schema, given, path, &mut found),
        Value::Number(_) => number(schema, given, path, &mut found),
        Value::Array(given) => list(schema, given, path, correlation, &mut found),
        Value::Object(given) => object(schema, given, path, correlation, &mut found),
        _ => {}
    }
    combined(schema, given, path, &mut found);
    if found.errors.is_empty() || !correlation.is_some_and(Correlation::is_unchanged) {
        causes.errors.extend(found.errors);
    }
}

fn body(path: &str, what: &str) -> String {
    format!("{path} in body {what}")
}

fn invalid(path: &str, given: &Value, what: &str, causes: &mut Causes) {
    let what = body(path, what);
    causes.push(match given {
        Value::String(text) => FieldError::invalid(path, text, &what),
        other => FieldError::invalid_value(path, other, &what),
    });
}

fn type_of(given: &Value) -> &'static str {
    match given {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() && number.as_f64().is_none_or(|number| number.fract() != 0.0) => {
            "number"
        }
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn of_type(schema: &Value, given: &Value, path: &str, causes: &mut Causes) {
    let found = type_of(given);
    let wanted = if is(schema, INT_OR_STRING) {
        if matches!(found, "integer" | "string") {
            return;
        }
        "integer,string"
    } else {
        match schema.get("type").and_then(Value::as_str) {
            None | Some("") => return,
            Some(wanted) if wanted == found || (wanted == "number" && found == "integer") => return,
            Some(wanted) => wanted,
        }
    };
    let text = format!("must be of type {wanted}: {}", quote(found));
    causes.push(FieldError::type_invalid(path, found, &body(path, &text)));
}

fn allowed(schema: &Value, given: &Value, path: &str, causes: &mut Causes) {
    let Some(values) = schema.get("enum").and_then(Value::as_array) else { return };
    if !values.contains(given) {
        let texts = values.iter().map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let texts: Vec<String> = texts.collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        causes.push(FieldError::not_supported_value(path, given, &texts));
    }
}

fn bound(schema: &Value, key: &str) -> Option<usize> {
    schema.get(key).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok())
}

fn text(schema: &Value, given: &str, path: &str, causes: &mut Causes) {
    let length = given.chars().count();
    let shown = Value::from(given);
    if let Some(most) = bound(schema, "maxLength").filter(|most| length > *most) {
        causes.push(FieldError::too_long_in(causes.minor, path, most));
    } else if let Some(least) = bound(schema, "minLength").filter(|least| length < *least) {
        invalid(path, &shown, &format!("should be at least {least} chars long"), causes);
    } else if let Some(pattern) = schema.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty())
        && !Regex::new(pattern).is_ok_and(|regex| regex.is_match(given))
    {
        invalid(path, &shown, &format!("should match '{pattern}'"), causes);
    }
    if let Some(format) = schema.get("format").and_then(Value::as_str)
        && !has_format(format, given)
    {
        let text = body(path, &format!("must be of type {format}: {}", quote(given)));
        causes.push(FieldError::type_invalid(path, given, &text));
    }
}

/// The formats that are simple; any text has one that is not checked here.
fn has_format(format: &str, text: &str) -> bool {
    match format {
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok(),
        "byte" => base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).is_ok(),
        _ => true,
    }
}

fn number(schema: &Value, given: &Value, path: &str, causes: &mut Causes) {
    let Some(number) = given.as_f64() else { return };
    let limit = |key: &str| schema.get(key).and_then(|limit| Some((limit.as_f64()?, limit)));
    if let Some((most, shown)) = limit("maximum") {
        if is(schema, "exclusiveMaximum") && number >= most {
            invalid(path, given, &format!("should be less than {shown}"), causes);
        } else if number > most {
            invalid(path, given, &format!("should be less than or equal to {shown}"), causes);
        }
    }
    if let Some((least, shown)) = limit("minimum") {
        if is(schema, "exclusiveMinimum") && number <= least {
            invalid(path, given, &format!("should be greater than {shown}"), causes);
        } else if number < least {
            invalid(path, given, &format!("should be greater than or equal to {shown}"), causes);
        }
    }
    if let Some((factor, shown)) = limit("multipleOf") {
        multiple(given, factor, shown, path, causes);
    }
    let range = match schema.get("format").and_then(Value::as_str) {
        Some("int32") => f64::from(i32::MIN)..=f64::from(i32::MAX),
        _ => return,
    };
    if !range.contains(&number) {
        let text = body(path, "must be of type int32: \"int64\"");
        causes.push(FieldError::invalid_value(path, given, &text).of_type());
    }
}

/// An integer is divided by the integral part of the factor.
fn multiple(given: &Value, factor: f64, shown: &Value, path: &str, causes: &mut Causes) {
    let (number, factor) = match given.as_f64() {
        Some(number) if given.is_f64() => (number, factor),
        Some(number) => (number, factor.trunc()),
        None => return,
    };
    if factor <= 0.0 {
        let text = format!("factor MultipleOf declared for {path} must be positive: {factor}");
        causes.push(FieldError::invalid_value(path, given, &text));
    } else if (number / factor).fract() != 0.0 {
        invalid(path, given, &format!("should be a multiple of {shown}"), causes);
    }
}

fn list(schema: &Value, given: &[Value], path: &str, correlation: Option<Correlation<'_>>, causes: &mut Causes) {
    let count = given.len();
    let shown = || Value::from(count);
    if let Some(most) = bound(schema, "maxItems").filter(|most| count > *most) {
        causes.push(FieldError::too_many_in(causes.minor, path, count, most));
    }
    if let Some(least) = bound(schema, "minItems").filter(|least| count < *least) {
        invalid(path, &shown(), &format!("should have at least {least} items"), causes);
    }
    if let Some(of) = items(schema) {
        for (i, element) in given.iter().enumerate() {
            let correlation = correlation.and_then(|correlation| correlation.index(i));
            value(of, element, &format!("{path}[{i}]"), correlation, causes);
        }
    }
}

/// What is in a list twice that may be there once.
fn duplicates(schema: &Value, given: &Value, path: &str, causes: &mut Causes) {
    match given {
        Value::Array(elements) => {
            unique(schema, elements, path, causes);
            if let Some(of) = items(schema) {
                for (i, element) in elements.iter().enumerate() {
                    duplicates(of, element, &format!("{path}[{i}]"), causes);
                }
            }
        }
        Value::Object(fields) => {
            for (key, inner) in fields {
                if let Some(of) = property(schema, key) {
                    let child = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    duplicates(of, inner, &child, causes);
                } else if let Some(of) = additional(schema) {
                    duplicates(of, inner, &format!("{path}[{key}]"), causes);
                }
            }
        }
        _ => {}
    }
}

fn unique(schema: &Value, given: &[Value], path: &str, causes: &mut Causes) {
    let keys: Option<Vec<&str>> = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => Some(Vec::new()),
        Some("map") => schema
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array)
            .map(|keys| keys.iter().filter_map(Value::as_str).collect()),
        _ => None,
    };
    let Some(keys) = keys else { return };
    let key_of = |element: &Value| -> Value {
        if keys.is_empty() {
            return element.clone();
        }
        let part = |key: &&str| element.get(key).map(|value| ((*key).to_owned(), value.clone()));
        Value::Object(keys.iter().filter_map(part).collect::<Map<_, _>>())
    };
    for (i, element) in given.iter().enumerate() {
        if given[..i].iter().any(|other| key_of(other) == key_of(element)) {
            let key = shown(causes.minor, &key_of(element));
            causes.push(FieldError::duplicate_shown(format!("{path}[{i}]"), &key));
        }
    }
}

fn object(
    schema: &Value,
    given: &Map<String, Value>,
    path: &str,
    correlation: Option<Correlation<'_>>,
    causes: &mut Causes,
) {
    let child = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let count = given.len();
    if let Some(most) = bound(schema, "maxProperties").filter(|most| count > *most) {
        causes.push(FieldError::too_many_in(causes.minor, path, count, most));
    }
    if let Some(least) = bound(schema, "minProperties").filter(|least| count < *least) {
        let shown = Value::from(count);
        invalid(path, &shown, &format!("should have at least {least} properties"), causes);
    }
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !given.contains_key(required) {
            causes.push(FieldError::required(child(required), ""));
        }
    }
    for (key, inner) in given {
        if let Some(of) = property(schema, key).or_else(|| additional(schema)) {
            // Of these the API server converts both to the same version.
            let is_type = path.is_empty() && ["apiVersion", "kind"].contains(&key.as_str());
            let correlation = correlation.filter(|_| !is_type).and_then(|correlation| correlation.key(key));
            value(of, inner, &child(key), correlation, causes);
        }
    }
}

fn combined(schema: &Value, given: &Value, path: &str, causes: &mut Causes) {
    let minor = causes.minor;
    let alternatives = |key: &str| schema.get(key).and_then(Value::as_array).filter(|all| !all.is_empty());
    let found = |of: &Value| {
        let mut found = Causes { minor, errors: Vec::new() };
        value(of, given, path, None, &mut found);
        found.errors
    };
    // These mistakes are not of a field, in the API server's words.
    let say = |what: &str| FieldError::invalid("<nil>", "", &format!("{} {what}", quote(path)));
    if let Some(all) = alternatives("anyOf")
        && !all.iter().any(|of| found(of).is_empty())
    {
        causes.push(say("must validate at least one schema (anyOf)"));
        causes.errors.extend(all.first().map(found).unwrap_or_default());
    }
    if let Some(all) = alternatives("oneOf") {
        match all.iter().filter(|of| found(of).is_empty()).count() {
            0 => {
                causes.push(say("must validate one and only one schema (oneOf). Found none valid"));
                causes.errors.extend(all.first().map(found).unwrap_or_default());
            }
            1 => {}
            several => causes.push(say(&format!(
                "must validate one and only one schema (oneOf). Found {several} valid alternatives"
            ))),
        }
    }
    if let Some(all) = alternatives("allOf") {
        let wrong: Vec<_> = all.iter().flat_map(found).collect();
        if !wrong.is_empty() {
            causes.errors.extend(wrong);
            causes.push(say("must validate all the schemas (allOf)"));
        }
    }
    if schema.get("not").is_some_and(|of| of.is_object() && found(of).is_empty()) {
        causes.push(say("must not validate the schema (not)"));
    }
}

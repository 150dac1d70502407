//! Validation by a schema, as `k8s.io/kube-openapi/pkg/validation/validate` does it, in the words of `apiextensions`.

mod found;
mod kinds;
mod lists;
mod numbers;

use palisade_cel::{Minor, Regex, strfmt};
use serde_json::{Map, Value};

use crate::validation::{ErrorType, FieldError, go_json, quote};

use super::{
    correlation::Correlation,
    schema::{additional, is, items},
};
use found::Found;
pub(super) use lists::duplicates;

/// How the API server reads formats, and types of what may be an integer or a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Those of objects: without the formats that the minor does not support.
    Objects,
    /// Those of defaults: as they are.
    Defaults,
}

/// The validator of values in a minor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validator {
    pub(super) minor: Minor,
    pub(super) reading: Reading,
}

/// A value, where it is, and the one that it replaces.
#[derive(Clone, Copy)]
struct Given<'v> {
    value: &'v Value,
    path: &'v str,
    correlation: Option<Correlation<'v>>,
}

/// The errors in a value; none if an update did not change the value.
fn ratcheted(found: Found, given: Given<'_>) -> Found {
    if !found.is_empty() && given.correlation.is_some_and(Correlation::is_unchanged) {
        return Found::with(found.matches);
    }
    found
}

fn body(path: &str, what: &str) -> String {
    format!("{path} in body {what}")
}

impl Validator {
    /// The errors of a value at a path, or of the whole. Leaves out those of parts that an update did not change.
    pub(super) fn errors(
        self,
        schema: &Value,
        value: &Value,
        old: Option<&Value>,
        at: Option<&str>,
    ) -> Vec<FieldError> {
        let correlation = old.map(|old| Correlation { schema, new: value, old });
        self.value(schema, Given { value, path: "", correlation }).errors(at)
    }

    fn value(self, schema: &Value, given: Given<'_>) -> Found {
        let mut found = Found::default();
        let types = kinds::types(self, schema);
        let format = kinds::format(self, schema, &types);
        let is_typed = !types.is_empty() || !format.is_empty();
        if is_typed {
            kinds::check((&types, format, is(schema, "nullable")), given.value, given.path, self.minor, &mut found);
        }
        if given.value.is_null() {
            self.allowed(schema, given, &mut found);
            return ratcheted(found, given);
        }
        // The type, the alternatives, and the enum apply to each value.
        found.matches += usize::from(is_typed) + 3;
        found.merge(self.combined(schema, given));
        match given.value {
            Value::String(text) => {
                found.matches += 1;
                self.text(schema, text, given, &mut found);
                if let Some(is_valid) = strfmt::check(self.supported(), format).filter(|_| !format.is_empty()) {
                    found.matches += 1;
                    if !is_valid(text) {
                        let what = body(given.path, &format!("must be of type {format}: {}", quote(text)));
                        self.wrong(ErrorType::TypeInvalid, given.path, given.value, &what, &mut found);
                    }
                }
            }
            Value::Number(number) => {
                found.matches += 1;
                found.merge(numbers::check(self, (schema, &types, format), number, given));
            }
            Value::Array(list) => {
                found.matches += 1;
                found.merge(self.list(schema, list, given));
            }
            _ => {}
        }
        self.allowed(schema, given, &mut found);
        if let Value::Object(object) = given.value {
            found.matches += 1;
            found.merge(self.object(schema, object, given));
        }
        ratcheted(found, given)
    }

    /// The minor whose formats strings are checked by.
    fn supported(self) -> Minor {
        // Of defaults each that the minor knows, also those that it does not support yet.
        let knows_more = self.reading == Reading::Defaults && self.minor >= Minor::V1_34;
        if knows_more { self.minor.max(Minor::V1_35) } else { self.minor }
    }

    /// A value that is wrong: shown as Go shows one whose type it does not know.
    fn wrong(self, of: ErrorType, path: &str, value: &Value, message: &str, found: &mut Found) {
        found.add(path, message, |field| FieldError::untyped(self.minor, of, field, value, message));
    }

    fn invalid(self, given: Given<'_>, value: &Value, what: &str, found: &mut Found) {
        self.wrong(ErrorType::Invalid, given.path, value, &body(given.path, what), found);
    }

    /// The values of an enum. Go converts a value to the type of the one that it is compared with.
    fn allowed(self, schema: &Value, given: Given<'_>, found: &mut Found) {
        let values = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if values.is_empty() || values.iter().any(|value| kinds::converts_to(given.value, value)) {
            return;
        }
        let texts: Vec<String> =
            values.iter().map(|value| value.as_str().map_or_else(|| go_json(value), str::to_owned)).collect();
        let message = body(given.path, &format!("should be one of {texts:?}"));
        found.add(given.path, &message, |field| {
            let texts: Vec<String> = texts.iter().map(|text| quote(text)).collect();
            let detail = format!("supported values: {}", texts.join(", "));
            FieldError::untyped(self.minor, ErrorType::NotSupported, field, given.value, &detail)
        });
    }

    /// The length and the pattern of a text: the first that is wrong.
    fn text(self, schema: &Value, text: &str, given: Given<'_>, found: &mut Found) {
        let length = text.chars().count();
        if let Some(most) = bound(schema, "maxLength").filter(|most| length > *most) {
            let message = body(given.path, &format!("should be at most {most} chars long"));
            found.add(given.path, &message, |field| FieldError::too_long_in(self.minor, field, most));
        } else if let Some(least) = bound(schema, "minLength").filter(|least| length < *least) {
            self.invalid(given, given.value, &format!("should be at least {least} chars long"), found);
        } else if let Some(pattern) =
            schema.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty())
            && !Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
        {
            self.invalid(given, given.value, &format!("should match '{pattern}'"), found);
        }
    }

    fn list(self, schema: &Value, list: &[Value], given: Given<'_>) -> Found {
        let mut found = Found::with(1);
        if let Some(of) = items(schema) {
            for (i, value) in list.iter().enumerate() {
                let correlation = given.correlation.and_then(|correlation| correlation.index(i));
                let path = format!("{}[{i}]", given.path);
                found.merge(self.value(of, Given { value, path: &path, correlation }));
            }
        }
        self.count(schema, ("minItems", "maxItems", "items"), list.len(), given, &mut found);
        found
    }

    /// The number of items or of properties.
    fn count(self, schema: &Value, names: (&str, &str, &str), count: usize, given: Given<'_>, found: &mut Found) {
        let (min, max, things) = names;
        if let Some(least) = bound(schema, min).filter(|least| count < *least) {
            self.invalid(given, &Value::from(count), &format!("should have at least {least} {things}"), found);
        }
        if let Some(most) = bound(schema, max).filter(|most| count > *most) {
            let message = body(given.path, &format!("should have at most {most} {things}"));
            found.add(given.path, &message, |field| FieldError::too_many_in(self.minor, field, count, most));
        }
    }

    fn object(self, schema: &Value, object: &Map<String, Value>, given: Given<'_>) -> Found {
        let mut found = Found::default();
        let path = given.path;
        self.count(schema, ("minProperties", "maxProperties", "properties"), object.len(), given, &mut found);
        let properties = schema.get("properties").and_then(Value::as_object);
        let forbidden = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let further = object.iter().filter(|(key, _)| properties.is_none_or(|of| !of.contains_key(*key)));
        for (key, value) in further {
            if forbidden {
                let message = format!("{path}.{key} in body is a forbidden property");
                self.wrong(ErrorType::Invalid, path, &Value::from(key.as_str()), &message, &mut found);
            } else if let Some(of) = additional(schema) {
                found.merge(self.field(of, (key, value), &format!("{path}.{key}"), given));
            }
        }
        for (key, of) in properties.into_iter().flatten() {
            if let Some(value) = object.get(key) {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                found.merge(self.field(of, (key, value), &below, given));
            }
        }
        for required in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
            if !object.contains_key(required) {
                let path = format!("{path}.{required}");
                found.add(&path, &body(&path, "is required"), |field| FieldError::required(field, ""));
            }
        }
        found
    }

    fn field(self, schema: &Value, (key, value): (&str, &Value), path: &str, within: Given<'_>) -> Found {
        // Of these the API server converts both objects to the same version.
        let is_type = within.path.is_empty() && ["apiVersion", "kind"].contains(&key);
        let correlation = within.correlation.filter(|_| !is_type).and_then(|correlation| correlation.key(key));
        self.value(schema, Given { value, path, correlation })
    }

    /// `anyOf`, `oneOf`, `allOf` and `not`. Of alternatives that all fail, the errors of the one that matches most.
    fn combined(self, schema: &Value, given: Given<'_>) -> Found {
        let mut found = Found::default();
        let alternatives = |key: &str| schema.get(key).and_then(Value::as_array).filter(|all| !all.is_empty());
        // Parts of them are not compared with those of the old object.
        let try_one = |of: &Value| self.value(of, Given { correlation: None, ..given });
        let fails = |what: &str, found: &mut Found| found.add_plain(&format!("{} {what}", quote(given.path)));
        if let Some(all) = alternatives("anyOf") {
            let mut best: Option<Found> = None;
            for of in all {
                let one = try_one(of);
                let is_valid = one.is_empty();
                if is_valid || best.as_ref().is_none_or(|best| one.matches > best.matches) {
                    best = Some(one);
                }
                if is_valid {
                    break;
                }
            }
            if best.as_ref().is_some_and(|best| !best.is_empty()) {
                fails("must validate at least one schema (anyOf)", &mut found);
            }
            found.merge(best.unwrap_or_default());
        }
        if let Some(all) = alternatives("oneOf") {
            let (mut best, mut first): (Option<Found>, Option<Found>) = (None, None);
            let mut valid = 0;
            for of in all {
                let one = try_one(of);
                if one.is_empty() {
                    valid += 1;
                    first.get_or_insert(one);
                } else if valid == 0 && best.as_ref().is_none_or(|best| one.matches > best.matches) {
                    best = Some(one);
                }
            }
            match valid {
                0 => {
                    fails("must validate one and only one schema (oneOf). Found none valid", &mut found);
                    found.merge(best.unwrap_or_default());
                }
                1 => found.merge(first.unwrap_or_default()),
                _ => {
                    let what =
                        format!("must validate one and only one schema (oneOf). Found {valid} valid alternatives");
                    fails(&what, &mut found);
                }
            }
        }
        if let Some(all) = alternatives("allOf") {
            let mut valid = 0;
            for of in all {
                let one = try_one(of);
                valid += usize::from(one.is_empty());
                found.merge(one);
            }
            if valid < all.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                fails(&format!("must validate all the schemas (allOf){none}"), &mut found);
            }
        }
        if schema.get("not").is_some_and(|of| of.is_object() && try_one(of).is_empty()) {
            fails("must not validate the schema (not)", &mut found);
        }
        found.matches += 1;
        found
    }
}

fn bound(schema: &Value, key: &str) -> Option<usize> {
    schema.get(key).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok())
}

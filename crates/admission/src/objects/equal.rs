//! Whether the API server considers two values equal (`apiequality.Semantic.DeepEqual`): nothing and an empty list are
//! equal, and `1` and `1000m` of a processor are; an absent number and zero are not, where the field distinguishes
//! them.

use palisade_cel::Quantity;
use serde_json::{Map, Value};

use super::table::{Own, Table, Type};

/// Compares parts of two objects that are made of the same struct.
#[derive(Clone, Copy)]
pub(super) struct DeepEqual<'t> {
    table: &'t Table,
    /// The struct; of custom resources there is none, and their values are compared as they are.
    name: Option<&'t str>,
}

impl<'t> DeepEqual<'t> {
    /// For objects of a struct of this name.
    pub(super) fn of(table: &'t Table, name: Option<&'t str>) -> Self {
        Self { table, name }
    }

    /// Whether two whole objects have the same in all fields but these.
    pub(super) fn but(self, besides: &[&str], a: &Value, b: &Value) -> bool {
        let Some(of) = self.name.and_then(|name| self.table.get(name)) else {
            return keys(a, b).filter(|key| !besides.contains(key)).all(|key| loosely(&a[key], &b[key]));
        };
        let mut fields = of.fields.iter().filter(|field| !besides.contains(&field.name.as_str()));
        fields.all(|field| self.value(&field.of, a.get(&field.name), b.get(&field.name)))
    }

    /// Whether two objects have the same at a path of fields.
    pub(super) fn at(self, path: &[&str], a: &Value, b: &Value) -> bool {
        let get = |of| path.iter().try_fold(of, |value: &Value, key| value.get(key));
        let (a, b) = (get(a), get(b));
        match self.type_at(path) {
            Some(of) => self.value(of, a, b),
            None => loosely(a.unwrap_or(&Value::Null), b.unwrap_or(&Value::Null)),
        }
    }

    /// The struct of a field.
    pub(super) fn below(self, path: &[&str]) -> Self {
        Self { name: self.type_at(path).and_then(struct_of), ..self }
    }

    fn type_at(self, path: &[&str]) -> Option<&'t Type> {
        let mut name = self.name?;
        let mut found = None;
        for key in path {
            let field = self.table.get(name)?.field(key)?;
            found = Some(&field.of);
            name = struct_of(&field.of).unwrap_or_default();
        }
        found
    }

    fn value(self, of: &'t Type, a: Option<&Value>, b: Option<&Value>) -> bool {
        let there = |value: Option<&'_ Value>| value.is_some_and(|value| !value.is_null());
        let null = &Value::Null;
        match of.under() {
            // A pointer to zero is not nil.
            Type::Pointer(inner) => match (there(a), there(b)) {
                (true, true) => self.value(inner, a, b),
                (a, b) => a == b,
            },
            Type::Struct(name) => {
                let (a, b) = (a.unwrap_or(null), b.unwrap_or(null));
                Self { name: Some(name), ..self }.but(&[], a, b)
            }
            Type::List(inner) => {
                let list = |of: Option<&'_ Value>| of.and_then(Value::as_array).cloned().unwrap_or_default();
                let (a, b) = (list(a), list(b));
                a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| self.value(inner, Some(a), Some(b)))
            }
            Type::Map(inner) => {
                let none = Map::new();
                let map = |of: Option<&'_ Value>| of.and_then(Value::as_object).unwrap_or(&none).clone();
                let (a, b) = (map(a), map(b));
                a.len() == b.len()
                    && a.iter()
                        .all(|(key, value)| b.get(key).is_some_and(|other| self.value(inner, Some(value), Some(other))))
            }
            Type::Own(Own::Quantity) => {
                let parse = |of: Option<&'_ Value>| Quantity::parse(of.and_then(Value::as_str).unwrap_or("0")).ok();
                match (parse(a), parse(b)) {
                    (Some(a), Some(b)) => a.compare(&b).is_eq(),
                    _ => a == b,
                }
            }
            Type::Own(Own::Any) => a.unwrap_or(null) == b.unwrap_or(null),
            _ => zero_or(a) == zero_or(b),
        }
    }
}

/// A value that is not absent and not what is there without a word of it.
fn zero_or(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty() && text != "0s",
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Array(_) | Value::Object(_) => true,
    })
}

fn struct_of(of: &Type) -> Option<&str> {
    match of.under() {
        Type::Struct(name) => Some(name),
        Type::Pointer(inner) => struct_of(inner),
        _ => None,
    }
}

fn keys<'v>(a: &'v Value, b: &'v Value) -> impl Iterator<Item = &'v str> {
    let keys = |of: &'v Value| of.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    keys(a).chain(keys(b))
}

/// Values without a type: empty ones are nothing, as they are in Go.
fn loosely(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, value)| y.get(key).is_some_and(|other| loosely(value, other)))
        }
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(a, b)| loosely(a, b)),
        (Value::Number(x), Value::Number(y)) => x.as_f64() == y.as_f64(),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use palisade_cel::Minor;
    use serde_json::json;

    use super::*;

    #[test]
    fn semantic_equality_matches_the_api_server() {
        let table = Table::of(Minor::DEFAULT);
        let same = DeepEqual::of(&table, Some("core/v1.Pod")).below(&["spec"]);
        let pod = |spec: Value| json!({"containers": [spec]});
        for (a, b, wanted) in [
            (json!({"resources": {"limits": {"cpu": "1"}}}), json!({"resources": {"limits": {"cpu": "1000m"}}}), true),
            (json!({"resources": {"limits": {"cpu": "1"}}}), json!({"resources": {"limits": {"cpu": "2"}}}), false),
            (json!({"args": []}), json!({}), true),
            (json!({"tty": false}), json!({}), true),
            (json!({"securityContext": {}}), json!({}), false),
            (json!({"securityContext": {"privileged": false}}), json!({"securityContext": {}}), false),
            (json!({"env": [{"name": "a", "value": ""}]}), json!({"env": [{"name": "a"}]}), true),
        ] {
            assert_eq!(same.but(&[], &pod(a.clone()), &pod(b.clone())), wanted, "{a} {b}");
        }
        let of_pod = DeepEqual::of(&table, Some("core/v1.Pod"));
        let at = |period: Value| json!({"spec": {"activeDeadlineSeconds": period}});
        assert!(!of_pod.at(&["spec", "activeDeadlineSeconds"], &at(json!(0)), &at(Value::Null)));
    }
}

//! Lists and maps.

use std::{cmp::Ordering, sync::Arc};

use serde_json::Value as Json;

use super::{Str, Value, schema};

/// A list.
#[derive(Clone, Debug)]
pub enum List<'a> {
    /// Of the input. Shared, because a list that an `Object` has equals no other but the very same one.
    Json(Arc<&'a [Json]>),
    /// Made by the expression.
    Items(Arc<Vec<Value<'a>>>),
    /// Of the input, with a schema that says how its elements are told apart (`x-kubernetes-list-type`).
    Associative(Arc<Vec<Value<'a>>>, &'a Json),
}

impl<'a> List<'a> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Items(items) | Self::Associative(items, _) => items.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at an index.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Json(items) => items.get(index).map(Value::from_json),
            Self::Items(items) | Self::Associative(items, _) => items.get(index).cloned(),
        }
    }

    /// The elements, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Value<'a>> + ExactSizeIterator {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// The elements, to change them: without a copy if this is their only owner.
    pub(crate) fn into_vec(self) -> Vec<Value<'a>> {
        match self {
            Self::Json(items) => items.iter().map(Value::from_json).collect(),
            Self::Items(items) | Self::Associative(items, _) => {
                Arc::try_unwrap(items).unwrap_or_else(|items| (*items).clone())
            }
        }
    }

    /// Both lists, one behind the other; what an associative list has already is replaced.
    pub(crate) fn plus(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Associative(items, of), _) => {
                Self::Associative(Arc::new(schema::merge(items, other.iter(), of)), of)
            }
            _ if other.is_empty() => self,
            _ if self.is_empty() => other,
            _ => {
                let mut elements = self.into_vec();
                elements.extend(other.iter());
                Self::Items(Arc::new(elements))
            }
        }
    }

    /// Whether an element equals the value.
    pub(crate) fn contains(&self, value: &Value<'_>) -> bool {
        match self {
            Self::Json(items) => items.iter().any(|item| value.contained_as(&Value::from_json(item))),
            Self::Items(items) | Self::Associative(items, _) => items.iter().any(|item| value.contained_as(item)),
        }
    }
}

impl Value<'_> {
    /// An element that cannot be compared is not a match (cel-go `baseList.Contains`).
    fn contained_as(&self, element: &Value<'_>) -> bool {
        self.equals(element).is_ok_and(|equal| equal)
    }
}

/// A map.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// Of the input.
    Json(&'a serde_json::Map<String, Json>),
    /// Made by the expression.
    Entries(Arc<Entries<'a>>),
    /// Of the input, with its schema.
    Typed(&'a serde_json::Map<String, Json>, &'a Json),
    /// The policy's variables, which only an evaluation can look up, and how many there are.
    Variables(usize),
}

impl<'a> Map<'a> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Json(fields) | Self::Typed(fields, _) => fields.len(),
            Self::Entries(entries) => entries.len(),
            Self::Variables(count) => *count,
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key. A number finds an equal number of another type.
    pub fn get(&self, key: &Value<'_>) -> Option<Value<'a>> {
        match (self, key) {
            (Self::Json(fields), Value::String(key)) => fields.get(&**key).map(Value::from_json),
            (Self::Typed(fields, of), Value::String(key)) => schema::get(fields, of, key),
            (Self::Entries(entries), _) => entries.find(key).cloned(),
            _ => None,
        }
    }

    /// Keys and values. In cel-go their order is random.
    pub fn entries(&self) -> Box<dyn Iterator<Item = (Value<'a>, Value<'a>)> + '_> {
        match self {
            Self::Json(fields) => {
                Box::new(fields.iter().map(|(key, value)| (Value::String(Str::Borrowed(key)), Value::from_json(value))))
            }
            Self::Typed(fields, of) => Box::new(schema::entries(fields, of)),
            Self::Entries(entries) => Box::new(entries.iter().cloned()),
            Self::Variables(_) => Box::new(std::iter::empty()),
        }
    }

    /// The entries, to change them: without a copy if this is their only owner.
    pub(crate) fn into_entries(self) -> Entries<'a> {
        match self {
            Self::Entries(entries) => Arc::try_unwrap(entries).unwrap_or_else(|entries| (*entries).clone()),
            map => {
                let mut entries = Entries::default();
                for (key, value) in map.entries() {
                    entries.insert(key, value);
                }
                entries
            }
        }
    }
}

/// Keys and values of a map, sorted by key. Keys that equal nothing, themselves included, come last.
#[derive(Clone, Debug, Default)]
pub struct Entries<'a>(Vec<(Value<'a>, Value<'a>)>);

impl<'a> Entries<'a> {
    /// As cel-go finds keys: the same type first, then an equal number of another (`refValMapAccessor.Find`).
    pub(crate) fn find(&self, key: &Value<'_>) -> Option<&Value<'a>> {
        self.find_exact(key).or_else(|| match key {
            Value::Double(value) => lossless_int(*value)
                .and_then(|int| self.find_exact(&Value::Int(int)))
                .or_else(|| self.find_exact(&Value::Uint(lossless_uint(*value)?))),
            Value::Int(value) => self.find_exact(&Value::Uint(u64::try_from(*value).ok()?)),
            Value::Uint(value) => self.find_exact(&Value::Int(i64::try_from(*value).ok()?)),
            _ => None,
        })
    }

    /// The value of a key of the same type.
    pub(crate) fn find_exact(&self, key: &Value<'_>) -> Option<&Value<'a>> {
        self.place(key).ok().map(|index| &self.0[index].1)
    }

    /// Sets the value of a key.
    pub(crate) fn insert(&mut self, key: Value<'a>, value: Value<'a>) {
        match self.place(&key) {
            Ok(index) => self.0[index].1 = value,
            Err(index) => self.0.insert(index, (key, value)),
        }
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, key: &Value<'_>) {
        if let Ok(index) = self.place(key) {
            self.0.remove(index);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(Value<'a>, Value<'a>)> {
        self.0.iter()
    }

    pub(super) fn into_owned(self) -> Entries<'static> {
        Entries(self.0.into_iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect())
    }

    fn place(&self, key: &Value<'_>) -> Result<usize, usize> {
        if rank(key) == LONELY {
            return Err(self.0.len());
        }
        self.0.binary_search_by(|(other, _)| order(other, key))
    }
}

/// The rank of keys that equal nothing.
const LONELY: u8 = u8::MAX;

fn rank(key: &Value<'_>) -> u8 {
    match key {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(_) => 2,
        Value::Uint(_) => 3,
        Value::Double(value) if !value.is_nan() => 4,
        Value::String(_) => 5,
        Value::Timestamp(_) => 6,
        Value::Duration(_) => 7,
        Value::Type(_) => 8,
        _ => LONELY,
    }
}

/// The order of keys. Only equality has a meaning: that of Go's maps.
fn order(a: &Value<'_>, b: &Value<'_>) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) if rank(&Value::Double(*a)) != LONELY => {
            a.partial_cmp(b).unwrap_or(Ordering::Greater)
        }
        (Value::String(a), Value::String(b)) | (Value::Type(a), Value::Type(b)) => (**a).cmp(&**b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// The int that a double is, without loss.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "loss is what is looked for"
)]
pub(crate) fn lossless_int(value: f64) -> Option<i64> {
    // 2^63 is not an int, although i64::MAX as a double is 2^63.
    let int = value as i64;
    (int != i64::MAX && int as f64 == value).then_some(int)
}

/// The uint that a double is, without loss.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "loss is what is looked for"
)]
pub(crate) fn lossless_uint(value: f64) -> Option<u64> {
    let uint = value as u64;
    (uint != u64::MAX && uint as f64 == value).then_some(uint)
}

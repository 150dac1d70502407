//! Paths of fields: the counterpart of Kubernetes' `field.Path`.

use std::fmt;

use serde_json::Value as Json;

/// The path of a field in an object: `spec.containers[0].name`, `metadata.labels[app]`.
///
/// Any text is a path, which is displayed as that text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<Segment>);

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// To a field of an object.
    Field(String),
    /// To an element of a list.
    Index(usize),
    /// To a value of a map.
    Key(String),
}

impl FieldPath {
    /// The path of a field below this one.
    #[must_use]
    pub fn child(&self, name: impl Into<String>) -> Self {
        self.join(&[Segment::Field(name.into())])
    }

    /// The path of an element of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.join(&[Segment::Index(index)])
    }

    /// The path of a value of this map.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.join(&[Segment::Key(key.into())])
    }

    /// The path that continues with these steps.
    #[must_use]
    pub fn join(&self, steps: &[Segment]) -> Self {
        Self([&self.0, steps].concat())
    }

    /// The steps after the first field of this name; `None` if the path has no such field.
    pub fn after(&self, field: &str) -> Option<&[Segment]> {
        let is_field = |step: &Segment| matches!(step, Segment::Field(name) if name == field);
        self.0.get(self.0.iter().position(is_field)? + 1..)
    }

    /// Whether it is this path, or one below it.
    pub fn is_at_or_below(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Whether it is the path of the object itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value at this path.
    pub fn value<'j>(&self, object: &'j Json) -> Option<&'j Json> {
        self.0.iter().try_fold(object, |value, step| match step {
            Segment::Field(name) | Segment::Key(name) => value.get(name),
            Segment::Index(index) => value.get(index),
        })
    }
}

impl From<&str> for FieldPath {
    fn from(text: &str) -> Self {
        let mut steps = Vec::new();
        let mut rest = Some(text).filter(|text| !text.is_empty());
        while let Some(text) = rest {
            let (found, tail) = up_to_dot(text).unwrap_or_else(|| (vec![Segment::Field(text.to_owned())], None));
            steps.extend(found);
            rest = tail;
        }
        Self(steps)
    }
}

impl From<String> for FieldPath {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

/// The name and the steps in brackets before a dot, and the text after the dot; `None` if brackets do not match.
fn up_to_dot(text: &str) -> Option<(Vec<Segment>, Option<&str>)> {
    let (name, mut rest) = text.split_at(text.find(['.', '[']).unwrap_or(text.len()));
    let mut steps = vec![Segment::Field(name.to_owned())];
    while let Some(opened) = rest.strip_prefix('[') {
        let (inside, tail) = opened.split_once(']')?;
        steps.push(match inside.parse() {
            Ok(index) if usize::to_string(&index) == inside => Segment::Index(index),
            _ => Segment::Key(inside.to_owned()),
        });
        rest = tail;
    }
    match rest.strip_prefix('.') {
        None if !rest.is_empty() => None,
        below => Some((steps, below)),
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Segment::Field(name) if position == 0 => f.write_str(name)?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use serde_json::json;

    use super::*;

    fn step() -> impl Strategy<Value = Segment> {
        prop_oneof![
            "[a-zA-Z][a-zA-Z0-9-]{0,8}".prop_map(Segment::Field),
            (0..1000_usize).prop_map(Segment::Index),
            "[a-z][a-z./]{0,8}".prop_map(Segment::Key),
        ]
    }

    proptest! {
        #[test]
        fn any_text_is_displayed_as_it_was_written(text in prop_oneof!["[ab0\\[\\].:]{0,12}", ".{0,12}"]) {
            prop_assert_eq!(FieldPath::from(text.as_str()).to_string(), text);
        }

        #[test]
        fn displayed_path_is_read_as_the_same_path(steps in vec(step(), 0..6)) {
            let path = FieldPath::from("spec").join(&steps);
            prop_assert_eq!(FieldPath::from(path.to_string()), path);
        }
    }

    #[test]
    fn path_has_the_steps_of_its_text() {
        let path = FieldPath::from("spec.variables[3].expression");
        assert_eq!(path, FieldPath::from("spec").child("variables").index(3).child("expression"));
        assert_eq!(path.after("variables"), Some(&[Segment::Index(3), Segment::Field("expression".to_owned())][..]));
        assert_eq!((path.after("expression"), path.after("variable")), (Some(&[][..]), None));
        assert_eq!(FieldPath::from("metadata.labels[a.b/c]"), FieldPath::from("metadata.labels").key("a.b/c"));
        assert_eq!(FieldPath::from("a.b[c]d.e"), FieldPath::from("a").child("b[c]d.e"));
        assert_eq!(FieldPath::from(""), FieldPath::default());
    }

    #[test]
    fn path_leads_to_its_value() {
        let object = json!({"a": [{"b.c": 1}], "d": {"b.c": 2}});
        assert_eq!(FieldPath::from("a").index(0).child("b.c").value(&object), Some(&json!(1)));
        assert_eq!(FieldPath::from("d[b.c]").value(&object), Some(&json!(2)));
        assert_eq!(FieldPath::default().value(&object), Some(&object));
        for path in ["a[1]", "a.b", "d[0]", "d.x.y"] {
            assert_eq!(FieldPath::from(path).value(&object), None, "{path}");
        }
    }
}

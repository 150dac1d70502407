//! Compact values, because the store keeps thousands of them.

use std::marker::PhantomData;

use serde::{Serialize, de::DeserializeOwned};

/// A value as its JSON. A `BTreeMap` with one entry takes over 500 bytes; as JSON a whole namespace takes 200.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonBox<T> {
    json: Box<str>,
    value: PhantomData<fn() -> T>,
}

#[expect(clippy::expect_used, reason = "what is packed are texts and numbers in maps with texts as keys")]
impl<T: Serialize + DeserializeOwned> JsonBox<T> {
    /// Packs a value. Its fields must be texts, numbers, lists, and maps by texts.
    pub fn new(value: &T) -> Self {
        let json = serde_json::to_string(value).expect("it can be written as JSON");
        Self { json: json.into(), value: PhantomData }
    }

    pub fn get(&self) -> T {
        serde_json::from_str(&self.json).expect("it was written as JSON")
    }
}

#[cfg(test)]
mod tests {
    use palisade_api::{ContainerException, ToolSecurityParamsSpec};
    use palisade_compiler::Namespace;

    use super::*;

    #[test]
    fn json_box_round_trips() {
        let texts = ["", "a", "\0\"\\\u{7f}", "ä\u{1f600}\n"].map(str::to_owned);
        let map: std::collections::BTreeMap<_, _> = texts.iter().cloned().zip(texts.iter().rev().cloned()).collect();
        let namespace = Namespace { name: "tool".to_owned(), labels: map.clone(), annotations: map.clone() };
        assert_eq!(JsonBox::new(&namespace).get(), namespace);
        assert_eq!(JsonBox::new(&Namespace::default()).get(), Namespace::default());
        let spec = ToolSecurityParamsSpec {
            problem: texts[2].clone(),
            integers: [("least".to_owned(), i64::MIN), ("most".to_owned(), i64::MAX)].into(),
            strings: map.clone(),
            booleans: [("yes".to_owned(), true)].into(),
            string_lists: [("none".to_owned(), vec![]), ("some".to_owned(), texts.to_vec())].into(),
            exceptions: map.clone(),
            workload_exceptions: [("Deployment/encoder".to_owned(), map)].into(),
            container_exceptions: vec![ContainerException { check: texts[3].clone(), ..Default::default() }],
        };
        assert_eq!(JsonBox::new(&spec).get(), spec);
        assert_ne!(JsonBox::new(&spec), JsonBox::new(&ToolSecurityParamsSpec::default()));
    }
}

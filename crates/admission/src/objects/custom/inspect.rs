//! The rules of CustomResourceDefinitions, as tests of them read them.

use std::sync::Arc;

use palisade_cel::{Minor, eval::Watch};

use super::Custom;
use crate::validation::text;

/// A rule of a CustomResourceDefinition.
#[derive(Clone, Debug)]
pub struct InspectedRule<'a> {
    /// The name of the definition.
    pub definition: &'a str,
    /// Where the rule is in the definition: `spec.versions[0].schema.openAPIV3Schema.x-kubernetes-validations[0].rule`. Versions
    /// with the same rule at the same place have it once.
    pub path: String,
    /// The same as a JSON pointer, in each version that has it.
    pub pointers: Vec<String>,
    /// Its text.
    pub source: &'a str,
    /// The results of its parts so far, in each version; nothing if the kinds are not watching.
    pub watches: Vec<&'a Arc<Watch>>,
}

impl Custom {
    /// The rules that compile.
    pub(in super::super) fn inspected(&self, minor: Minor) -> Vec<InspectedRule<'_>> {
        let mut found: Vec<(Vec<String>, usize, InspectedRule<'_>)> = Vec::new();
        for (index, version) in &self.versions {
            let Some(rules) = self.rules(version, minor) else { continue };
            for (steps, number, rule) in rules.all() {
                let Some(Ok(compiled)) = &rule.compiled else { continue };
                let (source, watches) = (text(&rule.of, "rule"), compiled.program.watches());
                let escaped: Vec<_> = steps.iter().map(|step| step.replace('~', "~0").replace('/', "~1")).collect();
                let below = if escaped.is_empty() { String::new() } else { format!("/{}", escaped.join("/")) };
                let pointer = format!(
                    "/spec/versions/{index}/schema/openAPIV3Schema{below}/x-kubernetes-validations/{number}/rule"
                );
                let same = found.iter_mut().find(|(known, n, one)| (known, *n, one.source) == (&steps, number, source));
                if let Some((_, _, one)) = same {
                    one.pointers.push(pointer);
                    one.watches.extend(watches);
                    continue;
                }
                let path = format!(
                    "spec.versions[{index}].schema.openAPIV3Schema{}.x-kubernetes-validations[{number}].rule",
                    readable(&steps)
                );
                let definition = self.name.as_str();
                let (pointers, watches) = (vec![pointer], watches.iter().collect());
                found.push((steps, number, InspectedRule { definition, path, pointers, source, watches }));
            }
        }
        found.into_iter().map(|(_, _, rule)| rule).collect()
    }
}

/// The steps as the API server writes them: `.properties[spec].items`.
fn readable(steps: &[String]) -> String {
    let mut path = String::new();
    let mut steps = steps.iter();
    while let Some(step) = steps.next() {
        path.push('.');
        path.push_str(step);
        if let Some(name) = steps.next().filter(|_| step == "properties") {
            path.extend(["[", name, "]"]);
        }
    }
    path
}

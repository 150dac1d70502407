//! The fields that are present wherever the object is that they belong to.
//!
//! A test reads such a field without asking for it first, and `has(...)` of it is true, so a wrong row here would let
//! violations pass. A row names a list of a pod's spec and the fields that the API requires of its elements; a test
//! compares the table with the schemas of each minor. Every other field, whatever its name, is asked for.

use palisade_cel::ast::{Expr, Literal, Node};

use super::{Cases, PARAMETERS};
use crate::tree::{ident, select};

/// Lists of a pod's spec by their paths, and the fields that each element has. `containers` means each list of
/// [`CONTAINERS`]; a path through a list continues with the fields of its elements.
const REQUIRED: [(&str, &[&str]); 10] = [
    ("containers", &["name"]),
    ("containers.env", &["name"]),
    ("containers.ports", &["containerPort"]),
    ("containers.volumeDevices", &["name", "devicePath"]),
    ("containers.volumeMounts", &["name", "mountPath"]),
    ("hostAliases", &["ip"]),
    ("resourceClaims", &["name"]),
    ("schedulingGates", &["name"]),
    ("securityContext.sysctls", &["name", "value"]),
    ("volumes", &["name"]),
];

/// The lists of containers.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// The fields of the spec of parameters, which their definition requires.
const OF_PARAMETERS: [&str; 5] = ["problem", "integers", "strings", "booleans", "stringLists"];

impl Cases<'_> {
    /// Whether a field is present wherever the expression before it has a value.
    pub(super) fn is_present(&self, path: &Node) -> bool {
        let Expr::Select { operand, field, .. } = &path.expr else { return false };
        if self.present.contains(path) {
            return true;
        }
        match &operand.expr {
            Expr::Ident(name) if &**name == PARAMETERS => matches!(&**field, "metadata" | "spec"),
            Expr::Ident(item) => {
                let requires =
                    |list: &String| REQUIRED.iter().any(|(path, fields)| path == list && fields.contains(&&**field));
                self.range_of(item)
                    .and_then(|range| self.paths(&range))
                    .is_some_and(|lists| !lists.is_empty() && lists.iter().all(requires))
            }
            _ => **operand == select(ident(PARAMETERS), "spec") && OF_PARAMETERS.contains(&&**field),
        }
    }

    /// The range of the enclosing loop whose element has this name.
    pub(super) fn range_of(&self, item: &str) -> Option<Node> {
        self.items.borrow().iter().rev().find(|(of, _)| &**of == item).map(|(_, range)| range.clone())
    }

    /// The paths in a pod's spec of a list, or of each list of a list of lists; `None` if one of them is not known.
    fn paths(&self, list: &Node) -> Option<Vec<String>> {
        if let Expr::List { elements, .. } = &list.expr {
            let each: Option<Vec<_>> = elements.iter().map(|list| self.paths(list)).collect();
            return each.map(|each| each.concat());
        }
        // A list that is an element itself, or a field of one.
        if let Expr::Ident(item) = &list.expr {
            return self.paths(&self.range_of(item)?);
        }
        let (operand, field) = field_of(list)?;
        if *operand == self.spec {
            return Some(vec![if CONTAINERS.contains(&field) { CONTAINERS[0] } else { field }.to_owned()]);
        }
        let below = self.paths(operand)?.into_iter().map(|path| format!("{path}.{field}"));
        Some(below.collect())
    }
}

/// The parts of `operand.field` and of `operand.?field`.
fn field_of(node: &Node) -> Option<(&Node, &str)> {
    match &node.expr {
        Expr::Select { operand, field, test: false } => Some((operand, field)),
        Expr::Call { function, target: None, args } if &**function == "_?._" => match args.as_slice() {
            [operand, Node { expr: Expr::Literal(Literal::String(field)), .. }] => Some((operand, field)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use palisade_cel::{
        Minor,
        schema::{Kind, Schemas},
    };

    use super::*;

    #[test]
    fn fields_that_are_taken_for_present_are_required_in_every_minor() {
        let pod = Kind { group: String::new(), version: "v1".to_owned(), kind: "Pod".to_owned() };
        for minor in Minor::ALL {
            let schemas = Schemas::builtin(minor).unwrap();
            for (list, fields) in REQUIRED {
                let lists = match list.strip_prefix(CONTAINERS[0]) {
                    Some(below) => CONTAINERS.map(|list| format!("{list}{below}")).to_vec(),
                    None => vec![list.to_owned()],
                };
                for (list, field) in lists.iter().flat_map(|list| fields.iter().map(move |field| (list, field))) {
                    let mut path = "Pod.spec".to_owned();
                    for step in list.split('.') {
                        let is_list = step != "securityContext";
                        path = format!("{path}.{step}{}", if is_list { ".@idx" } else { "" });
                    }
                    assert_eq!(schemas.is_required(&pod, &path, field), Some(true), "{minor:?} {path}.{field}");
                }
            }
        }
    }
}

//! Brings quantifiers as far down as they go: over nothing that does not mention their element, and over one case at a time.

use std::{collections::BTreeMap, rc::Rc};

use crate::formula::{Formula, Formulas, Node, Path, Var};

/// Formulas in normal form with smaller scopes. They mean the same.
#[derive(Debug, Default)]
pub struct Scopes {
    done: BTreeMap<Formula, Formula>,
}

impl Scopes {
    /// The formula with smaller scopes.
    pub fn smaller(&mut self, formulas: &mut Formulas, of: Formula) -> Formula {
        if let Some(found) = self.done.get(&of) {
            return *found;
        }
        let result = match formulas.node(of).clone() {
            Node::Constant(_) | Node::Atom(_) | Node::Not(_) => of,
            Node::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.smaller(formulas, *part)).collect();
                formulas.and(parts)
            }
            Node::Or(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.smaller(formulas, *part)).collect();
                formulas.or(parts)
            }
            Node::Exists(list, var, body) => {
                let body = self.smaller(formulas, body);
                over(formulas, true, &list, var, body)
            }
            Node::Forall(list, var, body) => {
                let body = self.smaller(formulas, body);
                over(formulas, false, &list, var, body)
            }
        };
        self.done.insert(of, result);
        result
    }
}

fn over(formulas: &mut Formulas, exists: bool, list: &Path, var: Var, body: Formula) -> Formula {
    match formulas.node(body).clone() {
        // There is an element for one of these if there is one for the first, or for the second.
        Node::Or(parts) if exists => {
            let parts: Vec<_> = parts.iter().map(|part| over(formulas, true, list, var, *part)).collect();
            formulas.or(parts)
        }
        Node::And(parts) if !exists => {
            let parts: Vec<_> = parts.iter().map(|part| over(formulas, false, list, var, *part)).collect();
            formulas.and(parts)
        }
        Node::And(parts) | Node::Or(parts) => {
            let (bound, free): (Vec<_>, Vec<_>) =
                parts.iter().copied().partition(|part| formulas.free(*part).contains(&var));
            if free.is_empty() || bound.is_empty() {
                return formulas.quantify(exists, &Rc::clone(list), var, body);
            }
            let inner = if exists { formulas.and(bound) } else { formulas.or(bound) };
            let inner = over(formulas, exists, list, var, inner);
            if exists {
                formulas.and(free.into_iter().chain([inner]))
            } else {
                formulas.or(free.into_iter().chain([inner]))
            }
        }
        _ => formulas.quantify(exists, list, var, body),
    }
}

//! Formulas with other elements, and their normal form.

use std::collections::BTreeMap;

use crate::formula::{Formula, Formulas, Node, Var, path_renamed};

impl Formulas {
    /// The formula with other elements. None of the new ones is bound in it.
    pub fn rename(&mut self, of: Formula, names: &BTreeMap<Var, Var>) -> Formula {
        self.renamed_in(of, names, &mut BTreeMap::new())
    }

    /// The formula with another element. It is not bound in it.
    pub fn with(&mut self, of: Formula, var: Var, name: Var) -> Formula {
        if !self.free(of).contains(&var) {
            return of;
        }
        if let Some(found) = self.renamed.get(&(of, var, name)) {
            return *found;
        }
        let names = BTreeMap::from([(var, name)]);
        let result = match self.node(of).clone() {
            Node::Constant(_) => of,
            Node::Atom(atom) => self.atom(atom.renamed(&names)),
            Node::Not(part) => {
                let part = self.with(part, var, name);
                self.not(part)
            }
            Node::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.with(*part, var, name)).collect();
                self.and(parts)
            }
            Node::Or(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.with(*part, var, name)).collect();
                self.or(parts)
            }
            Node::Exists(list, bound, body) => {
                let body = self.with(body, var, name);
                self.make(Node::Exists(path_renamed(&list, &names), bound, body))
            }
            Node::Forall(list, bound, body) => {
                let body = self.with(body, var, name);
                self.make(Node::Forall(path_renamed(&list, &names), bound, body))
            }
        };
        self.renamed.insert((of, var, name), result);
        result
    }

    fn renamed_in(
        &mut self,
        of: Formula,
        names: &BTreeMap<Var, Var>,
        done: &mut BTreeMap<Formula, Formula>,
    ) -> Formula {
        if !self.free(of).iter().any(|var| names.contains_key(var)) {
            return of;
        }
        if let Some(found) = done.get(&of) {
            return *found;
        }
        let result = match self.node(of).clone() {
            Node::Constant(_) => of,
            Node::Atom(atom) => self.atom(atom.renamed(names)),
            Node::Not(part) => {
                let part = self.renamed_in(part, names, done);
                self.not(part)
            }
            Node::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.renamed_in(*part, names, done)).collect();
                self.and(parts)
            }
            Node::Or(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.renamed_in(*part, names, done)).collect();
                self.or(parts)
            }
            Node::Exists(list, var, body) => {
                let body = self.renamed_in(body, names, done);
                self.make(Node::Exists(path_renamed(&list, names), var, body))
            }
            Node::Forall(list, var, body) => {
                let body = self.renamed_in(body, names, done);
                self.make(Node::Forall(path_renamed(&list, names), var, body))
            }
        };
        done.insert(of, result);
        result
    }

    /// The formula, or its opposite, with `Not` only at atoms.
    pub fn normal(&mut self, of: Formula, positive: bool) -> Formula {
        let (place, side) = (of.place(), usize::from(positive));
        if let Some(Some(found)) = self.normal.get(place).map(|both| both[side]) {
            return found;
        }
        let result = match self.node(of).clone() {
            Node::Constant(value) => Self::constant(value == positive),
            Node::Atom(_) if positive => of,
            Node::Atom(_) => self.not(of),
            Node::Not(part) => self.normal(part, !positive),
            Node::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.normal(*part, positive)).collect();
                self.join(parts, positive)
            }
            Node::Or(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.normal(*part, positive)).collect();
                self.join(parts, !positive)
            }
            Node::Exists(list, var, body) => {
                let body = self.normal(body, positive);
                self.make(if positive { Node::Exists(list, var, body) } else { Node::Forall(list, var, body) })
            }
            Node::Forall(list, var, body) => {
                let body = self.normal(body, positive);
                self.make(if positive { Node::Forall(list, var, body) } else { Node::Exists(list, var, body) })
            }
        };
        if self.normal.len() <= place {
            self.normal.resize(place + 1, [None; 2]);
        }
        self.normal[place][side] = Some(result);
        result
    }
}

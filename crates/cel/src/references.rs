//! The names that an expression uses.

use cel::{
    IdedExpr,
    common::ast::{EntryExpr, Expr},
};

/// Names used by an expression, with the ids of the nodes that use them, in the order of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References<'a> {
    /// Free variables: not those that a macro binds.
    pub variables: Vec<(&'a str, u64)>,
    /// Fields selected from a free variable: `(variable, field, id)`.
    pub fields: Vec<(&'a str, &'a str, u64)>,
    /// Functions and operators, operators by their internal names (`_+_`).
    pub functions: Vec<(&'a str, u64)>,
}

impl<'a> References<'a> {
    pub(crate) fn of(expression: &'a IdedExpr) -> Self {
        let mut out = Self::default();
        out.walk(expression, &mut Vec::new());
        out
    }

    fn walk(&mut self, node: &'a IdedExpr, bound: &mut Vec<&'a str>) {
        match &node.expr {
            Expr::Ident(name) => {
                if !bound.contains(&name.as_str()) {
                    self.variables.push((name, node.id));
                }
            }
            Expr::Select(select) => {
                if let Expr::Ident(name) = &select.operand.expr
                    && !bound.contains(&name.as_str())
                {
                    self.fields.push((name, &select.field, node.id));
                }
                self.walk(&select.operand, bound);
            }
            Expr::Call(call) => {
                self.functions.push((&call.func_name, node.id));
                for part in call.target.as_deref().into_iter().chain(&call.args) {
                    self.walk(part, bound);
                }
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.walk(element, bound)),
            Expr::Map(map) => {
                for entry in &map.entries {
                    self.entry(&entry.expr, bound);
                }
            }
            Expr::Struct(message) => {
                for entry in &message.entries {
                    self.entry(&entry.expr, bound);
                }
            }
            Expr::Comprehension(comprehension) => {
                self.walk(&comprehension.iter_range, bound);
                self.walk(&comprehension.accu_init, bound);
                let outer = bound.len();
                bound.push(&comprehension.accu_var);
                // The result sees the accumulator only, the condition and the step also the elements.
                self.walk(&comprehension.result, bound);
                bound.push(&comprehension.iter_var);
                bound.extend(comprehension.iter_var2.as_deref());
                self.walk(&comprehension.loop_cond, bound);
                self.walk(&comprehension.loop_step, bound);
                bound.truncate(outer);
            }
            Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn entry(&mut self, entry: &'a EntryExpr, bound: &mut Vec<&'a str>) {
        match entry {
            EntryExpr::StructField(field) => self.walk(&field.value, bound),
            EntryExpr::MapEntry(entry) => {
                self.walk(&entry.key, bound);
                self.walk(&entry.value, bound);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Expression;

    #[test]
    fn tells_free_from_bound_names() {
        let expression = Expression::parse("variables.x.all(c, c.y == z) && has(object.spec)").unwrap();
        let found = expression.references();
        let names: Vec<_> = found.variables.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["variables", "z", "object"]);
        let fields: Vec<_> = found.fields.iter().map(|(name, field, _)| (*name, *field)).collect();
        assert_eq!(fields, [("variables", "x"), ("object", "spec")]);
    }
}

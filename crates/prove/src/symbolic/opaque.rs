//! Values of expressions that have no rule: one value for one expression and the same arguments.

use std::{collections::BTreeMap, fmt::Write as _, rc::Rc, sync::Arc};

use palisade_cel::ast::{Expr, Node};

use super::{
    Choice, Evaluator, Result, Scope, Value, lookup, root, unsupported,
    value::{Elements, Item},
};
use crate::formula::{Atom, TRUE, Term};

/// The longest text that names an expression.
const LONGEST: usize = 20_000;

/// The text of an expression with its arguments by number.
#[derive(Default)]
struct Written {
    text: String,
    args: Vec<Term>,
    numbers: BTreeMap<Term, usize>,
}

impl Evaluator<'_> {
    pub(super) fn opaque_value(&mut self, of: &Node, scope: &Scope, why: &str) -> Result<Choice> {
        let mut written = Written::default();
        self.write(of, scope, &mut Vec::new(), &mut written)?;
        self.opaque.insert(why.to_owned());
        let term = Term::Call(written.text.into(), written.args.into());
        let fails = self.formulas.atom(Atom::Opaque("fails".into(), [term.clone()].into()));
        let fine = self.formulas.not(fails);
        Ok(Choice::new(vec![(fine, Value::Opaque(term))], fails))
    }

    /// A value as an argument.
    pub(super) fn term(of: &Value) -> Result<Term> {
        let named = |name: &str, args: &[Term]| Ok(Term::Call(name.into(), args.into()));
        match of {
            Value::Null => named("null", &[]),
            Value::Constant(value) => Ok(Term::Bool(*value)),
            Value::Text(term) | Value::Int(term) | Value::Opaque(term) => Ok(term.clone()),
            Value::Holds(path) | Value::Other(path) | Value::Object(path, _) | Value::Map(path, _) => {
                Ok(Term::At(Rc::clone(path)))
            }
            Value::TextLength(term) => named("size", std::slice::from_ref(term)),
            Value::List(elements) => match &**elements {
                [Elements { over, guard: TRUE, item: Item::All(path, _) }] if over.is_empty() => {
                    Ok(Term::At(Rc::clone(path)))
                }
                _ => unsupported("a computed list as an argument"),
            },
            Value::None => named("none", &[]),
            Value::Some(of) => {
                let of = Self::term(of)?;
                named("some", &[of])
            }
            _ => unsupported("a computed value as an argument"),
        }
    }

    /// `bound`: the names that a macro of the expression binds itself.
    fn write(&self, of: &Node, scope: &Scope, bound: &mut Vec<Arc<str>>, to: &mut Written) -> Result<()> {
        if to.text.len() > LONGEST {
            return unsupported("an expression that is too long");
        }
        match &of.expr {
            Expr::Literal(literal) => {
                let _ = write!(to.text, "{literal:?}");
            }
            Expr::Ident(name) if bound.contains(name) => to.text.push_str(name),
            Expr::Ident(name) => match (lookup(scope, name), self.roots.get(&**name)) {
                (Some(value), _) => to.argument(Self::term(value)?),
                (None, Some(Choice { values, error: None })) => match values.as_slice() {
                    [(TRUE, value)] => to.argument(Self::term(value)?),
                    _ => to.argument(Term::At(root(name))),
                },
                _ => {
                    let _ = write!(to.text, "name {name}");
                }
            },
            Expr::Select { operand, field, test } => {
                if let Expr::Ident(name) = &operand.expr
                    && &**name == "variables"
                    && !bound.contains(name)
                    && lookup(scope, name).is_none()
                {
                    let Some(definition) = self.definitions.get(&**field) else {
                        return unsupported(format!("the variable {field}"));
                    };
                    return self.write(definition, &Scope::new(), &mut Vec::new(), to);
                }
                to.text.push_str(if *test { "has(" } else { "(" });
                self.write(operand, scope, bound, to)?;
                let _ = write!(to.text, ").{field}");
            }
            Expr::Call { function, target, args } => {
                let _ = write!(to.text, "{function}/{}(", u8::from(target.is_some()));
                if let Some(target) = target {
                    self.write(target, scope, bound, to)?;
                    to.text.push(';');
                }
                let before = bound.len();
                if target.is_some() {
                    bound.extend(macro_names(function, args));
                }
                for arg in args {
                    self.write(arg, scope, bound, to)?;
                    to.text.push(',');
                }
                bound.truncate(before);
                to.text.push(')');
            }
            Expr::List { elements, optional } => {
                let _ = write!(to.text, "{optional:?}[");
                for element in elements {
                    self.write(element, scope, bound, to)?;
                    to.text.push(',');
                }
                to.text.push(']');
            }
            Expr::Map(entries) => {
                to.text.push('{');
                for entry in entries {
                    to.text.push_str(if entry.optional { "?" } else { "" });
                    self.write(&entry.key, scope, bound, to)?;
                    to.text.push(':');
                    self.write(&entry.value, scope, bound, to)?;
                    to.text.push(',');
                }
                to.text.push('}');
            }
            Expr::Struct { .. } | Expr::Comprehension(_) => return unsupported("a message"),
        }
        Ok(())
    }
}

/// The names that a macro may bind: its arguments but the last that are names.
fn macro_names(function: &str, args: &[Node]) -> Vec<Arc<str>> {
    let count = match (function, args.len()) {
        ("all" | "exists" | "exists_one" | "filter" | "optMap" | "optFlatMap", 2) | ("map", 2 | 3) => 1,
        ("all" | "exists" | "exists_one" | "existsOne", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => 2,
        _ => 0,
    };
    let name = |arg: &Node| if let Expr::Ident(name) = &arg.expr { Some(Arc::clone(name)) } else { None };
    args.iter().take(count).filter_map(name).collect()
}

impl Written {
    /// An argument by its number: the same one for the same argument.
    fn argument(&mut self, term: Term) {
        let next = self.args.len();
        let number = *self.numbers.entry(term.clone()).or_insert(next);
        if number == next {
            self.args.push(term);
        }
        let _ = write!(self.text, "${number}");
    }
}

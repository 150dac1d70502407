//! The presence checks that a policy makes before it reads a field.

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::ast::{Expr, Literal, Node};

use crate::{
    policy::{Expression, Policy, Role},
    reads, tree,
};

/// The fields whose presence is checked where an expression is evaluated, each written as `object.spec.volumes`.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    asked: BTreeSet<String>,
    /// Fields that decide which other fields there are, and that are compared with something.
    compared: BTreeSet<String>,
}

/// Fields with a value that decides which fields beside them there are.
const DISCRIMINATORS: [&str; 1] = ["type"];

impl Guards {
    /// The presence checks before or beside an expression: in itself, in the variables that it reads, in match
    /// conditions, and in earlier validations that deny if something is missing.
    pub(crate) fn of(policy: &Policy<'_>, expression: &Expression) -> Self {
        let names = Names::of(policy);
        let mut guards = Self::default();
        guards.add(&names, &expression.ast.root, true);
        let mut earlier = true;
        for other in &policy.expressions {
            let is_own = other.path == expression.path;
            earlier &= !is_own;
            match other.role {
                Role::Condition if !is_own => guards.add(&names, &other.ast.root, false),
                Role::Validation if earlier && expression.role == Role::Validation => {
                    for part in reads::conjuncts(&other.ast.root).into_iter().filter(|part| asks(part)) {
                        guards.add(&names, part, false);
                    }
                }
                _ => {}
            }
        }
        let mut open: Vec<&str> = variables(&expression.ast.root);
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            if let Some(variable) = names.0.get(name).filter(|_| seen.insert(name)) {
                guards.add(&names, variable, false);
                open.extend(variables(variable));
            }
        }
        guards
    }

    /// Whether the presence of a field was checked, or that of something that implies it.
    pub(crate) fn cover(&self, operand: &str, field: &str) -> bool {
        self.asked.contains(&format!("{operand}.{field}"))
            || DISCRIMINATORS.iter().any(|one| *one != field && self.compared.contains(&format!("{operand}.{one}")))
    }

    /// Adds the presence checks of an expression; of another expression, only those on names that all expressions
    /// share.
    fn add(&mut self, names: &Names<'_>, root: &Node, own: bool) {
        let counts = |name: &String| own || is_shared(name);
        for node in root.descendants() {
            self.asked.extend(asked(names, node).filter(counts));
            self.compared.extend(compared(names, node).into_iter().filter(counts));
        }
    }
}

/// The variables of a policy, by name.
pub(crate) struct Names<'p>(BTreeMap<&'p str, &'p Node>);

impl<'p> Names<'p> {
    pub(crate) fn of(policy: &'p Policy<'_>) -> Self {
        let variable = |one: &'p Expression| match &one.role {
            Role::Variable(name) => Some((name.as_str(), &one.ast.root)),
            _ => None,
        };
        Self(policy.expressions.iter().filter_map(variable).collect())
    }

    /// The path that a node reads, with the definitions of variables in their place.
    pub(crate) fn written(&self, node: &Node) -> Option<String> {
        self.spelled(tree::chain(node)?)
    }

    fn spelled(&self, (root, fields): (&str, Vec<&str>)) -> Option<String> {
        let (mut name, mut fields) = (root.to_owned(), &fields[..]);
        // A variable reads only those before it, so this ends.
        if let ("variables", [variable, rest @ ..]) = (root, fields)
            && let Some(chain) = self.0.get(variable).and_then(|node| tree::asking_chain(node))
            && chain != (root, vec![*variable])
        {
            name = self.spelled(chain)?;
            fields = rest;
        }
        for field in fields {
            name.push('.');
            name.push_str(field);
        }
        Some(name)
    }
}

/// Whether a name means the same in every expression of a policy.
fn is_shared(name: &str) -> bool {
    let root = name.split('.').next().unwrap_or_default();
    matches!(root, "object" | "oldObject" | "params" | "request" | "namespaceObject" | "variables")
}

fn asks(node: &Node) -> bool {
    match &node.expr {
        Expr::Select { test, .. } => *test,
        Expr::Call { function, .. } => matches!(&**function, "@in" | "hasValue"),
        _ => false,
    }
}

fn variables(root: &Node) -> Vec<&str> {
    root.descendants().filter_map(tree::variable).collect()
}

/// The fields whose presence a node checks: `has(a.b)`, `'b' in a`, `a.?b`, `a.b != null`.
fn asked<'n>(names: &'n Names<'_>, node: &'n Node) -> impl Iterator<Item = String> + 'n {
    let found = match &node.expr {
        Expr::Select { test: true, .. } => names.written(node),
        Expr::Call { function, args, .. } => match (&**function, &args[..]) {
            ("@in", [key, of]) => match &key.expr {
                Expr::Literal(Literal::String(key)) => names.written(of).map(|of| format!("{of}.{key}")),
                _ => None,
            },
            ("_?._" | "_[?_]", [of, _]) => {
                names.written(of).and_then(|of| Some(format!("{of}.{}", tree::field(node)?)))
            }
            _ => None,
        },
        _ => None,
    };
    found.into_iter()
}

/// A field that decides which others there are, if a node compares it with something.
fn compared(names: &Names<'_>, node: &Node) -> Vec<String> {
    let Expr::Call { function, args, .. } = &node.expr else { return vec![] };
    if !matches!(&**function, "_==_" | "_!=_" | "@in") {
        return vec![];
    }
    let says = |name: &String| DISCRIMINATORS.iter().any(|one| name.ends_with(&format!(".{one}")));
    args.iter().filter_map(|arg| names.written(arg)).filter(says).collect()
}

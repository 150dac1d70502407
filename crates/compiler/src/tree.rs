//! Small parts of syntax trees: built, read and changed.

use std::sync::Arc;

use palisade_cel::ast::{Expr, Literal, Node, NodeId};

/// The name of the variable with the pod template of a workload.
pub(crate) const TEMPLATE: &str = "template";

/// The names that definitions of variables are made of.
pub(crate) const ROOTS: [&str; 8] =
    ["object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables", TEMPLATE];

pub(crate) fn node(expr: Expr) -> Node {
    // It is only printed, so no place refers to it.
    Node { id: NodeId(0), expr }
}

pub(crate) fn call(function: &str, args: Vec<Node>) -> Node {
    node(Expr::Call { function: function.into(), target: None, args })
}

pub(crate) fn empty_list() -> Node {
    literal::list(Vec::new())
}

pub(crate) fn truth(value: bool) -> Node {
    node(Expr::Literal(Literal::Bool(value)))
}

pub(crate) fn ident(name: &str) -> Node {
    node(Expr::Ident(name.into()))
}

pub(crate) fn select(operand: Node, field: &str) -> Node {
    node(Expr::Select { operand: Box::new(operand), field: field.into(), test: false })
}

/// Literal nodes.
pub(crate) mod literal {
    use super::{Expr, Literal, Node, node};

    pub fn list(elements: Vec<Node>) -> Node {
        node(Expr::List { elements, optional: Vec::new() })
    }

    pub fn int(value: i64) -> Node {
        node(Expr::Literal(Literal::Int(value)))
    }

    pub fn string(text: &str) -> Node {
        node(Expr::Literal(Literal::String(text.into())))
    }
}

/// Whether a name is in it.
pub(crate) fn mentions(of: &Node, name: &str) -> bool {
    match &of.expr {
        Expr::Ident(found) => &**found == name,
        Expr::Comprehension(_) => true,
        _ => of.children().any(|part| mentions(part, name)),
    }
}

/// The names in it that no macro in it binds. Type names are among them.
pub(crate) fn free(of: &Node) -> Vec<Arc<str>> {
    match &of.expr {
        Expr::Ident(name) => vec![Arc::clone(name)],
        Expr::Call { function, target: Some(target), args } => {
            let own = bound(function, args);
            let of_args = args.iter().flat_map(free).filter(|name| !own.contains(name));
            free(target).into_iter().chain(of_args).collect()
        }
        _ => of.children().flat_map(free).collect(),
    }
}

/// The same with another node in place of a name. The names of loops in it that would bind a name of the other node are
/// changed.
pub(crate) fn replace(of: Node, name: &str, by: &Node) -> Node {
    match of.expr {
        Expr::Ident(found) if &*found == name => by.clone(),
        Expr::Call { function, target: Some(target), mut args } if !bound(&function, &args).is_empty() => {
            let target = Some(Box::new(replace(*target, name, by)));
            let own = bound(&function, &args);
            // A macro's own name is another one.
            if !own.iter().any(|own| &**own == name) && args.iter().any(|arg| mentions(arg, name)) {
                for captured in own.iter().filter(|own| mentions(by, own)) {
                    let fresh =
                        unused(captured, &|name| mentions(by, name) || args.iter().any(|arg| mentions(arg, name)));
                    args = args.into_iter().map(|arg| replace(arg, captured, &ident(&fresh))).collect();
                }
                args = args.into_iter().map(|arg| replace(arg, name, by)).collect();
            }
            Node { id: of.id, expr: Expr::Call { function, target, args } }
        }
        expr => Node { id: of.id, expr }.map_children(&mut |part| replace(part, name, by)),
    }
}

/// The name, with the lowest number behind it that makes it one that is not taken.
pub(crate) fn unused(name: &str, taken: &dyn Fn(&str) -> bool) -> Arc<str> {
    let stem = name.trim_end_matches(|last: char| last.is_ascii_digit());
    let numbered = (2..).map(|number| format!("{stem}{number}"));
    [stem.to_owned()].into_iter().chain(numbered).find(|name| !taken(name)).unwrap_or_default().into()
}

/// How a looping macro works.
pub(crate) struct Loop {
    /// The names that it binds.
    pub names: Vec<Arc<str>>,
    /// Whether the last argument is a condition, as those before it are.
    pub only_asks: bool,
}

/// The macro that a member call of this function is; `None` if it does not loop.
pub(crate) fn looping(function: &str, args: &[Node]) -> Option<Loop> {
    let (names, only_asks) = match (function, args.len()) {
        ("all" | "exists" | "exists_one" | "filter", 2) => (1, true),
        ("all" | "exists" | "exists_one" | "existsOne", 3) => (2, true),
        ("map", 2 | 3) => (1, false),
        ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => (2, false),
        _ => return None,
    };
    let name = |arg: &Node| match &arg.expr {
        Expr::Ident(name) => Some(Arc::clone(name)),
        _ => None,
    };
    let names = args[..names].iter().map(name).collect::<Option<_>>()?;
    Some(Loop { names, only_asks })
}

/// The names that a member call binds if it is a macro.
pub(crate) fn bound(function: &str, args: &[Node]) -> Vec<Arc<str>> {
    match (function, args) {
        ("optMap" | "optFlatMap", [Node { expr: Expr::Ident(name), .. }, _]) => vec![Arc::clone(name)],
        _ => looping(function, args).map(|found| found.names).unwrap_or_default(),
    }
}

/// All operands of equal operators.
pub(crate) fn collect(function: &str, of: Node, terms: &mut Vec<Node>) {
    match of.expr {
        Expr::Call { function: found, target: None, args } if &*found == function => {
            for arg in args {
                collect(function, arg, terms);
            }
        }
        expr => terms.push(Node { id: of.id, expr }),
    }
}

/// The tree that the parser makes of terms without parentheses.
pub(crate) fn balance(function: &str, terms: &mut [Option<Node>]) -> Node {
    match terms {
        [] => empty_list(),
        [one] => one.take().unwrap_or_else(empty_list),
        many => {
            let (left, right) = many.split_at_mut((many.len() - 1) / 2 + 1);
            call(function, vec![balance(function, left), balance(function, right)])
        }
    }
}

/// The field of `variables.field`.
pub(crate) fn variable(of: &Node) -> Option<&Arc<str>> {
    match &of.expr {
        Expr::Select { operand, field, test: false } if matches!(&operand.expr, Expr::Ident(name) if &**name == "variables") => {
            Some(field)
        }
        _ => None,
    }
}

/// The policy's variables that are in it.
pub(crate) fn variables(of: &Node) -> Vec<Arc<str>> {
    match variable(of) {
        Some(name) => vec![Arc::clone(name)],
        None => of.children().flat_map(variables).collect(),
    }
}

/// The policy's variables that it reads; `None` if it could read others, for example by `variables.?name`.
pub(crate) fn variables_read(of: &Node) -> Option<Vec<Arc<str>>> {
    match &of.expr {
        Expr::Ident(name) if &**name == "variables" => None,
        Expr::Select { operand, field, .. } if matches!(&operand.expr, Expr::Ident(name) if &**name == "variables") => {
            Some(vec![Arc::clone(field)])
        }
        _ => Some(of.children().map(variables_read).collect::<Option<Vec<_>>>()?.concat()),
    }
}

/// The expression with the definitions of the policy's variables in their place; `None` if one has no definition here.
pub(crate) fn inlined(of: Node, definition: &dyn Fn(&str) -> Option<Node>) -> Option<Node> {
    if let Some(name) = variable(&of) {
        return inlined(definition(name)?, definition);
    }
    // A macro whose own name hides what a meaning is made of.
    if let Expr::Call { function, target: Some(_), args } = &of.expr
        && bound(function, args).iter().any(|name| ROOTS.contains(&&**name))
    {
        return None;
    }
    let mut complete = true;
    let whole = of.map_children(&mut |part| {
        inlined(part, definition).unwrap_or_else(|| {
            complete = false;
            truth(false)
        })
    });
    complete.then_some(whole)
}

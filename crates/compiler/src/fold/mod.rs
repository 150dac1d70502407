//! Simplifies what settings leave behind: `!(x in [])`, `'a' + 'b'`, `true && x`.
//!
//! An expression means the same before and after, errors included: nothing is folded that could hide an error or show
//! one. `false && x` is false even if `x` fails, but `x.map(v, false, v)` fails if `x` does. So a part is only dropped
//! if it cannot fail ([`facts`]), or if what is left fails wherever it does. `x in []`, as it is written, is false in
//! the API server whatever `x` is: cel-go does not evaluate `x` then (`maybeOptimizeSetMembership` in
//! `interpreter/decorators.go`).
//!
//! The tree is one whose macros are not expanded.

mod facts;

use std::sync::Arc;

use palisade_cel::{
    ast::{Expr, Literal, Node, NodeId},
    with_stack,
};

use crate::tree::{Loop, balance, call, collect, empty_list, looping, node, replace, truth};
use facts::{Scope, is_bool, is_list};

/// The same expression, simpler.
pub(crate) fn fold(node: Node) -> Node {
    Folder { scope: Scope::default() }.fold(node, false)
}

struct Folder {
    /// The variables of the loops around.
    scope: Scope,
}

fn as_truth(node: &Node) -> Option<bool> {
    match node.expr {
        Expr::Literal(Literal::Bool(value)) => Some(value),
        _ => None,
    }
}

fn is_empty_list(node: &Node) -> bool {
    matches!(&node.expr, Expr::List { elements, .. } if elements.is_empty())
}

impl Folder {
    /// `asked` says that whatever uses the value fails unless it is a bool.
    fn fold(&mut self, of: Node, asked: bool) -> Node {
        let Node { id, expr } = of;
        match expr {
            Expr::Call { function, target, args } => self.call(id, &function, target, args, asked),
            expr => with_stack(|| Node { id, expr }.map_children(&mut |part| self.fold(part, false))),
        }
    }

    fn call(
        &mut self,
        id: NodeId,
        function: &Arc<str>,
        target: Option<Box<Node>>,
        mut args: Vec<Node>,
        asked: bool,
    ) -> Node {
        match (&**function, &target, args.len()) {
            ("_&&_" | "_||_", None, 2) => return self.logic(function, args, asked),
            ("!_", None, 1) => {
                let operand = self.fold(args.remove(0), true);
                return negate(operand, asked);
            }
            ("_?_:_", None, 3) => return self.choice(args, asked),
            ("_+_", None, 2) => return self.sum(args),
            ("@in", None, 2) => {
                let list = args.remove(1);
                if is_empty_list(&list) {
                    return truth(false);
                }
                let part = self.fold(args.remove(0), false);
                let simpler = self.fold(list.clone(), false);
                if !is_empty_list(&simpler) {
                    return call(function, vec![part, simpler]);
                }
                // With a literal empty list, the API server would no longer evaluate the part.
                return if self.scope.never_fails(&part) { truth(false) } else { call(function, vec![part, list]) };
            }
            _ => {}
        }
        let target = target.map(|target| Box::new(self.fold(*target, false)));
        match (target, looping(function, &args)) {
            (Some(range), Some(found)) => self.each(function, *range, args, &found),
            (target, _) => {
                let args = args.into_iter().map(|arg| self.fold(arg, false)).collect();
                Node { id, expr: Expr::Call { function: Arc::clone(function), target, args } }
            }
        }
    }

    /// `&&` and `||`: an operand that decides does so even beside an error.
    fn logic(&mut self, function: &str, args: Vec<Node>, asked: bool) -> Node {
        let decides = function == "_||_";
        let mut terms = Vec::new();
        for arg in args {
            collect(function, arg, &mut terms);
        }
        let mut folded = Vec::new();
        for term in terms {
            // A term may fold into a chain itself.
            let term = self.fold(term, true);
            collect(function, term, &mut folded);
        }
        if folded.iter().any(|term| as_truth(term) == Some(decides)) {
            return truth(decides);
        }
        let mut kept: Vec<Node> = Vec::new();
        let mut neutral = false;
        for term in folded {
            if as_truth(&term).is_some() || kept.contains(&term) {
                neutral = true;
            } else {
                kept.push(term);
            }
        }
        match kept.len() {
            0 => return truth(!decides),
            // A single operand need not be a bool.
            1 if neutral && !asked && !is_bool(&kept[0]) => kept.push(truth(!decides)),
            _ => {}
        }
        balance(function, &mut kept.into_iter().map(Some).collect::<Vec<_>>())
    }

    fn choice(&mut self, args: Vec<Node>, asked: bool) -> Node {
        let Ok([condition, yes, no]) = <[Node; 3]>::try_from(args) else { return empty_list() };
        let condition = self.fold(condition, true);
        match as_truth(&condition) {
            Some(true) => self.fold(yes, asked),
            Some(false) => self.fold(no, asked),
            None => call("_?_:_", vec![condition, self.fold(yes, asked), self.fold(no, asked)]),
        }
    }

    /// Neighbouring texts become one: what is not a text cannot be added to either of them.
    fn sum(&mut self, args: Vec<Node>) -> Node {
        let mut terms = Vec::new();
        spine(args, &mut terms);
        let terms: Vec<_> = terms.into_iter().map(|term| self.fold(term, false)).collect();
        let mut sum: Vec<Node> = Vec::new();
        for term in terms {
            if let (Some(Expr::Literal(Literal::String(before))), Expr::Literal(Literal::String(text))) =
                (sum.last().map(|last| &last.expr), &term.expr)
            {
                let text = format!("{before}{text}");
                sum.pop();
                sum.push(node(Expr::Literal(Literal::String(text.into()))));
                continue;
            }
            // An empty list adds nothing to a list.
            let lists = sum.iter().any(is_list);
            let nothing = is_empty_list(&term) || adds_nothing(&term, &sum);
            if !(lists && nothing) {
                sum.push(term);
            }
        }
        if sum.len() > 1 && is_empty_list(&sum[0]) && is_list(&sum[1]) {
            sum.remove(0);
        }
        let mut terms = sum.into_iter();
        let first = terms.next().unwrap_or_else(empty_list);
        terms.fold(first, |left, right| call("_+_", vec![left, right]))
    }

    /// A macro that loops over `range`.
    fn each(&mut self, function: &Arc<str>, range: Node, args: Vec<Node>, found: &Loop) -> Node {
        let mut args = args;
        let rest = args.split_off(found.names.len());
        self.scope.enter(&found.names);
        let last = rest.len() - 1;
        let mut rest: Vec<_> =
            rest.into_iter().enumerate().map(|(index, arg)| self.fold(arg, index < last || found.only_asks)).collect();
        self.scope.leave(found.names.len());
        if is_empty_list(&range) {
            match &**function {
                "all" => return truth(true),
                "exists" | "exists_one" | "existsOne" => return truth(false),
                "map" | "filter" | "transformList" => return empty_list(),
                _ => {}
            }
        }
        if let ("all" | "exists", [name], [asked]) = (&**function, &found.names[..], &rest[..])
            && let Some(constant) = single(&range)
            && is_bool(asked)
            && facts::only_compared(asked, name)
        {
            let replaced = replace(asked.clone(), name, constant);
            return self.fold(replaced, false);
        }
        // A condition that is always true is left out.
        if matches!(&**function, "map" | "transformList") && rest.len() == 2 {
            match as_truth(&rest[0]) {
                Some(true) => drop(rest.remove(0)),
                Some(false) if self.scope.never_fails(&range) && is_list(&range) => return empty_list(),
                _ => {}
            }
        }
        args.extend(rest);
        node(Expr::Call { function: Arc::clone(function), target: Some(Box::new(range)), args })
    }
}

/// The opposite.
fn negate(operand: Node, asked: bool) -> Node {
    if let Some(value) = as_truth(&operand) {
        return truth(!value);
    }
    match operand.expr {
        Expr::Call { function, target: None, mut args } if args.len() == 2 && matches!(&*function, "_==_" | "_!=_") => {
            let opposite = if &*function == "_==_" { "_!=_" } else { "_==_" };
            let right = args.pop();
            call(opposite, args.into_iter().chain(right).collect())
        }
        Expr::Call { function, target: None, mut args }
            if &*function == "!_" && args.len() == 1 && (asked || is_bool(&args[0])) =>
        {
            args.remove(0)
        }
        expr => call("!_", vec![node(expr)]),
    }
}

/// Whether a term loops over what another one has looped over before, and never adds an element.
fn adds_nothing(term: &Node, before: &[Node]) -> bool {
    let looped = |of: &Node| match &of.expr {
        Expr::Call { function, target: Some(range), args } if matches!(&**function, "map" | "transformList") => {
            looping(function, args).map(|found| (range.clone(), args[found.names.len()..].to_vec()))
        }
        _ => None,
    };
    let Some((range, rest)) = looped(term) else { return false };
    rest.len() == 2
        && as_truth(&rest[0]) == Some(false)
        && before.iter().any(|one| looped(one).is_some_and(|(other, _)| other == range))
}

/// The only element of a list, if it is a constant.
fn single(range: &Node) -> Option<&Node> {
    match &range.expr {
        Expr::List { elements, optional } if optional.is_empty() => match elements.as_slice() {
            [one] if matches!(one.expr, Expr::Literal(_)) => Some(one),
            _ => None,
        },
        _ => None,
    }
}

/// The terms of a sum from left to right; a sum in parentheses is one term.
fn spine(args: Vec<Node>, terms: &mut Vec<Node>) {
    let mut args = args.into_iter();
    let (Some(left), Some(right)) = (args.next(), args.next()) else { return };
    match left.expr {
        Expr::Call { function, target: None, args } if &*function == "_+_" && args.len() == 2 => spine(args, terms),
        expr => terms.push(Node { id: left.id, expr }),
    }
    terms.push(right);
}

#[cfg(test)]
mod tests;

//! The most that atoms may cost, in the API server's units (`cel-go` `interpreter/runtimecost.go`, apiserver
//! `pkg/cel/library/cost.go`): one for each variable, field and call, and a tenth for each character that it reads.

use palisade_cel::ast::{Expr, Literal, Node};

use crate::tree::looping;

/// The cost of one iteration of a loop, without its test.
pub(super) const ITERATION: u64 = 8;
/// The longest text of a request that a test reads: for a bound of the policy above that, the test demands this one.
/// Names of images and paths are shorter, and a longer one is evaluated in full.
pub(super) const TEXT: u64 = 512;
/// The longest name of a container, volume or mount.
const NAME: u64 = 63;
/// The longest text in a list that is looped over: the key of an annotation. That of a parameter's list is compared
/// only if it is shorter.
const ELEMENT: u64 = 320;
/// The longest list that is asked for an element: the policy's bounds allow no longer one.
const LISTED: u64 = 256;
/// The lists that a custom check may loop over: the policy's bounds allow no more containers, volumes and others.
const OWN_LOOPS: [(&str, u64); 2] = [("containers", 128), ("volumes", 256)];
const OWN_LOOP: u64 = 1024;

/// The most that evaluating it may cost.
pub(super) fn of(node: &Node) -> u64 {
    let below = node.children().fold(1_u64, |sum, part| sum.saturating_add(of(part)));
    let Expr::Call { function, target, args } = &node.expr else { return below };
    let own = match (&**function, target.as_deref(), args.as_slice()) {
        ("_==_" | "_!=_", None, [one, other]) => tenth(length(one).min(length(other))),
        ("@in", None, [what, Node { expr: Expr::List { elements, .. }, .. }]) => {
            elements.iter().map(|element| 1 + tenth(length(element).min(length(what)))).sum()
        }
        ("@in", None, [what, _]) => (1 + tenth(length(what))).saturating_mul(LISTED),
        // cel-go counts the text that is asked up to 0.26, and what it begins with from 0.30 on.
        ("startsWith" | "endsWith", Some(text), [asked]) => tenth(length(text).max(length(asked))),
        // Each reads all of a text. The longer the text that it searches for, the more it costs.
        ("contains", Some(text), [asked]) => tenth(length(text)).saturating_mul(tenth(length(asked))),
        ("matches", Some(text), [asked]) => tenth(length(text)).saturating_mul(1 + length(asked) / 4),
        ("_+_", None, [one, other]) => tenth(length(one).saturating_add(length(other))),
        (function, Some(list), args) if looping(function, args).is_some() => {
            let most = OWN_LOOPS.iter().find(|(field, _)| has_field(list, field)).map_or(OWN_LOOP, |(_, most)| *most);
            return below.saturating_mul(most);
        }
        _ => TEXT / 10,
    };
    match &**function {
        "has" | "!_" | "_&&_" | "_||_" | "size" | "_[_]" | "_?._" | "_<=_" | "_>=_" | "_<_" | "_>_" | "_?_:_" => below,
        _ => below.saturating_add(own),
    }
}

fn has_field(of: &Node, wanted: &str) -> bool {
    matches!(&of.expr, Expr::Select { field, .. } if &**field == wanted)
        || of.children().any(|part| has_field(part, wanted))
}

fn tenth(length: u64) -> u64 {
    length / 10 + 1
}

/// The most characters of a value.
fn length(of: &Node) -> u64 {
    match &of.expr {
        Expr::Literal(Literal::String(text)) => u64::try_from(text.chars().count()).unwrap_or(u64::MAX),
        Expr::Literal(_) => 1,
        Expr::Ident(_) => ELEMENT,
        Expr::Select { field, .. } if &**field == "name" => NAME,
        Expr::Call { function, args, .. } if &**function == "_+_" => {
            args.iter().fold(0, |sum, arg| length(arg).saturating_add(sum))
        }
        _ => TEXT,
    }
}

#[cfg(test)]
mod tests {
    use palisade_cel::parse::parse_unexpanded;

    use super::*;
    use crate::style::SYNTAX;

    /// By hand: a node costs one, and a call what its function reads besides.
    #[test]
    fn cost_is_what_the_api_server_counts_at_most() {
        for (expression, expected) in [
            ("a.b", 2),
            ("has(a.b)", 3),
            ("a.b == 'xy'", 4 + 1),
            ("a.b == a.c", 5 + 52),
            ("a.name == a.c", 5 + 7),
            ("a.b in ['x', 'yz']", 6 + 2 * 2),
            ("a.b in a.c", 5 + 53 * 256),
            ("a.b.startsWith('x')", 4 + 52),
            ("a.b.contains('0123456789')", 4 + 52 * 2),
            ("a.b.matches('012345678')", 4 + 52 * 3),
            ("a.b + 'xyz' == 'q'", (4 + 52) + 2 + 1),
            ("'0123456789' + '0123456789' == a.b", (3 + 3) + 3 + 3),
            ("(a.name + 'x') == (a.b + 'x')", (4 + 7) + (4 + 52) + 1 + 7),
            ("a.b.lowerAscii()", 3 + 51),
            ("a.b.lowerAscii() == a.c", (3 + 51) + 2 + 1 + 52),
            ("a.containers.all(c, c.x)", 6 * 128),
            ("a.volumes.all(v, v.x)", 6 * 256),
            ("a.other.all(o, o.x)", 6 * 1024),
            ("a.containers[0].ports.all(p, p.x)", 9 * 128),
            ("a.other.all(o, o.volumes.all(v, v.x))", (1 + 2 + 1 + 6 * 256) * 1024),
        ] {
            let found = of(&parse_unexpanded(expression, SYNTAX).unwrap().root);
            assert_eq!(found, expected, "{expression}");
        }
    }
}

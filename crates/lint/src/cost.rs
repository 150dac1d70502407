//! An estimate of the highest cost of an expression.
//!
//! It is not the API server's own estimate (which exists for CRDs only): it assumes that lists of an object have
//! [`LIST`] elements and texts [`TEXT`] bytes, that every branch is taken, and adds up the API server's price of each
//! part (`k8s.io/apiserver/pkg/cel/library/cost.go`). Literal lists have their own size. It leaves out checks of an
//! authorizer, which the rule `too-many-authorizer-checks` counts.

use std::collections::BTreeMap;

use palisade_cel::ast::{Comprehension, Expr, Literal, Node};

/// The elements of a list or map of an object.
pub(crate) const LIST: u64 = 16;
/// The bytes of a text of an object.
pub(crate) const TEXT: u64 = 100;
/// The highest cost of a part, and how many elements its value may have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimate {
    pub cost: u64,
    pub size: u64,
}

/// The sizes of the values of names.
pub(crate) type Sizes = BTreeMap<String, u64>;

/// The highest cost of a node; `variables` has the sizes of the policy's variables.
pub(crate) fn estimate(node: &Node, variables: &Sizes) -> Estimate {
    let with_parts =
        |own: u64| node.children().fold(own, |cost, one| cost.saturating_add(estimate(one, variables).cost));
    match &node.expr {
        Expr::Literal(literal) => Estimate { cost: 0, size: literal_size(literal) },
        Expr::Ident(_) => Estimate { cost: 1, size: LIST },
        Expr::Select { operand, field, .. } => {
            let size = match &operand.expr {
                Expr::Ident(name) if &**name == "variables" => variables.get(&**field).copied().unwrap_or(LIST),
                _ => LIST,
            };
            Estimate { cost: estimate(operand, variables).cost + 1, size }
        }
        Expr::List { elements, .. } => Estimate { cost: with_parts(10), size: elements.len() as u64 },
        Expr::Map(entries) => Estimate { cost: with_parts(30), size: entries.len() as u64 },
        Expr::Struct { .. } => Estimate { cost: with_parts(40), size: 1 },
        Expr::Comprehension(of) => comprehension(of, variables),
        Expr::Call { function, .. } => {
            let parts: Vec<_> = node.children().collect();
            let estimates: Vec<_> = parts.iter().map(|part| estimate(part, variables)).collect();
            let own = call(function, &parts, &estimates);
            let cost = estimates.iter().fold(own, |cost, one| cost.saturating_add(one.cost));
            let size = match &**function {
                "_+_" => estimates.iter().fold(0_u64, |size, one| size.saturating_add(one.size)),
                "_?_:_" => estimates.iter().skip(1).map(|one| one.size).max().unwrap_or_default(),
                "orValue" | "or" => estimates.iter().map(|one| one.size).max().unwrap_or_default(),
                _ => LIST,
            };
            Estimate { cost, size }
        }
    }
}

fn comprehension(of: &Comprehension, variables: &Sizes) -> Estimate {
    let range = estimate(&of.range, variables);
    let one = estimate(&of.condition, variables).cost.saturating_add(estimate(&of.step, variables).cost);
    let cost = range
        .cost
        .saturating_add(estimate(&of.init, variables).cost)
        .saturating_add(one.saturating_mul(range.size.max(1)))
        .saturating_add(estimate(&of.result, variables).cost);
    Estimate { cost, size: range.size }
}

fn literal_size(literal: &Literal) -> u64 {
    match literal {
        Literal::String(text) => text.len() as u64,
        Literal::Bytes(bytes) => bytes.len() as u64,
        _ => 1,
    }
}

/// The cost of a call itself.
fn call(function: &str, parts: &[&Node], estimates: &[Estimate]) -> u64 {
    let text = |index: usize| match parts.get(index).map(|part| &part.expr) {
        Some(Expr::Literal(literal)) => literal_size(literal),
        _ => TEXT,
    };
    let size = |index: usize| estimates.get(index).map_or(LIST, |one| one.size);
    match function {
        "_&&_" | "_||_" | "_?_:_" => 0,
        "matches" | "find" | "findAll" => (text(0) + 1).div_ceil(10) * text(1).div_ceil(4),
        "contains" => text(0).div_ceil(10) * text(1).div_ceil(10),
        "startsWith" | "endsWith" | "lowerAscii" | "upperAscii" | "trim" | "substring" | "url" | "quantity" | "ip"
        | "cidr" | "semver" => text(0).div_ceil(10),
        "split" | "replace" | "join" => 2 * size(0).max(TEXT).div_ceil(10),
        "@in" => size(1),
        "isSorted" | "sum" | "min" | "max" | "indexOf" | "lastIndexOf" | "includes" | "sets.contains"
        | "sets.intersects" | "sets.equivalent" => size(0).saturating_mul(size(1).max(1)),
        "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => text(0).min(text(1)).div_ceil(10).max(1),
        _ => 1,
    }
}

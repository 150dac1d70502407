//! The macros of Kubernetes' environments: the standard ones (cel-go `parser/macro.go`), those of optionals
//! (`cel/library.go`) and those of two variables (`ext/comprehensions.go`). `cel.bind` and its like are not among them.

use std::sync::Arc;

use super::parser::Parser;
use crate::ast::{Comprehension, Entry, Expr, FieldInit, Literal, Node, Position};

/// The accumulator, a name that no source can write.
const ACCUMULATOR: &str = "@result";
/// Its former name; it is still rejected as a variable.
pub(crate) const OLD_ACCUMULATOR: &str = "__result__";
/// Before Kubernetes 1.33, the accumulator is an ordinary name, which the macro and the expression share.
pub(crate) const UNSUPPORTED_ACCUMULATOR: &str = "this crate does not support '__result__' in Kubernetes before 1.33";

#[derive(Clone, Copy, PartialEq)]
enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

#[derive(Clone, Copy, PartialEq)]
enum Transform {
    List,
    Map,
    MapEntry,
}

impl Parser<'_> {
    /// The call, or what a macro of its name and number of arguments makes of it. All that a macro adds is where the
    /// call is.
    pub(super) fn call_or_macro(
        &mut self,
        at: Position,
        function: &str,
        target: Option<Node>,
        mut args: Vec<Node>,
    ) -> Node {
        if !self.expands {
            let target = target.map(Box::new);
            return self.node(at, Expr::Call { function: function.into(), target, args });
        }
        let Some(target) = target else {
            return match (function, args.len()) {
                ("has", 1) => self.has(at, args.remove(0)),
                _ => self.call(at, function, args),
            };
        };
        let two = self.syntax().two_variables;
        let mut args: std::collections::VecDeque<Node> = args.into();
        let count = args.len();
        let mut arg = || args.pop_front();
        match (function, count) {
            ("all" | "exists" | "exists_one", 2) => {
                let (Some(variable), Some(predicate)) = (arg(), arg()) else { return target };
                match self.one_variable(&variable, "argument must be a simple name") {
                    Ok(variables) => self.quantifier(at, quantifier(function), target, variables, predicate),
                    Err(error) => error,
                }
            }
            ("all" | "exists" | "exists_one" | "existsOne", 3) if two => {
                let (Some(first), Some(second), Some(predicate)) = (arg(), arg(), arg()) else { return target };
                match self.two_variables(&first, &second) {
                    Ok(variables) => self.quantifier(at, quantifier(function), target, variables, predicate),
                    Err(error) => error,
                }
            }
            ("map", 2 | 3) | ("filter", 2) => {
                let Some(variable) = arg() else { return target };
                let variables = match self.one_variable(&variable, "argument is not an identifier") {
                    Ok(variables) => variables,
                    Err(error) => return error,
                };
                let (filter, value) = match (function, count) {
                    ("filter", _) => (arg(), Some(variable)),
                    (_, 3) => (arg(), arg()),
                    _ => (None, arg()),
                };
                let Some(value) = value else { return target };
                self.transform(at, Transform::List, target, variables, filter, value)
            }
            ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) if two => {
                let (Some(first), Some(second)) = (arg(), arg()) else { return target };
                let variables = match self.two_variables(&first, &second) {
                    Ok(variables) => variables,
                    Err(error) => return error,
                };
                let filter = if count == 4 { arg() } else { None };
                let Some(value) = arg() else { return target };
                let kind = match function {
                    "transformList" => Transform::List,
                    "transformMap" => Transform::Map,
                    _ => Transform::MapEntry,
                };
                self.transform(at, kind, target, variables, filter, value)
            }
            ("sortBy", 2) if self.syntax().sort_by => {
                let (Some(variable), Some(key)) = (arg(), arg()) else { return target };
                self.sort_by(at, target, &variable, key)
            }
            ("optMap" | "optFlatMap", 2) => {
                let (Some(variable), Some(value)) = (arg(), arg()) else { return target };
                self.optional_map(at, function, target, &variable, value)
            }
            _ => {
                let target = Some(Box::new(target));
                self.node(at, Expr::Call { function: function.into(), target, args: args.into() })
            }
        }
    }

    fn has(&mut self, at: Position, arg: Node) -> Node {
        let position = self.position(&arg);
        match arg.expr {
            Expr::Select { operand, field, .. } => self.node(at, Expr::Select { operand, field, test: true }),
            _ => self.macro_error(position, "invalid argument to has() macro"),
        }
    }

    fn one_variable(&mut self, variable: &Node, message: &str) -> Result<Variables, Node> {
        let at = self.position(variable);
        let Expr::Ident(name) = &variable.expr else { return Err(self.macro_error(at, message)) };
        if **name == *OLD_ACCUMULATOR && self.syntax().before_1_33 {
            return Err(self.unsupported(at, UNSUPPORTED_ACCUMULATOR));
        }
        self.not_accumulator(at, name)?;
        Ok(Variables { first: Arc::clone(name), second: None })
    }

    fn two_variables(&mut self, first: &Node, second: &Node) -> Result<Variables, Node> {
        let (first_at, second_at) = (self.position(first), self.position(second));
        let message = "argument must be a simple name";
        let Expr::Ident(first) = &first.expr else { return Err(self.macro_error(first_at, message)) };
        let Expr::Ident(second) = &second.expr else { return Err(self.macro_error(second_at, message)) };
        if first == second {
            return Err(self.macro_error(second_at, format!("duplicate variable name: {first}")));
        }
        self.not_accumulator(first_at, first)?;
        self.not_accumulator(second_at, second)?;
        Ok(Variables { first: Arc::clone(first), second: Some(Arc::clone(second)) })
    }

    fn not_accumulator(&mut self, at: Position, name: &str) -> Result<(), Node> {
        if name == ACCUMULATOR || name == OLD_ACCUMULATOR {
            return Err(self.macro_error(at, "iteration variable overwrites accumulator variable"));
        }
        Ok(())
    }

    fn quantifier(
        &mut self,
        at: Position,
        kind: Quantifier,
        range: Node,
        variables: Variables,
        predicate: Node,
    ) -> Node {
        let start = match kind {
            Quantifier::All => Literal::Bool(true),
            Quantifier::Exists => Literal::Bool(false),
            Quantifier::ExistsOne => Literal::Int(0),
        };
        let init = self.constant(at, start);
        let condition = match kind {
            Quantifier::All => {
                let accumulator = self.accumulator(at);
                self.call(at, "@not_strictly_false", vec![accumulator])
            }
            Quantifier::Exists => {
                let accumulator = self.accumulator(at);
                let not = self.call(at, "!_", vec![accumulator]);
                self.call(at, "@not_strictly_false", vec![not])
            }
            Quantifier::ExistsOne => self.constant(at, Literal::Bool(true)),
        };
        let accumulator = self.accumulator(at);
        let step = match kind {
            Quantifier::All => self.call(at, "_&&_", vec![accumulator, predicate]),
            Quantifier::Exists => self.call(at, "_||_", vec![accumulator, predicate]),
            Quantifier::ExistsOne => {
                let one = self.constant(at, Literal::Int(1));
                let sum = self.call(at, "_+_", vec![accumulator, one]);
                let same = self.accumulator(at);
                self.call(at, "_?_:_", vec![predicate, sum, same])
            }
        };
        let mut result = self.accumulator(at);
        if kind == Quantifier::ExistsOne {
            let one = self.constant(at, Literal::Int(1));
            result = self.call(at, "_==_", vec![result, one]);
        }
        self.fold(at, range, variables, [init, condition, step, result])
    }

    fn transform(
        &mut self,
        at: Position,
        kind: Transform,
        range: Node,
        variables: Variables,
        filter: Option<Node>,
        value: Node,
    ) -> Node {
        let init = match kind {
            Transform::List => Expr::List { elements: Vec::new(), optional: Vec::new() },
            Transform::Map | Transform::MapEntry => Expr::Map(Vec::new()),
        };
        let init = self.node(at, init);
        let condition = self.constant(at, Literal::Bool(true));
        let accumulator = self.accumulator(at);
        let mut step = match kind {
            Transform::List => {
                let one = self.node(at, Expr::List { elements: vec![value], optional: Vec::new() });
                self.call(at, "_+_", vec![accumulator, one])
            }
            Transform::Map => {
                let key = self.node(at, Expr::Ident(Arc::clone(&variables.first)));
                self.call(at, "cel.@mapInsert", vec![accumulator, key, value])
            }
            Transform::MapEntry => self.call(at, "cel.@mapInsert", vec![accumulator, value]),
        };
        if let Some(filter) = filter {
            let same = self.accumulator(at);
            step = self.call(at, "_?_:_", vec![filter, step, same]);
        }
        let result = self.accumulator(at);
        self.fold(at, range, variables, [init, condition, step, result])
    }

    /// `target.hasValue() ? optional.of(value with variable bound to target.value()) : optional.none()`.
    fn optional_map(&mut self, at: Position, function: &str, target: Node, variable: &Node, value: Node) -> Node {
        let Expr::Ident(name) = &variable.expr else {
            let position = self.position(variable);
            return self.macro_error(position, format!("{function}() variable name must be a simple identifier"));
        };
        let copy = self.copy(at, &target);
        let range = self.node(at, Expr::List { elements: Vec::new(), optional: Vec::new() });
        let init = self.member_call(at, "value", copy);
        let condition = self.constant(at, Literal::Bool(false));
        let step = self.node(at, Expr::Ident(Arc::clone(name)));
        let comprehension = Comprehension {
            range,
            variable: "#unused".into(),
            second: None,
            accumulator: Arc::clone(name),
            init,
            condition,
            step,
            result: value,
        };
        let mut some = self.node(at, Expr::Comprehension(Box::new(comprehension)));
        if function == "optMap" {
            some = self.call(at, "optional.of", vec![some]);
        }
        let has = self.member_call(at, "hasValue", target);
        let none = self.call(at, "optional.none", Vec::new());
        self.call(at, "_?_:_", vec![has, some, none])
    }

    /// `target`, bound to a name, sorted by the keys that `key` gives its elements (cel-go `ext/lists.go`).
    fn sort_by(&mut self, at: Position, target: Node, variable: &Node, key: Node) -> Node {
        const INPUT: &str = "@__sortBy_input__";
        if matches!(target.expr, Expr::Literal(_) | Expr::Map(_) | Expr::Struct { .. }) {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            let position = self.position(&target);
            return self.macro_error(position, message);
        }
        let variables = match self.one_variable(variable, "argument is not an identifier") {
            Ok(variables) => variables,
            Err(error) => return error,
        };
        let step = self.node(at, Expr::Ident(INPUT.into()));
        let input = self.copy(at, &step);
        let keys = self.transform(at, Transform::List, input, variables, None, key);
        let sorted = Some(Box::new(self.copy(at, &step)));
        let call = Expr::Call { function: "@sortByAssociatedKeys".into(), target: sorted, args: vec![keys] };
        let result = self.node(at, call);
        let range = self.node(at, Expr::List { elements: Vec::new(), optional: Vec::new() });
        let condition = self.constant(at, Literal::Bool(false));
        let comprehension = Comprehension {
            range,
            variable: "#unused".into(),
            second: None,
            accumulator: INPUT.into(),
            init: target,
            condition,
            step,
            result,
        };
        self.node(at, Expr::Comprehension(Box::new(comprehension)))
    }

    fn fold(&mut self, at: Position, range: Node, variables: Variables, parts: [Node; 4]) -> Node {
        let [init, condition, step, result] = parts;
        let Variables { first: variable, second } = variables;
        let accumulator = ACCUMULATOR.into();
        let comprehension = Comprehension { range, variable, second, accumulator, init, condition, step, result };
        self.node(at, Expr::Comprehension(Box::new(comprehension)))
    }

    fn accumulator(&mut self, at: Position) -> Node {
        self.node(at, Expr::Ident(ACCUMULATOR.into()))
    }

    fn constant(&mut self, at: Position, value: Literal) -> Node {
        self.node(at, Expr::Literal(value))
    }

    fn member_call(&mut self, at: Position, function: &str, target: Node) -> Node {
        let target = Some(Box::new(target));
        self.node(at, Expr::Call { function: function.into(), target, args: Vec::new() })
    }

    /// The same with numbers of its own, for a macro at `at`.
    fn copy(&mut self, at: Position, node: &Node) -> Node {
        let expr = match &node.expr {
            Expr::Literal(_) | Expr::Ident(_) => node.expr.clone(),
            Expr::Select { operand, field, test } => {
                Expr::Select { operand: Box::new(self.copy(at, operand)), field: Arc::clone(field), test: *test }
            }
            Expr::Call { function, target, args } => Expr::Call {
                function: Arc::clone(function),
                target: target.as_ref().map(|target| Box::new(self.copy(at, target))),
                args: args.iter().map(|arg| self.copy(at, arg)).collect(),
            },
            Expr::List { elements, optional } => Expr::List {
                elements: elements.iter().map(|element| self.copy(at, element)).collect(),
                optional: optional.clone(),
            },
            Expr::Map(entries) => Expr::Map(entries.iter().map(|entry| self.copy_entry(at, entry)).collect()),
            Expr::Struct { name, fields } => Expr::Struct {
                name: Arc::clone(name),
                fields: fields.iter().map(|field| self.copy_field(at, field)).collect(),
            },
            Expr::Comprehension(of) => Expr::Comprehension(Box::new(Comprehension {
                range: self.copy(at, &of.range),
                variable: Arc::clone(&of.variable),
                second: of.second.clone(),
                accumulator: Arc::clone(&of.accumulator),
                init: self.copy(at, &of.init),
                condition: self.copy(at, &of.condition),
                step: self.copy(at, &of.step),
                result: self.copy(at, &of.result),
            })),
        };
        let position = self.position(node);
        self.node(position, expr)
    }

    fn copy_entry(&mut self, at: Position, entry: &Entry) -> Entry {
        let Entry { key, value, optional, .. } = entry;
        let id = self.id(at);
        Entry { id, key: self.copy(at, key), value: self.copy(at, value), optional: *optional }
    }

    fn copy_field(&mut self, at: Position, field: &FieldInit) -> FieldInit {
        let FieldInit { field, value, optional, .. } = field;
        let id = self.id(at);
        FieldInit { id, field: Arc::clone(field), value: self.copy(at, value), optional: *optional }
    }
}

struct Variables {
    first: Arc<str>,
    second: Option<Arc<str>>,
}

fn quantifier(function: &str) -> Quantifier {
    match function {
        "all" => Quantifier::All,
        "exists" => Quantifier::Exists,
        _ => Quantifier::ExistsOne,
    }
}

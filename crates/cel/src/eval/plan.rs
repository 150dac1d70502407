//! From the checked tree to the plan (cel-go `interpreter/planner.go`, with the decorators of `OptOptimize`).

use std::sync::Arc;

use super::{
    Error, Program, machine,
    node::{Attribute, Base, Call, Fold, Key, Node, Qualifier, RegexFunction, Target},
    watches::Watches,
};
use crate::{
    Minor,
    ast::{self, Expr, Literal, NodeId, Position},
    check::{Checked, Reference},
    environment::Environment,
    functions::{self, Cost},
    issue::{Issue, IssueKind},
    library::re2::Regex,
    mutation::is_object,
    stack::with_stack,
    types::Type,
    value::{Entries, List, Str, Value},
};

pub(super) fn plan(checked: &Checked, environment: &Environment) -> Result<Program, Issue> {
    if checked.types.iter().any(|of| of.has_untyped() || (environment.mutation && of.is_missing())) {
        let message = "unexpected compilation error: missing type conversion to proto: ";
        return Err(Issue::new(IssueKind::Fold, Position::NONE, message));
    }
    let watches = environment.is_watching().then(|| Watches::new(&checked.ast));
    let mut planner = Planner { checked, environment, locals: Vec::new(), slots: 0, watches };
    let root = planner.plan(&checked.ast.root).map_err(|failure| {
        let (kind, message) = match failure {
            Failure::Fold(message) => (IssueKind::Fold, format!("program instantiation failed: {message}")),
            Failure::Unsupported(message) => (IssueKind::Unsupported, message),
        };
        Issue::new(kind, Position::NONE, message)
    })?;
    let (root, watches) = match planner.watches {
        Some(watches) => watches.finish(root),
        None => (root, Vec::new()),
    };
    let (slots, boxed) = (planner.slots, environment.minor() >= Minor::V1_37);
    Ok(Program { root, slots, boxed, output: checked.output_type().clone(), watches })
}

enum Failure {
    /// Evaluating a constant failed.
    Fold(String),
    /// Something that this crate does not know.
    Unsupported(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Fold(error.to_string())
    }
}

struct Planner<'p> {
    checked: &'p Checked,
    environment: &'p Environment,
    /// The variables of folds, with their slots, the innermost last.
    locals: Vec<(Arc<str>, usize)>,
    /// How many slots are needed.
    slots: usize,
    /// The watched parts, if watching is enabled.
    watches: Option<Watches<'p>>,
}

impl Planner<'_> {
    fn plan(&mut self, node: &ast::Node) -> Result<Node, Failure> {
        with_stack(|| self.plan_node(node))
    }

    fn plan_node(&mut self, node: &ast::Node) -> Result<Node, Failure> {
        match &node.expr {
            Expr::Literal(literal) => Ok(Node::Const(Ok(constant(literal)))),
            Expr::Ident(name) => self.ident(node.id, name),
            Expr::Select { operand, field, test } => {
                let mut attribute = attribute(self.plan(operand)?);
                let text = || Value::String(Str::Shared(Arc::clone(field)));
                let key = match (self.is_object(operand.id), *test) {
                    (false, false) => Key::Const(text()),
                    (false, true) => Key::Test(text()),
                    (true, false) => Key::Field(Arc::clone(field)),
                    (true, true) => Key::TestField(Arc::clone(field)),
                };
                attribute.qualifiers.push(Qualifier { key, optional: false });
                Ok(if *test { Node::Test(Box::new(attribute)) } else { Node::Attribute(Box::new(attribute)) })
            }
            Expr::Call { function, target, args } => {
                let mut planned: Vec<Node> =
                    target.as_deref().into_iter().chain(args).map(|arg| self.plan(arg)).collect::<Result<_, _>>()?;
                if let Some(watches) = &mut self.watches {
                    planned = watches.arguments(node.id, function, args, planned);
                }
                self.call(node.id, function, planned)
            }
            Expr::List { elements, optional } => {
                let element = |(index, element): (usize, &ast::Node)| {
                    Ok((self.plan(element)?, optional.binary_search(&index).is_ok()))
                };
                let elements = elements.iter().enumerate().map(element).collect::<Result<Vec<_>, Failure>>()?;
                let folds = elements.iter().all(|(element, _)| matches!(element, Node::Const(_)));
                fold_if(folds, Node::List(elements))
            }
            Expr::Map(entries) => {
                let entry = |entry: &ast::Entry| Ok((self.plan(&entry.key)?, self.plan(&entry.value)?, entry.optional));
                let entries = entries.iter().map(entry).collect::<Result<Vec<_>, Failure>>()?;
                let folds =
                    entries.iter().all(|(key, value, _)| matches!((key, value), (Node::Const(_), Node::Const(_))));
                fold_if(folds, Node::Map(entries))
            }
            Expr::Struct { name, fields } => {
                if self.environment.constructed(name).is_none() {
                    return Err(Failure::Unsupported(format!("this crate cannot make values of '{name}'")));
                }
                let field = |of: &ast::FieldInit| Ok((Arc::clone(&of.field), self.plan(&of.value)?, of.optional));
                let fields = fields.iter().map(field).collect::<Result<_, Failure>>()?;
                Ok(Node::Struct(Arc::clone(name), fields))
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    /// Whether a node is of a type whose fields the evaluator asks the type for (cel-go `fieldQualifier`).
    fn is_object(&self, id: NodeId) -> bool {
        matches!(self.checked.type_of(id), Type::Object(name) if self.environment.mutation && is_object(name))
    }

    fn ident(&self, id: NodeId, name: &Arc<str>) -> Result<Node, Failure> {
        match self.checked.reference(id) {
            Some(Reference::Type(of)) => Ok(Node::Const(Ok(Value::Type(Str::Shared(type_name(of)))))),
            // A variable whose value is a type is taken for the name of a type, which it is not.
            _ if matches!(self.checked.type_of(id), Type::Type(_)) => {
                Err(Failure::Fold(format!("reference to undefined type: {name}")))
            }
            _ => {
                let local = self.locals.iter().rev().find(|(local, _)| local == name);
                let base = local.map_or_else(
                    || Base::Global(name.strip_prefix('.').map_or_else(|| Arc::clone(name), Arc::from)),
                    |(_, slot)| Base::Local(*slot),
                );
                Ok(Node::Attribute(Box::new(Attribute { base, qualifiers: Vec::new() })))
            }
        }
    }

    fn call(&mut self, id: NodeId, function: &Arc<str>, mut args: Vec<Node>) -> Result<Node, Failure> {
        match (&**function, args.len()) {
            ("_&&_", _) => return Ok(Node::And(args)),
            ("_||_", _) => return Ok(Node::Or(args)),
            ("@not_strictly_false", 1) => {
                return Ok(Node::NotStrictlyFalse(Box::new(args.remove(0))));
            }
            ("_?_:_", 3) => {
                let (no, yes, condition) = (take(&mut args), take(&mut args), take(&mut args));
                let base = Base::Conditional(condition, Box::new([attribute(yes), attribute(no)]));
                return Ok(Node::Attribute(Box::new(Attribute { base, qualifiers: Vec::new() })));
            }
            (name @ ("_==_" | "_!=_"), 2) => {
                let (right, left) = (take(&mut args), take(&mut args));
                return Ok(Node::Equal(Box::new([left, right]), name == "_!=_"));
            }
            (name @ ("_[_]" | "_[?_]" | "_?._"), 2) => {
                let (index, operand) = (take(&mut args), take(&mut args));
                return index_of(operand, index, name != "_[_]");
            }
            (name @ ("or" | "orValue"), 2) => {
                let (right, left) = (take(&mut args), take(&mut args));
                let strict = self.environment.minor() >= Minor::V1_37;
                return Ok(Node::OrElse { sides: Box::new([left, right]), unwrap: name == "orValue", strict });
            }
            _ => {}
        }
        let candidates = match self.checked.reference(id) {
            Some(Reference::Overloads(candidates)) => candidates.as_slice(),
            _ => &[],
        };
        let exact = if let [exact] = candidates { Some(*exact) } else { None };
        let properties = functions::properties(function);
        let id_cost = exact.and_then(|exact| exact.cost);
        let cost = id_cost.or(properties.cost).unwrap_or(Cost::Fixed(1));
        if exact.is_some_and(|exact| exact.id == "in_list") {
            match membership(args) {
                Ok(node) => return Ok(node),
                Err(unchanged) => args = unchanged,
            }
        }
        let regex = regex(function, &args)?;
        let all = self.environment.function(function).unwrap_or_default();
        let (target, sequential) = match (regex, properties.dynamic, exact) {
            (Some((function, regex)), ..) => (Target::Regex(function, regex), true),
            (None, Some(eval), _) => (Target::Dynamic(eval), args.len() > 2),
            (None, None, Some(exact)) => (Target::Exact(exact), exact.sequential || args.len() > 2),
            (None, None, None) => (Target::ByName(all.to_vec()), all.len() > 1 || args.len() > 2),
        };
        let consumes = match (&**function, args.first()) {
            ("_+_" | "cel.@mapInsert", Some(Node::Attribute(first))) => match (&first.base, &*first.qualifiers) {
                (Base::Local(slot), []) if self.is_accumulator(*slot) => Some(*slot),
                _ => None,
            },
            _ => None,
        };
        let call = Call { function: Arc::clone(function), target, args, sequential, cost, consumes };
        let converts = CONVERSIONS.contains(&&**function) && matches!(&*call.args, [Node::Const(_)]);
        let node = Node::Call(Box::new(call));
        if converts {
            return Ok(Node::Const(Ok(machine::run_constant(&node)?)));
        }
        Ok(node)
    }

    /// The accumulators of macros cannot be written in a source, so that nothing but the macro's own step uses them.
    fn is_accumulator(&self, slot: usize) -> bool {
        self.locals.iter().any(|(name, local)| *local == slot && name.starts_with("@result"))
    }

    fn comprehension(&mut self, of: &ast::Comprehension) -> Result<Node, Failure> {
        let depth = self.locals.len();
        // The first value of the accumulator is evaluated when it is first used, when all slots may be in use.
        let slot = self.locals.iter().map(|(_, slot)| slot + 1).max().unwrap_or(0);
        self.slots = self.slots.max(slot + 3);
        for place in slot..slot + 3 {
            self.locals.push(("".into(), place));
        }
        let init = self.plan(&of.init)?;
        self.locals.truncate(depth);
        let range = self.plan(&of.range)?;
        self.locals.push((Arc::clone(&of.accumulator), slot));
        self.locals.push((Arc::clone(&of.variable), slot + 1));
        self.locals.push((of.second.clone().unwrap_or_else(|| "".into()), slot + 2));
        let condition = self.plan(&of.condition)?;
        let step = self.plan(&of.step)?;
        self.locals.truncate(depth + 1);
        let result = self.plan(&of.result)?;
        self.locals.truncate(depth);
        let two = of.second.is_some();
        Ok(Node::Fold(Box::new(Fold { range, init, condition, step, result, slot, two })))
    }
}

/// Functions that are evaluated ahead of time if their argument is constant (cel-go `overloads.go`).
const CONVERSIONS: &[&str] =
    &["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

fn take(args: &mut Vec<Node>) -> Node {
    args.pop().unwrap_or(Node::Const(Err(Error::no_such_overload())))
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Str::Shared(Arc::clone(text))),
        Literal::Bytes(bytes) => Value::Bytes(Arc::clone(bytes)),
    }
}

/// The node as an attribute, to which qualifiers can be added.
fn attribute(node: Node) -> Attribute {
    match node {
        Node::Attribute(attribute) | Node::Test(attribute) => *attribute,
        node => Attribute { base: Base::Relative(node), qualifiers: Vec::new() },
    }
}

fn index_of(operand: Node, index: Node, optional: bool) -> Result<Node, Failure> {
    let mut attribute = attribute(operand);
    let key = match index {
        Node::Const(Ok(key)) => {
            if !matches!(key, Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_)) {
                return Err(Failure::Fold(format!("invalid qualifier type: {}", key.go_type())));
            }
            Key::Const(key)
        }
        index => Key::Dynamic(self::attribute(index)),
    };
    attribute.qualifiers.push(Qualifier { key, optional });
    Ok(Node::Attribute(Box::new(attribute)))
}

/// A literal of constants is made once. If that fails, evaluating it does, not planning it.
fn fold_if(folds: bool, node: Node) -> Result<Node, Failure> {
    if !folds {
        return Ok(node);
    }
    match machine::run_constant(&node) {
        Err(error) if error.fatal => Err(error.into()),
        value => Ok(Node::Const(value)),
    }
}

/// `x in [...]` of constants: a look into a set, or nothing to evaluate at all. Otherwise the arguments, unchanged.
fn membership(mut args: Vec<Node>) -> Result<Node, Vec<Node>> {
    let Some(Node::Const(Ok(Value::List(list)))) = args.get(1) else { return Err(args) };
    if list.is_empty() {
        return Ok(Node::Const(Ok(Value::Bool(false))));
    }
    let Some(set) = set(list) else { return Err(args) };
    Ok(Node::Member(Box::new(args.swap_remove(0)), Box::new(set)))
}

/// A constant regular expression is compiled once, and rejected if it is none.
fn regex(function: &str, args: &[Node]) -> Result<Option<(RegexFunction, Regex)>, Failure> {
    let function = match function {
        "matches" => RegexFunction::Matches,
        "find" => RegexFunction::Find,
        "findAll" => RegexFunction::FindAll,
        _ => return Ok(None),
    };
    let Some(Node::Const(Ok(Value::String(pattern)))) = args.get(1) else { return Ok(None) };
    Ok(Some((function, Regex::new(pattern).map_err(Failure::Fold)?)))
}

/// The elements as keys, with the equal numbers of other types; nothing if one is of a type that is not hashed.
#[expect(clippy::cast_precision_loss, reason = "as cel-go does")]
fn set(list: &List<'static>) -> Option<Entries<'static>> {
    let mut set = Entries::default();
    for element in list.iter() {
        match &element {
            Value::Bool(_) | Value::String(_) => {}
            Value::Int(value) => {
                set.insert(Value::Double(*value as f64), Value::Null);
                if let Ok(uint) = u64::try_from(*value) {
                    set.insert(Value::Uint(uint), Value::Null);
                }
            }
            Value::Uint(value) => {
                set.insert(Value::Double(*value as f64), Value::Null);
                if let Ok(int) = i64::try_from(*value) {
                    set.insert(Value::Int(int), Value::Null);
                }
            }
            Value::Double(value) => {
                if let Some(int) = crate::value::lossless_int(*value) {
                    set.insert(Value::Int(int), Value::Null);
                }
                if let Some(uint) = crate::value::lossless_uint(*value) {
                    set.insert(Value::Uint(uint), Value::Null);
                }
            }
            _ => return None,
        }
        set.insert(element, Value::Null);
    }
    Some(set)
}

/// The name of a type at run time, without its parameters.
fn type_name(of: &Type) -> Arc<str> {
    match of {
        Type::Null => "null_type".into(),
        Type::Timestamp => "google.protobuf.Timestamp".into(),
        Type::Duration => "google.protobuf.Duration".into(),
        Type::List(_) => "list".into(),
        Type::Map(..) => "map".into(),
        Type::Optional(_) => "optional_type".into(),
        Type::Type(_) => "type".into(),
        other => other.to_string().into(),
    }
}

//! Walking the tree (cel-go `checker/cost.go`, `coster`).

use std::sync::Arc;

use super::variables::{Entries, Local, Part, is_bind};
use crate::{
    Minor,
    ast::{Comprehension, Expr, Literal, Node, NodeId},
    check::{Checked, Reference},
    functions::{
        self, Overload,
        estimate::{Arg, Call, CallEstimate, Path, Range, Sizes, is_scalar},
    },
    stack::with_stack,
    types::Type,
};

const LIST: Range = Range::fixed(10);
const MAP: Range = Range::fixed(30);
const STRUCT: Range = Range::fixed(40);
/// Of a variable, of a field, and of a call that costs no more than that.
const ONE: Range = Range::fixed(1);
/// The empty range, the start of a union of ranges.
const NOTHING: Range = Range { min: u64::MAX, max: 0 };

pub(super) struct Coster<'c> {
    checked: &'c Checked,
    minor: Minor,
    sizes: &'c dyn Sizes,
    /// By node.
    paths: Vec<Option<Path>>,
    known: Vec<Option<Range>>,
    entries: Vec<Option<Entries>>,
    /// The variables of comprehensions, the innermost last.
    locals: Vec<(Arc<str>, Local)>,
}

impl<'c> Coster<'c> {
    pub(super) fn new(checked: &'c Checked, minor: Minor, sizes: &'c dyn Sizes) -> Self {
        let nodes = checked.types.len();
        Self {
            checked,
            minor,
            sizes,
            paths: vec![None; nodes],
            known: vec![None; nodes],
            entries: vec![None; nodes],
            locals: Vec::new(),
        }
    }

    /// Whether this is the estimate of cel-go before 0.23, which tracks neither variables nor the sizes of elements.
    fn is_older(&self) -> bool {
        self.minor < Minor::V1_33
    }

    pub(super) fn cost(&mut self, node: &'c Node) -> Range {
        match &node.expr {
            Expr::Literal(_) => Range::default(),
            Expr::Ident(name) => {
                let path = self.local(name).map_or_else(|| Some(Path::new(name)), Local::path);
                self.set_path(node, path);
                ONE
            }
            _ => with_stack(|| self.cost_of_compound(node)),
        }
    }

    fn cost_of_compound(&mut self, node: &'c Node) -> Range {
        match &node.expr {
            Expr::Literal(_) | Expr::Ident(_) => self.cost(node),
            // Kubernetes has the test for free.
            Expr::Select { operand, test: true, .. } => self.cost(operand),
            Expr::Select { operand, field, .. } => {
                let mut sum = self.cost(operand);
                if matches!(self.checked.type_of(operand.id), Type::Map(..) | Type::Object(_) | Type::Param(_)) {
                    sum = sum.plus(ONE);
                }
                let path = self.path(operand).map_or_else(|| Path::new(field), |path| path.then(field));
                self.set_path(node, Some(path));
                sum
            }
            Expr::Call { function, target, args } => self.call(node, function, target.as_deref(), args),
            Expr::List { elements, .. } => self.list(node, elements),
            Expr::Map(entries) => {
                let (mut sum, mut key, mut value) = (MAP, NOTHING, NOTHING);
                for entry in entries {
                    sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    key = key.union(self.size_or_unknown(&entry.key));
                    value = value.union(self.size_or_unknown(&entry.value));
                }
                if entries.is_empty() {
                    (key, value) = (Range::default(), Range::default());
                }
                self.set_entries(node.id, Some(Entries { is_list: false, key, value }));
                sum
            }
            Expr::Struct { fields, .. } => fields.iter().fold(STRUCT, |sum, field| sum.plus(self.cost(&field.value))),
            Expr::Comprehension(of) if self.is_older() => self.older_comprehension(node, of),
            Expr::Comprehension(of) if is_bind(of) => self.bind(node, of),
            Expr::Comprehension(of) => self.comprehension(node, of),
        }
    }

    fn list(&mut self, node: &'c Node, elements: &'c [Node]) -> Range {
        let (mut sum, mut value) = (LIST, NOTHING);
        for element in elements {
            sum = sum.plus(self.cost(element));
            value = value.union(self.size_or_unknown(element));
        }
        if elements.is_empty() {
            value = Range::default();
        }
        self.set_entries(node.id, Some(Entries { is_list: true, key: ONE, value }));
        sum
    }

    fn call(&mut self, node: &'c Node, function: &str, target: Option<&'c Node>, args: &'c [Node]) -> Range {
        // It only turns off the checking of types.
        if let ("dyn", [arg], false) = (function, args, self.is_older()) {
            let cost = self.cost(arg);
            self.copy_sizes(node, arg);
            return cost.plus(ONE);
        }
        let checked = self.checked;
        let (mut costs, mut nodes) = (Vec::new(), Vec::new());
        for arg in args {
            costs.push(self.cost(arg));
            nodes.push(self.arg(arg));
        }
        let Some(Reference::Overloads(overloads)) = checked.reference(node.id) else {
            return Range::default();
        };
        let mut sum = Range::default();
        let target = target.map(|target| {
            sum = self.cost(target);
            self.arg(target)
        });
        let (mut cost, mut size) = (NOTHING, None::<Range>);
        for overload in overloads {
            let estimate = self.call_of(node, function, overload, target.as_ref(), &nodes, &costs);
            cost = cost.union(estimate.cost);
            if let Some(found) = estimate.size {
                size = Some(size.map_or(found, |size| size.union(found)));
            }
            if let ("index_list" | "index_map", [container, ..]) = (overload.id, args) {
                if !self.is_older() {
                    size = self.entries(container).map(|entries| entries.value);
                }
                let step = if overload.id == "index_list" { "@items" } else { "@values" };
                let path = self.path(container).map_or_else(|| Path::new(step), |path| path.then(step));
                self.set_path(node, Some(path));
            }
            if !self.is_older() {
                size = size.or_else(|| self.size(node));
            }
        }
        self.set_size(node.id, size);
        sum.plus(cost)
    }

    /// The estimate for one overload, with the cost of its arguments and without the cost of its receiver.
    fn call_of(
        &mut self,
        node: &Node,
        function: &str,
        overload: &'static Overload,
        target: Option<&Arg<'_>>,
        args: &[Arg<'_>],
        costs: &[Range],
    ) -> CallEstimate {
        let call = Call { overload, minor: self.minor, target, args, sizes: self.sizes };
        match (overload.id, args, costs) {
            ("logical_or" | "logical_and", _, [left, right]) => {
                // The right side may not be evaluated.
                return Range { min: left.min, max: left.plus(*right).max }.into();
            }
            ("conditional", [_, yes, no], [condition, if_yes, if_no]) => {
                let entries = self.entries_of_both(yes, no);
                self.set_entries(node.id, entries);
                return CallEstimate::sized(
                    condition.plus(if_yes.union(*if_no)),
                    call.known(yes).union(call.known(no)),
                );
            }
            _ => {}
        }
        let costs = costs.iter().fold(Range::default(), |sum, cost| sum.plus(*cost));
        let mut estimate = if let ("add_string" | "add_bytes" | "add_list", [left, right]) = (overload.id, args) {
            let size = call.known(left).plus(call.known(right));
            let entries = self.entries_of_both(left, right);
            self.set_entries(node.id, entries);
            CallEstimate::sized(if overload.id == "add_list" { ONE } else { size.scaled(0.1) }, size)
        } else {
            functions::properties(function).estimate.and_then(|estimate| estimate(&call)).unwrap_or(ONE.into())
        };
        estimate.cost = estimate.cost.plus(costs);
        estimate
    }

    fn comprehension(&mut self, node: &'c Node, of: &'c Comprehension) -> Range {
        let mut sum = self.cost(&of.range).plus(self.cost(&of.init));
        self.push_local(&of.accumulator, &of.init);
        if let Some(second) = &of.second {
            self.push_part(&of.variable, &of.range, Part::Key);
            self.push_part(second, &of.range, Part::Value);
        } else {
            self.push_part(&of.variable, &of.range, Part::Single);
        }
        let condition = self.cost(&of.condition);
        let step = self.cost(&of.step);
        self.pop(&of.variable);
        if let Some(second) = &of.second {
            self.pop(second);
        }
        sum = sum.plus(self.cost(&of.result));
        self.pop(&of.accumulator);
        let count = self.size_or_unknown(&of.range);
        match of.init.expr {
            Expr::Literal(_) => {
                let size = self.size(&of.init);
                self.set_size(node.id, size);
            }
            Expr::List { .. } | Expr::Map(_) => {
                self.set_size(node.id, Some(count));
                let entries = self.entries(&of.step);
                self.set_entries(node.id, entries);
            }
            _ => {}
        }
        sum.plus(count.times(step.plus(condition)))
    }

    /// Before Kubernetes 1.33: only the path of the first variable is known, and only by the type of the range.
    fn older_comprehension(&mut self, node: &'c Node, of: &'c Comprehension) -> Range {
        let sum = self.cost(&of.range).plus(self.cost(&of.init));
        let step = match self.checked.type_of(of.range.id) {
            Type::List(_) => Some("@items"),
            Type::Map(..) => Some("@keys"),
            _ => None,
        };
        let path = self.path(&of.range).filter(|_| step.is_some());
        self.locals.push((Arc::clone(&of.variable), Local { path, step, ..Local::default() }));
        let turn = self.cost(&of.condition).plus(self.cost(&of.step));
        self.pop(&of.variable);
        let sum = sum.plus(self.cost(&of.result));
        let count = self.size_or_unknown(&of.range);
        self.set_size(node.id, Some(count));
        sum.plus(count.times(turn))
    }

    fn bind(&mut self, node: &'c Node, of: &'c Comprehension) -> Range {
        let sum = self.cost(&of.range).plus(self.cost(&of.init));
        self.push_local(&of.accumulator, &of.init);
        let sum = sum.plus(self.cost(&of.result));
        self.pop(&of.accumulator);
        self.copy_sizes(node, &of.result);
        sum
    }

    // What is bound.

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rfind(|(bound, _)| **bound == *name).map(|(_, local)| local)
    }

    fn push_local(&mut self, name: &Arc<str>, init: &Node) {
        let (entries, size) = (self.entries(init), self.size(init));
        let local = Local { path: self.path(init), entries, size, ..Local::default() };
        self.locals.push((Arc::clone(name), local));
    }

    fn push_part(&mut self, name: &Arc<str>, range: &Node, part: Part) {
        let entries = self.entries(range);
        let is_list =
            entries.map_or_else(|| matches!(self.checked.type_of(range.id), Type::List(_)), |entries| entries.is_list);
        let (step, is_key) = match (part, is_list) {
            (Part::Key, true) => ("@indices", true),
            (Part::Key | Part::Single, false) => ("@keys", true),
            (Part::Value | Part::Single, true) => ("@items", false),
            (Part::Value, false) => ("@values", false),
        };
        let path = self.path(range).map_or_else(|| Path::new(step), |path| path.then(step));
        let size = entries.map(|entries| if is_key { entries.key } else { entries.value });
        self.locals.push((Arc::clone(name), Local { path: Some(path), size, ..Local::default() }));
    }

    fn pop(&mut self, name: &str) {
        if let Some(index) = self.locals.iter().rposition(|(bound, _)| **bound == *name) {
            self.locals.remove(index);
        }
    }

    // What is known of nodes.

    fn arg<'n>(&mut self, node: &'n Node) -> Arg<'n>
    where
        'c: 'n,
    {
        let size = if self.is_older() { self.written_size(node) } else { self.size(node) };
        Arg { node: Some(node), of: self.checked.type_of(node.id), path: self.input_path(node), size }
    }

    fn path(&self, node: &Node) -> Option<Path> {
        if let (Expr::Ident(name), false) = (&node.expr, self.is_older())
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(node.id.index()).cloned().flatten()
    }

    /// The path into the input; that of an accumulator, which has one before 1.33, is none.
    fn input_path(&self, node: &Node) -> Option<Path> {
        let of_input = |path: &Path| !self.is_older() || path.steps().first().is_none_or(|step| **step != *"@result");
        self.path(node).filter(of_input)
    }

    fn set_path(&mut self, node: &Node, path: Option<Path>) {
        if let Some(known) = self.paths.get_mut(node.id.index()) {
            *known = path;
        }
    }

    fn size_or_unknown(&mut self, node: &Node) -> Range {
        self.size(node).unwrap_or(Range::UNKNOWN)
    }

    /// How large the value of a node is, as far as the expression determines it.
    fn written_size(&self, node: &Node) -> Option<Range> {
        if let Some(size) = self.known.get(node.id.index()).copied().flatten() {
            return Some(size);
        }
        let written = match &node.expr {
            Expr::Literal(Literal::String(text)) => Some(text.chars().count()),
            Expr::Literal(Literal::Bytes(bytes)) => Some(bytes.len()),
            Expr::Literal(_) => Some(1),
            Expr::List { elements, .. } => Some(elements.len()),
            Expr::Map(entries) => Some(entries.len()),
            _ => None,
        };
        written.map(|size| Range::fixed(size as u64))
    }

    /// How large the value of a node is.
    fn size(&mut self, node: &Node) -> Option<Range> {
        if let Some(size) = self.written_size(node) {
            return Some(size);
        }
        if let Some(most) = self.input_path(node).and_then(|path| self.sizes.most(&path.steps())) {
            let size = Range { min: 0, max: most };
            self.set_size(node.id, Some(size));
            return Some(size);
        }
        if is_scalar(self.checked.type_of(node.id), self.minor) {
            return Some(ONE);
        }
        match &node.expr {
            Expr::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn set_size(&mut self, id: NodeId, size: Option<Range>) {
        if let (Some(known), Some(size)) = (self.known.get_mut(id.index()), size) {
            *known = Some(size);
        }
    }

    fn entries(&self, node: &Node) -> Option<Entries> {
        self.entries.get(node.id.index()).copied().flatten().or_else(|| match &node.expr {
            Expr::Ident(name) => self.local(name)?.entries,
            _ => None,
        })
    }

    fn set_entries(&mut self, id: NodeId, entries: Option<Entries>) {
        if let (Some(known), Some(entries)) = (self.entries.get_mut(id.index()), entries) {
            *known = Some(entries);
        }
    }

    fn entries_of_both(&self, left: &Arg<'_>, right: &Arg<'_>) -> Option<Entries> {
        let (left, right) = (self.entries(left.node?)?, self.entries(right.node?)?);
        Some(Entries { key: left.key.union(right.key), value: left.value.union(right.value), ..left })
    }

    fn copy_sizes(&mut self, to: &Node, from: &Node) {
        let (size, entries) = (self.size(from), self.entries(from));
        self.set_size(to.id, size);
        self.set_entries(to.id, entries);
    }
}

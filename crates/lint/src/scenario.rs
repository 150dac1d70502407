//! The simplified expressions for a certain request.
//!
//! Expressions are simplified by what is certain about the request, as far as that is possible without an object. The
//! rest depends on the object; two equal rests mean the same verdict.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::Arc,
};

use palisade_cel::{
    ast::{Comprehension, Expr, Literal, Node, NodeId},
    with_stack,
};

use crate::{
    loops,
    policy::{Policy, Role},
    reads, tree,
};

/// A request that a policy evaluates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// The creation of an object.
    Creation,
    /// Any update of an object.
    Update,
    /// The removal of a finalizer from an object that is being deleted, without other changes.
    Removal,
    /// Any request in the namespace `kube-system`.
    KubeSystem,
}

/// The rests of a policy's expressions.
#[derive(Debug)]
pub(crate) struct Rest {
    /// The rests of its match conditions, split at conjunctions, without those that are true. None if one is false:
    /// then the API server does not evaluate the policy.
    pub conditions: Option<Vec<Node>>,
    /// The same of its validations.
    pub validations: Vec<Node>,
}

/// Maximum number of nodes that variables and unrolled loops may add to the expressions of a policy. A variable that
/// would add more stays a variable, a loop a loop.
const MAX_ADDED_NODES: usize = 50_000;

/// The rests of a policy's expressions for a request.
pub(crate) fn rest(policy: &Policy<'_>, scenario: Scenario) -> Rest {
    let mut assuming =
        Assuming { scenario, variables: BTreeMap::new(), loops: RefCell::default(), left: Cell::new(MAX_ADDED_NODES) };
    let (mut conditions, mut validations) = (Some(Vec::new()), Vec::new());
    for expression in &policy.expressions {
        let reduced = assuming.reduce(expression.ast.root.clone());
        match (&expression.role, literal(&reduced)) {
            (Role::Variable(name), _) => {
                let size = reduced.descendants().count();
                assuming.variables.insert(name.clone(), (reduced, size));
            }
            (Role::Condition, Some(false)) => conditions = None,
            (Role::Condition, None) => {
                let parts = reads::conjuncts(&reduced).into_iter().cloned();
                if let Some(conditions) = &mut conditions {
                    conditions.extend(parts);
                }
            }
            (Role::Validation, Some(false) | None) => {
                validations.extend(reads::conjuncts(&reduced).into_iter().cloned());
            }
            _ => {}
        }
    }
    Rest { conditions, validations }
}

/// The metadata that changes when a finalizer is removed.
const CHANGED: [&str; 3] = ["finalizers", "managedFields", "resourceVersion"];

struct Assuming {
    scenario: Scenario,
    /// The variables so far, reduced, and how many nodes each has.
    variables: BTreeMap<String, (Node, usize)>,
    /// The names that the loops around the node bind, and the range of those that are an element of a list or a key of
    /// a map.
    loops: RefCell<Vec<(Arc<str>, Option<Node>)>>,
    left: Cell<usize>,
}

impl Assuming {
    fn reduce(&self, node: Node) -> Node {
        if let Some(name) = tree::variable(&node).filter(|_| !asks(&node))
            && let Some((variable, size)) = self.variables.get(name)
        {
            return match self.left.get().checked_sub(*size) {
                Some(left) => {
                    self.left.set(left);
                    variable.clone()
                }
                // It may differ from request to request.
                None => ident(&format!("variables.{name} on {:?}", self.scenario)),
            };
        }
        let id = node.id;
        let node = match with_stack(|| self.parts(node)) {
            Parts::All(expr) => Node { id, expr },
            Parts::Decided(decided) => return decided,
        };
        match self.known(&node) {
            Some(Known::Literal(literal)) => Node { id, expr: Expr::Literal(literal) },
            Some(Known::Node(known)) => known,
            None => node,
        }
    }

    /// A node with its parts reduced, each once.
    fn parts(&self, node: Node) -> Parts {
        match node.expr {
            Expr::Call { function, target: None, args } if !args.is_empty() => self.call(function, args),
            Expr::Comprehension(of) => self.comprehension(*of),
            expr => Parts::All(Node { id: node.id, expr }.map_children(&mut |part| self.reduce(part)).expr),
        }
    }

    fn comprehension(&self, mut of: Comprehension) -> Parts {
        of.range = self.reduce(of.range);
        if let Some(unrolled) = loops::unrolled(&of)
            && let Some(left) = self.left.get().checked_sub(unrolled.descendants().count())
        {
            self.left.set(left);
            return Parts::Decided(self.reduce(unrolled));
        }
        of.init = self.reduce(of.init);
        let outside = self.loops.borrow().len();
        let element = of.second.is_none().then(|| of.range.clone());
        let bound = [(&of.variable, element)].into_iter().chain(of.second.iter().map(|name| (name, None)));
        self.loops.borrow_mut().extend(bound.map(|(name, range)| (Arc::clone(name), range)));
        of.condition = self.reduce(of.condition);
        of.step = self.reduce(of.step);
        of.result = self.reduce(of.result);
        self.loops.borrow_mut().truncate(outside);
        // A result that no step changes is its initial value: all() of what is true.
        let stays = |node: &Node| matches!(&node.expr, Expr::Ident(name) if *name == of.accumulator);
        if stays(&of.step) && stays(&of.result) {
            return Parts::Decided(of.init);
        }
        Parts::All(Expr::Comprehension(Box::new(of)))
    }

    /// A call, or the argument that it comes to: the first argument may decide, or only be made dynamic.
    fn call(&self, function: Arc<str>, args: Vec<Node>) -> Parts {
        let arity = args.len();
        let mut reduced = Vec::with_capacity(arity);
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            reduced.push(self.reduce(arg));
            if let [first] = &reduced[..] {
                match (&*function, arity, literal(first)) {
                    ("dyn", 1, _) | ("_&&_", _, Some(false)) | ("_||_", _, Some(true)) => {
                        return Parts::Decided(reduced.remove(0));
                    }
                    ("_?_:_", 3, Some(holds)) => {
                        if let Some(branch) = args.nth(usize::from(!holds)) {
                            return Parts::Decided(self.reduce(branch));
                        }
                    }
                    _ => {}
                }
            }
        }
        Parts::All(Expr::Call { function, target: None, args: reduced })
    }

    /// The value of a node with reduced parts.
    fn known(&self, node: &Node) -> Option<Known> {
        let removal = self.scenario == Scenario::Removal;
        if let Some((root, fields)) = tree::asking_chain(node) {
            return match (root, &fields[..]) {
                ("oldObject", []) if self.scenario == Scenario::Creation => Some(Known::Literal(Literal::Null)),
                ("oldObject", ["metadata", field, ..]) if removal && !CHANGED.contains(field) => Some(self.moved(node)),
                ("oldObject", [field, ..]) if removal && *field != "metadata" => Some(self.moved(node)),
                ("request", ["operation"]) if !asks(node) => {
                    Some(Known::Literal(Literal::String(self.operation()?.into())))
                }
                ("request", ["namespace"])
                | ("object" | "oldObject", ["metadata", "namespace"])
                | ("namespaceObject", ["metadata", "name"])
                    if self.scenario == Scenario::KubeSystem && tree::chain(node).is_some() =>
                {
                    let namespace = || Known::Literal(Literal::String("kube-system".into()));
                    Some(if asks(node) { bool(true) } else { namespace() })
                }
                ("request", ["operation" | "userInfo" | "resource" | "kind" | "name"] | ["userInfo", "username"])
                    if asks(node) =>
                {
                    Some(bool(true))
                }
                ("request", ["subResource"]) if !asks(node) && self.scenario != Scenario::KubeSystem => {
                    Some(Known::Literal(Literal::String("".into())))
                }
                _ if asks(node) && is_deletion_time(node) => self.deleted().map(bool),
                _ => None,
            };
        }
        let Expr::Call { function, target, args } = &node.expr else { return None };
        let of = |index: usize| args.get(index).and_then(literal);
        match &**function {
            "size" => match &target.as_deref().or(args.first())?.expr {
                Expr::List { elements, optional } if optional.is_empty() => {
                    Some(Known::Literal(Literal::Int(elements.len().try_into().ok()?)))
                }
                _ => None,
            },
            "hasValue" if target.as_deref().is_some_and(is_deletion_time) => self.deleted().map(bool),
            "_[_]" => match (&args.first()?.expr, &args.get(1)?.expr) {
                (Expr::List { elements, optional }, Expr::Literal(Literal::Int(index))) if optional.is_empty() => {
                    Some(Known::Node(elements.get(usize::try_from(*index).ok()?)?.clone()))
                }
                _ => None,
            },
            "@in" => self.is_in(args.first()?, args.get(1)?),
            "_<=_" | "_>=_" if args.first()? == args.get(1)? => Some(bool(true)),
            "_<=_" if removal && is_short(args.first()?, args.get(1)?) => Some(bool(true)),
            "_==_" => self.equal(args.first()?, args.get(1)?).map(bool),
            "_!=_" => self.equal(args.first()?, args.get(1)?).map(|equal| bool(!equal)),
            "!_" => of(0).map(|value| bool(!value)),
            "_&&_" | "_||_" => {
                let dominant = &**function == "_||_";
                let (a, b) = (args.first()?, args.get(1)?);
                match (of(0), of(1)) {
                    (Some(value), _) | (_, Some(value)) if value == dominant => Some(bool(dominant)),
                    (Some(_), _) => Some(Known::Node(b.clone())),
                    (_, Some(_)) => Some(Known::Node(a.clone())),
                    _ if tree::complementary(a, b) => Some(bool(dominant)),
                    _ if removal && dominant && self.keeps_field(a, b) => Some(bool(true)),
                    _ if a == b => Some(Known::Node(a.clone())),
                    _ => None,
                }
            }
            "_?_:_" => match of(0) {
                Some(holds) => Some(Known::Node(args.get(if holds { 1 } else { 2 })?.clone())),
                None if args.get(1)? == args.get(2)? => Some(Known::Node(args.get(1)?.clone())),
                None => None,
            },
            "_+_" => match (args.first()?, args.get(1)?) {
                (empty, other) | (other, empty) if is_empty(empty) => Some(Known::Node(other.clone())),
                _ => None,
            },
            _ => None,
        }
    }

    fn operation(&self) -> Option<&'static str> {
        match self.scenario {
            Scenario::Creation => Some("CREATE"),
            Scenario::Update | Scenario::Removal => Some("UPDATE"),
            Scenario::KubeSystem => None,
        }
    }

    /// Whether the object is being deleted, if that is known.
    fn deleted(&self) -> Option<bool> {
        match self.scenario {
            Scenario::Creation => Some(false),
            Scenario::Update | Scenario::KubeSystem => None,
            Scenario::Removal => Some(true),
        }
    }

    /// A read of the old object, as a read of the new one, where both objects are the same.
    fn moved(&self, node: &Node) -> Known {
        let moved = renamed(node.clone());
        self.known(&moved).unwrap_or(Known::Node(moved))
    }

    fn is_in(&self, value: &Node, of: &Node) -> Option<Known> {
        match (&value.expr, &of.expr) {
            (Expr::Literal(Literal::String(key)), _)
                if &**key == "deletionTimestamp" && tree::chain(of) == Some(("object", vec!["metadata"])) =>
            {
                self.deleted().map(bool)
            }
            (Expr::Literal(value), Expr::List { elements, .. })
                if elements.iter().all(|element| matches!(element.expr, Expr::Literal(_))) =>
            {
                let known: Option<Vec<_>> = elements
                    .iter()
                    .map(|element| match &element.expr {
                        Expr::Literal(literal) => Some(literal),
                        _ => None,
                    })
                    .collect();
                Some(bool(known?.contains(&value)))
            }
            (_, Expr::List { elements, .. }) if elements.contains(value) => Some(bool(true)),
            (Expr::Ident(name), _) => self.is_from(name, of).then(|| bool(true)),
            _ => None,
        }
    }

    /// Whether a name is that of an element or key of this range, in a loop around the node.
    fn is_from(&self, name: &Arc<str>, range: &Node) -> bool {
        let loops = self.loops.borrow();
        let Some(index) = loops.iter().rposition(|(bound, _)| bound == name) else { return false };
        let means_the_same = || !loops::reads_any(range, |read| loops[index..].iter().any(|(bound, _)| bound == read));
        let bound = loops[index].1.as_ref();
        let is_range = bound == Some(range)
            // The finalizers that remain are some of those before.
            || (self.scenario == Scenario::Removal && is_finalizers(range) && bound == Some(&renamed(range.clone())));
        is_range && means_the_same()
    }

    /// Whether a part is that the name of a field of the object is `metadata`, and the other that the field has the same
    /// value before: `f == 'metadata' || oldObject[?f] == optional.of(object[f])`.
    fn keeps_field(&self, metadata: &Node, same: &Node) -> bool {
        let (Some([Expr::Ident(name), Expr::Literal(Literal::String(text))]), Some([old, new])) =
            (equated(metadata), equated(same))
        else {
            return false;
        };
        let reads = |of: &Expr, function: &str, root: &str| match of {
            Expr::Call { function: called, args, .. } if **called == *function => match args.as_slice() {
                [Node { expr: Expr::Ident(of), .. }, Node { expr: Expr::Ident(key), .. }] => {
                    **of == *root && key == name
                }
                _ => false,
            },
            _ => false,
        };
        let is_new = match new {
            Expr::Call { function, args, .. } if matches!(&**function, "optional.of" | "of") => {
                matches!(args.as_slice(), [value] if reads(&value.expr, "_[_]", "object"))
            }
            _ => false,
        };
        &**text == "metadata" && reads(old, "_[?_]", "oldObject") && is_new && self.is_from(name, &ident("object"))
    }

    /// Whether two values are equal.
    fn equal(&self, a: &Node, b: &Node) -> Option<bool> {
        let removal = self.scenario == Scenario::Removal;
        let is_null = |node: &Node| matches!(&node.expr, Expr::Literal(Literal::Null));
        // Their fields are the same, except those of metadata.
        if let (Some(Expr::Ident(one)), Some(Expr::Ident(other))) = (sized(a), sized(b))
            && removal
            && [one, other].into_iter().all(|name| matches!(&**name, "object" | "oldObject"))
        {
            return Some(true);
        }
        for (a, b) in [(a, b), (b, a)] {
            let exist = self.scenario != Scenario::KubeSystem;
            if exist && is_null(b) && matches!(&a.expr, Expr::Ident(name) if matches!(&**name, "object" | "oldObject"))
            {
                return Some(false);
            }
            if (is_null(b) || is_none(b)) && is_deletion_time(a) {
                return self.deleted().map(|deleted| !deleted);
            }
            // A rest that reads the old object reads something that has changed.
            if let (Some(("object", new)), Some(("oldObject", old))) = (tree::asking_chain(a), tree::asking_chain(b))
                && removal
                && new == old
                && matches!(new[..], [] | ["metadata"] | ["metadata", "finalizers"])
            {
                return Some(false);
            }
        }
        match (&a.expr, &b.expr) {
            (Expr::Literal(a), Expr::Literal(b)) => Some(a == b),
            _ => (a == b).then_some(true),
        }
    }
}

/// Whether a rest depends on something unknown about the request: the old object, or a variable that stayed one.
pub(crate) fn is_unknown(node: &Node) -> bool {
    node.descendants().any(|node| match &node.expr {
        Expr::Ident(name) => matches!(&**name, "oldObject") || name.starts_with("variables"),
        _ => false,
    })
}

/// A node with reduced parts.
enum Parts {
    All(Expr),
    Decided(Node),
}

enum Known {
    Literal(Literal),
    Node(Node),
}

fn bool(value: bool) -> Known {
    Known::Literal(Literal::Bool(value))
}

/// The value of a node that is true or false.
fn literal(node: &Node) -> Option<bool> {
    match &node.expr {
        Expr::Literal(Literal::Bool(value)) => Some(*value),
        _ => None,
    }
}

fn ident(name: &str) -> Node {
    Node { id: NodeId(0), expr: Expr::Ident(name.into()) }
}

fn asks(node: &Node) -> bool {
    matches!(&node.expr, Expr::Select { test: true, .. })
}

/// Whether a node reads when the object was deleted.
fn is_deletion_time(node: &Node) -> bool {
    tree::asking_chain(node).is_some_and(|(root, fields)| {
        matches!(root, "object" | "oldObject") && fields == ["metadata", "deletionTimestamp"]
    })
}

/// Whether a node is `optional.none()`.
fn is_none(node: &Node) -> bool {
    match &node.expr {
        Expr::Call { function, target: None, .. } => &**function == "optional.none",
        Expr::Call { function, target: Some(target), .. } => {
            &**function == "none" && matches!(&target.expr, Expr::Ident(name) if &**name == "optional")
        }
        _ => false,
    }
}

/// The sides of a comparison for equality.
fn equated(node: &Node) -> Option<[&Expr; 2]> {
    match &node.expr {
        Expr::Call { function, args, .. } if &**function == "_==_" => match args.as_slice() {
            [a, b] => Some([&a.expr, &b.expr]),
            _ => None,
        },
        _ => None,
    }
}

/// The collection whose size a node is.
fn sized(node: &Node) -> Option<&Expr> {
    match &node.expr {
        Expr::Call { function, target, args } if &**function == "size" => {
            Some(&target.as_deref().or(args.first())?.expr)
        }
        _ => None,
    }
}

/// Whether a node is the list of finalizers of an object, or an empty list in its place.
fn is_finalizers(node: &Node) -> bool {
    let of = match &node.expr {
        Expr::Call { function, target: Some(of), .. } if &**function == "orValue" => of,
        _ => node,
    };
    tree::asking_chain(of)
        .is_some_and(|(root, fields)| matches!(root, "object" | "oldObject") && fields == ["metadata", "finalizers"])
}

/// The most fields, and the most finalizers, that an object is assumed to have.
const MOST: i64 = 32;

/// Whether a comparison limits the fields or the finalizers of an object to a number that no object reaches.
fn is_short(size: &Node, most: &Node) -> bool {
    let Expr::Literal(Literal::Int(most)) = most.expr else { return false };
    let of = match &size.expr {
        Expr::Call { function, target, args } if &**function == "size" => target.as_deref().or(args.first()),
        _ => None,
    };
    let is_object = |node: &Node| matches!(&node.expr, Expr::Ident(name) if matches!(&**name, "object" | "oldObject"));
    most >= MOST && of.is_some_and(|of| is_object(of) || is_finalizers(of))
}

/// Whether a node is a list without elements: only a list can be added to it.
fn is_empty(node: &Node) -> bool {
    matches!(&node.expr, Expr::List { elements, .. } if elements.is_empty())
}

/// A chain that begins with the new object instead of the old one.
fn renamed(node: Node) -> Node {
    match node.expr {
        Expr::Ident(_) => Node { expr: Expr::Ident("object".into()), ..node },
        _ => node.map_children(&mut renamed),
    }
}

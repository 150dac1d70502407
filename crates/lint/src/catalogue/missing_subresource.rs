//! A subresource that bypasses the policy.

use palisade_cel::{
    ast::{Expr, Literal, Node},
    types::Type,
};
use palisade_manifest::Severity;

use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::Findings,
    policy::{Policy, ResourceRule, Role},
    scenario::{self, Scenario},
    tree,
};

pub(super) static RULE: Rule = Rule {
    id: "missing-subresource",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A subresource that bypasses the policy",
    why: "\
A checked field can also be changed through a subresource that the rules do not match: the image of a container through
`pods/ephemeralcontainers`, its CPU and memory through `pods/resize`, the number of replicas through `deployments/scale`.
`resources: [\"*\"]` matches no subresource. List the subresource, or `*/*`, and check the fields that it changes: ephemeral
containers are in `spec.ephemeralContainers`, and the object of a scale request is a `Scale` with `spec.replicas`.

The rule does not report fields that the subresource cannot set or change: ephemeral containers have no ports, probes,
resources or lifecycle, and a resize changes CPU and memory but removes neither. It also ignores a policy if another policy
in the same files checks such fields of the subresource.",
    bad: include_str!("missing_subresource.bad.yaml"),
    good: include_str!("missing_subresource.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| judges_updates(policy)) {
        let rules = policy.rules();
        let writes = |rule: &ResourceRule| rule.on("CREATE") || rule.on("UPDATE");
        for unmatched in UNMATCHED_SUBRESOURCES {
            let plain = rules.iter().find(|rule| writes(rule) && rule.covers(unmatched.group, unmatched.resource));
            let full = format!("{}/{}", unmatched.resource, unmatched.subresource);
            let covered = rules.iter().any(|rule| rule.on("UPDATE") && rule.covers(unmatched.group, &full));
            let Some(rule) = plain.filter(|rule| !covered && rule.names.is_empty()) else { continue };
            let judged_apart = || {
                let others =
                    cluster.policies.iter().filter(|other| !std::ptr::eq(*other, policy) && judges_updates(other));
                others.into_iter().any(|other| {
                    let covers = |rule: &ResourceRule| rule.on("UPDATE") && rule.covers(unmatched.group, &full);
                    other.rules().iter().any(covers) && reads(cluster, other, unmatched)
                })
            };
            if reads(cluster, policy, unmatched) && !judged_apart() {
                let message = format!(
                    "fields of {} that it checks can be changed through {full}, which is not matched",
                    unmatched.resource
                );
                let help = format!("add {full} to the resources, with operation UPDATE{}", unmatched.help);
                found.advise(&policy.item, &format!("{}.resources", rule.path()), message, &help);
            }
        }
    }
}

/// Whether a policy can deny an update at all. Mutating policies have no validations.
fn judges_updates(policy: &Policy<'_>) -> bool {
    let update = scenario::rest(policy, Scenario::Update);
    let mutates = policy.expressions.iter().any(|one| one.role == Role::Mutation);
    update.conditions.is_some() && (mutates || !update.validations.is_empty())
}

/// A subresource that changes fields which policies for the resource check.
struct UnmatchedSubresource {
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    kind: &'static str,
    /// The last parts of the paths of structs, and the fields of these structs that it changes.
    structs: &'static [&'static str],
    fields: &'static [&'static str],
    help: &'static str,
}

const CONTAINERS: &[&str] = &[".containers.@idx", ".initContainers.@idx", ".ephemeralContainers.@idx"];
/// The containers whose checks also concern ephemeral ones; init containers are another kind of container.
const BESIDE_EPHEMERAL: &[&str] = &[".containers.@idx", ".ephemeralContainers.@idx"];

const UNMATCHED_SUBRESOURCES: &[UnmatchedSubresource] = &[
    UnmatchedSubresource {
        group: "",
        resource: "pods",
        subresource: "ephemeralcontainers",
        kind: "Pod",
        structs: BESIDE_EPHEMERAL,
        // `allowedEphemeralContainerFields` in pkg/apis/core/validation/validation.go, without the name.
        fields: &[
            "image",
            "command",
            "args",
            "workingDir",
            "envFrom",
            "env",
            "volumeMounts",
            "volumeDevices",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "imagePullPolicy",
            "securityContext",
            "stdin",
            "stdinOnce",
            "tty",
        ],
        help: ", and check spec.ephemeralContainers",
    },
    UnmatchedSubresource {
        group: "",
        resource: "pods",
        subresource: "resize",
        kind: "Pod",
        structs: CONTAINERS,
        fields: &["resources"],
        help: "",
    },
    UnmatchedSubresource { group: "", resource: "replicationcontrollers", kind: "ReplicationController", ..SCALE },
    UnmatchedSubresource { resource: "deployments", kind: "Deployment", ..SCALE },
    UnmatchedSubresource { resource: "replicasets", kind: "ReplicaSet", ..SCALE },
    UnmatchedSubresource { resource: "statefulsets", kind: "StatefulSet", ..SCALE },
];

const SCALE: UnmatchedSubresource = UnmatchedSubresource {
    group: "apps",
    resource: "",
    subresource: "scale",
    kind: "",
    structs: &[".spec"],
    fields: &["replicas"],
    help: "; its object is a Scale",
};

/// Whether the verdict of a policy depends on a field that a subresource changes.
fn reads(cluster: &Cluster<'_>, policy: &Policy<'_>, unmatched: &UnmatchedSubresource) -> bool {
    let environment = cluster
        .type_check(policy)
        .and_then(|check| check.environments().find(|(kind, _)| kind.kind == unmatched.kind).map(|(_, of)| of.clone()));
    policy.expressions.iter().filter(|one| !matches!(one.role, Role::Message | Role::Annotation)).any(|expression| {
        let checked = environment.as_ref().and_then(|environment| environment.check(&expression.source).ok());
        let root = checked.as_ref().map_or(&expression.ast.root, |checked| &checked.ast.root);
        let is_read = |node: &Node| {
            let Some((of, field)) = tree::operand(node).zip(tree::field(node)) else { return false };
            let in_place = match checked.as_ref().map(|checked| object(checked.type_of(of.id))) {
                Some(Some(path)) => unmatched.structs.iter().any(|end| path.ends_with(end)),
                Some(None) => matches!(checked.as_ref().map(|checked| checked.type_of(of.id)), Some(Type::Dyn)),
                // What has no type may be anything, but for labels.
                None => tree::chain(of).is_none_or(|(_, fields)| fields.first() != Some(&"metadata")),
            };
            in_place && unmatched.fields.contains(&field)
        };
        match unmatched.subresource {
            "resize" => is_resized(root, expression.role == Role::Validation, &is_read),
            _ => root.descendants().any(is_read),
        }
    })
}

/// The struct that a type is of, or an optional of it.
fn object(of: &Type) -> Option<&str> {
    match of {
        Type::Object(path) => Some(path),
        Type::Optional(of) => object(of),
        _ => None,
    }
}

/// Whether a resize can make an expression false; if `demanded`, the expression was true before. A resize changes only
/// CPU and memory, adds requests and limits and removes none, and keeps the pod's quality of service class
/// (`ValidatePodResize` and `validateContainerResize` in pkg/apis/core/validation/validation.go).
fn is_resized(root: &Node, demanded: bool, is_read: &impl Fn(&Node) -> bool) -> bool {
    let named = |name: &str| {
        root.descendants().any(|node| {
            tree::field(node) == Some(name)
                || matches!(&node.expr, Expr::Literal(Literal::String(text)) if &**text == name)
        })
    };
    let others = ["ephemeral-storage", "storage", "claims"];
    let measured = named("cpu") || named("memory") || !others.iter().any(|other| named(other));
    // Of a guaranteed pod requests and limits are equal and stay so.
    let resize = Resize { is_read, guaranteed: named("cpu") && named("memory") };
    measured && resize.changes(root, demanded)
}

struct Resize<'a, F> {
    is_read: &'a F,
    guaranteed: bool,
}

impl<F: Fn(&Node) -> bool> Resize<'_, F> {
    /// Whether a resize can make an expression false, if `demanded`, or true otherwise.
    fn changes(&self, node: &Node, demanded: bool) -> bool {
        let reads = |node: &Node| node.descendants().any(self.is_read);
        match &node.expr {
            Expr::Select { test: true, .. } => !demanded && reads(node),
            Expr::Call { function, args, .. } => match (&**function, &args[..]) {
                ("_&&_" | "_||_", [a, b]) => self.changes(a, demanded) || self.changes(b, demanded),
                ("!_", [of]) => self.changes(of, !demanded),
                ("_?_:_", [condition, then, other]) => {
                    reads(condition) || self.changes(then, demanded) || self.changes(other, demanded)
                }
                ("hasValue" | "@in", _) => !demanded && reads(node),
                ("_==_", [a, b]) if demanded && self.guaranteed && is_request_and_limit(a, b) => false,
                _ => reads(node),
            },
            Expr::Comprehension(of) => {
                // What all() and exists() become goes on as its parts do.
                let goes_on = match &of.step.expr {
                    Expr::Call { function, .. } => matches!(&**function, "_&&_" | "_||_"),
                    _ => false,
                };
                reads(&of.range) || if goes_on { self.changes(&of.step, demanded) } else { reads(&of.step) }
            }
            _ => reads(node),
        }
    }
}

/// Whether two nodes read the request and the limit of the same resource.
fn is_request_and_limit(a: &Node, b: &Node) -> bool {
    let (Some((_, a)), Some((_, b))) = (tree::asking_chain(a), tree::asking_chain(b)) else { return false };
    let with = |fields: &[&str], from: &str| -> Vec<String> {
        fields.iter().map(|field| if *field == from { "requests".to_owned() } else { (*field).to_owned() }).collect()
    };
    a != b && with(&a, "limits") == with(&b, "limits")
}

//! The variables of a policy for objects other than pods and workloads.
//!
//! One policy evaluates the objects of all kinds that the checks of a profile name. Each check has a variable that holds
//! for the requests that it evaluates: those for its kinds, except updates that change neither the spec nor another
//! field that the check reads (ADR 48). Deletion is never matched.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{MatchCondition, Variable};
use palisade_api::{
    ObjectKind, ObjectOperation, ToolSecurityProfile,
    names::{self, Part, Shape},
};
use palisade_cel::parse::parse_unexpanded;
use palisade_checks::{ObjectFinding, ObjectResource, ObjectRule, cel};

use crate::{
    Custom, ExpressionStyle, LoweredObject,
    custom::applies,
    exceptions::excepted_checks,
    expressions::{EXCEPTED, UPDATED, VIOLATIONS, Variables, exempt_users, messages},
    fast::MAY_VIOLATE,
    fold::fold,
    metadata::{PROBE_NAMES, PROBE_VIOLATION, profile_name},
    reads::Reads,
    style::SYNTAX,
    tree::inlined,
};

/// A check in a policy for objects.
pub(crate) struct ObjectCheck<'a> {
    pub id: &'a str,
    /// The kinds that it evaluates.
    pub kinds: Vec<ObjectKind>,
    /// Whether its result depends on the parameters of the namespace.
    pub reads_parameters: bool,
    /// Whether it is a check of the catalogue.
    pub is_of_catalogue: bool,
    /// CEL of type bool: requests that it does not evaluate.
    exempt: Option<&'static str>,
    /// Terms of CEL that all hold for an update that the check does not evaluate.
    unchanged: Vec<String>,
    /// The variable with its violations, and CEL of type list(string).
    violations: (String, String),
    /// CEL of type bool that holds if an object that the check evaluates complies; `None` if there is none.
    complies: Option<String>,
}

impl<'a> ObjectCheck<'a> {
    /// A check of the catalogue.
    pub fn of_catalogue(lowered: &LoweredObject, profile: &ToolSecurityProfile, style: ExpressionStyle) -> Self {
        let LoweredObject { check, rule, reads_parameters } = lowered;
        let id = check.id;
        let is_excepted = excepted_checks(&profile.spec).contains(id);
        let findings = || rule.limits.iter().chain(&rule.findings);
        let read = findings().flat_map(texts).chain(rule.reads.iter().copied());
        let by_status = by_status(rule);
        let mut violations = rule_violations(id, rule, &by_status);
        if is_excepted {
            violations = format!("'{id}' in variables.excepted ? [] : ({violations})");
        }
        let lowered = format!("!variables.{} ? [] : ({violations})", applies(id));
        let clean = |ObjectFinding { of, violated, says: _ }: &ObjectFinding| {
            format!("(!({}) || !({violated}))", is_of_any(of, &by_status))
        };
        let complies = findings().map(clean).collect::<Vec<_>>().join(" && ");
        Self {
            id,
            complies: Some(complies),
            kinds: check.kinds.iter().map(kind).chain(by_status.iter().map(status_of)).collect(),
            is_of_catalogue: true,
            reads_parameters: *reads_parameters || is_excepted,
            exempt: check.exempt,
            unchanged: Reads::of(read, Shape::Objects).unchanged(),
            violations: (id.to_owned(), style.expression(&format!("check {id}: docs/objects.md"), lowered)),
        }
    }

    /// A custom check.
    pub fn custom(custom: &'a Custom, profile: &ToolSecurityProfile) -> Self {
        let id = custom.check.id.as_str();
        Self {
            id,
            kinds: custom.check.kinds.clone(),
            is_of_catalogue: false,
            reads_parameters: custom.mentions_params() || excepted_checks(&profile.spec).contains(id),
            exempt: None,
            unchanged: Reads::of(custom.expressions(), Shape::Objects).unchanged(),
            violations: (custom.variable(), custom.violations().to_owned()),
            // In a match condition, `namespaceObject` is always null. A comment may be at the end.
            complies: (!custom.check.expression.contains("namespaceObject"))
                .then(|| format!("{}\n", custom.check.expression)),
        }
    }

    /// CEL of type bool: whether it evaluates a request.
    fn applies(&self) -> String {
        let mut resources = BTreeMap::<_, Vec<String>>::new();
        for kind in &self.kinds {
            let named = kind.resources().into_iter().map(|resource| named(&kind.group, &resource));
            resources.entry(kind.operations().collect::<Vec<_>>()).or_default().extend(named);
        }
        let is_updated = resources.keys().flatten().any(|operation| *operation == ObjectOperation::Update);
        let terms: Vec<_> = resources
            .into_iter()
            .map(|(operations, mut named)| {
                named.sort();
                named.dedup();
                let of_kinds = is_of(&named);
                match operations.as_slice() {
                    [one] => format!("({of_kinds} && request.operation == '{one}')"),
                    _ => of_kinds,
                }
            })
            .collect();
        let mut of_kinds = cel::any(&terms);
        if let Some(exempt) = self.exempt {
            of_kinds = format!("{of_kinds} && !({exempt})");
        }
        if is_updated {
            format!("{of_kinds} && !(request.operation == 'UPDATE' && {})", self.unchanged.join(" && "))
        } else {
            of_kinds
        }
    }
}

fn kind(resource: &ObjectResource) -> ObjectKind {
    let ObjectResource { group, versions, kind: _, resource } = *resource;
    ObjectKind {
        group: group.to_owned(),
        versions: versions.iter().map(|&version| version.to_owned()).collect(),
        resource: resource.to_owned(),
        subresources: Vec::new(),
        operations: Vec::new(),
    }
}

/// Kinds whose metadata a request for the subresource `status` can change: the API server keeps only the spec
/// (`PrepareForUpdate` of the strategies for the status in Kubernetes `pkg/registry`). Of a custom resource, it keeps
/// everything else.
const METADATA_BY_STATUS: [(&str, &str); 3] =
    [("", "persistentvolumeclaims"), ("", "services"), ("networking.k8s.io", "ingresses")];

/// The kinds whose metadata a rule reads, and that a request for the status can change.
fn by_status(rule: &ObjectRule) -> Vec<ObjectResource> {
    let reads = |finding: &&ObjectFinding| Reads::of(texts(finding), Shape::Objects).some_metadata();
    let read: Vec<_> = rule.findings.iter().filter(reads).flat_map(|finding| finding.of).collect();
    let can_change = |(group, resource): (&str, &str)| {
        read.iter().find(|of| (of.group, of.resource) == (group, resource)).map(|of| **of)
    };
    METADATA_BY_STATUS.into_iter().filter_map(can_change).collect()
}

/// The expressions of a finding.
fn texts(finding: &ObjectFinding) -> [&str; 2] {
    [&finding.violated, &finding.says]
}

/// Updates of a kind by the subresource `status`.
fn status_of(resource: &ObjectResource) -> ObjectKind {
    ObjectKind { subresources: vec!["status".to_owned()], operations: vec![ObjectOperation::Update], ..kind(resource) }
}

/// CEL of type bool: whether a request is for one of these resources.
fn is_of(named: &[String]) -> String {
    match named {
        [one] => format!("variables.{RESOURCE} == {}", cel::quote(one)),
        all => format!("variables.{RESOURCE} in {}", cel::list(all)),
    }
}

/// The same for resources of a rule, and the subresource `status` of some kinds.
fn is_of_any(resources: &[ObjectResource], by_status: &[ObjectResource]) -> String {
    let with_status = resources.iter().filter(|one| by_status.contains(one));
    let of_status = with_status.map(|one| named(one.group, &format!("{}/status", one.resource)));
    is_of(&resources.iter().map(|one| named(one.group, one.resource)).chain(of_status).collect::<Vec<_>>())
}

/// CEL of type list(string): the violations of a rule, also by the subresource `status` of some kinds.
fn rule_violations(id: &str, rule: &ObjectRule, by_status: &[ObjectResource]) -> String {
    let of = |ObjectFinding { of, violated, says }: &ObjectFinding| {
        let begin = match of {
            [one] => format!("'[{id}] {}: ", one.kind),
            _ => format!("'[{id}] ' + request.kind.kind + ': "),
        };
        let after = match says.strip_prefix('\'') {
            Some(rest) => format!("{begin}{rest}"),
            None => format!("{begin}' + {says}"),
        };
        format!("({} && ({violated}) ? [{after}] : [])", is_of_any(of, by_status))
    };
    let [limits, findings] =
        [&rule.limits, &rule.findings].map(|list| list.iter().map(of).collect::<Vec<_>>().join(" + "));
    if limits.is_empty() {
        return findings;
    }
    // The lists of one element: the limits are few, and each is evaluated once.
    format!("[{limits}].map(limits, limits.size() > 0 ? limits : {findings})[0]")
}

/// A resource as kubectl writes it.
fn named(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// The variable with the resource of a request, as kubectl writes it: `ingresses.networking.k8s.io`.
const RESOURCE: &str = "resource";

/// The match condition of a policy with these checks and variables: false only for requests without a violation.
///
/// Where a check has no such test, or another check evaluates the same kind (all tests together could exceed the budget
/// that each has in the policy), only requests that the check does not evaluate are left out.
pub(crate) fn match_condition(
    profile: &ToolSecurityProfile,
    checks: &[ObjectCheck<'_>],
    variables: &[Variable],
    style: ExpressionStyle,
) -> Option<MatchCondition> {
    let mut definitions = BTreeMap::new();
    for Variable { name, expression } in variables {
        // Custom checks are not read by others.
        definitions.extend(parse_unexpanded(expression, SYNTAX).ok().map(|parsed| (name.as_str(), parsed.root)));
    }
    let is_alone = |check: &ObjectCheck<'_>| {
        let others = checks.iter().filter(|other| other.id != check.id).flat_map(|other| &other.kinds);
        let resources: Vec<_> = others.map(|kind| (&kind.group, &kind.resource)).collect();
        check.kinds.iter().all(|kind| !resources.contains(&(&kind.group, &kind.resource)))
    };
    let mut terms = vec![format!("!({})", is_probe())];
    if checks.iter().any(|check| check.reads_parameters) {
        terms.push("params != null && params.spec.problem == ''".to_owned());
        let excepted = excepted_checks(&profile.spec);
        // A check that an exception waives is not evaluated.
        if checks.iter().any(|check| excepted.contains(check.id)) {
            terms.push("params.spec.?exceptions.orValue({}).size() == 0".to_owned());
        }
    }
    let inline = |text: &str| {
        let root = parse_unexpanded(text, SYNTAX).ok()?.root;
        inlined(root, &|name| definitions.get(name).cloned())
    };
    for check in checks {
        let skipped = format!("!variables.{}", applies(check.id));
        let complies = check.complies.as_ref().filter(|_| is_alone(check));
        let with_test = complies.map(|complies| format!("({skipped} || ({complies}))"));
        terms.push(with_test.filter(|text| inline(text).is_some()).unwrap_or(skipped));
    }
    let condition = inline(&format!("!(variables.exempt || ({}))", terms.join(" && ")))?;
    let about = "skips requests that cannot violate any check: docs/adr/0033-skip-complying-requests.md";
    Some(MatchCondition { name: MAY_VIOLATE.to_owned(), expression: style.tree(about, &fold(condition))? })
}

/// CEL of type bool: whether the request is in the probe namespace.
fn is_probe() -> String {
    format!("request.namespace == {}", cel::quote(names::PROBE_NAMESPACE))
}

/// The variables, in the order in which they depend on each other.
pub(crate) fn variables(
    profile: &ToolSecurityProfile,
    part: Part,
    checks: &[ObjectCheck<'_>],
    style: ExpressionStyle,
) -> Vec<Variable> {
    let mut all = Variables::new(style);
    let with_subresources = checks.iter().flat_map(|check| &check.kinds).any(|kind| !kind.subresources.is_empty());
    let subresource = if with_subresources {
        "(request.?subResource.orValue('') == '' ? '' : '/' + request.subResource) + "
    } else {
        ""
    };
    all.push(
        RESOURCE,
        "the resource of the request, for example services or ingresses.networking.k8s.io",
        format!(
            "request.resource.resource + {subresource}(request.resource.group == '' ? '' : '.' + request.resource.group)"
        ),
    );
    if checks.iter().any(|check| check.violations.1.contains("variables.object")) {
        // Without a type, or the API server would check its fields against the schemas of all kinds of the policy.
        all.push("object", "", "dyn(object)".to_owned());
    }
    let is_probe = is_probe();
    let exempt = format!(
        "{is_probe} ? object.metadata.?labels[?'{}'].orValue('') != '{}' : {}",
        names::PROFILE_LABEL,
        names::probe_subject(profile_name(profile), profile.metadata.generation, part),
        cel::any(&exempt_users(&profile.spec.exemptions))
    );
    all.push("exempt", "exempt requests: probes of other policies, spec.exemptions", exempt);
    let excepted = excepted_checks(&profile.spec);
    if checks.iter().any(|check| excepted.contains(check.id)) {
        let about =
            "checks that spec.exceptions waives here: docs/adr/0016-compare-exceptions-with-the-creation-time.md";
        all.push("excepted", about, EXCEPTED.to_owned());
    }
    let (mut found, mut reading, mut changing) = (Vec::new(), Vec::new(), Vec::new());
    for check in checks {
        let about = format!("check {} evaluates the request: its kinds, except unchanged updates", check.id);
        let mut applied = check.applies();
        if check.reads_parameters {
            if check.is_of_catalogue {
                let name = format!("changed_{}", check.id);
                all.push(&name, &format!("the same for {}, also without parameters", check.id), applied);
                applied = format!("variables.{name}");
                changing.push(applied.clone());
            }
            // Without parameters, updates are evaluated by the other checks.
            applied = format!("!({UPDATED}) && ({applied})");
        }
        all.push(&applies(check.id), &about, applied);
        if check.reads_parameters {
            reading.push(format!("variables.{}", applies(check.id)));
        }
        let (name, expression) = check.violations.clone();
        found.push(format!("variables.{name}"));
        all.variables.push(Variable { name, expression });
    }
    // A probe shows that the API server has read this policy, its binding and the parameters. No object of some kinds is
    // known that complies, or the API server may not have the kind.
    let [_, violating] = PROBE_NAMES;
    let mut judged = format!(
        "{is_probe} ? (object.metadata.name == '{violating}' ? ['[{PROBE_VIOLATION}] ' + request.kind.kind + ': a probe'] : []) : {}",
        found.join(" + ")
    );
    if !reading.is_empty() {
        judged = format!(
            "({is_probe} || {}) && params.spec.problem != '' ? ['[parameters] namespace: ' + params.spec.problem] : {judged}",
            cel::any(&reading)
        );
    }
    // Its parameters are deleted as well, perhaps before its objects.
    if !changing.is_empty() {
        judged = format!(
            "{UPDATED} && namespaceObject.metadata.?deletionTimestamp.hasValue() && ({}) \
             ? ['[parameters] namespace: is being deleted, so updates must not change fields that a check with parameters evaluates'] : ({judged})",
            cel::any(&changing)
        );
    }
    let about = "violations of all checks; exempt requests are not evaluated";
    all.push(VIOLATIONS, about, format!("variables.exempt ? [] : {judged}"));
    messages(&mut all, profile, "");
    all.variables
}

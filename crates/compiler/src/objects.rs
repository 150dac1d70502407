//! The variables of a policy for objects other than pods and workloads.
//!
//! One policy evaluates the objects of all kinds that the checks of a profile name. Each check has a variable that holds
//! for the requests that it evaluates: those for its kinds, except updates that change neither the spec nor another
//! field that the check reads (ADR 48). Deletion is never matched.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{MatchCondition, Variable};
use palisade_api::{
    ToolSecurityProfile,
    names::{self, Part, Shape},
};
use palisade_cel::parse::parse_unexpanded;
use palisade_checks::{Kinds, ObjectFinding, ObjectRule, SHARES, cel};

use crate::{
    Custom, ExpressionStyle, LoweredObject,
    custom::applies,
    exceptions::excepted_checks,
    expressions::{
        EXCEPTED, EXCEPTED_HERE, UPDATED, VIOLATIONS, Variables, exempt_users, is_probe, messages, unless_probe,
    },
    fast::MAY_VIOLATE,
    fold::fold,
    matching::{EvaluatedResource, is_status_with_metadata},
    metadata::profile_name,
    object_requests::{RESOURCE, by_status, is_of, is_of_any, named, resources_of, texts},
    reads::Reads,
    style::SYNTAX,
    tree::inlined,
};

/// A check in a policy for objects.
pub(crate) struct ObjectCheck<'a> {
    pub id: &'a str,
    /// The requests that it evaluates.
    pub resources: Vec<EvaluatedResource>,
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
    /// How a request is found to comply, without its evaluation.
    complies: Compliance,
}

/// CEL of type bool that holds if an object that a check evaluates complies.
enum Compliance {
    /// There is none.
    Unknown,
    /// It may cost as much as the check.
    Alone(String),
    /// It may cost as much as the check. The second costs one of [`SHARES`] of that, and holds for less objects.
    Shared(String, String),
}

impl<'a> ObjectCheck<'a> {
    /// A check of the catalogue.
    pub fn of_catalogue(lowered: &LoweredObject, profile: &ToolSecurityProfile, style: ExpressionStyle) -> Self {
        let mut resources = resources_of(lowered);
        let LoweredObject { check, rule, reads_parameters } = lowered;
        let id = check.id;
        let is_excepted = excepted_checks(&profile.spec).contains(id);
        let read = rule.all().flat_map(texts).chain(rule.reads.iter().copied());
        let by_status = by_status(rule);
        let mut violations = rule_violations(id, rule, &by_status);
        if is_excepted {
            violations = format!("'{id}' in variables.excepted ? [] : ({violations})");
        }
        let lowered = format!("!variables.{} ? [] : ({violations})", applies(id));
        let clean = |of: &Kinds, violated: &str| format!("(!({}) || !({violated}))", is_of_any(of, &by_status));
        let complies = rule.all().map(|one| clean(&one.of, &one.violated)).collect::<Vec<_>>().join(" && ");
        let short = rule.limits.iter().map(|limit| clean(&limit.exceeded.of, &limit.is_long));
        let shared: Vec<_> = short.chain(rule.findings.iter().map(|one| clean(&one.of, &one.violated))).collect();
        resources.extend(by_status);
        Self {
            id,
            is_of_catalogue: true,
            complies: Compliance::Shared(complies, shared.join(" && ")),
            resources,
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
            resources: custom.check.kinds.iter().flat_map(EvaluatedResource::of).collect(),
            is_of_catalogue: false,
            reads_parameters: custom.mentions_params() || excepted_checks(&profile.spec).contains(id),
            exempt: None,
            unchanged: Reads::of(custom.expressions(), Shape::Objects).unchanged(),
            violations: (custom.variable(), custom.violations().to_owned()),
            // In a match condition, `namespaceObject` is always null. A comment may be at the end.
            complies: if custom.check.expression.contains("namespaceObject") {
                Compliance::Unknown
            } else {
                Compliance::Alone(format!("{}\n", custom.check.expression))
            },
        }
    }

    /// CEL of type bool: whether it evaluates a request.
    fn applies(&self) -> String {
        let mut resources = BTreeMap::<_, Vec<String>>::new();
        for EvaluatedResource { group, resource, operations, versions: _ } in &self.resources {
            resources.entry(operations).or_default().push(named(group, resource));
        }
        let is_updated = self.resources.iter().any(EvaluatedResource::is_updated);
        let terms: Vec<_> = resources
            .into_iter()
            .map(|(operations, mut named)| {
                named.sort();
                named.dedup();
                let of_kinds = is_of(&named);
                match operations.iter().collect::<Vec<_>>().as_slice() {
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

/// [`UPDATED`] for a policy that also evaluates updates of the status.
const UPDATED_WITH_STATUS: &str =
    "params == null && request.operation == 'UPDATE' && request.?subResource.orValue('') in ['', 'status']";

/// CEL of type bool: whether a request without parameters is an update that can remove a finalizer.
fn updated(checks: &[ObjectCheck<'_>]) -> &'static str {
    let mut resources = checks.iter().flat_map(|check| &check.resources);
    let with_status = resources.any(|one| is_status_with_metadata(&one.group, &one.resource));
    if with_status { UPDATED_WITH_STATUS } else { UPDATED }
}

/// The operation of connections, whose objects have no metadata.
const CONNECT: &str = "CONNECT";

impl ObjectCheck<'_> {
    /// CEL of type bool that holds only for objects that comply, at a cost that the match condition of a policy with
    /// these checks can have; `None` if there is none.
    fn test(&self, checks: &[Self]) -> Option<String> {
        let of_resource = |resource: &EvaluatedResource| -> Vec<&Self> {
            let is_same =
                |one: &EvaluatedResource| (&one.group, &one.resource) == (&resource.group, &resource.resource);
            checks.iter().filter(|check| check.resources.iter().any(is_same)).collect()
        };
        let is_alone = |resource: &EvaluatedResource| of_resource(resource).len() == 1;
        let shares = |resource: &EvaluatedResource| {
            let all = of_resource(resource);
            all.len() <= SHARES && all.iter().all(|one| matches!(one.complies, Compliance::Shared(..)))
        };
        let (test, tested): (_, Vec<_>) = match &self.complies {
            Compliance::Unknown => return None,
            Compliance::Shared(_, short) if !self.resources.iter().all(is_alone) => {
                (short, self.resources.iter().filter(|one| is_alone(one) || shares(one)).collect())
            }
            Compliance::Alone(text) | Compliance::Shared(text, _) => {
                (text, self.resources.iter().filter(|one| is_alone(one)).collect())
            }
        };
        if tested.is_empty() || tested.len() == self.resources.len() {
            return (!tested.is_empty()).then(|| test.clone());
        }
        let resources: Vec<_> = tested.iter().map(|one| named(&one.group, &one.resource)).collect();
        Some(format!("{} && ({test})", is_of(&resources)))
    }
}

/// CEL of type list(string): the violations of a rule, also by the subresource `status` of some kinds.
fn rule_violations(id: &str, rule: &ObjectRule, by_status: &[EvaluatedResource]) -> String {
    let of = |ObjectFinding { of, violated, says }: &ObjectFinding| {
        let begin = match of {
            Kinds::OfCheck([one]) => format!("'[{id}] {}: ", one.kind),
            Kinds::OfCheck(_) | Kinds::Named(_) => format!("'[{id}] ' + request.kind.kind + ': "),
        };
        let after = match says.strip_prefix('\'') {
            Some(rest) => format!("{begin}{rest}"),
            None => format!("{begin}' + {says}"),
        };
        format!("({} && ({violated}) ? [{after}] : [])", is_of_any(of, by_status))
    };
    let limits = rule.limits.iter().map(|limit| of(&limit.exceeded)).collect::<Vec<_>>().join(" + ");
    let findings = rule.findings.iter().map(of).collect::<Vec<_>>().join(" + ");
    if limits.is_empty() {
        return findings;
    }
    // The lists of one element: the limits are few, and each is evaluated once.
    format!("[{limits}].map(limits, limits.size() > 0 ? limits : {findings})[0]")
}

/// The match condition of a policy with these checks and variables: false only for requests without a violation.
///
/// Where a check has no such test, only requests that it does not evaluate are left out. All tests have one budget, which
/// is as large as that of each check in the policy. So checks of one kind have tests that share it, which hold for objects
/// with shorter lists. A custom check has no such test: it and other checks of its kind leave out only requests that they
/// do not evaluate.
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
    let mut terms = vec![format!("!({})", is_probe())];
    if checks.iter().any(|check| check.reads_parameters) {
        terms.push("params != null && params.spec.problem == ''".to_owned());
        let excepted = excepted_checks(&profile.spec);
        // A check that an exception waives is not evaluated.
        if checks.iter().any(|check| excepted.contains(check.id)) {
            terms.push("params.spec.?exceptions.orValue({}).size() == 0".to_owned());
            if profile.spec.exception_requests.is_some() {
                terms.push("params.spec.?workloadExceptions.orValue({}).size() == 0".to_owned());
            }
        }
    }
    let inline = |text: &str| {
        let root = parse_unexpanded(text, SYNTAX).ok()?.root;
        inlined(root, &|name| definitions.get(name).cloned())
    };
    for check in checks {
        let skipped = format!("!variables.{}", applies(check.id));
        let with_test = check.test(checks).map(|test| format!("({skipped} || ({test}))"));
        terms.push(with_test.filter(|text| inline(text).is_some()).unwrap_or(skipped));
    }
    let condition = inline(&format!("!(variables.exempt || ({}))", terms.join(" && ")))?;
    let about = "skips requests that cannot violate any check: docs/adr/0033-skip-complying-requests.md";
    Some(MatchCondition { name: MAY_VIOLATE.to_owned(), expression: style.tree(about, &fold(condition))? })
}

/// The variables, in the order in which they depend on each other.
pub(crate) fn variables(
    profile: &ToolSecurityProfile,
    part: Part,
    checks: &[ObjectCheck<'_>],
    style: ExpressionStyle,
) -> Vec<Variable> {
    let mut all = Variables::new(style);
    let resources = || checks.iter().flat_map(|check| &check.resources);
    let with_subresources = resources().any(|one| one.resource.contains('/'));
    let updated = updated(checks);
    let with_connections = resources().any(|one| one.operations.contains(CONNECT));
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
        "{is_probe} ? request.operation == 'UPDATE' || object.{}.?labels[?'{}'].orValue('') != '{}' : {}",
        if with_connections { "?metadata" } else { "metadata" },
        names::PROFILE_LABEL,
        names::probe_subject(profile_name(profile), profile.metadata.generation, part),
        cel::any(&exempt_users(&profile.spec.exemptions))
    );
    all.push("exempt", "exempt requests: probes of other policies, spec.exemptions", exempt);
    let excepted = excepted_checks(&profile.spec);
    if checks.iter().any(|check| excepted.contains(check.id)) {
        // A connection has no time of creation: the controller removes exceptions that have ended from the parameters.
        let listed = "params.spec.?exceptions.orValue({})";
        let until_removed = |of_others: String| {
            if with_connections {
                format!("request.operation == '{CONNECT}' ? {listed}.map(check, check) : {of_others}")
            } else {
                of_others
            }
        };
        if profile.spec.exception_requests.is_none() {
            let about =
                "checks that spec.exceptions waives here: docs/adr/0016-compare-exceptions-with-the-creation-time.md";
            all.push("excepted", about, until_removed(EXCEPTED.to_owned()));
        } else {
            let metadata = if with_connections { "?metadata" } else { "metadata" };
            let ends = format!(
                "[dyn({listed}), dyn(params.spec.?workloadExceptions[?variables.{RESOURCE} + '/' + \
                 object.{metadata}.?name.orValue('')].orValue({{}}))]"
            );
            all.push("exceptions", "the exceptions of the namespace, and of the object", ends);
            let ids: Vec<_> = checks.iter().map(|check| check.id).filter(|id| excepted.contains(id)).collect();
            let about = "checks that exceptions waive for it: docs/adr/0039-use-exception-requests-with-an-approval.md";
            let of_others = format!("{}.filter(check, {EXCEPTED_HERE})", cel::list(&ids));
            all.push("excepted", about, until_removed(of_others));
        }
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
            applied = format!("!({updated}) && ({applied})");
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
    let mut judged = unless_probe(&found.join(" + "));
    if !reading.is_empty() {
        judged = format!(
            "(({is_probe} && request.operation == 'CREATE') || {}) && params.spec.problem != '' ? ['[parameters] namespace: ' + params.spec.problem] : {judged}",
            cel::any(&reading)
        );
    }
    // Its parameters are deleted as well, perhaps before its objects.
    if !changing.is_empty() {
        judged = format!(
            "{updated} && namespaceObject.metadata.?deletionTimestamp.hasValue() && ({}) \
             ? ['[parameters] namespace: is being deleted, so updates must not change fields that a check with parameters evaluates'] : ({judged})",
            cel::any(&changing)
        );
    }
    let about = "violations of all checks; exempt requests are not evaluated";
    all.push(VIOLATIONS, about, format!("variables.exempt ? [] : {judged}"));
    messages(&mut all, profile, "");
    all.variables
}

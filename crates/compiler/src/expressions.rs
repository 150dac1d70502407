//! The variables of a policy: from the rules of the checks to the list of violations and its message.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::Variable;
use palisade_api::{
    Exemptions, ToolSecurityProfile,
    names::{self, Part, Shape},
};
use palisade_checks::{
    Finding, FindingScope,
    bounds::{self, Bound, Names},
    cel,
};

use crate::{
    Custom, ExpressionStyle, Lowered,
    exceptions::{ExemptionScope, excepted_checks, how_to_ask, unless_lifted},
    metadata::{PROBE_NAMES, PROBE_VIOLATION, profile_name},
    updates::{PodUpdates, Unchanged, template},
    workloads,
};

/// The variable with the list of violations: texts, each with the id of its check in brackets before anything else.
pub const VIOLATIONS: &str = "violations";

/// The id of the check and the message, from an element of the variable [`VIOLATIONS`]. The id is before any text of
/// the request.
pub fn violation(element: &str) -> Option<(&str, &str)> {
    element.strip_prefix('[')?.split_once("] ")
}

/// The variable with the end of a message: how to ask for an exception.
pub(crate) const HOW_TO_ASK: &str = "howToAsk";

/// The sources of a policy's expressions.
pub(crate) struct PolicyInputs<'a> {
    pub rules: &'a [Lowered],
    /// The rules of all checks of the profile. A custom check may read the variables of checks that another policy
    /// makes.
    pub declared: &'a [Lowered],
    pub customs: &'a [Custom],
    /// The custom checks as the profile has them: what they read decides which updates are exempt.
    pub as_written: &'a [Custom],
    pub updates: PodUpdates,
    pub bounds: &'a [&'static Bound],
    /// Variables about the mutation of the pod that a template becomes: name, meaning, CEL.
    pub mutated: &'a [(String, String, String)],
    /// Whether it denies the violating probe by its name, because no check is known to deny it.
    pub denies_probe: bool,
    pub style: ExpressionStyle,
}

/// The variables about lists and strings with a limit.
fn limits(all: &mut Variables, bounds: &[&'static Bound]) {
    if bounds.is_empty() {
        return;
    }
    all.push(
        "withinBounds",
        "all lists and strings are within their limits: docs/checks/bounds.md",
        bounds::hold(bounds, &NAMES),
    );
    all.push("overBounds", "lists and strings above their limits: docs/checks/bounds.md", bounds::says(bounds, &NAMES));
}

/// The variables of a policy, in the order in which they depend on each other.
pub(crate) fn variables(
    profile: &ToolSecurityProfile,
    part: Part,
    shape: Shape,
    inputs: &PolicyInputs<'_>,
) -> Vec<Variable> {
    let &PolicyInputs { rules, declared, customs, as_written, updates, bounds, mutated, denies_probe, style } = inputs;
    let name = profile.metadata.name.as_deref().unwrap_or_default();
    // No exception is for a check of a policy without parameters.
    let excepted = if updates == PodUpdates::AsCreation { BTreeSet::default() } else { excepted_checks(&profile.spec) };
    let unless_excepted = |id: &str, findings: String| {
        if excepted.contains(id) { format!("'{id}' in variables.excepted ? [] : ({findings})") } else { findings }
    };
    // Without parameters, the policy skips the checks that differ by namespace.
    let without_parameters = shape == Shape::Pods && updates == PodUpdates::WithoutParameters;
    let unless_updated = |of_namespace: bool, findings: String| {
        if of_namespace && without_parameters { format!("variables.updated ? [] : ({findings})") } else { findings }
    };
    let own: Vec<_> = customs.iter().map(|custom| (custom.variable(), custom)).collect();
    let unchanged = Unchanged::new(profile, rules, as_written, shape);
    let mut all = subject(shape, style);
    all.extend(unchanged.variables());
    all.push(
        "exempt",
        "exempt requests: unchanged updates, probes of other policies, spec.exemptions, mirror pods",
        exempt(
            &unchanged.exempt(),
            &names::probe_subject(name, profile.metadata.generation, part),
            &profile.spec.exemptions,
            shape,
        ),
    );
    if without_parameters {
        all.push(
            "updated",
            "updates are evaluated without parameters: docs/adr/0022-use-a-separate-binding-for-updates.md",
            UPDATED.to_owned(),
        );
    }
    if !excepted.is_empty() {
        let about =
            "checks that spec.exceptions waives here: docs/adr/0016-compare-exceptions-with-the-creation-time.md";
        if profile.spec.exception_requests.is_none() {
            all.push("excepted", about, EXCEPTED.to_owned());
        } else {
            all.extend(workloads::variables(shape));
            let ids: Vec<_> = excepted.iter().map(|id| (*id).to_owned()).collect();
            let about = "checks that exceptions waive for it: docs/adr/0039-use-exception-requests-with-an-approval.md";
            all.push("excepted", about, format!("{}.filter(check, {EXCEPTED_HERE})", cel::list(&ids)));
        }
    }
    all.extend(mutated.iter().cloned());
    limits(&mut all, bounds);
    for Lowered { check, rule, reads_parameters } in if customs.is_empty() { rules } else { declared } {
        let id = check.id;
        for (name, lowered) in &rule.variables {
            all.push(name, &format!("part of check {id}: docs/checks/{id}.md"), lowered.clone());
        }
        let findings: Vec<_> = rule
            .findings
            .iter()
            .map(|finding| violations(id, finding, ExemptionScope::of(&profile.spec, id)))
            .collect();
        let findings = unless_excepted(id, findings.join(" + "));
        let findings = unless_updated(*reads_parameters || excepted.contains(id), findings);
        all.push(id, &format!("check {id}: docs/checks/{id}.md"), findings);
    }
    all.variables.extend(
        own.iter().map(|(name, custom)| Variable { name: name.clone(), expression: custom.violations().to_owned() }),
    );
    let found: Vec<_> = rules.iter().map(|one| format!("variables.{}", one.check.id)).collect();
    let of_customs: Vec<_> = own.iter().map(|(name, _)| format!("variables.{name}")).collect();
    let problem = if without_parameters {
        "!variables.updated && params.spec.problem != ''"
    } else {
        "params.spec.problem != ''"
    };
    let judged = unchanged.judged(&found, &of_customs, |found| {
        let found = if denies_probe { unless_probe(&found) } else { found };
        match updates {
            PodUpdates::AsCreation => found,
            PodUpdates::WithoutParameters | PodUpdates::WithParameters => {
                format!("{problem} ? ['[parameters] namespace: ' + params.spec.problem] : {found}")
            }
        }
    });
    // The policy knows the length of a list before it loops over it.
    let over = if bounds.is_empty() { "" } else { "!variables.withinBounds ? variables.overBounds : " };
    let about = "violations of all checks; exempt requests and pods above a limit are not evaluated";
    all.push(VIOLATIONS, about, format!("variables.exempt ? [] : {over}{judged}"));
    messages(&mut all, profile, if shape == Shape::Workloads { " in the pod template" } else { "" });
    all.variables
}

/// CEL of type list(string): the violation of a probe with the name of those that violate, and `judged` for other objects.
pub(crate) fn unless_probe(judged: &str) -> String {
    let [_, violating] = PROBE_NAMES;
    format!(
        "{} && request.operation == 'CREATE' ? (object.metadata.name == '{violating}' \
         ? ['[{PROBE_VIOLATION}] ' + request.kind.kind + ': a probe'] : []) : {judged}",
        is_probe()
    )
}

/// CEL of type bool: whether the request is in the probe namespace.
pub(crate) fn is_probe() -> String {
    format!("request.namespace == {}", cel::quote(names::PROBE_NAMESPACE))
}

/// The variables about the message of a denial. `whose` follows the name of the profile.
pub(crate) fn messages(all: &mut Variables, profile: &ToolSecurityProfile, whose: &str) {
    let name = profile_name(profile);
    all.push(
        "message",
        "the message of a denial",
        format!(
            "(string(variables.violations.size()) + (variables.violations.size() == 1 ? ' violation' : ' violations') \
             + ' of ToolSecurityProfile {name}{whose}: ' + variables.violations.join('; ')).replace('\\n', ' ')"
        ),
    );
    if let Some((asked, sentence)) = how_to_ask(profile, "variables.violations") {
        let lowered = format!("{asked} ? {} : ''", cel::quote(&format!(". {sentence}")));
        all.push(HOW_TO_ASK, "how to request an exception: spec.exceptionRequests", lowered);
    }
}

/// The variables of a policy, while they are collected.
pub(crate) struct Variables {
    style: ExpressionStyle,
    pub variables: Vec<Variable>,
}

impl Variables {
    pub fn new(style: ExpressionStyle) -> Self {
        Self { style, variables: Vec::new() }
    }

    /// Pushes a variable: name, meaning, CEL.
    pub fn push(&mut self, name: &str, about: &str, lowered: String) {
        let expression = self.style.expression(about, lowered);
        self.variables.push(Variable { name: name.to_owned(), expression });
    }

    /// Pushes each: name, meaning, CEL.
    fn extend<Text: AsRef<str>>(&mut self, all: impl IntoIterator<Item = (Text, Text, String)>) {
        for (name, about, lowered) in all {
            self.push(name.as_ref(), about.as_ref(), lowered);
        }
    }
}

/// How the bounds name the parts of the pod.
const NAMES: Names<'_> = Names {
    spec: "variables.spec",
    containers: &["variables.containers"],
    volumes: "variables.volumes",
    annotations: "variables.annotations",
};

/// The pod to evaluate, under the names that the checks use. The names say enough.
fn subject(shape: Shape, style: ExpressionStyle) -> Variables {
    let mut all = Variables::new(style);
    let annotations = match shape {
        Shape::Pods => {
            all.push("spec", "", "object.spec".to_owned());
            "object.metadata.?annotations.orValue({})"
        }
        Shape::Workloads | Shape::Objects => {
            all.push("template", "", template("object"));
            // Only a ReplicationController may have none.
            all.push("spec", "", "variables.template.?spec.orValue({'containers': []})".to_owned());
            "variables.template.?metadata.?annotations.orValue({})"
        }
    };
    let containers = "variables.spec.containers + variables.spec.?initContainers.orValue([]) \
                      + variables.spec.?ephemeralContainers.orValue([])";
    for (name, lowered) in [
        ("podSecurityContext", "variables.spec.?securityContext.orValue({})"),
        ("containers", containers),
        ("volumes", "variables.spec.?volumes.orValue([])"),
        ("annotations", annotations),
    ] {
        all.push(name, "", lowered.to_owned());
    }
    all
}

/// CEL of type bool: whether the profile does not apply to a request.
///
/// `unchanged` (CEL of type bool) holds for an update that changes nothing that a check reads. So a running pod may be
/// labelled and released from finalizers whatever it violates, and a workload may be scaled, unless a custom check
/// reads that; a new ephemeral container changes the spec. Several profiles with the same selector may apply to the
/// probe namespace. There a pod names one generation of one profile (`asked_about`), only that one evaluates it, and no
/// request is exempt.
fn exempt(unchanged: &str, asked_about: &str, exemptions: &Exemptions, shape: Shape) -> String {
    let mut terms = exempt_terms(exemptions, "variables.spec");
    if shape == Shape::Pods {
        terms.push(mirrored("variables.annotations"));
    }
    format!(
        "{unchanged} || (request.namespace == '{}' \
         ? object.metadata.?labels[?'{}'].orValue('') != '{asked_about}' : {})",
        names::PROBE_NAMESPACE,
        names::PROFILE_LABEL,
        cel::any(&terms),
    )
}

/// Terms of CEL of type bool, one of which holds if the user, or the runtime class of a pod with this spec, is exempt.
pub(crate) fn exempt_terms(exemptions: &Exemptions, spec: &str) -> Vec<String> {
    let mut terms = exempt_users(exemptions);
    let classes = &exemptions.runtime_classes;
    if !classes.is_empty() {
        terms.push(format!("{spec}.?runtimeClassName.orValue('') in {}", cel::list(classes)));
    }
    terms
}

/// Terms of CEL of type bool, one of which holds if the user is exempt.
pub(crate) fn exempt_users(exemptions: &Exemptions) -> Vec<String> {
    let Exemptions { users, groups, runtime_classes: _ } = exemptions;
    let mut terms = Vec::new();
    if !users.is_empty() {
        terms.push(format!("request.userInfo.username in {}", cel::list(users)));
    }
    if !groups.is_empty() {
        terms.push(format!("request.userInfo.?groups.orValue([]).exists(g, g in {})", cel::list(groups)));
    }
    terms
}

/// CEL of type bool: whether a node creates the pod with these annotations to show a static pod.
pub(crate) fn mirrored(annotations: &str) -> String {
    // Both are demanded: a tenant can write the annotation, and another pod that a node creates is judged.
    format!(
        "(request.userInfo.username.startsWith('system:node:') \
         && 'system:nodes' in request.userInfo.?groups.orValue([]) \
         && 'kubernetes.io/config.mirror' in {annotations})"
    )
}

/// CEL of type bool: whether the request updates an object, not a subresource, without parameters. It does not look at the
/// parameters alone: nothing else is evaluated without them, whatever the bindings say.
pub(crate) const UPDATED: &str =
    "params == null && request.operation == 'UPDATE' && request.?subResource.orValue('') == ''";

/// CEL of type list(string): the checks that exceptions lift in the namespace. The API server sets the time of creation
/// before policies run, so an exception ends by its clock, whether or not anybody removes it.
pub(crate) const EXCEPTED: &str = "params.spec.?exceptions.orValue({}).filter(check, \
                        timestamp(object.metadata.creationTimestamp) < timestamp(params.spec.exceptions[check]))";

/// CEL of type bool: the same for one check, where exceptions can be for workloads.
pub(crate) const EXCEPTED_HERE: &str = "variables.exceptions.exists(ends, check in ends && \
                             timestamp(object.metadata.creationTimestamp) < timestamp(ends[check]))";

/// CEL of type list(string): the violations of a finding.
fn violations(id: &str, finding: &Finding, lift: ExemptionScope) -> String {
    let Finding { scope, violated, says, complies: _ } = finding;
    // Most texts begin with a literal. The prefix becomes part of it.
    let after = |prefix: &str| match says.strip_prefix('\'') {
        Some(rest) => format!("{prefix}{rest}"),
        None => format!("{prefix}' + {says}"),
    };
    match scope {
        FindingScope::Pod => format!("({violated} ? [{}] : [])", after(&format!("'[{id}] pod: "))),
        FindingScope::Containers => {
            let violated = match lift {
                ExemptionScope::Containers => format!("({violated}){}", unless_lifted(id, "c")),
                ExemptionScope::Whole | ExemptionScope::Never => violated.clone(),
            };
            format!("variables.containers.map(c, {violated}, '[{id}] container \"' + c.name + {})", after("'\": "))
        }
        FindingScope::Volumes => of_volumes("volumes", id, violated, &after("'\": ")),
        FindingScope::List(list) => of_volumes(list, id, violated, &after("'\": ")),
    }
}

fn of_volumes(list: &str, id: &str, violated: &str, says: &str) -> String {
    format!("variables.{list}.map(v, {violated}, '[{id}] volume \"' + v.name + {says})")
}

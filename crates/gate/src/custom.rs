//! Custom checks: each is compiled separately first, so that messages name its field in the profile.

use palisade_api::{CustomTarget, Diagnostic, Location, names::Shape};
use palisade_cel::{
    Admission, Environment, Issue, Minor, Mode, ResultType,
    eval::{Activation, PER_CALL_LIMIT, Program},
    types::Type,
    value::Value,
};
use palisade_compiler::{Compiled, Custom};
use palisade_kube_json::{field_path::Segment, text::truncated};
use serde_json::{Value as Json, json};

use crate::{
    objects,
    place::part_of,
    validator::{diagnostic, selected},
};

/// The most of the spec of a pod in a message, in characters.
pub(crate) const MAX_SPEC: usize = 300;

/// The help for an expression that fails on a pod without a field.
const OPTIONAL: &str = "not every pod has every field: read an optional field with .? and orValue, for example \
                        container.?securityContext.?privileged.orValue(false)";
/// The same where the expression reads the namespace.
const OPTIONAL_IN_NAMESPACE: &str = "a namespace may have no labels except those of namespaceSelector, and no \
                                     annotations: read them with [?] and orValue, for example \
                                     namespaceObject.metadata.?annotations[?'tier'].orValue('')";

/// The errors in the expressions of custom checks: first those that an API server would reject, then those that it
/// would warn about (`typed` has them), then the failures on `pods`.
pub(crate) fn diagnose(
    compiled: &Compiled,
    oldest: Minor,
    pods: &[Json],
    typed: impl Fn() -> Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    if compiled.customs.is_empty() {
        return Vec::new();
    }
    let params = compiled.probes.params.as_ref().map(|spec| json!({"spec": spec}));
    let admission =
        Admission { params: params.is_some().then_some(Type::Dyn), authorizer: false, ..Admission::default() };
    let mut environment = Environment::kubernetes(oldest, Mode::New).with_admission(&admission);
    let of_objects = environment.clone();
    // Those before the first custom check. Each policy for pods with custom checks offers the same.
    let is_own = |name: &str| compiled.customs.iter().any(|custom| custom.variable() == name);
    let offered = compiled.bundle.judging(Shape::Pods).map(|(_, pair)| &pair.offered[..]);
    let offered = offered.into_iter().find(|offered| !offered.is_empty()).unwrap_or_default();
    let offered = offered.iter().take_while(|variable| !is_own(&variable.name));
    let mut variables = Vec::new();
    for variable in offered {
        // If it does not compile, compiling the policy reports it.
        let Ok(program) = environment.compile(&variable.expression, ResultType::Any) else { return Vec::new() };
        environment = environment.compose(&variable.name, Some(program.output_type()));
        variables.push((variable.name.as_str(), program));
    }
    let namespace = selected("tenant", &compiled.bundle.pods.policy);
    let scope = Scope { environment, of_objects, variables, params, namespace };
    let (mut checks, mut diagnostics) = (Vec::new(), Vec::new());
    for custom in &compiled.customs {
        match scope.compile(custom) {
            Ok((complies, message)) => checks.push((custom, complies, message)),
            Err(found) => diagnostics.extend(found),
        }
    }
    if diagnostics.is_empty() {
        diagnostics =
            compiled.customs.iter().flat_map(|custom| objects::type_errors(compiled, custom, oldest)).collect();
    }
    if diagnostics.is_empty() {
        diagnostics = typed();
    }
    if diagnostics.is_empty() {
        let fails = |(custom, complies, message): &(&Custom, Program, Option<Program>)| {
            pods.iter().find_map(|pod| scope.fails(custom, complies, message.as_ref(), pod))
        };
        let of_pods = checks.iter().filter(|(custom, ..)| custom.check.target != CustomTarget::Object);
        diagnostics.extend(of_pods.filter_map(fails));
    }
    diagnostics
}

/// The names that a custom check can use in the policy.
struct Scope<'a> {
    environment: Environment,
    /// The environment of checks of other objects, without variables of the policy.
    of_objects: Environment,
    variables: Vec<(&'a str, Program)>,
    params: Option<Json>,
    /// `namespaceObject`.
    namespace: Json,
}

impl Scope<'_> {
    /// The expression and the message.
    fn compile(&self, custom: &Custom) -> Result<(Program, Option<Program>), Vec<Diagnostic>> {
        let check = &custom.check;
        let environment = match (check.target, check.target.item()) {
            (CustomTarget::Object, _) => self.of_objects.clone(),
            (_, Some(item)) => self.environment.clone().declare(item, Type::Dyn),
            (_, None) => self.environment.clone(),
        };
        let mut diagnostics = Vec::new();
        let mut compile = |field: &str, source: &str, result| {
            let at = custom.path.child(field);
            let program = environment.compile(source, result);
            let found = |issue: &Issue| diagnostic(at.clone().into(), issue);
            program.map_err(|issues| diagnostics.extend(issues.iter().map(found))).ok()
        };
        let complies = compile("expression", &check.expression, ResultType::Bool);
        let message =
            check.message_expression.as_ref().map(|source| compile("messageExpression", source, ResultType::String));
        match (complies, message.map_or(Some(None), |message| message.map(Some))) {
            (Some(complies), Some(message)) => Ok((complies, message)),
            _ => Err(diagnostics),
        }
    }

    /// The error of the check on a pod, if there is one.
    fn fails(&self, custom: &Custom, complies: &Program, message: Option<&Program>, pod: &Json) -> Option<Diagnostic> {
        let request = json!({
            "namespace": "tenant", "kind": {"kind": "Pod"}, "operation": "CREATE",
            "userInfo": {"username": "tenant", "groups": ["system:authenticated"]},
        });
        let activation = || {
            let params = self.params.as_ref().map_or(Value::Null, Value::from_json);
            let base = Activation::new()
                .bind("object", Value::from_json(pod))
                .bind("oldObject", Value::from_json(&Json::Null))
                .bind("request", Value::from_json(&request))
                .bind("params", params)
                .bind("namespaceObject", Value::from_json(&self.namespace))
                .with_variables();
            let each = self.variables.iter();
            each.fold(base, |activation, (name, program)| activation.variable(*name, program, PER_CALL_LIMIT))
        };
        let fields: &[&str] = match custom.check.target {
            CustomTarget::Pod | CustomTarget::Object => &[],
            CustomTarget::Containers => &["containers", "initContainers", "ephemeralContainers"],
            CustomTarget::Volumes => &["volumes"],
        };
        let items = fields.iter().filter_map(|field| pod["spec"][field].as_array()).flatten();
        let activations: Vec<_> = match custom.check.target.item() {
            None => vec![activation()],
            Some(name) => items.map(|item| activation().bind(name, Value::from_json(item))).collect(),
        };
        activations.iter().find_map(|activation| {
            let (field, error) = match complies.evaluate(activation, PER_CALL_LIMIT).result {
                Ok(value) if value.as_bool() == Some(true) => return None,
                Ok(_) => ("messageExpression", message?.evaluate(activation, PER_CALL_LIMIT).result.err()?),
                Err(error) => ("expression", error),
            };
            let spec = pod["spec"].to_string();
            let spec = truncated(&spec, MAX_SPEC);
            let message = format!("evaluation failed: {error}, on a pod with the spec {spec}");
            let source = if field == "expression" {
                Some(&custom.check.expression)
            } else {
                custom.check.message_expression.as_ref()
            };
            let of_namespace = source.is_some_and(|source| source.contains("namespaceObject"));
            let help = if of_namespace { OPTIONAL_IN_NAMESPACE } else { OPTIONAL };
            Some(Diagnostic::new(custom.path.child(field), message).help(help))
        })
    }
}

/// The same diagnostic, with the location in the custom check instead of the location in its variable.
pub(crate) fn relocate(compiled: &Compiled, diagnostic: &mut Diagnostic) {
    let Location { path, position, .. } = &diagnostic.location;
    let (Some(part), Some([Segment::Index(index), Segment::Field(field)])) =
        (part_of(&diagnostic.location), path.after("variables"))
    else {
        return;
    };
    let spec = compiled.bundle.part(part).and_then(|pair| pair.policy.spec.as_ref());
    let variable = spec
        .and_then(|spec| spec.variables.as_ref()?.get(*index))
        .and_then(|variable| compiled.customs.iter().find(|custom| custom.variable() == variable.name));
    if let Some(custom) = variable.filter(|_| field == "expression") {
        diagnostic.location = custom.relocate(*position);
        if part.shape() == Some(Shape::Workloads) {
            let help = "workloads are also evaluated: variables.spec is the spec of a pod or of a pod template";
            diagnostic.help = Some(help.to_owned());
        }
    }
}

//! # runAsNonRoot
//!
//! With `runAsNonRoot: true`, the kubelet does not start a container that would run as root. The pod or each container
//! must set it, and no container may set it to false.
//!
//! ## If your pod was denied
//!
//! Set `runAsNonRoot: true` in the pod's `securityContext`, and remove it from containers. The image must then specify
//! its user as a number (`USER 1000`), or the pod must set `runAsUser`. Otherwise the kubelet cannot tell that the user
//! is not root, and the container does not start.

use serde_json::json;

use crate::settings::mutation::AdditionalDefault;
use crate::shared::defaulted::defaulted_when;
use crate::shared::exempt::{is_relaxed, unless_user_namespace};
use crate::{
    Check, Condition, Constant, DefaultValue, Field, FieldDefault, Finding, FindingScope, Flag, Level, Pss, Resolve,
    Rule, Subject, pod,
};

const OF_POD: &str = "variables.podSecurityContext.?runAsNonRoot";
const OF_CONTAINER: &str = "c.?securityContext.?runAsNonRoot";

/// The check.
pub static CHECK: Check = Check {
    id: "runAsNonRoot",
    title: "Running as non-root",
    settings: &["users.requireRunAsNonRoot", "users.relaxForUserNamespaces"],
    psp: Some("runAsUser (MustRunAsNonRoot)"),
    pss: &[Pss { level: Level::Restricted, id: "runAsNonRoot", since: 0 }],
    fields: &[Field::Pod("securityContext.runAsNonRoot"), Field::Container("securityContext.runAsNonRoot")],
    fixtures: include_str!("run_as_non_root.yaml"),
    compile: |settings, cx| {
        let required = settings.users.require_run_as_non_root.as_ref()?;
        let path = "spec.users.requireRunAsNonRoot";
        let mut unless = |violated: String| {
            let relax = settings.users.relax_for_user_namespaces.as_ref();
            unless_user_namespace(cx, "spec.users.relaxForUserNamespaces", relax, &violated)
        };
        let of_pod = unless(format!("!{OF_POD}.orValue(true)"));
        let of_container = unless(format!("!{OF_CONTAINER}.or({OF_POD}).orValue(false)"));
        let of_pod = cx.when(path, required, &of_pod)?;
        let of_container = cx.when(path, required, &of_container)?;
        Some(Rule {
            findings: vec![
                Finding::new(
                    FindingScope::Pod,
                    of_pod,
                    "'securityContext.runAsNonRoot is false, must be true or unset'",
                ),
                Finding::new(
                    FindingScope::Containers,
                    of_container,
                    format!(
                        "'securityContext.runAsNonRoot is ' \
                         + string({OF_CONTAINER}.or({OF_POD}).orValue('unset here and in the pod')) + ', must be true'"
                    ),
                ),
            ],
            ..Rule::default()
        })
    },
    defaults: |settings, _| {
        let demanded = settings.users.require_run_as_non_root.as_ref();
        let Some(mut when) = defaulted_when(settings, AdditionalDefault::RunAsNonRoot, demanded, true) else {
            return vec![];
        };
        // Not where root is set, because the kubelet would not start such a container.
        when.push(Condition::PodIsNot(&["securityContext", "runAsUser"], Constant::Integer(0)));
        when.push(Condition::NoContainerIs(&["securityContext", "runAsUser"], Constant::Integer(0)));
        // Nor where root is not a user of the node and may be needed.
        let in_user_namespace = Condition::PodIsNot(&["hostUsers"], Constant::Flag(false));
        match settings.users.relax_for_user_namespaces.as_ref() {
            None | Some(Flag::Constant(false)) => {}
            Some(Flag::Constant(true)) => when.push(in_user_namespace),
            Some(relax) => when.push(Condition::Any(vec![Condition::Setting(relax.clone(), false), in_user_namespace])),
        }
        let path = &["securityContext", "runAsNonRoot"];
        vec![FieldDefault::new(Subject::PodOrContainer, path, DefaultValue::Flag(true), when)]
    },
    comply: |settings, values, pod| {
        if settings.users.require_run_as_non_root.as_ref().is_some_and(|required| required.resolve(values)) {
            pod::set(pod, &["securityContext", "runAsNonRoot"], json!(true));
        }
    },
    violate: |settings, values, pod| {
        let required = settings.users.require_run_as_non_root.as_ref().is_some_and(|required| required.resolve(values))
            && !is_relaxed(settings.users.relax_for_user_namespaces.as_ref(), values, pod);
        if required {
            pod::set_container(pod, &["securityContext", "runAsNonRoot"], json!(false));
        }
        required
    },
};

//! The object of a request, as exceptions name it: a pod or workload, its controller, and the controller of that.
//!
//! Names and references come from the request, so a user with permission to create pods can choose them. An exception
//! for one workload protects against accidental use by another one, not against a user who forges the name
//! (SECURITY.md, limits).

use palisade_api::names::Shape;

use crate::exemptions::{CONTROLLER_MANAGER, KUBE_SYSTEM};

/// The most owners that are read: Kubernetes gives an object one. An object with more owners belongs to no workload.
const OWNERS: usize = 16;

/// The variables of a policy of a profile for which exceptions can be asked, in order: name, what it is, CEL.
///
/// `exceptions` is a list of maps from checks to ends: those of the namespace, and those of each workload that the
/// object may belong to.
pub(crate) fn variables(shape: Shape) -> Vec<(&'static str, &'static str, String)> {
    let kind = match shape {
        Shape::Pods => "'Pod'",
        Shape::Workloads | Shape::Objects => "request.kind.kind",
    };
    let mut workloads = vec![
        format!("[{kind} + '/' + object.metadata.name]"),
        "variables.controllers.map(o, o.kind + '/' + o.name)".to_owned(),
    ];
    if shape == Shape::Pods {
        // The Deployment of a ReplicaSet, and the CronJob of a Job, from the names that their controllers give: NAME-HASH
        // (`getNewReplicaSet` in Kubernetes `pkg/controller/deployment/sync.go`) and NAME-MINUTES (`getJobName` in
        // `pkg/controller/cronjob/utils.go`), where minutes since 1970 have eight digits until 2160.
        workloads.push(
            "variables.controllers.map(o, o.kind == 'ReplicaSet' \
             && object.metadata.?labels[?'pod-template-hash'].orValue('') != '' \
             && o.name.endsWith('-' + object.metadata.labels['pod-template-hash']), \
             'Deployment/' + o.name.substring(0, \
             o.name.size() - object.metadata.labels['pod-template-hash'].size() - 1))"
                .to_owned(),
        );
        workloads.push(
            "variables.controllers.map(o, o.kind == 'Job' && o.name.matches('^.+-[0-9]{8}$'), \
             'CronJob/' + o.name.substring(0, o.name.size() - 9))"
                .to_owned(),
        );
    }
    let owners = "object.metadata.?ownerReferences.orValue([])";
    vec![
        (
            "controllers",
            "the built-in workload that controls it",
            format!(
                "{owners}.size() > {OWNERS} ? [] : {owners}.filter(o, o.?controller.orValue(false) \
                 && o.apiVersion in ['v1', 'apps/v1', 'batch/v1'])"
            ),
        ),
        ("workloads", "the workloads that it may belong to, as exceptions name them", workloads.join(" + ")),
        (
            "exceptions",
            "the exceptions of the namespace, and of the workloads that it may belong to",
            "[params.spec.?exceptions.orValue({})] \
             + variables.workloads.map(w, params.spec.?workloadExceptions[?w].orValue({}))"
                .to_owned(),
        ),
        (
            "liftedContainers",
            "the exceptions for some containers of the workloads that it may belong to",
            "params.spec.?containerExceptions.orValue([]).filter(e, e.workload in [''] + variables.workloads \
             && timestamp(object.metadata.creationTimestamp) < timestamp(e.expires))"
                .to_owned(),
        ),
    ]
}

/// CEL of type bool: whether an update keeps the fields outside the spec from which exceptions learn an object's
/// workload.
///
/// Kubernetes' own controllers may change that: they adopt objects, and release them, also those of a workload that is
/// deleted and whose finalizer `orphan` would stay otherwise.
pub(crate) fn unchanged(shape: Shape) -> String {
    let same = |path: &str| format!("object.metadata.{path} == oldObject.metadata.{path}");
    let mut terms = vec![same("?ownerReferences")];
    if shape == Shape::Pods {
        terms.push(same("?labels[?'pod-template-hash']"));
    }
    format!(
        "(({}) || request.userInfo.username.startsWith('{KUBE_SYSTEM}') \
         || request.userInfo.username == '{CONTROLLER_MANAGER}')",
        terms.join(" && ")
    )
}

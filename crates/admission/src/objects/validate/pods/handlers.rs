//! Probes and lifecycle of containers (`validateProbe`, `validateLifecycle` and `validateHandler` in
//! `pkg/apis/core/validation/validation.go`).

use super::{
    super::{super::gates::Gate, formats, node::Node},
    Pod,
};
use crate::validation::Checking;

const SIGNALS_OF_LINUX: &[&str] = &[
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGRTMAX",
    "SIGRTMAX-1",
    "SIGRTMAX-10",
    "SIGRTMAX-11",
    "SIGRTMAX-12",
    "SIGRTMAX-13",
    "SIGRTMAX-14",
    "SIGRTMAX-2",
    "SIGRTMAX-3",
    "SIGRTMAX-4",
    "SIGRTMAX-5",
    "SIGRTMAX-6",
    "SIGRTMAX-7",
    "SIGRTMAX-8",
    "SIGRTMAX-9",
    "SIGRTMIN",
    "SIGRTMIN+1",
    "SIGRTMIN+10",
    "SIGRTMIN+11",
    "SIGRTMIN+12",
    "SIGRTMIN+13",
    "SIGRTMIN+14",
    "SIGRTMIN+15",
    "SIGRTMIN+2",
    "SIGRTMIN+3",
    "SIGRTMIN+4",
    "SIGRTMIN+5",
    "SIGRTMIN+6",
    "SIGRTMIN+7",
    "SIGRTMIN+8",
    "SIGRTMIN+9",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
];

/// Lifecycle and probes of a container that runs as long as its pod.
pub(super) fn of_container(checking: &mut Checking<'_>, container: &Node<'_>, pod: &Pod<'_>) {
    if let Some(lifecycle) = container.part("lifecycle") {
        for key in ["postStart", "preStop"] {
            if let Some(handler) = lifecycle.part(key) {
                self::handler(checking, &handler, pod);
            }
        }
        if let Some(signal) = lifecycle.part("stopSignal") {
            stop_signal(checking, &signal, pod);
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.part(key) else { continue };
        self::probe(checking, &probe, pod);
        if key == "readinessProbe" {
            if let Some(period) = probe.part("terminationGracePeriodSeconds") {
                checking.wrong(&period, "must not be set for readinessProbes");
            }
        } else if probe.int("successThreshold").unwrap_or(0) != 1 {
            let threshold = probe.int("successThreshold").unwrap_or(0);
            checking.invalid_value(probe.field("successThreshold"), &threshold.into(), "must be 1");
        }
    }
}

fn stop_signal(checking: &mut Checking<'_>, signal: &Node<'_>, pod: &Pod<'_>) {
    match pod.os() {
        None => checking.forbidden(&signal.path, "may not be set for containers with empty `spec.os.name`"),
        Some("windows") => checking.one_of(signal, &["SIGKILL", "SIGTERM"]),
        Some("linux") => checking.one_of(signal, SIGNALS_OF_LINUX),
        Some(_) => {}
    }
}

fn probe(checking: &mut Checking<'_>, probe: &Node<'_>, pod: &Pod<'_>) {
    handler(checking, probe, pod);
    for key in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        checking.not_negative(probe, key);
    }
    if probe.int("terminationGracePeriodSeconds").is_some_and(|period| period <= 0) {
        checking.wrong(&probe.get("terminationGracePeriodSeconds"), "must be greater than 0");
    }
}

fn handler(checking: &mut Checking<'_>, of: &Node<'_>, pod: &Pod<'_>) {
    let mut found = false;
    for key in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(action) = of.part(key) else { continue };
        if found {
            checking.forbidden(&action.path, "may not specify more than 1 handler type");
            continue;
        }
        found = true;
        match key {
            "exec" if action.elements("command").is_empty() => checking.required(action.field("command"), ""),
            "exec" => {}
            "httpGet" => http(checking, &action),
            "sleep" => sleep(checking, &action, pod),
            _ => formats::port(checking, &action.get("port")),
        }
    }
    if !found {
        checking.required(&of.path, "must specify a handler type");
    }
}

fn http(checking: &mut Checking<'_>, action: &Node<'_>) {
    if action.text("path").is_empty() {
        checking.required(action.field("path"), "");
    }
    formats::port(checking, &action.get("port"));
    checking.one_of(&action.get("scheme"), &["HTTP", "HTTPS"]);
    for header in action.list("httpHeaders") {
        let name = header.text("name");
        checking.each(action.field("httpHeaders"), name, &formats::header(name));
    }
}

fn sleep(checking: &mut Checking<'_>, action: &Node<'_>, pod: &Pod<'_>) {
    let seconds = action.int("seconds").unwrap_or(0);
    let zero = Gate::PodLifecycleSleepActionAllowZero.is_on(checking.minor);
    if let Some(period) = pod.spec.int("terminationGracePeriodSeconds")
        && !(i64::from(!zero)..=period).contains(&seconds)
    {
        let text = if zero {
            format!("must be non-negative and less than terminationGracePeriodSeconds ({period})")
        } else {
            format!(
                "must be greater than 0 and less than terminationGracePeriodSeconds ({period}). Enable \
                 AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
            )
        };
        checking.invalid_value(&action.path, &seconds.into(), &text);
    }
}

//! `palisade report`: how close the namespaces of a cluster are to Deny, and the changes that they need, as one file to
//! share.
//!
//! ```text
//! cluster: profiles, namespaces, objects --> found: by workload --> data: the report --> page, markdown, JSON
//! ```

mod args;
mod cluster;
mod data;
mod found;
mod markdown;
mod page;
mod suggestions;
mod trend;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fs,
};

use k8s_openapi::jiff::Timestamp;
use palisade_api::Stage;

pub use args::ReportArgs;
use args::{Format, Output, Sort};
use cluster::Judged;
use data::{
    API_VERSION, CheckCounts, KIND, NamespaceReadiness, NotJudged, ProfileReadiness, Readiness, Report, Summary,
    ViolatingWorkload,
};

use crate::{
    cluster::could_not_run,
    dump_files::could_not_write,
    evaluator::{REJECTED, title_of},
    namespaces::Tenant,
    output::{self, could_not_print},
    parallel::{parallel, threads},
    profiles::Accepted,
    report::{Failure, one_line},
};

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    if args.output.iter().filter(|output| output.file.is_none()).count() > 1 {
        return Err(could_not_run("only one output can be standard output; write to a file with -o html=FILE"));
    }
    let paths = args.files.iter().chain(&args.profiles).chain(&args.source.namespaces).chain(&args.earlier);
    if paths.filter(|path| *path == "-").count() > 1 {
        return Err(could_not_run("only one FILE can be standard input"));
    }
    // Errors in an earlier report are reported before the long evaluation.
    let earlier = trend::read(&args.earlier)?;
    let time = args.time.unwrap_or_else(Timestamp::now);
    // An invalid profile is not a finding about the cluster.
    let mut judged = Judged::new(args, time).map_err(Failure::fatal)?;
    let problems = std::mem::take(&mut judged.problems);
    let mut report = report(&judged, &args.title, time);
    trend::add(&mut report, earlier)?;
    for output in &args.output {
        write(&report, output)?;
    }
    args.source.unevaluated.settle(problems)
}

fn write(report: &Report, Output { format, file }: &Output) -> Result<(), Failure> {
    let text = match format {
        Format::Html => page::html(report).map_err(|error| could_not_print(&error))?,
        Format::Json => {
            serde_json::to_string_pretty(report).map(|text| text + "\n").map_err(|error| could_not_print(&error))?
        }
        Format::Markdown => markdown::text(report),
    };
    match file {
        None => output::print(&text),
        Some(path) => fs::write(path, text).map_err(|error| could_not_write(path, &error)),
    }
}

/// The report.
fn report(judged: &Judged, title: &str, time: Timestamp) -> Report {
    let all = &judged.all;
    let violating: Vec<_> = all.workloads.iter().filter(|(_, one)| one.violates()).collect();
    let denying: BTreeMap<_, _> = judged.tenants.iter().map(|one| (one.name.as_str(), denying(judged, one))).collect();
    let nowhere = BTreeSet::new();
    let workloads: Vec<ViolatingWorkload> = parallel(threads(), &violating, |((namespace, workload), one)| {
        let denying = denying.get(namespace.as_str()).unwrap_or(&nowhere);
        let denies = |profile: &str, check: &str| denying.contains(profile) || is_denied(judged, profile, check);
        one.about(&judged.judge, &judged.mutators, &denies, namespace, workload)
    });
    let mut not_judged: Vec<NotJudged> =
        all.workloads.iter().filter_map(|((namespace, workload), one)| one.not_judged(namespace, workload)).collect();
    let unknown = "its labels are unknown, because its Namespace is not in the files";
    not_judged.extend(all.unknown.iter().map(|namespace| NotJudged {
        namespace: namespace.clone(),
        workload: String::new(),
        why: unknown.to_owned(),
    }));
    not_judged.sort();
    let selected = |one: &&Tenant| judged.judge.selects(&one.name);
    let mut namespaces: Vec<_> = judged
        .tenants
        .iter()
        .filter(selected)
        .map(|one| namespace(judged, one, &workloads, &not_judged, time))
        .collect();
    namespaces.extend(all.unknown.iter().map(|name| NamespaceReadiness {
        name: name.clone(),
        owner: String::new(),
        readiness: Readiness::NotJudged,
        stages: BTreeMap::new(),
        workloads: 0,
        violating: 0,
        problems: BTreeMap::new(),
        checks: BTreeMap::new(),
    }));
    namespaces.sort_by(|a, b| (a.readiness, &a.name).cmp(&(b.readiness, &b.name)));
    match judged.sort {
        Sort::Namespace => {}
        Sort::Violating => namespaces.sort_by_key(|one| (one.readiness, Reverse(one.violating))),
        Sort::Workloads => namespaces.sort_by_key(|one| (one.readiness, Reverse(one.workloads))),
        // Namespaces without an owner come last.
        Sort::Owner => namespaces.sort_by_key(|one| (one.readiness, one.owner.is_empty(), one.owner.clone())),
    }
    let mut not_selected: Vec<_> =
        judged.tenants.iter().filter(|one| !selected(one)).map(|one| one.name.clone()).collect();
    not_selected.sort();
    let mut summary = Summary {
        in_deny: namespaces.iter().filter(|one| is_in_deny(one)).count(),
        workloads: all.workloads.len(),
        violating: workloads.len(),
        with_change: workloads.iter().filter(|one| complies_after(one)).count(),
        objects: all.objects,
        ..Summary::default()
    };
    for one in &namespaces {
        summary.add(one.readiness);
    }
    Report {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        title: one_line(title),
        time: time.to_string(),
        server: judged.version.to_string(),
        summary,
        profiles: judged.accepted.iter().map(|one| profile(one, &namespaces, &workloads)).collect(),
        suggestions: suggestions::of(judged, time),
        checks: checks(judged, &workloads),
        namespaces,
        workloads,
        not_judged,
        not_selected,
        trend: Vec::new(),
        since: None,
    }
}

/// The profiles at the stage Deny in a namespace.
fn denying<'a>(judged: &'a Judged, tenant: &Tenant) -> BTreeSet<&'a str> {
    let denies = |one: &&Accepted| {
        palisade_compiler::selects(&one.profile.spec, tenant) && one.checked.stages_in(tenant).pods == Stage::Deny
    };
    judged.accepted.iter().filter(denies).map(|one| one.checked.profile.as_str()).collect()
}

/// Whether a check has the stage Deny, regardless of the stage of the namespace.
fn is_denied(judged: &Judged, profile: &str, check: &str) -> bool {
    let of = judged.accepted.iter().find(|one| one.checked.profile == profile);
    of.is_some_and(|one| one.checked.enforcement.checks.get(check) == Some(&Stage::Deny))
}

fn is_in_deny(namespace: &NamespaceReadiness) -> bool {
    !namespace.stages.is_empty() && namespace.stages.values().all(|stage| *stage == Stage::Deny)
}

fn complies_after(workload: &ViolatingWorkload) -> bool {
    workload.change.as_ref().is_some_and(|change| change.complies)
}

fn namespace(
    judged: &Judged,
    tenant: &Tenant,
    workloads: &[ViolatingWorkload],
    not_judged: &[NotJudged],
    time: Timestamp,
) -> NamespaceReadiness {
    let (mut stages, mut problems) = (BTreeMap::new(), BTreeMap::new());
    for Accepted { profile, checked } in &judged.accepted {
        if !palisade_compiler::selects(&profile.spec, tenant) {
            continue;
        }
        stages.insert(checked.profile.clone(), checked.stages_in(tenant).pods);
        let params = checked.params(tenant, tenant.requests.iter().map(|(_, request)| request), time);
        if let Some(params) = params.filter(|params| !params.spec.problem.is_empty()) {
            problems.insert(checked.profile.clone(), one_line(&params.spec.problem));
        }
    }
    // Workloads are in the order of their namespaces.
    let begin = workloads.partition_point(|one| one.namespace < tenant.name);
    let end = workloads.partition_point(|one| one.namespace <= tenant.name);
    let violating = &workloads[begin..end];
    let mut checks = BTreeMap::new();
    for workload in violating {
        let of_workload: BTreeSet<_> = workload.violations.iter().map(|one| one.check.clone()).collect();
        for check in of_workload {
            *checks.entry(check).or_default() += 1;
        }
    }
    let readiness = if !problems.is_empty() || violating.iter().any(|one| !complies_after(one)) {
        Readiness::NeedsWork
    } else if not_judged.binary_search_by(|one| one.namespace.cmp(&tenant.name)).is_ok() {
        Readiness::NotJudged
    } else if violating.is_empty() {
        Readiness::Ready
    } else {
        Readiness::Nearly
    };
    let first = (tenant.name.clone(), String::new());
    let of_tenant = judged.all.workloads.range(first..).take_while(|((namespace, _), _)| *namespace == tenant.name);
    let owner = judged.owner.as_ref().and_then(|key| tenant.annotations.get(key));
    NamespaceReadiness {
        name: tenant.name.clone(),
        owner: owner.map(|owner| one_line(owner)).unwrap_or_default(),
        readiness,
        stages,
        workloads: of_tenant.count(),
        violating: violating.len(),
        problems,
        checks,
    }
}

fn profile(
    Accepted { profile, checked }: &Accepted,
    namespaces: &[NamespaceReadiness],
    workloads: &[ViolatingWorkload],
) -> ProfileReadiness {
    let name = checked.profile.clone();
    let count = |stage| namespaces.iter().filter(|one| one.stages.get(&name) == Some(&stage)).count();
    let (deny, warn, audit) = (count(Stage::Deny), count(Stage::Warn), count(Stage::Audit));
    let violates = |one: &&ViolatingWorkload| one.violations.iter().any(|violation| violation.profile == name);
    ProfileReadiness {
        stage: profile.spec.enforcement.pods,
        checks: profile.spec.enforcement.checks.clone(),
        namespaces: deny + warn + audit,
        deny,
        warn,
        audit,
        violating: workloads.iter().filter(violates).count(),
        name,
    }
}

/// The violated checks, the most violated first.
fn checks(judged: &Judged, workloads: &[ViolatingWorkload]) -> Vec<CheckCounts> {
    let mut found: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for workload in workloads {
        let of_workload: BTreeSet<_> = workload.violations.iter().map(|one| one.check.as_str()).collect();
        for check in of_workload {
            let (count, namespaces) = found.entry(check).or_default();
            *count += 1;
            namespaces.insert(&workload.namespace);
        }
    }
    let customs = judged.accepted.iter().flat_map(|one| &one.checked.customs);
    let customs: BTreeSet<_> = customs.map(|custom| custom.check.id.as_str()).collect();
    let title = |id: &str| match title_of(id) {
        Some(title) => title,
        None if customs.contains(id) => "Custom check of a profile",
        None if id == REJECTED => "Rejected by the policy as a whole",
        None => "Rule of the generated policy",
    };
    let mut checks: Vec<_> = found
        .into_iter()
        .map(|(check, (workloads, namespaces))| CheckCounts {
            check: check.to_owned(),
            title: title(check).to_owned(),
            workloads,
            namespaces: namespaces.len(),
        })
        .collect();
    checks.sort_by(|a, b| (b.workloads, &a.check).cmp(&(a.workloads, &b.check)));
    checks
}

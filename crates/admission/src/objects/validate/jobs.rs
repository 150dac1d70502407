//! Jobs and `CronJobs` (`pkg/apis/batch/validation/validation.go`).

use std::collections::BTreeSet;

use palisade_cel::Minor;
use serde_json::Value;

use super::{
    cron, formats,
    node::Node,
    pods,
    selectors::{is_selector, mismatch, selects, wrong_selector},
    shown,
};
use crate::validation::{Checking, FieldError, names, quote};

/// A Job (`ValidateJobCreate`, until 1.36 `ValidateJob`). Until 1.36, `jobStrategy.ValidateUpdate` calls it as well.
/// Since 1.37, an update validates neither the generated selector nor, at this place, the name.
pub(super) fn job(checking: &mut Checking<'_>, object: &Value) {
    let object = Node::new(object, "");
    let spec = object.get("spec");
    if panics(checking, &spec) {
        return;
    }
    let whole = checking.old.is_none() || checking.minor < Minor::V1_37;
    if whole {
        generated_selector(checking, &object, &spec);
    }
    job_spec(checking, &spec);
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    if selector.value.is_null() {
        checking.required(&selector.path, "");
    }
    formats::selector(checking, &selector);
    let labels = template.get("metadata").get("labels");
    if is_selector(checking.minor, &selector) && (selector.value.is_null() || !selects(selector.value, labels.value)) {
        mismatch(checking, &template);
    }
    if whole {
        completions_fit_name(checking, &object, &spec);
    }
}

/// `validateNameAllowsCompletions`, which `ValidateJobUpdate` calls last since 1.37.
pub(super) fn name_of_update(checking: &mut Checking<'_>, object: &Value) {
    let object = Node::new(object, "");
    completions_fit_name(checking, &object, &object.get("spec"));
}

fn completions_fit_name(checking: &mut Checking<'_>, object: &Node<'_>, spec: &Node<'_>) {
    if spec.text("completionMode") == "Indexed"
        && let Some(completions) = spec.int("completions").filter(|count| *count > 0)
    {
        let name = object.get("metadata").text("name");
        let longest = format!("{name}-{}", completions - 1);
        if !names::label(&longest).is_empty() {
            let text = format!("will not able to create pod with invalid DNS label: {longest}");
            checking.invalid("metadata.name", name, &text);
        }
    }
}

/// The API server reads a number of completions that may not be there (`validateSuccessPolicyRule`); the request then
/// fails with status 500, whatever else is wrong.
fn panics(checking: &mut Checking<'_>, spec: &Node<'_>) -> bool {
    let rules = spec.get("successPolicy");
    let reads = spec.text("completionMode") == "Indexed"
        && !spec.has("completions")
        && rules.list("rules").any(|rule| rule.has("succeededIndexes") || rule.has("succeededCount"));
    if reads {
        checking.errors.clear();
        checking.unknown = Some(
            "an indexed Job with a successPolicy has no completions: the API server panics while it validates that"
                .to_owned(),
        );
    }
    reads
}

/// `validateGeneratedSelector`.
fn generated_selector(checking: &mut Checking<'_>, object: &Node<'_>, spec: &Node<'_>) {
    let selector = spec.get("selector");
    if spec.is_true("manualSelector") || selector.value.is_null() {
        return;
    }
    let metadata = object.get("metadata");
    let (uid, name) = (metadata.text("uid"), metadata.text("name"));
    let labels = spec.get("template").get("metadata").get("labels");
    let field = "spec.template.metadata.labels";
    for (key, wanted) in [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ] {
        match labels.value.get(key).and_then(Value::as_str) {
            None => checking.required(format!("{field}[{key}]"), &format!("must be '{wanted}'")),
            Some(value) if value != wanted => {
                let shown = match labels.value {
                    labels if checking.minor < Minor::V1_34 => {
                        crate::validation::shown(Minor::V1_33, labels).replacen("interface {}", "string", 1)
                    }
                    labels => labels.to_string(),
                };
                checking.invalid_shown(format!("{field}[{key}]"), &shown, &format!("must be '{wanted}'"));
            }
            Some(_) => {}
        }
    }
    let expected = serde_json::json!({
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    });
    if is_selector(checking.minor, &selector) && !selects(selector.value, &expected) {
        wrong_selector(checking, &selector, "`selector` not auto-generated");
    }
}

/// `validateJobSpec`.
fn job_spec(checking: &mut Checking<'_>, spec: &Node<'_>) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        checking.not_negative(spec, key);
    }
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        checking.required(spec.field("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    if let Some(manager) = spec.part("managedBy") {
        formats::domain_path(checking, &manager.path, manager.string());
        if manager.string().len() > 63 {
            checking.too_long(manager.path, 63);
        }
    }
    let mode = spec.part("completionMode");
    if let Some(mode) = &mode {
        checking.one_of(mode, &["NonIndexed", "Indexed"]);
        if mode.string() == "Indexed" {
            indexed(checking, spec);
        }
    }
    if mode.as_ref().is_none_or(|mode| mode.string() == "NonIndexed") {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(value) = spec.part(key) {
                checking.wrong(&value, "requires indexed completion mode");
            }
        }
    }
    failure_policy(checking, spec);
    if let Some(policy) = spec.part("successPolicy") {
        if mode.is_some_and(|mode| mode.string() == "Indexed") {
            success_policy(checking, spec, &policy);
        } else {
            let shown = shown::success_policy(&policy);
            checking.invalid_shown(policy.path, &shown, "requires indexed completion mode");
        }
    }
    if let Some(policy) = spec.part("podReplacementPolicy") {
        let supported: &[_] =
            if spec.has("podFailurePolicy") { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
        checking.one_of(&policy, supported);
    }
    let template = spec.get("template");
    pods::template(checking, &template);
    let policy = template.get("spec").get("restartPolicy");
    match policy.string() {
        "" | "Always" => checking.required(policy.path, "valid values: \"OnFailure\", \"Never\""),
        "Never" => {}
        "OnFailure" if spec.has("podFailurePolicy") => {
            checking.wrong(&policy, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        _ => checking.one_of(&policy, &["OnFailure", "Never"]),
    }
}

fn indexed(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let (completions, failed) = (spec.int("completions"), spec.int("maxFailedIndexes"));
    let parallelism = spec.int("parallelism");
    if completions.is_none() {
        checking.required(spec.field("completions"), "when completion mode is Indexed");
    }
    if parallelism.is_some_and(|count| count > 100_000) {
        let text = "must be less than or equal to 100000 when completion mode is Indexed";
        checking.wrong(&spec.get("parallelism"), text);
    }
    if failed.zip(completions).is_some_and(|(failed, all)| failed > all) {
        checking.wrong(&spec.get("maxFailedIndexes"), "must be less than or equal to completions");
    }
    if failed.is_some_and(|count| count > 100_000) {
        checking.wrong(&spec.get("maxFailedIndexes"), "must be less than or equal to 100000");
    }
    if completions.is_some_and(|count| count > 100_000) && spec.has("backoffLimitPerIndex") {
        let text = "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit \
                    per index";
        if failed.is_none() {
            checking.required(spec.field("maxFailedIndexes"), "must be specified when completions is above 100000");
        }
        for (key, value) in [("parallelism", parallelism), ("maxFailedIndexes", failed)] {
            if value.is_some_and(|count| count > 10_000) {
                checking.wrong(&spec.get(key), text);
            }
        }
    }
}

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];

/// A text that must be there and one of a list, whose error is worded as Go lists one value.
fn told(checking: &mut Checking<'_>, node: &Node<'_>, supported: &[&str]) {
    if node.string().is_empty() {
        let listed: Vec<_> = supported.iter().map(|one| quote(one)).collect();
        checking.required(&node.path, &format!("valid values: [{}]", listed.join(" ")));
    } else {
        checking.one_of(node, supported);
    }
}

fn failure_policy(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let Some(policy) = spec.part("podFailurePolicy") else { return };
    let count = policy.elements("rules").len();
    if count > 20 {
        checking.too_many(policy.field("rules"), count, 20);
    }
    let pod = spec.get("template").get("spec");
    let names: BTreeSet<_> =
        ["containers", "initContainers"].iter().flat_map(|list| pod.list(list)).map(|one| one.text("name")).collect();
    for rule in policy.list("rules") {
        let action = rule.get("action");
        if action.string() == "FailIndex" {
            if !spec.has("backoffLimitPerIndex") {
                checking.wrong(&action, "requires the backoffLimitPerIndex to be set");
            }
        } else {
            told(checking, &action, ACTIONS);
        }
        let (codes, conditions) = (rule.part("onExitCodes"), rule.elements("onPodConditions"));
        if let Some(codes) = &codes {
            exit_codes(checking, codes, &names);
        }
        if conditions.len() > 20 {
            checking.too_many(rule.field("onPodConditions"), conditions.len(), 20);
        }
        for pattern in rule.list("onPodConditions") {
            formats::label_key(checking, pattern.field("type"), pattern.text("type"));
            told(checking, &pattern.get("status"), &["False", "True", "Unknown"]);
        }
        let text = match (codes.is_some(), conditions.is_empty()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        checking.errors.push(FieldError::invalid_hidden(rule.path, text));
    }
}

fn exit_codes(checking: &mut Checking<'_>, codes: &Node<'_>, containers: &BTreeSet<&str>) {
    told(checking, &codes.get("operator"), &["In", "NotIn"]);
    if let Some(name) = codes.part("containerName").filter(|name| !containers.contains(name.string())) {
        let text = "must be one of the container or initContainer names in the pod template";
        checking.invalid(&name.path, name.string(), text);
    }
    let values = codes.get("values");
    let numbers: Vec<i64> = codes.elements("values").iter().filter_map(Value::as_i64).collect();
    if numbers.is_empty() {
        checking.invalid_go(&values.path, "[]int32", values.value, "at least one value is required");
    } else if numbers.len() > 255 {
        checking.too_many(&values.path, numbers.len(), 255);
    }
    let mut seen = BTreeSet::new();
    for (value, number) in codes.list("values").zip(&numbers) {
        if codes.text("operator") == "In" && *number == 0 {
            checking.wrong(&value, "must not be 0 for the In operator");
        }
        if !seen.insert(number) {
            checking.errors.push(FieldError::duplicate_value(checking.minor, value.path, value.value));
        }
    }
    if !numbers.is_sorted() {
        checking.invalid_go(values.path, "[]int32", values.value, "must be ordered");
    }
}

fn success_policy(checking: &mut Checking<'_>, spec: &Node<'_>, policy: &Node<'_>) {
    let count = policy.elements("rules").len();
    if count == 0 {
        let text = "at least one rules must be specified when the successPolicy is specified";
        checking.required(policy.field("rules"), text);
    }
    if count > 20 {
        checking.too_many(policy.field("rules"), count, 20);
    }
    // Its code reads what may not be there; the answer is then an internal error.
    let Some(completions) = spec.int("completions") else {
        if policy.list("rules").any(|rule| rule.has("succeededIndexes") || rule.has("succeededCount")) {
            checking.unknown = Some(
                "a Job with a successPolicy has no completions: the API server panics while it validates that"
                    .to_owned(),
            );
        }
        return;
    };
    for rule in policy.list("rules") {
        let (indexes, number) = (rule.part("succeededIndexes"), rule.int("succeededCount"));
        if indexes.is_none() && number.is_none() {
            checking.required(&rule.path, "at least one of succeededCount or succeededIndexes must be specified");
        }
        let mut total = 0;
        if let Some(indexes) = &indexes {
            if indexes.string().len() > 64 << 10 {
                checking.too_long(&indexes.path, 64 << 10);
            }
            match count_indexes(indexes.string(), completions) {
                Ok(count) => total = count,
                Err(why) => {
                    let text = format!("error parsing succeededIndexes: {why}");
                    checking.invalid(&indexes.path, indexes.string(), &text);
                }
            }
        }
        let Some(number) = number else { continue };
        checking.not_negative(&rule, "succeededCount");
        if number > completions {
            let text = format!("must be less than or equal to {completions} (the number of specified completions)");
            checking.wrong(&rule.get("succeededCount"), &text);
        }
        if indexes.is_some() && number > total {
            let text = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            checking.wrong(&rule.get("succeededCount"), &text);
        }
    }
}

/// How many indexes a list of ranges has (`validateIndexesFormat`).
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let (mut last, mut total) = (None, 0);
    for range in text.split(',') {
        let parts: Vec<_> = range.split('-').collect();
        if parts.len() > 2 {
            return Err(format!(
                "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
                quote(range)
            ));
        }
        let mut ends = Vec::new();
        for part in parts {
            let quoted = quote(part);
            let index =
                cron::integer(part).map_err(|_| format!("cannot convert string to integer for index: {quoted}"))?;
            if index >= completions {
                return Err(format!("too large index: {quoted}"));
            }
            ends.push(index);
        }
        let (first, end) = match ends[..] {
            [first, end] if first >= end => {
                return Err(format!("non-increasing order, previous: {first}, current: {end}"));
            }
            [first, end] => (first, end),
            [only] => (only, only),
            _ => continue,
        };
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// `validateCronJobSpec`, and the name, from which those of jobs are made.
pub(super) fn cron_job(checking: &mut Checking<'_>, object: &Value) {
    let object = Node::new(object, "");
    let spec = object.get("spec");
    let schedule = spec.get("schedule");
    if schedule.string().is_empty() {
        checking.required(&schedule.path, "");
    } else {
        let text = schedule.string();
        if let Err(why) = cron::schedule(checking.minor, text) {
            checking.invalid(&schedule.path, text, &why);
        }
        // An update may go on with what was there before.
        let before = checking.old.and_then(|old| old.pointer("/spec/schedule")).and_then(Value::as_str);
        let allowed = before.is_some_and(|before| before.contains("TZ"));
        if text.contains("TZ") && allowed && spec.has("timeZone") {
            let text_of = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
            checking.invalid(&schedule.path, text, text_of);
        } else if text.contains("TZ") && !allowed {
            let text_of = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            checking.invalid(&schedule.path, text, text_of);
        }
    }
    checking.not_negative(&spec, "startingDeadlineSeconds");
    let same = checking.old.is_some_and(|old| old.pointer("/spec/timeZone") == spec.value.get("timeZone"));
    if let Some(zone) = spec.part("timeZone").filter(|_| !same) {
        checking.each(&zone.path, zone.string(), &cron::time_zone(zone.string()));
    }
    checking.required_one_of(&spec.get("concurrencyPolicy"), &["Allow", "Forbid", "Replace"]);
    let job = spec.get("jobTemplate").get("spec");
    if panics(checking, &job) {
        return;
    }
    job_spec(checking, &job);
    if let Some(selector) = job.part("selector") {
        wrong_selector(checking, &selector, "`selector` will be auto-generated");
    }
    if job.is_true("manualSelector") {
        let field = job.field("manualSelector");
        checking.errors.push(FieldError::not_supported_value(checking.minor, field, &true.into(), &["nil", "false"]));
    }
    checking.not_negative(&spec, "successfulJobsHistoryLimit");
    checking.not_negative(&spec, "failedJobsHistoryLimit");
    let name = object.get("metadata").text("name");
    if name.len() > 52 && checking.old.is_none() {
        checking.invalid("metadata.name", name, "must be no more than 52 characters");
    }
}

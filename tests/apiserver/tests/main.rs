//! What Palisade promises, shown on a real API server. One binary, which starts and stops its control planes.
#![allow(clippy::disallowed_methods, reason = "tests on a real API server need a clock and files")]

mod admission;
mod api_servers;
mod bounds;
mod catalogue;
mod confinement;
mod crds;
mod deletion;
mod enforcement;
mod exemptions;
mod fields;
mod gate;
mod lanes;
mod lifecycle;
mod lint;
mod mutation;
mod mutation_cases;
mod namespaces;
mod plugins;
mod pressure;
mod privilege;
mod scale;
mod stored;
mod updates;
mod upgrade;
mod validation;
mod webhook;
mod workloads;

use std::{process::ExitCode, sync::LazyLock};

use libtest_mimic::Arguments;
use palisade_controlplane::ControlPlane;
use tokio::runtime::Runtime;

use crate::lanes::{Lanes, Scenario};

/// How many control planes run at once. Scenarios mostly wait, so it may be more than the cores.
const LANES: usize = 3;

/// Lists async functions as scenarios: name and function.
macro_rules! scenarios {
    ($($module:ident :: $name:ident),+ $(,)?) => {
        vec![$((concat!(stringify!($module), "::", stringify!($name)), (|cluster| Box::pin($module::$name(cluster))) as Scenario)),+]
    };
}

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

#[allow(clippy::too_many_lines, reason = "a list of scenarios")]
fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(palisade_tests::WEBHOOK) {
        // A webhook that is killed and stopped must be a process.
        return RUNTIME.block_on(palisade_tests::run_webhook());
    }
    let mut arguments = Arguments::from_args();
    let answers = scenarios![
        admission::the_harness_answers_as_the_api_server,
        plugins::plugins_answer_as_the_api_server,
        plugins::the_default_list_is_that_of_the_binary,
        stored::what_is_stored_is_judged_as_by_the_api_server,
        validation::what_is_invalid_is_refused_in_the_words_of_the_api_server,
        validation::workloads_of_others_get_the_answers_of_the_api_server,
        catalogue::fixtures_get_their_verdicts,
        crds::wrong_profiles_are_refused_when_they_are_applied,
        crds::kubectl_explains_every_field,
        gate::registrations_are_refused_in_the_words_of_the_api_server,
        lint::a_finalizer_is_blocked_as_lint_says,
        lint::what_lint_calls_an_error_denies_every_request,
        lint::the_control_plane_writes_what_lint_says,
    ];
    let judged = scenarios![
        enforcement::jobs_of_tools_pass_and_each_rule_denies,
        enforcement::an_ephemeral_container_is_judged,
        enforcement::a_resize_is_judged,
        enforcement::a_running_pod_may_be_labelled,
        enforcement::warn_and_audit_admit,
        enforcement::generated_policies_have_no_type_check_warning,
        fields::what_the_api_server_sets_is_no_violation,
        workloads::each_kind_is_judged_by_its_template,
        workloads::authors_are_warned,
        workloads::a_request_matches_one_policy,
        mutation::the_native_policy_does_what_the_patch_does,
        exemptions::exempt_is_who_the_profile_names_and_no_tenant,
        exemptions::who_is_exempt_has_pods_that_nobody_changes,
        exemptions::an_exemption_that_frees_tenants_is_reported,
        exemptions::an_exception_ends_by_the_clock_of_the_api_server,
        namespaces::a_new_namespace_never_admits_a_violation,
        namespaces::the_controller_may_be_down,
        namespaces::a_wrong_parameter_fails_its_namespace_alone,
        namespaces::a_changed_annotation_writes_one_object,
        namespaces::several_profiles_all_apply,
    ];
    let reconciled = scenarios![
        lifecycle::an_invalid_profile_changes_nothing,
        lifecycle::a_custom_check_is_made_or_its_mistake_told,
        lifecycle::drift_is_repaired,
        lifecycle::a_renamed_parameter_never_denies,
        lifecycle::deleting_the_profile_frees_every_namespace,
        lifecycle::a_profile_deleted_by_force_leaves_nothing,
        lifecycle::a_namespace_with_a_finalized_pod_can_be_deleted,
        deletion::a_namespace_of_finalized_objects_can_be_deleted,
        deletion::a_namespace_selected_while_it_goes_can_be_deleted,
        lifecycle::an_api_server_restart_admits_nothing,
        webhook::a_change_of_engine_leaves_no_gap,
        updates::an_update_changes_nothing_but_what_is_judged,
        updates::a_profile_gets_and_loses_parameters,
        updates::the_binding_for_updates_is_restored,
        api_servers::profiles_that_wait_hold_up_no_other,
        api_servers::addresses_are_those_behind_the_service,
        api_servers::each_is_asked_and_the_wrong_one_named,
        gate::a_bad_selector_changes_nothing_and_harms_no_other_profile,
        gate::the_webhook_goes_by_what_is_in_force,
        gate::generations_are_recorded_without_a_gap,
        gate::an_entry_that_the_api_server_refuses_harms_no_other,
    ];
    let large =
        scenarios![pressure::half_of_fifty_profiles_are_in_trouble, scale::three_thousand_five_hundred_namespaces,];
    let oldest = scenarios![
        admission::the_harness_answers_as_the_api_server,
        plugins::plugins_answer_as_the_api_server,
        stored::what_is_stored_is_judged_as_by_the_api_server,
        crds::wrong_profiles_are_refused_when_they_are_applied,
        enforcement::jobs_of_tools_pass_and_each_rule_denies,
        enforcement::an_ephemeral_container_is_judged,
        enforcement::a_resize_is_judged,
        enforcement::a_running_pod_may_be_labelled,
        enforcement::generated_policies_have_no_type_check_warning,
        fields::what_the_api_server_sets_is_no_violation,
        workloads::each_kind_is_judged_by_its_template,
        exemptions::an_exception_ends_by_the_clock_of_the_api_server,
        namespaces::a_new_namespace_never_admits_a_violation,
        namespaces::a_wrong_parameter_fails_its_namespace_alone,
        lifecycle::a_custom_check_is_made_or_its_mistake_told,
        lifecycle::drift_is_repaired,
        lifecycle::deleting_the_profile_frees_every_namespace,
        lifecycle::a_namespace_with_a_finalized_pod_can_be_deleted,
        deletion::a_namespace_of_finalized_objects_can_be_deleted,
        deletion::a_namespace_selected_while_it_goes_can_be_deleted,
        lifecycle::an_api_server_restart_admits_nothing,
        updates::an_update_changes_nothing_but_what_is_judged,
    ];
    let webhooks = scenarios![
        mutation::the_webhook_does_what_the_patch_does,
        webhook::defaults_are_set,
        webhook::failures_admit_no_violation,
        webhook::a_rolling_restart_fails_no_request,
        webhook::certificates_rotate_and_no_request_fails,
        gate::registrations_are_refused_in_the_words_of_the_api_server,
        gate::a_bad_selector_changes_nothing_and_harms_no_other_profile,
        gate::the_webhook_goes_by_what_is_in_force,
    ];
    let middle = scenarios![
        gate::registrations_are_refused_in_the_words_of_the_api_server,
        admission::the_harness_answers_as_the_api_server,
        upgrade::what_is_served_and_does_nothing_is_no_engine,
    ];
    // An API server does not see parameters of a built-in kind again once it stopped to watch them for other policies.
    let mut alone = scenarios![mutation_cases::objects_are_changed_as_the_harness_says];
    if std::env::var_os("PALISADE_BOUNDS").is_some() {
        // It takes minutes, and the figures of a machine that has nothing else to do: make bounds.
        alone.extend(scenarios![bounds::cheap_requests_stay_cheap]);
    }
    let beta = scenarios![
        mutation::a_policy_of_the_beta_does_what_the_patch_does,
        upgrade::where_only_the_beta_is_served_it_mutates,
    ];
    let upgraded = scenarios![upgrade::an_upgrade_leaves_no_gap];
    // With an audit log, by which is seen what was asked for.
    let audited = scenarios![
        privilege::each_permission_is_used_and_no_other_is_asked_for,
        privilege::what_an_account_must_not_do_is_forbidden,
        confinement::nothing_runs_in_the_namespace_for_probes,
        confinement::parameters_are_written_by_the_controller_and_admins,
        confinement::the_controller_is_confined_to_what_is_its_own,
        confinement::the_webhook_is_registered_for_pods_of_tenants_only,
        confinement::confinement_has_no_type_check_warning,
        confinement::it_can_be_removed_and_installed_again,
    ];
    let confined = scenarios![
        confinement::nothing_runs_in_the_namespace_for_probes,
        confinement::parameters_are_written_by_the_controller_and_admins,
        confinement::the_controller_is_confined_to_what_is_its_own,
        confinement::the_webhook_is_registered_for_pods_of_tenants_only,
        confinement::confinement_has_no_type_check_warning,
    ];
    let own = scenarios![confinement::an_api_server_with_policies_of_its_own_confines_the_controller];
    let (own_policies, _directory) = match confinement::with_policies_of_its_own() {
        Ok(found) => found,
        Err(error) => {
            eprintln!("a directory of policies: {error}");
            return ExitCode::FAILURE;
        }
    };
    let emulated = |version: &str| ControlPlane::builder().emulated_version(version);
    // Or it would serve the beta and not act by it.
    let acting = ["--feature-gates=MutatingAdmissionPolicy=true", "--emulation-forward-compatible=true"];
    // On a control plane of its own: each of these has the same namespaces.
    let others = scenarios![mutation::the_native_policy_does_what_the_patch_does_to_pods_of_others];
    // The longest come first: at the end no core waits for one of them.
    let groups = [
        ("1.36", ControlPlane::builder(), reconciled),
        ("1.33", emulated("1.33"), oldest),
        ("1.36", ControlPlane::builder(), answers),
        ("1.36", ControlPlane::builder(), judged),
        ("1.36", ControlPlane::builder(), large),
        ("1.33", emulated("1.33"), webhooks),
        ("1.35", emulated("1.35"), middle),
        // On a loaded machine the largest requests take longer than a minute.
        ("1.36", ControlPlane::builder().apiserver_flags(["--request-timeout=20m"]), alone),
        ("1.35 beta", emulated("1.35").apiserver_flags(acting), beta),
        ("1.36 audited", ControlPlane::builder().audit(true), audited),
        ("1.33 confined", emulated("1.33"), confined),
        ("1.36 with policies of its own", own_policies, own),
        ("1.33 to 1.36", emulated("1.33"), upgraded),
        ("1.36 pods of others", ControlPlane::builder(), others),
    ];
    let lanes = Lanes::new(LANES);
    let all: Vec<_> = groups
        .into_iter()
        .flat_map(|(kind, control_plane, scenarios)| lanes.trials(kind, control_plane, scenarios))
        .map(|trial| if trial.name().ends_with("_of_others") { mutation::others().of(trial) } else { trial })
        .collect();
    // Each waits for its control plane.
    arguments.test_threads = Some(all.len());
    let conclusion = libtest_mimic::run(&arguments, all);
    lanes.print_slowest();
    conclusion.exit_code()
}

//! What Palisade promises, shown on a real API server. One binary, which starts and stops its control planes.
#![allow(clippy::disallowed_methods, reason = "tests on a real API server need a clock and files")]

mod admission;
mod api_servers;
mod approvals;
mod audit;
mod bounds;
mod catalogue;
mod check;
mod confinement;
mod crds;
mod customs;
mod dashboards;
mod deletion;
mod enforcement;
mod exceptions;
mod exemptions;
mod fields;
mod files;
mod former;
mod gate;
mod guard;
mod helm;
mod history;
mod lanes;
mod leader;
mod lifecycle;
mod lint;
mod memory;
mod mutation;
mod mutation_cases;
mod namespaces;
mod own_stage;
mod parameters;
mod plugins;
mod policies;
mod policy_reports;
mod pressure;
mod privilege;
mod refuted;
mod rollout;
mod scale;
mod scan;
mod stages;
mod steering;
mod stored;
mod templates;
mod toolforge;
mod traces;
mod trail;
mod tutorial;
mod unused;
mod updates;
mod upgrade;
mod validation;
mod webhook;
mod whatif;
mod workloads;

use std::{process::ExitCode, sync::LazyLock};

use libtest_mimic::Arguments;
use palisade_api::names;
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
    // What is killed and stopped must be a process.
    match std::env::args().nth(1).as_deref() {
        Some(palisade_tests::WEBHOOK) => return RUNTIME.block_on(palisade_tests::run_webhook()),
        Some(names::CONTROLLER) => return palisade_tests::run_controller(),
        Some(audit::PALISADE) => return ExitCode::from(palisade_cli::run(std::env::args_os().skip(1))),
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    let answers = scenarios![
        admission::offline_verdicts_match_the_api_server,
        plugins::plugins_answer_like_the_api_server,
        plugins::default_plugins_match_kube_apiserver_help,
        stored::stored_objects_are_judged_like_the_api_server,
        customs::custom_resources_get_the_answers_of_the_api_server,
        customs::definitions_get_the_answers_of_the_api_server,
        policies::library_policies_answer_like_the_api_server,
        validation::validation_errors_match_the_api_server,
        validation::corpus_workloads_are_validated_like_the_api_server,
        catalogue::fixtures_get_their_verdicts,
        crds::invalid_profiles_are_rejected_by_the_crd,
        crds::what_cannot_be_read_is_rejected_by_the_crd,
        crds::kubectl_explains_every_field,
        gate::registration_errors_match_the_api_server,
        lint::finalizers_are_blocked_where_lint_predicts,
        lint::lint_error_means_every_request_is_denied,
        lint::control_plane_writes_match_the_lint_table,
        // These read what the API server says of types.
        enforcement::generated_policies_have_no_type_check_warning,
        exceptions::an_approved_exception_holds_for_its_workload_until_its_end,
        guard::only_who_may_assign_changes_what_a_profile_reads,
    ];
    let judged = scenarios![
        enforcement::compliant_jobs_pass_and_every_rule_denies,
        enforcement::an_ephemeral_container_is_judged,
        enforcement::a_resize_is_judged,
        enforcement::a_running_pod_may_be_labelled,
        enforcement::enforcement_warn_and_audit_admit_pods,
        fields::fields_set_by_the_api_server_violate_nothing,
        workloads::every_workload_kind_is_judged_by_its_template,
        workloads::author_of_a_violating_workload_is_warned,
        workloads::a_request_matches_one_policy,
        templates::template_gets_the_verdict_of_the_pod_that_it_becomes,
        toolforge::example_answers_what_a_tool_expects,
        toolforge::tools_go_from_audit_to_deny,
        mutation::native_policy_mutates_like_the_patch,
        exemptions::named_users_and_groups_are_exempt_and_no_other_tenant,
        exemptions::exempt_pods_are_not_mutated_by_any_engine,
        exemptions::exemption_that_covers_tenants_is_reported_in_status,
        exemptions::an_exception_ends_by_the_clock_of_the_api_server,
        namespaces::a_new_namespace_never_admits_a_violation,
        namespaces::policies_stay_enforced_while_the_controller_is_down,
        namespaces::invalid_parameter_fails_only_its_namespace,
        namespaces::a_changed_annotation_writes_one_object,
        namespaces::several_profiles_all_apply,
        history::rollback_puts_a_recorded_spec_back_in_force,
        tutorial::every_command_of_the_tutorial_prints_what_the_page_shows,
        stages::a_namespace_can_have_a_stage_of_its_own,
        own_stage::a_check_can_have_a_stage_of_its_own,
        rollout::a_rollout_promotes_what_complies_and_holds_the_rest,
        rollout::a_rollout_stops_at_a_violation,
        rollout::a_soak_time_begins_again_after_a_denial,
        steering::two_profiles_are_rolled_out_on_the_same_namespaces,
        scan::the_scan_reports_what_the_api_server_would_deny,
        unused::an_exception_that_nothing_needs_is_reported,
        whatif::diff_predicts_what_the_api_server_denies,
        check::check_says_what_the_api_server_says,
        policy_reports::violations_are_reported_where_other_tools_look,
    ];
    let maintained = scenarios![
        lifecycle::an_invalid_profile_changes_nothing,
        lifecycle::custom_check_is_enforced_or_its_error_reported,
        lifecycle::drift_is_repaired,
        lifecycle::renaming_a_parameter_changes_no_verdict,
        lifecycle::deleting_the_profile_frees_every_namespace,
        lifecycle::a_profile_deleted_by_force_leaves_nothing,
        lifecycle::namespace_with_a_pod_with_a_finalizer_can_be_deleted,
        deletion::namespace_of_compliant_pods_with_finalizers_can_be_deleted,
        deletion::namespace_selected_while_terminating_can_be_deleted,
        parameters::a_quota_for_parameters_is_reported_and_denies,
        parameters::a_profile_that_is_being_deleted_is_not_reported_as_enforced,
        parameters::labels_of_the_installation_come_back_after_a_probe,
        lifecycle::api_server_restart_admits_no_violation,
    ];
    let reconciled = scenarios![
        webhook::engine_change_leaves_no_pod_unmutated,
        updates::update_cannot_change_a_field_that_is_not_judged,
        updates::adding_or_removing_parameters_admits_no_violation,
        updates::the_binding_for_updates_is_restored,
        stages::a_namespace_in_deny_stays_in_it_while_the_profile_changes,
        own_stage::a_check_in_deny_stays_in_it_while_the_profile_changes,
        stages::a_binding_of_deny_that_is_deleted_or_edited_is_restored,
        api_servers::waiting_profiles_do_not_delay_others,
        api_servers::api_server_addresses_are_read_from_the_endpoint_slice,
        api_servers::every_api_server_is_probed_and_failing_ones_named,
        audit::metrics_of_an_api_server_count_by_profile,
        refuted::an_edit_that_probes_refute_is_taken_back,
        gate::invalid_selector_changes_no_object_and_no_other_profile,
        gate::webhook_mutates_by_the_profile_in_force,
        gate::generations_are_recorded_without_a_gap,
        gate::rejected_webhook_entry_does_not_affect_others,
    ];
    let large = scenarios![
        pressure::failing_half_of_fifty_profiles_does_not_affect_the_rest,
        scale::number_of_policies_is_constant_for_3500_namespaces,
    ];
    let oldest = scenarios![
        admission::offline_verdicts_match_the_api_server,
        plugins::plugins_answer_like_the_api_server,
        stored::stored_objects_are_judged_like_the_api_server,
        policies::library_policies_answer_like_the_api_server,
        crds::invalid_profiles_are_rejected_by_the_crd,
        crds::what_cannot_be_read_is_rejected_by_the_crd,
        enforcement::compliant_jobs_pass_and_every_rule_denies,
        enforcement::an_ephemeral_container_is_judged,
        enforcement::a_resize_is_judged,
        enforcement::a_running_pod_may_be_labelled,
        enforcement::generated_policies_have_no_type_check_warning,
        fields::fields_set_by_the_api_server_violate_nothing,
        workloads::every_workload_kind_is_judged_by_its_template,
        exemptions::an_exception_ends_by_the_clock_of_the_api_server,
        exceptions::an_approved_exception_holds_for_its_workload_until_its_end,
        namespaces::a_new_namespace_never_admits_a_violation,
        namespaces::invalid_parameter_fails_only_its_namespace,
        stages::a_namespace_can_have_a_stage_of_its_own,
        own_stage::a_check_can_have_a_stage_of_its_own,
        stages::a_namespace_in_deny_stays_in_it_while_the_profile_changes,
        guard::only_who_may_assign_changes_what_a_profile_reads,
        rollout::a_rollout_promotes_what_complies_and_holds_the_rest,
        lifecycle::custom_check_is_enforced_or_its_error_reported,
        lifecycle::drift_is_repaired,
        lifecycle::deleting_the_profile_frees_every_namespace,
        lifecycle::namespace_with_a_pod_with_a_finalizer_can_be_deleted,
        deletion::namespace_of_compliant_pods_with_finalizers_can_be_deleted,
        deletion::namespace_selected_while_terminating_can_be_deleted,
        lifecycle::api_server_restart_admits_no_violation,
        updates::update_cannot_change_a_field_that_is_not_judged,
    ];
    let rolled_out_on_the_oldest = scenarios![
        history::rollback_puts_a_recorded_spec_back_in_force,
        stages::a_binding_of_deny_that_is_deleted_or_edited_is_restored,
        rollout::a_rollout_stops_at_a_violation,
        rollout::a_soak_time_begins_again_after_a_denial,
        steering::two_profiles_are_rolled_out_on_the_same_namespaces,
        unused::an_exception_that_nothing_needs_is_reported,
        trail::the_audit_log_knows_who_is_held_and_what_a_promotion_writes,
    ];
    let webhooks = scenarios![
        mutation::webhook_mutates_like_the_patch,
        webhook::webhook_sets_defaults_and_keeps_set_fields,
        webhook::webhook_failures_admit_no_violation,
        webhook::a_rolling_restart_fails_no_request,
        webhook::certificates_rotate_and_no_request_fails,
        gate::registration_errors_match_the_api_server,
        gate::invalid_selector_changes_no_object_and_no_other_profile,
        gate::webhook_mutates_by_the_profile_in_force,
    ];
    let middle = scenarios![
        gate::registration_errors_match_the_api_server,
        admission::offline_verdicts_match_the_api_server,
        upgrade::inert_beta_policy_is_not_the_engine,
    ];
    // What it creates, the others would list.
    let memory = scenarios![memory::large_objects_of_a_tenant_do_not_exhaust_memory];
    // An API server does not see parameters of a built-in kind again once it stopped to watch them for other policies.
    let mut alone = scenarios![mutation_cases::mutation_cases_match_the_api_server];
    if std::env::var_os("PALISADE_BOUNDS").is_some() {
        // It takes minutes, and the figures of a machine that has nothing else to do: make bounds.
        alone.extend(scenarios![bounds::judging_a_long_list_costs_a_bounded_multiple]);
    }
    if std::env::var_os("PALISADE_SCAN_CONTROLLER").is_some() {
        // It takes minutes: make scan.
        alone.extend(scenarios![scan::twenty_thousand_pods_are_scanned]);
    }
    let made = if std::env::var_os("PALISADE_FIXTURES").is_some() {
        // It writes into the repository: make fixtures.
        scenarios![former::what_this_version_makes_is_kept]
    } else {
        Vec::new()
    };
    let by_helm = if std::env::var_os("PALISADE_HELM").is_some() {
        // It takes minutes, and a helm: make helm.
        scenarios![helm::the_chart_is_installed_upgraded_rolled_back_and_uninstalled]
    } else {
        Vec::new()
    };
    let released = if std::env::var_os("PALISADE_ARTIFACTS").is_some() {
        // It needs a release, and a helm: make release-smoke-cluster.
        scenarios![tutorial::the_artifacts_of_a_release_are_enough]
    } else {
        Vec::new()
    };
    let scraped = if std::env::var_os("PALISADE_PROMETHEUS").is_some() {
        // It needs a Prometheus: make dashboards.
        scenarios![dashboards::every_panel_and_alert_works_in_prometheus]
    } else {
        Vec::new()
    };
    let beta =
        scenarios![mutation::beta_policy_mutates_like_the_patch, upgrade::beta_policy_mutates_where_v1_is_not_served,];
    let upgraded = scenarios![upgrade::api_server_upgrade_leaves_no_pod_unmutated];
    // With an audit log, by which is seen what was asked for. In others, requests are tried that must be refused.
    let audited = scenarios![
        privilege::every_permission_is_used_and_no_other_requested,
        leader::a_replica_takes_over_and_the_former_leader_writes_nothing,
        whatif::replayed_requests_get_the_logged_answers,
        trail::the_audit_log_knows_who_is_held_and_what_a_promotion_writes,
        former::objects_of_the_last_release_are_taken_over,
        traces::a_reconcile_is_a_trace_with_its_requests,
    ];
    let unprivileged = scenarios![
        privilege::service_accounts_lack_dangerous_permissions,
        confinement::only_dry_runs_are_admitted_in_the_probe_namespace,
        confinement::only_the_controller_and_admins_may_write_parameters,
        parameters::tenants_can_neither_delete_nor_hold_nor_starve_parameters,
        confinement::only_admins_may_set_the_stage_of_a_namespace,
        approvals::only_approvers_may_approve_an_exception,
        confinement::controller_is_confined_to_its_own_objects,
        confinement::webhook_may_be_registered_only_for_tenant_pods,
        confinement::confinement_has_no_type_check_warning,
        confinement::palisade_can_be_uninstalled_and_reinstalled,
    ];
    let confined = scenarios![
        confinement::only_dry_runs_are_admitted_in_the_probe_namespace,
        confinement::only_the_controller_and_admins_may_write_parameters,
        parameters::tenants_can_neither_delete_nor_hold_nor_starve_parameters,
        confinement::only_admins_may_set_the_stage_of_a_namespace,
        approvals::only_approvers_may_approve_an_exception,
        confinement::controller_is_confined_to_its_own_objects,
        confinement::webhook_may_be_registered_only_for_tenant_pods,
        confinement::confinement_has_no_type_check_warning,
    ];
    let own = scenarios![confinement::static_policies_of_the_api_server_confine_the_controller];
    let own_profile = scenarios![files::a_profile_in_a_file_of_the_api_server_denies];
    let with_files =
        confinement::with_policies_of_its_own().and_then(|one| Ok((one, files::with_a_profile_of_its_own()?)));
    let ((own_policies, _directory), (with_own_profile, _profile)) = match with_files {
        Ok(found) => found,
        Err(error) => {
            eprintln!("a directory of policies: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Where no scenario reads the status of policies: checking their types took an eighth of the processors.
    let without_type_checks = || ControlPlane::builder().type_checks(false);
    let emulated = |version: &str| ControlPlane::builder().emulated_version(version);
    // Or it would serve the beta and not act by it.
    let acting = ["--feature-gates=MutatingAdmissionPolicy=true", "--emulation-forward-compatible=true"];
    // On a control plane of its own: each of these has the same namespaces.
    let others = scenarios![mutation::native_policy_mutates_corpus_pods_like_the_patch];
    // The longest come first: at the end no core waits for one of them.
    let groups = [
        ("1.36", without_type_checks(), maintained),
        ("1.36", without_type_checks(), reconciled),
        ("1.33", emulated("1.33"), oldest),
        ("1.36", ControlPlane::builder(), answers),
        // Its ReplicaSets have pods.
        ("1.36", without_type_checks().controllers(["replicaset-controller"]), judged),
        ("1.36", without_type_checks(), large),
        (
            "1.33",
            emulated("1.33").type_checks(false).audit(true).controllers(["replicaset-controller"]),
            rolled_out_on_the_oldest,
        ),
        ("1.33", emulated("1.33").type_checks(false), webhooks),
        ("1.35", emulated("1.35"), middle),
        // On a loaded machine the largest requests take longer than a minute.
        ("1.36", without_type_checks().apiserver_flags(["--request-timeout=20m"]), alone),
        ("1.35 beta", emulated("1.35").apiserver_flags(acting), beta),
        ("1.36 confined", ControlPlane::builder(), unprivileged),
        ("1.36 audited", ControlPlane::builder().audit(true), audited),
        ("1.33 confined", emulated("1.33"), confined),
        ("1.36 with policies of its own", own_policies, own),
        ("1.36 with a profile of its own", with_own_profile, own_profile),
        ("1.33 to 1.36", emulated("1.33"), upgraded),
        ("1.36 with large objects", without_type_checks(), memory),
        ("1.36 pods of others", without_type_checks(), others),
        ("1.36 to make fixtures", ControlPlane::builder(), made),
        ("1.33 with Prometheus", emulated("1.33"), scraped),
        ("1.36 by helm", ControlPlane::builder().controllers(palisade_tests::CONTROLLERS), by_helm),
        ("1.36 with a release", ControlPlane::builder().controllers(palisade_tests::CONTROLLERS), released),
    ];
    let lanes = Lanes::new(LANES);
    let all: Vec<_> = groups
        .into_iter()
        .flat_map(|(kind, control_plane, scenarios)| lanes.trials(kind, control_plane, scenarios))
        .map(|trial| if trial.name().contains("corpus_pods") { mutation::others().of(trial) } else { trial })
        .collect();
    // Each waits for its control plane.
    arguments.test_threads = Some(all.len());
    let conclusion = libtest_mimic::run(&arguments, all);
    lanes.print_slowest();
    lanes.print_failures();
    conclusion.exit_code()
}

//! Tests against upstream's own code: the oracle, and a real control plane. See README.md beside this file.
//!
//! `KS_CASES` and `KS_SEED` say how many random clusters are compared and where they start; with `KS_RECORD` the answers in
//! `tests/parity` are recorded anew.

mod behaviour;
#[expect(dead_code, reason = "shared with the tests in one process, which use more of it")]
#[path = "../it/certificates.rs"]
mod certificates;
mod citations;
mod embedded;
mod figures;
mod parity;
mod support;
mod surface;

use kube_scheduler::app::Allocator;
use libtest_mimic::{Arguments, Trial};

/// The binary's, whose profiles are looked at.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() {
    let mut arguments = Arguments::from_args();
    // One waits for most of its time; what more start takes the processors from one another.
    arguments.test_threads.get_or_insert(2);
    let trials = vec![
        Trial::test(
            "reasons_of_single_plugins_equal_upstreams",
            parity::clusters::reasons_of_single_plugins_equal_upstreams,
        ),
        Trial::test(
            "written_cases_are_readable_cluster_files",
            parity::clusters::written_cases_are_readable_cluster_files,
        ),
        Trial::test("citations_resolve", citations::citations_resolve),
        Trial::test(
            "decisions_on_random_clusters_equal_upstreams",
            parity::clusters::decisions_on_random_clusters_equal_upstreams,
        ),
        Trial::test(
            "batched_equal_pods_are_placed_as_upstream",
            parity::alike::batched_equal_pods_are_placed_as_upstream,
        ),
        Trial::test("recorded_answers_equal_upstreams", parity::record::recorded_answers_equal_upstreams),
        Trial::test("five_upstream_runs_differ_only_in_ties", parity::ties::five_upstream_runs_differ_only_in_ties),
        Trial::test("binds_500_pods", behaviour::binds::binds_500_pods),
        Trial::test("api_writes_equal_upstreams", behaviour::effects::api_writes_equal_upstreams),
        Trial::test("out_of_tree_plugin_reads_services", behaviour::needs::out_of_tree_plugin_reads_services),
        Trial::test(
            "a_plugin_from_outside_reads_custom_objects",
            behaviour::needs::a_plugin_from_outside_reads_custom_objects,
        ),
        Trial::test("pods_are_requeued_as_upstream", behaviour::requeue::pods_are_requeued_as_upstream),
        Trial::test("random_sequences_give_equal_writes", behaviour::abreast::random_sequences_give_equal_writes),
        Trial::test("recorded_sequences_give_equal_writes", behaviour::abreast::recorded_sequences_give_equal_writes),
        Trial::test(
            "each_scheduler_binds_only_its_own_pods",
            behaviour::beside::each_scheduler_binds_only_its_own_pods,
        ),
        Trial::test("survives_being_killed", behaviour::survives::survives_being_killed),
        Trial::test("survives_control_plane_failures", behaviour::survives::survives_control_plane_failures),
        Trial::test("survives_faulty_connections", behaviour::survives::survives_faulty_connections),
        Trial::test("survives_clock_steps", behaviour::survives::survives_clock_steps),
        Trial::test("survives_churn", behaviour::survives::survives_churn),
        Trial::test("surface::leader_election_equals_upstreams", surface::election::leader_election_equals_upstreams),
        Trial::test(
            "surface::coordinated_leader_election_equals_upstreams",
            surface::election::coordinated_leader_election_equals_upstreams,
        ),
        Trial::test(
            "surface::another_replica_leads_after_each_failure",
            surface::election::another_replica_leads_after_each_failure,
        ),
        Trial::test("surface::metrics_equal_upstreams", surface::families::metrics_equal_upstreams),
        Trial::test(
            "surface::every_monitoring_expression_has_data",
            surface::scraped::every_monitoring_expression_has_data,
        ),
        Trial::test("surface::flags_equal_upstreams", surface::flags_equal_upstreams),
        Trial::test("surface::feature_gates_equal_upstreams", surface::feature_gates_equal_upstreams),
        Trial::test("surface::command_lines_are_parsed_as_upstream", surface::command_lines_are_parsed_as_upstream),
        Trial::test("surface::configurations_are_parsed_as_upstream", surface::configurations_are_parsed_as_upstream),
        Trial::test(
            "surface::kubeconfigs_are_loaded_as_upstream",
            surface::clients::kubeconfigs_are_loaded_as_upstream,
        ),
        Trial::test(
            "surface::server_failures_are_tolerated_as_upstream",
            surface::clients::server_failures_are_tolerated_as_upstream,
        ),
        Trial::test("surface::user_agents_equal_upstreams", surface::clients::user_agents_equal_upstreams),
        Trial::test("explains_a_running_cluster", surface::explain::explains_a_running_cluster),
        Trial::test("kubectl_output_equals_the_real_servers", embedded::kubectl_output_equals_the_real_servers),
        Trial::test(
            "both_schedule_1000_pods_on_the_embedded_server",
            embedded::both_schedule_1000_pods_on_the_embedded_server,
        ),
        Trial::test("extender_requests_equal_upstreams", behaviour::extenders::extender_requests_equal_upstreams),
        Trial::test(
            "embedded_server_responds_as_the_real_one",
            embedded::replay::embedded_server_responds_as_the_real_one,
        ),
        Trial::test("surface::endpoints_respond_as_upstream", surface::endpoints::endpoints_respond_as_upstream),
        Trial::test(
            "surface::invalid_serving_options_are_rejected_as_upstream",
            surface::endpoints::invalid_serving_options_are_rejected_as_upstream,
        ),
        Trial::test(
            "surface::unauthorized_requests_are_rejected_as_upstream",
            surface::endpoints::unauthorized_requests_are_rejected_as_upstream,
        ),
        Trial::test("surface::changed_files_are_reloaded", surface::endpoints::changed_files_are_reloaded),
        Trial::test(
            "surface::manifests_work_with_exactly_their_granted_rights",
            surface::deploy::manifests_work_with_exactly_their_granted_rights,
        ),
        Trial::test("measures_both_schedulers", figures::measures_both_schedulers).with_ignored_flag(true),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

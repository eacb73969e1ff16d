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
        Trial::test("unreachable_reasons", parity::clusters::unreachable_reasons),
        Trial::test("cases_are_cluster_files", parity::clusters::cases_are_cluster_files),
        Trial::test("citations_resolve", citations::citations_resolve),
        Trial::test("random_clusters", parity::clusters::random_clusters),
        Trial::test("pods_that_are_alike", parity::alike::pods_that_are_alike),
        Trial::test("recorded_answers_are_upstreams", parity::record::recorded_answers_are_upstreams),
        Trial::test("five_runs_agree_but_for_ties", parity::ties::five_runs_agree_but_for_ties),
        Trial::test("binds_500_pods", behaviour::binds::binds_500_pods),
        Trial::test("writes_what_upstream_writes", behaviour::effects::writes_what_upstream_writes),
        Trial::test("a_plugin_from_outside_reads_services", behaviour::needs::a_plugin_from_outside_reads_services),
        Trial::test(
            "a_plugin_from_outside_reads_custom_objects",
            behaviour::needs::a_plugin_from_outside_reads_custom_objects,
        ),
        Trial::test("wakes_pods_as_upstream_does", behaviour::requeue::wakes_pods_as_upstream_does),
        Trial::test(
            "both_write_the_same_in_random_sequences",
            behaviour::abreast::both_write_the_same_in_random_sequences,
        ),
        Trial::test(
            "both_write_the_same_in_recorded_sequences",
            behaviour::abreast::both_write_the_same_in_recorded_sequences,
        ),
        Trial::test("each_scheduler_keeps_to_its_own_pods", behaviour::beside::each_scheduler_keeps_to_its_own_pods),
        Trial::test("survives_being_killed", behaviour::survives::survives_being_killed),
        Trial::test(
            "survives_what_befalls_the_control_plane",
            behaviour::survives::survives_what_befalls_the_control_plane,
        ),
        Trial::test("survives_faulty_connections", behaviour::survives::survives_faulty_connections),
        Trial::test("survives_clock_steps", behaviour::survives::survives_clock_steps),
        Trial::test("survives_churn", behaviour::survives::survives_churn),
        Trial::test("surface::elects_as_upstream_does", surface::election::elects_as_upstream_does),
        Trial::test(
            "surface::elects_by_coordination_as_upstream_does",
            surface::election::elects_by_coordination_as_upstream_does,
        ),
        Trial::test("surface::three_replicas_take_turns", surface::election::three_replicas_take_turns),
        Trial::test("surface::metrics_are_upstreams", surface::families::metrics_are_upstreams),
        Trial::test(
            "surface::prometheus_finds_what_it_looks_for",
            surface::scraped::prometheus_finds_what_it_looks_for,
        ),
        Trial::test("surface::flags_are_upstreams", surface::flags_are_upstreams),
        Trial::test("surface::gates_are_upstreams", surface::gates_are_upstreams),
        Trial::test("surface::command_lines_are_read_the_same", surface::command_lines_are_read_the_same),
        Trial::test("surface::configurations_are_read_the_same", surface::configurations_are_read_the_same),
        Trial::test("surface::clients_read_kubeconfigs_the_same", surface::clients::read_kubeconfigs_the_same),
        Trial::test("surface::clients_outlast_the_same_servers", surface::clients::outlast_the_same_servers),
        Trial::test("surface::clients_call_themselves_the_same", surface::clients::call_themselves_the_same),
        Trial::test("explains_a_running_cluster", surface::explain::explains_a_running_cluster),
        Trial::test(
            "kubectl_sees_the_same_on_the_embedded_server",
            embedded::kubectl_sees_the_same_on_the_embedded_server,
        ),
        Trial::test(
            "upstream_schedules_a_thousand_pods_on_the_embedded_server",
            embedded::upstream_schedules_a_thousand_pods_on_the_embedded_server,
        ),
        Trial::test("extenders_are_asked_the_same", behaviour::extenders::extenders_are_asked_the_same),
        Trial::test(
            "embedded_server_answers_as_the_real_one",
            embedded::replay::embedded_server_answers_as_the_real_one,
        ),
        Trial::test("surface::endpoints_answer_as_upstreams", surface::endpoints::endpoints_answer_as_upstreams),
        Trial::test(
            "surface::what_cannot_be_served_is_refused_the_same",
            surface::endpoints::what_cannot_be_served_is_refused_the_same,
        ),
        Trial::test("surface::who_may_not_is_served_nothing", surface::endpoints::who_may_not_is_served_nothing),
        Trial::test("surface::files_that_change_are_read_again", surface::endpoints::files_that_change_are_read_again),
        Trial::test("surface::deploys_as_manifests_say", surface::deploy::deploys_as_manifests_say),
        Trial::test("measures_both_schedulers", figures::measures_both_schedulers).with_ignored_flag(true),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

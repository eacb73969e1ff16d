//! Tests of the validation of services.

use super::*;
use crate::apiserver::defaulting;
use crate::apiserver::kinds::SERVICES;
use crate::config::FeatureGates;

#[track_caller]
fn check_spec(spec: &Value, expected: &[&str]) {
    check_with(&FeatureGates::default(), json!({"metadata": {"name": "s"}, "spec": spec}), expected);
}

#[track_caller]
fn check_with(gates: &FeatureGates, mut service: Value, expected: &[&str]) {
    defaulting::apply(&SERVICES, &mut service, None, gates);
    let mut errors = Errors::new(gates);
    check(&service, &mut errors);
    let errors: Vec<String> = errors.into_list().iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected, "{service}");
}

#[test]
fn valid_services_pass() {
    check_spec(&json!({"ports": [{"port": 80}]}), &[]);
    check_spec(&json!({"clusterIP": "None", "selector": {"a": "b"}}), &[]);
    check_spec(&json!({"type": "ExternalName", "externalName": "a.example."}), &[]);
    check_spec(&json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]}), &[]);
    check_spec(
        &json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"], "ipFamilies": ["IPv4", "IPv6"],
            "ipFamilyPolicy": "RequireDualStack", "sessionAffinity": "ClientIP", "trafficDistribution": "PreferClose",
            "ports": [{"name": "a", "port": 80, "targetPort": "http"}, {"name": "b", "port": 80, "protocol": "UDP"}]}),
        &[],
    );
}

#[test]
fn ports_are_checked() {
    check_spec(&json!({}), &["spec.ports: Required value"]);
    let range = "must be between 1 and 65535, inclusive";
    check_spec(
        &json!({"ports": [{"port": -1}]}),
        &[
            &format!("spec.ports[0].port: Invalid value: -1: {range}"),
            &format!("spec.ports[0].targetPort: Invalid value: -1: {range}"),
        ],
    );
    check_spec(
        &json!({"ports": [{"port": 80, "protocol": "x"}, {"port": 80, "name": "A", "nodePort": 30000, "appProtocol": "a b"}]}),
        &[
            "spec.ports[0].name: Required value",
            "spec.ports[0].protocol: Unsupported value: \"x\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
            &format!("spec.ports[1].name: Invalid value: \"A\": {}", names::dns1123_label_errors("A")[0]),
            &format!("spec.ports[1].appProtocol: Invalid value: \"a b\": {}", names::qualified_name_errors("a b")[0]),
            "spec.ports[1].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ],
    );
    check_spec(
        &json!({"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "a", "targetPort": "http--x"}]}),
        &[
            "spec.ports[1].name: Duplicate value: \"a\"",
            "spec.ports[1].targetPort: Invalid value: \"http--x\": must not contain consecutive hyphens",
            "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\
             \"TargetPort\":0,\"NodePort\":0}",
        ],
    );
}

#[test]
fn selectors_are_labels() {
    check_spec(
        &json!({"ports": [{"port": 80}], "selector": {"app": "a b"}}),
        &[&format!("spec.selector: Invalid value: \"a b\": {}", names::label_value_errors("a b")[0])],
    );
}

#[test]
fn types_decide_what_may_be_set() {
    check_spec(
        &json!({"type": "x", "ports": [{"port": 80}]}),
        &["spec.type: Unsupported value: \"x\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \
             \"NodePort\""],
    );
    check_spec(
        &json!({"type": "ExternalName", "clusterIP": "10.0.0.1"}),
        &["spec.clusterIPs: Forbidden: may not be set for ExternalName services", "spec.externalName: Required value"],
    );
    check_spec(
        &json!({"type": "NodePort", "clusterIP": "None", "ports": [{"port": 80}]}),
        &["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
    );
    let only = "may only be used when `type` is 'LoadBalancer'";
    check_spec(
        &json!({"ports": [{"port": 80}], "loadBalancerClass": "a/b", "loadBalancerSourceRanges": ["10.0.0.1/8"],
            "externalTrafficPolicy": "Local", "healthCheckNodePort": 30000}),
        &[
            &format!("spec.LoadBalancerSourceRanges: Forbidden: {only}"),
            "spec.LoadBalancerSourceRanges[0]: Invalid value: \"10.0.0.1/8\": must not have bits set beyond the prefix length",
            &format!("spec.loadBalancerClass: Forbidden: {only}"),
            "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible services",
            "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and \
             `externalTrafficPolicy` is 'Local'",
        ],
    );
}

#[test]
fn addresses_are_checked() {
    let ports = json!([{"port": 80}]);
    check_spec(
        &json!({"ports": ports, "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "10.0.0.2"]}),
        &[
            "spec.clusterIPs: Invalid value: [\"10.0.0.1\",\"10.0.0.2\"]: may specify no more than one IP for each IP family",
        ],
    );
    check_spec(
        &json!({"ports": ports, "clusterIP": "fd00::1", "ipFamilies": ["IPv4"]}),
        &["spec.clusterIPs[0]: Invalid value: \"fd00::1\": expected an IPv4 value as indicated by `ipFamilies[0]`"],
    );
    check_spec(
        &json!({"ports": ports, "externalIPs": ["127.0.0.1", "x"]}),
        &[
            "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
            "spec.externalIPs[1]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ],
    );
}

#[test]
fn session_affinity_has_a_time() {
    check_spec(
        &json!({"ports": [{"port": 80}], "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86_401}}}),
        &[
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than \
             86400",
        ],
    );
}

#[test]
fn distributions_depend_on_a_gate() {
    let service = json!({"spec": {"ports": [{"port": 80}], "trafficDistribution": "PreferSameNode"}});
    check_with(&FeatureGates::default(), service.clone(), &[]);
    check_with(
        &FeatureGates::default().with(Gate::PreferSameTrafficDistribution, false),
        service,
        &["spec.trafficDistribution: Unsupported value: \"PreferSameNode\": supported values: \"PreferClose\""],
    );
}

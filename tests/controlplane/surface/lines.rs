//! Command lines, read by both binaries.

use libtest_mimic::Failed;

use super::{Whose, judge, scratch};

/// Each ends by itself: with an error, or after printing something.
const LINES: &[&str] = &[
    "",
    "--version",
    "--version=true",
    "--version=false",
    "--version=v1.36.3-mine",
    "--version=v1.35.0",
    "--version=vx",
    "--version=x",
    "foo",
    "foo bar",
    "simulat",
    "-- --leader-elect",
    "--bogus",
    "--bogus=1",
    "--bogus_flag",
    "---x",
    "--=5",
    "-x",
    "-vx",
    "-v",
    "-v -1",
    "-v=4294967296",
    "--v x",
    "--config",
    "--config=",
    "--config=/nonexistent.yaml",
    "--config /nonexistent.yaml --v 2",
    "--config=.",
    "--master",
    "--master=::",
    "--kubeconfig=/nonexistent",
    "--kubeconfig=/nonexistent --master=https://127.0.0.1:1",
    "--leader-elect=x",
    "--leader-elect=False --bogus",
    "--leader_elect=maybe",
    "--leader-elect false",
    "--leader-elect-lease-duration=5",
    "--leader-elect-lease-duration=x",
    "--leader-elect-renew-deadline=-",
    "--leader-elect-retry-period=1h1",
    "--kube-api-qps=x",
    "--kube-api-qps=1e99",
    "--kube-api-burst=x",
    "--kube-api-burst=2147483648",
    "--kube-api-burst=0x",
    "--kube-api-burst=0x_1f",
    "--kube-api-burst=1__0",
    "--pod-max-in-unschedulable-pods-duration=5",
    "--profiling=x",
    "--contention-profiling=7",
    "--secure-port=70000",
    "--secure-port=-1",
    "--secure-port=x",
    "--secure-port=9223372036854775808",
    "--bind-address=x",
    "--bind-address=1.2.3",
    "--bind-address=",
    "--cert-dir",
    "--disable-http2-serving=x",
    "--http2-max-streams-per-connection=x",
    "--permit-port-sharing=x",
    "--permit-address-sharing=2",
    "--tls-curve-preferences=a",
    "--tls-curve-preferences=",
    "--tls-sni-cert-key=a",
    "--tls-sni-cert-key=a,b,c",
    "--tls-sni-cert-key=a,b:",
    "--tls-cipher-suites=\"",
    "--authentication-token-webhook-cache-ttl=x",
    "--authentication-skip-lookup=x",
    "--authentication-tolerate-lookup-failure=x",
    "--requestheader-allowed-names= ",
    "--requestheader-username-headers=,",
    "--requestheader-group-headers=a,",
    "--requestheader-extra-headers-prefix= ,b",
    "--requestheader-uid-headers=a",
    "--requestheader-uid-headers=a --feature-gates=RemoteRequestHeaderUID=false",
    "--requestheader-uid-headers=x-remote-uid,",
    "--authorization-webhook-cache-authorized-ttl=x",
    "--authorization-always-allow-paths=a\"",
    "--feature-gates=Nope=true",
    "--feature-gates=Nope",
    "--feature-gates=SchedulerPopFromBackoffQ=maybe",
    "--feature-gates=DynamicResourceAllocation=false",
    "--feature-gates=GangScheduling=true",
    "--feature-gates=other:X=true",
    "--feature-gates=kube:AllAlpha=x",
    "--feature-gates=kube:PodLevelResources=true,SchedulerPopFromBackoffQ=true",
    "--emulated-version=1.30",
    "--emulated-version=x",
    "--emulated-version=other=1.35",
    "--min-compatibility-version=1.36 --emulated-version=1.35",
    "--min-compatibility-version=1.20",
    "--allow-metric-labels=x",
    "--allow-metric-labels=a=1,b",
    "--disabled-metrics=\"",
    "--disabled-metrics=1x,b",
    "--allow-metric-labels-manifest=/nowhere/labels",
    "--allow-metric-labels-manifest=. --secure-port=70000",
    "--allow-metric-labels=a,b=c --allow-metric-labels-manifest=/nowhere/labels --disabled-metrics=a.b",
    "--kube-api-qps=+nan",
    "--show-hidden-metrics-for-version=1.30",
    "--show-hidden-metrics-for-version=x --secure-port=-5",
    "--log-flush-frequency=0s",
    "--log-flush-frequency=-1s",
    "--log-flush-frequency=x",
    "--log-json-info-buffer-size=x",
    "--log-json-info-buffer-size=1Ki",
    "--log-json-split-stream",
    "--log-text-split-stream --log-text-info-buffer-size=5",
    "--logging-format=foo",
    "--logging-format=",
    "--logging-format=json",
    "--logging-format=json --vmodule=a=1",
    "--logging-format=json --feature-gates=LoggingBetaOptions=false",
    "--logging-format=foo --secure-port=-1",
    "--vmodule=x",
    "--vmodule=x=y",
    "--vmodule=a=b=c",
    "--write-config-to",
];

/// Same exit code and same error, and what is printed of the version.
pub(crate) fn command_lines_are_parsed_as_upstream() -> Result<(), Failed> {
    let folder = scratch("lines")?;
    judge(
        LINES,
        |line| format!("kube-scheduler {line}"),
        |line| {
            // Words are separated by one blank; `= ` is a value that is one.
            let arguments: Vec<String> = split(line);
            let theirs = Whose::Upstreams.run(&arguments, &folder)?;
            let ours = Whose::Ours.run(&arguments, &folder)?;
            Ok((theirs != ours).then(|| format!("  upstream {theirs:?}\n  ours     {ours:?}")))
        },
    )?;
    Ok(std::fs::remove_dir_all(folder).map_err(|error| error.to_string())?)
}

fn split(line: &str) -> Vec<String> {
    if line.ends_with("= ") || line.contains("= ,") {
        return vec![line.to_owned()];
    }
    line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

//! Paths of the endpoints and the pages behind them.

use std::io::Read as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::reviewer::{Known, Reviewer};
use super::{Running, options};

const ROOT: &[(&str, &str)] = &[("authorization", "Bearer root")];

async fn start() -> Running {
    let known = Known { tokens: vec![("root", "root", vec!["system:masters"])], ..Known::default() };
    Running::start(options(), Some(&Reviewer::new(known))).await
}

#[tokio::test]
async fn paths_respond_as_upstream() {
    let running = start().await;
    let plain = "text/plain; charset=utf-8";
    let metrics = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
    let check = async |method: &str, path: &str, status: u16, kind: Option<&str>, body: &str| {
        let got = running.client.ask(method, path, ROOT, "").await.expect("an answer");
        let shown = (got.status, got.header("content-type"), got.text());
        assert!(shown.0 == status && shown.1 == kind && shown.2.contains(body), "{method} {path}: {shown:?}");
        assert_eq!(got.header("cache-control"), Some("no-cache, private"));
    };
    for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        check(method, "/healthz", 200, Some(plain), "ok").await;
        check(method, "/configz", 200, Some("application/json"), "{\"componentconfig\":{").await;
    }
    check("GET", "/configz", 200, Some("application/json"), "\"name\":\"\\u003ca\\u003e\"").await;
    check("GET", "/livez?verbose", 200, Some(plain), "[+]ping ok\nlivez check passed\n").await;
    check("GET", "/readyz?verbose", 200, Some(plain), "[+]well ok\n[+]ill ok\nreadyz check passed\n").await;
    check("GET", "/readyz/ill", 200, Some(plain), "ok").await;
    for path in
        ["/", "/version", "/api", "/healthz/", "/healthz/nope", "/readyz/ping", "/metrics/", "/debug", "//healthz"]
    {
        check("GET", path, 404, Some(plain), "404 page not found\n").await;
    }
    check("GET", "/%68ealthz", 200, Some(plain), "ok").await;
    check("GET", "/flagz", 200, Some(plain), "\nkube-scheduler flagz\n").await;
    check("GET", "/statusz", 200, Some(plain), "/configz /flagz /healthz /livez /metrics /readyz\n").await;
    check("GET", "/metrics", 200, Some(metrics), "counted_total 0\n").await;
    check("GET", "/metrics", 200, Some(metrics), "authentication_attempts{result=\"success\"}").await;
    check("GET", "/metrics/slis", 200, Some(metrics), "kubernetes_healthcheck{name=\"well\",type=\"readyz\"} 1\n")
        .await;
    check("GET", "/metrics/resources", 200, None, "").await;
    let binary = Some("application/octet-stream");
    for profile in ["allocs", "block", "goroutine", "heap", "mutex", "threadcreate"] {
        check("GET", &format!("/debug/pprof/{profile}"), 200, binary, "").await;
        check("GET", &format!("/debug/pprof/{profile}?debug=1"), 200, Some(plain), "profile: total ").await;
    }
    check("GET", "/debug/pprof/", 200, Some("text/html; charset=utf-8"), "<a href='heap?debug=1'>heap</a>").await;
    check("GET", "/debug/pprof/cmdline", 404, Some(plain), "Unknown profile\n").await;
    check("GET", "/debug/pprof/trace", 501, Some(plain), "Execution traces are not supported").await;
    check("POST", "/debug/pprof/symbol", 200, Some(plain), "num_symbols: 1\n").await;
    check("GET", "/debug/pprof", 302, Some("text/html; charset=utf-8"), "<a href=\"/debug/pprof/\">Found</a>.\n\n")
        .await;
    for path in ["/debug/flags", "/debug/flags/", "/debug/flags/x"] {
        check("GET", path, 200, Some("text/html; charset=utf-8"), "<tr>v<br>\n").await;
    }
}

#[tokio::test]
async fn head_response_has_no_body() {
    let running = start().await;
    for protocol in ["h2", "http/1.1"] {
        let got = running.client.speaking(&[protocol]).ask("HEAD", "/healthz", ROOT, "").await.expect("an answer");
        assert_eq!((got.status, got.header("content-length"), got.text().as_str()), (200, Some("2"), ""), "{protocol}");
    }
}

#[tokio::test]
async fn failed_check_reason_is_withheld_from_anonymous_users() {
    let running = start().await;
    running.dials.ill.store(true, Ordering::Relaxed);
    let got = running.client.get("/readyz", None).await;
    let expected = "[+]well ok\n[-]ill failed: reason withheld\nreadyz check failed\n";
    assert_eq!((got.status, got.text().as_str()), (500, expected));
    let one = running.client.ask("GET", "/readyz/ill", ROOT, "").await.expect("an answer");
    assert_eq!((one.status, one.text().as_str()), (500, "internal server error: it aches\n"));
    assert_eq!(running.client.get("/readyz?exclude=ill", None).await.text(), "ok");
    let slis = running.client.ask("GET", "/metrics/slis", ROOT, "").await.expect("an answer").text();
    let line = "kubernetes_healthchecks_total{name=\"ill\",status=\"error\",type=\"readyz\"} 1\n";
    assert!(slis.contains(line), "{slis}");
}

#[tokio::test]
async fn delete_resets_metrics() {
    let running = start().await;
    running.dials.counted.inc();
    assert_eq!(running.client.get("/healthz", None).await.status, 200);
    let ask = async |method: &str, path: &str| running.client.ask(method, path, ROOT, "").await.expect("an answer");
    assert!(ask("GET", "/metrics").await.text().contains("counted_total 1\n"));
    for path in ["/metrics", "/metrics/slis"] {
        let got = ask("DELETE", path).await;
        assert_eq!((got.status, got.text().as_str()), (200, "metrics reset\n"), "{path}");
    }
    assert!(ask("GET", "/metrics").await.text().contains("counted_total 0\n"));
    let slis = ask("GET", "/metrics/slis").await.text();
    assert_eq!(slis, "", "the start of the process is forgotten too, as upstream has it");
}

#[tokio::test]
async fn leader_serves_resource_metrics() {
    let running = start().await;
    running.dials.leads.store(true, Ordering::Relaxed);
    let got = running.client.ask("GET", "/metrics/resources", ROOT, "").await.expect("an answer");
    let kind = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
    assert_eq!((got.status, got.header("content-type"), got.text().as_str()), (200, Some(kind), ""));
    assert_eq!(got.header("process-start-time-unix"), Some("1796011859"));
}

/// Burns some tenths of a second of processor time.
#[inline(never)]
fn burn() -> u64 {
    (0..40_000_000).fold(0u64, |sum, at| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(at)))
}

#[tokio::test(flavor = "multi_thread")]
async fn cpu_profile_has_symbols_and_runs_one_at_a_time() {
    let running = start().await;
    let client = running.client.clone();
    let ask = async move || client.ask("GET", "/debug/pprof/profile?seconds=1", ROOT, "").await.expect("an answer");
    let asking = tokio::spawn({
        let ask = ask.clone();
        async move { ask().await }
    });
    let end = running.clock.now().mono + Duration::from_secs(1);
    running.eventually("a profile", async || running.clock.next_deadline() == Some(end)).await;
    let refused = ask().await;
    let expected = "Could not enable CPU profiling: cpu profiling already in use\n";
    assert_eq!((refused.status, refused.text().as_str()), (500, expected));
    assert_eq!(refused.header("x-go-pprof"), Some("1"));
    std::hint::black_box(burn());
    running.until("its end", async || asking.is_finished()).await;
    let profile = asking.await.expect("an answer");
    assert_eq!((profile.status, profile.header("content-type")), (200, Some("application/octet-stream")));
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&profile.body[..]).read_to_end(&mut text).expect("a whole profile");
    let named = String::from_utf8_lossy(&text).contains("it::serve::pages::burn");
    assert!(named, "what has taken the time is not named");
}

#[tokio::test]
async fn put_sets_the_log_verbosity() {
    let running = start().await;
    let check = async |method: &str, body: &str, status: u16, expected: &str| {
        let got = running.client.ask(method, "/debug/flags/v", ROOT, body).await.expect("an answer");
        assert_eq!((got.status, got.text().as_str()), (status, expected));
        assert_eq!(got.header("content-type"), Some("text/plain"));
    };
    check("PUT", "4", 200, "successfully set klog.logging.verbosity to 4\n").await;
    assert_eq!(running.dials.verbosity.load(Ordering::Relaxed), 4);
    check("PUT", "abc", 400, "strconv.ParseUint: parsing \"abc\": invalid syntax\n").await;
    check("GET", "", 406, "unsupported http method\n").await;
    assert_eq!(running.dials.verbosity.load(Ordering::Relaxed), 4);
    let got = running.client.ask("PUT", "/debug/flags/v", &[], "4").await.expect("an answer");
    assert_eq!(got.status, 403);
}

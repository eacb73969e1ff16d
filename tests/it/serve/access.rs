//! Authentication and authorization of requests to the endpoints.

use std::time::Duration;

use kube_scheduler::serve::{AuthenticationOptions, AuthorizationOptions, Options, RequestHeaderOptions};
use serde_json::json;

use super::reviewer::{Known, Reviewer};
use super::{Folder, Running, authority, bind, identity, options, refused};

const CONFIG_MAP: &str = "extension-apiserver-authentication";

fn with_authentication(authentication: AuthenticationOptions) -> Options {
    Options { authentication, ..options() }
}

fn some_users() -> Known {
    Known {
        tokens: vec![("a", "alice", vec!["team"]), ("b", "bob", vec![]), ("m", "max", vec!["system:masters"])],
        allowed: vec!["alice"],
        ..Known::default()
    }
}

/// Starts a server, and an API server that knows some users.
async fn start() -> (Reviewer, Running) {
    let reviewer = Reviewer::new(some_users());
    let running = Running::start(options(), Some(&reviewer)).await;
    (reviewer, running)
}

/// Nobody is asked, so nobody is known.
#[tokio::test]
async fn without_an_api_server_only_open_paths_are_served() {
    let running = Running::start(options(), None).await;
    let check = async |path: &str, token: Option<&str>, status: u16| {
        assert_eq!(running.status(path, token).await, status, "{path}");
    };
    check("/healthz", None, 200).await;
    check("/livez", Some("whatever"), 200).await;
    check("/healthz/ping", None, 403).await;
    check("/metrics", None, 403).await;
    check("/metrics", Some("whatever"), 403).await;
    check("/nothing", None, 403).await;
    let got = running.client.get("/metrics", Some("whatever")).await;
    let message = "forbidden: User \\\"system:anonymous\\\" cannot get path \\\"/metrics\\\"";
    assert!(got.text().contains(message), "{}", got.text());
}

#[tokio::test]
async fn a_token_is_asked_about_once_while_its_answer_is_good() {
    let (reviewer, running) = start().await;
    let check = async |token: &str, status: u16, asked: [usize; 2]| {
        assert_eq!(running.status("/configz", Some(token)).await, status, "{token}");
        assert_eq!(["tokenreviews", "subjectaccessreviews"].map(|what| reviewer.count(what)), asked, "{token}");
    };
    check("a", 200, [1, 1]).await;
    check("a", 200, [1, 1]).await;
    check("b", 403, [2, 2]).await;
    check("b", 403, [2, 2]).await;
    check("x", 401, [3, 2]).await;
    check("x", 401, [3, 2]).await;
    check("m", 200, [4, 2]).await;
    running.clock.advance(Duration::from_secs(10));
    check("a", 200, [5, 3]).await;
    let asked = reviewer.known().asked.clone();
    let spec = &asked.iter().find(|(path, _)| path.ends_with("subjectaccessreviews")).expect("it was asked").1["spec"];
    let expected = json!({"user": "alice", "groups": ["team", "system:authenticated"],
        "nonResourceAttributes": {"path": "/configz", "verb": "get"}});
    assert_eq!(*spec, expected);
}

#[tokio::test]
async fn a_token_that_is_taken_back_serves_no_longer_than_its_answer_is_good() {
    let (reviewer, running) = start().await;
    assert_eq!(running.status("/configz", Some("a")).await, 200);
    reviewer.known().tokens.clear();
    running.clock.advance(Duration::from_secs(9));
    assert_eq!(running.status("/configz", Some("a")).await, 200);
    running.clock.advance(Duration::from_secs(1));
    assert_eq!(running.status("/configz", Some("a")).await, 401);
}

#[tokio::test]
async fn a_right_that_is_taken_back_serves_no_longer_than_its_answer_is_good() {
    let reviewer = Reviewer::new(some_users());
    let authorization = AuthorizationOptions { allow_ttl: Duration::from_secs(5), ..AuthorizationOptions::default() };
    let running = Running::start(Options { authorization, ..options() }, Some(&reviewer)).await;
    assert_eq!(running.status("/configz", Some("a")).await, 200);
    reviewer.known().allowed.clear();
    reviewer.known().reason = "no more <b>";
    assert_eq!(running.status("/configz", Some("a")).await, 200);
    running.clock.advance(Duration::from_secs(5));
    let got = running.client.get("/configz", Some("a")).await;
    assert_eq!(got.status, 403);
    let message = "User \\\"alice\\\" cannot get path \\\"/configz\\\": no more \\u003cb\\u003e";
    assert!(got.text().contains(message), "{}", got.text());
}

#[tokio::test]
async fn an_api_server_that_cannot_be_asked_means_no() {
    let (reviewer, running) = start().await;
    assert_eq!(running.status("/configz", Some("a")).await, 200);
    reviewer.known().failure = Some(403);
    assert_eq!(running.status("/configz", Some("a")).await, 200, "the answers are good still");
    assert_eq!(running.status("/flagz", Some("b")).await, 401, "who it is cannot be told");
    let got = running.client.get("/flagz", Some("a")).await;
    assert_eq!((got.status, got.text()), (500, "Internal Server Error: \"/flagz\": it is ill\n".to_owned()));
    assert_eq!(got.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(running.status("/healthz", None).await, 200);
    reviewer.known().failure = None;
    assert_eq!(running.status("/flagz", Some("a")).await, 200, "failures are not kept");
}

/// What may pass is asked again, five times in all, with waits in between.
#[tokio::test]
async fn an_api_server_that_is_ill_is_asked_again() {
    let (reviewer, running) = start().await;
    assert_eq!(running.status("/configz", Some("a")).await, 200);
    reviewer.known().failure = Some(500);
    let client = running.client.clone();
    let asking = tokio::spawn(async move { client.get("/flagz", Some("a")).await.status });
    running.until("the answer", async || asking.is_finished()).await;
    assert_eq!(asking.await.expect("an answer"), 500);
    assert_eq!(reviewer.count("subjectaccessreviews"), 1 + 5);
}

#[tokio::test]
async fn a_certificate_says_who_one_is_if_its_authority_is_known() {
    let (folder, known, stranger) = (Folder::new(), authority("known"), authority("stranger"));
    let reviewer = Reviewer::new(Known { allowed: vec!["carol"], ..some_users() });
    let client_ca_file = folder.write("ca.crt", &known.pem());
    let authentication = AuthenticationOptions { client_ca_file, ..AuthenticationOptions::default() };
    let running = Running::start(with_authentication(authentication), Some(&reviewer)).await;
    let check = async |who: &super::Identity, token: Option<&str>, status: u16| {
        assert_eq!(running.client.with(who).get("/configz", token).await.status, status);
    };
    let carol = identity(&known, "carol", &[], |_| ());
    check(&carol, None, 200).await;
    check(&identity(&known, "dave", &["system:masters"], |_| ()), None, 200).await;
    check(&identity(&known, "dave", &[], |_| ()), None, 403).await;
    let wrong = identity(&stranger, "carol", &["system:masters"], |_| ());
    check(&wrong, None, 401).await;
    check(&wrong, Some("m"), 200).await;
    let over = |params: &mut rcgen::CertificateParams| params.not_after = rcgen::date_time_ymd(2026, 11, 30);
    check(&identity(&known, "carol", &[], over), None, 401).await;
    let server = |params: &mut rcgen::CertificateParams| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    };
    check(&identity(&known, "carol", &[], server), None, 401).await;
    check(&identity(&known, "", &["system:masters"], |_| ()), None, 403).await;

    folder.write("ca.crt", "not a certificate");
    running.clock.advance(Duration::from_secs(2));
    check(&carol, None, 200).await;
    folder.write("ca.crt", &stranger.pem());
    let status = async |who| running.client.with(who).get("/configz", None).await.status;
    running.until("the other authority", async || status(&wrong).await == 200).await;
    check(&carol, None, 401).await;
}

#[tokio::test]
async fn a_front_proxy_speaks_for_others() {
    let (folder, proxies, stranger) = (Folder::new(), authority("proxies"), authority("stranger"));
    let reviewer = Reviewer::new(some_users());
    let request_header = RequestHeaderOptions {
        client_ca_file: folder.write("proxies.crt", &proxies.pem()),
        allowed_names: vec!["front-proxy".to_owned()],
        ..RequestHeaderOptions::default()
    };
    let authentication = AuthenticationOptions { request_header, ..AuthenticationOptions::default() };
    let running = Running::start(with_authentication(authentication), Some(&reviewer)).await;
    let check = async |who: Option<&super::Identity>, headers: &[(&str, &str)], status: u16| {
        let client = who.map_or(running.client.clone(), |who| running.client.with(who));
        let got = client.ask("GET", "/configz", headers, "").await.expect("an answer");
        assert_eq!(got.status, status, "{headers:?}");
    };
    let proxy = identity(&proxies, "front-proxy", &[], |_| ());
    check(Some(&proxy), &[("x-remote-user", "alice")], 200).await;
    check(Some(&proxy), &[("x-remote-user", "eve")], 403).await;
    check(Some(&proxy), &[("x-remote-user", "eve"), ("x-remote-group", "system:masters")], 200).await;
    check(Some(&proxy), &[], 403).await;
    let headers = [("x-remote-user", "alice"), ("x-remote-group", "system:masters")];
    check(None, &headers, 403).await;
    check(Some(&identity(&proxies, "somebody", &[], |_| ())), &headers, 401).await;
    check(Some(&identity(&stranger, "front-proxy", &[], |_| ())), &headers, 401).await;
}

#[tokio::test]
async fn the_cluster_says_who_may_authenticate_and_changes_it() {
    let (clients, proxies, others) = (authority("clients"), authority("proxies"), authority("others"));
    let reviewer = Reviewer::new(some_users());
    let map = |clients: &super::Authority, user: &str| {
        json!({"client-ca-file": clients.pem(), "requestheader-client-ca-file": proxies.pem(),
            "requestheader-username-headers": format!("[\"{user}\"]"), "requestheader-allowed-names": "[\"p\"]"})
    };
    reviewer.set_map(map(&clients, "X-Remote-User"));
    let running = Running::start(options(), Some(&reviewer)).await;
    let (alice, late) = (identity(&clients, "alice", &[], |_| ()), identity(&others, "alice", &[], |_| ()));
    let proxy = running.client.with(&identity(&proxies, "p", &[], |_| ()));
    let status = async |who| running.client.with(who).get("/configz", None).await.status;
    let through = async |header| {
        proxy.ask("GET", "/configz", &[(header, "alice")], "").await.map(|got| got.status).expect("an answer")
    };
    assert_eq!((status(&alice).await, status(&late).await, through("x-remote-user").await), (200, 401, 200));
    reviewer.set_map(map(&others, "X-Other"));
    running.until("the change", async || status(&late).await == 200).await;
    assert_eq!((status(&alice).await, through("x-remote-user").await, through("x-other").await), (401, 401, 200));
}

#[tokio::test]
async fn a_map_that_comes_late_is_taken_then() {
    let clients = authority("clients");
    let (reviewer, running) = start().await;
    let alice = running.client.with(&identity(&clients, "alice", &[], |_| ()));
    assert_eq!(alice.get("/configz", None).await.status, 403, "nobody's certificate counts yet");
    running.until("a watch", async || reviewer.count("configmaps") >= 2).await;
    reviewer.set_map(json!({"client-ca-file": clients.pem()}));
    running.until("the authority", async || alice.get("/configz", None).await.status == 200).await;
}

#[tokio::test]
async fn a_look_up_that_fails_is_fatal_where_it_is_not_tolerated() {
    let reviewer = Reviewer::new(Known { failure: Some(403), ..some_users() });
    let strict = AuthenticationOptions { tolerate_lookup_failure: false, ..AuthenticationOptions::default() };
    let error = bind(with_authentication(strict.clone()), Some(&reviewer)).await.map(drop).expect_err("it is fatal");
    let expected = "unable to load configmap based request-header-client-ca-file: it is ill";
    assert_eq!(error.to_string(), expected);
    let skipped = AuthenticationOptions { skip_lookup: true, ..strict };
    bind(with_authentication(skipped), Some(&reviewer)).await.map(drop).expect("nothing is looked up");
    assert_eq!(reviewer.count(CONFIG_MAP), 1);
    let tolerant = with_authentication(AuthenticationOptions::default());
    let running = Running::start(tolerant, Some(&reviewer)).await;
    assert_eq!(running.status("/healthz", None).await, 200);
}

#[tokio::test]
async fn what_cannot_be_is_said_at_the_start() {
    let folder = Folder::new();
    let path = |paths: &[&str]| Options {
        authorization: AuthorizationOptions {
            always_allow_paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            ..AuthorizationOptions::default()
        },
        ..options()
    };
    assert_eq!(refused(path(&["/a*b"])).await, "only trailing * allowed in \"a*b\"");
    let authority = |file: &str| {
        with_authentication(AuthenticationOptions {
            client_ca_file: file.to_owned(),
            ..AuthenticationOptions::default()
        })
    };
    let expected = "unable to load client CA provider: open /nowhere/ca: no such file or directory";
    assert_eq!(refused(authority("/nowhere/ca")).await, expected);
    let file = folder.write("ca", "x");
    let expected = format!(
        "unable to load client CA provider: error loading CA bundle for \"client-ca-bundle::{file}\": data does not \
         contain any valid RSA or ECDSA certificates"
    );
    assert_eq!(refused(authority(&file)).await, expected);
}

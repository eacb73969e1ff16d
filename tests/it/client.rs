//! Connections and credentials of API clients: kubeconfigs whose files are replaced, exec plugins, proxies, and servers with
//! untrusted certificates.

mod server;

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use kube_scheduler::client::Transport;
use kube_scheduler::client::kubeconfig::{self, InCluster};
use kube_scheduler::client::{ApiError, Call, RestClient, Target};
use kube_scheduler::clock::{Clock, SimClock};
use serde_json::json;

use crate::certificates::{Authority, Pair, params_of_host};
use server::{Asked, Server, proxy};

const POD: Target<'static> = Target::pod("ns", "p");

/// A folder of a test's own, empty.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("client").join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for test files");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a test file is written");
        path
    }

    /// A kubeconfig of this cluster and user.
    fn kubeconfig(&self, cluster: &serde_json::Value, user: &serde_json::Value) -> String {
        let file = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        });
        self.write("kubeconfig", &file.to_string()).display().to_string()
    }

    /// Writes a plugin that prints what a file has, after saying in another one that it ran.
    fn plugin(&self) {
        let script = "#!/bin/sh\nset -e\ncd \"$(dirname \"$0\")\"\nprintf '%s\\n' \"$KUBERNETES_EXEC_INFO\" >> ran\ncat answer\n";
        let path = self.write("plugin", script);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    fn answer(&self, status: &serde_json::Value) {
        let answer =
            json!({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status});
        self.write("answer", &answer.to_string());
    }

    /// Input of the plugin for each run.
    fn ran(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.0.join("ran")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

fn client_of(path: &str, clock: Clock) -> RestClient {
    let access = kubeconfig::access(path, "", &InCluster::new("", "", "")).expect("a good kubeconfig");
    let link = Transport::new(access, clock.clone()).expect("a good kubeconfig");
    RestClient::new(link.client("kube-scheduler/v1/scheduler", None), None, clock)
}

fn cluster(server: &Server) -> serde_json::Value {
    json!({"server": format!("https://127.0.0.1:{}", server.port), "certificate-authority": "ca.crt"})
}

/// Starts a server that a new authority signed. Returns a folder with the authority's certificate in `ca.crt`, and both.
async fn trusted(
    name: &str,
    answer: impl Fn(&Asked) -> u16 + Clone + Send + Sync + 'static,
) -> (Folder, Authority, Server) {
    let (folder, authority) = (Folder::new(name), Authority::new());
    folder.write("ca.crt", &authority.pem());
    let server = Server::start(authority.config(&authority.pair("127.0.0.1")), answer).await;
    (folder, authority, server)
}

/// Reads a pod; in what is said of a failure the server's address is `SERVER`.
async fn asks(client: &RestClient) -> Result<(), String> {
    let text = match client.send(&Call::Get, &POD).await {
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    let without_address = || {
        let (before, rest) = text.split_once("https://127.0.0.1:")?;
        Some(format!("{before}SERVER{}", rest.trim_start_matches(|letter: char| letter.is_ascii_digit())))
    };
    Err(without_address().unwrap_or(text))
}

#[tokio::test]
async fn a_certificate_that_is_replaced_is_shown_by_new_connections() {
    let (folder, authority, server) = trusted("certificate", |_| 200).await;
    let [first, second] = ["one", "two"].map(|name| authority.pair(name));
    let put = |pair: &Pair| {
        folder.write("client.crt", &pair.certificate);
        folder.write("client.key", &pair.key);
    };
    put(&first);
    let user = json!({"client-certificate": "client.crt", "client-key": "client.key"});
    let time = SimClock::new(jiff::Timestamp::UNIX_EPOCH);
    let client = client_of(&folder.kubeconfig(&cluster(&server), &user), time.clock());
    asks(&client).await.expect("a good certificate");
    put(&second);
    asks(&client).await.expect("the connection is as it was");
    time.advance(Duration::from_mins(5));
    // The one that finds the change may be lost with its connection, as upstream's are.
    if asks(&client).await.is_err() {
        asks(&client).await.expect("a new connection");
    }
    let asked = server.take();
    let shown: Vec<_> = asked.iter().map(|asked| asked.certificate.as_deref()).collect();
    assert_eq!(shown[..2], [Some(&*first.der); 2]);
    assert_eq!(shown.last(), Some(&Some(&*second.der)));
    assert_eq!(asked[0].connection, asked[1].connection);
}

#[tokio::test]
async fn a_certificate_that_cannot_be_read_is_named() {
    let (folder, authority, server) = trusted("unreadable", |_| 200).await;
    let pair = authority.pair("one");
    let (certificate, key) = (folder.write("client.crt", &pair.certificate), folder.write("client.key", &pair.key));
    let user = json!({"client-certificate": certificate, "client-key": key});
    let client = client_of(&folder.kubeconfig(&cluster(&server), &user), Clock::real());
    std::fs::remove_file(&key).expect("it was there");
    let missing =
        format!("Get \"SERVER/api/v1/namespaces/ns/pods/p\": open {}: no such file or directory", key.display());
    assert_eq!(asks(&client).await, Err(missing));
    folder.write("client.key", &authority.pair("other").key);
    let other = "Get \"SERVER/api/v1/namespaces/ns/pods/p\": tls: private key does not match public key";
    assert_eq!(asks(&client).await, Err(other.to_owned()));
    folder.write("client.key", &pair.key);
    assert_eq!(asks(&client).await, Ok(()));
}

#[tokio::test]
async fn an_authority_that_is_replaced_is_trusted() {
    let folder = Folder::new("authority");
    let [first, second] = [Authority::new(), Authority::new()];
    folder.write("ca.crt", &first.pem());
    // The server ends each connection by itself, so each request needs a new one.
    let server = Server::start(first.config(&first.pair("127.0.0.1")), |_| 200).await;
    let path = folder.kubeconfig(&cluster(&server), &json!({"token": "t"}));
    let client = client_of(&path, Clock::real());
    assert_eq!(asks(&client).await, Ok(()));
    *server.tls.lock().unwrap() = second.config(&second.pair("127.0.0.1"));
    let client = client_of(&path, Clock::real());
    let unknown = "Get \"SERVER/api/v1/namespaces/ns/pods/p\": tls: failed to verify certificate: x509: certificate signed by \
                   unknown authority";
    assert_eq!(asks(&client).await, Err(unknown.to_owned()));
    folder.write("ca.crt", "");
    assert_eq!(asks(&client).await, Err(unknown.to_owned()), "nothing is no list");
    folder.write("ca.crt", &second.pem());
    assert_eq!(asks(&client).await, Ok(()));
}

#[tokio::test]
async fn servers_that_are_not_to_be_trusted_are_told_in_gos_words() {
    let folder = Folder::new("untrusted");
    let authority = Authority::new();
    folder.write("ca.crt", &authority.pem());
    let check = async |pair: Pair, cluster_has: (&str, serde_json::Value), expected: &str| {
        let server = Server::start(authority.config(&pair), |_| 200).await;
        let mut cluster = cluster(&server);
        cluster[cluster_has.0] = cluster_has.1;
        let client = client_of(&folder.kubeconfig(&cluster, &json!({"token": "t"})), Clock::real());
        let told = asks(&client).await.err().unwrap_or_default();
        let told = told.trim_start_matches(
            "Get \"SERVER/api/v1/namespaces/ns/pods/p\": tls: failed to verify certificate: x509: ",
        );
        assert!(told.starts_with(expected) && told.is_empty() == expected.is_empty(), "{told:?} is not {expected:?}");
    };
    let none = || ("extensions", json!(null));
    check(authority.pair("127.0.0.1"), none(), "").await;
    let mut old = params_of_host("127.0.0.1");
    old.not_after = rcgen::date_time_ymd(2020, 1, 1);
    check(authority.pair_of(&old), none(), "certificate has expired or is not yet valid: current time 20").await;
    let mut young = params_of_host("127.0.0.1");
    young.not_before = rcgen::date_time_ymd(2200, 1, 1);
    check(authority.pair_of(&young), none(), "certificate has expired or is not yet valid: current time 20").await;
    let sans = "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs";
    check(authority.pair("api.example"), none(), sans).await;
    check(authority.pair("10.0.0.1"), none(), "certificate is valid for 10.0.0.1, not 127.0.0.1").await;
    let named = |name: &str| ("tls-server-name", json!(name));
    check(authority.pair("api.example"), named("api.example"), "").await;
    check(authority.pair("api.example"), named("b"), "certificate is valid for api.example, not b").await;
    check(authority.pair("api.example"), named("a b"), "certificate is not valid for any names").await;
}

#[tokio::test]
async fn whoever_is_impersonated_is_named() {
    let (folder, _, server) = trusted("impersonation", |_| 200).await;
    let user = json!({"username": "a", "password": "b", "as": "jane", "as-groups": ["g", "h"], "as-uid": "7"});
    let client = client_of(&folder.kubeconfig(&cluster(&server), &user), Clock::real());
    assert_eq!(asks(&client).await, Ok(()));
    let asked = server.take().remove(0);
    assert_eq!(asked.header("authorization"), "Basic YTpi");
    assert_eq!((asked.header("impersonate-user"), asked.header("impersonate-uid")), ("jane", "7"));
    let groups: Vec<_> = asked.headers.get_all("impersonate-group").iter().collect();
    assert_eq!(groups, ["g", "h"]);
    assert_eq!(asked.header("user-agent"), "kube-scheduler/v1/scheduler");
}

#[tokio::test]
async fn a_token_that_is_no_headers_value_is_told_and_not_a_panic() {
    let (folder, _, server) = trusted("token", |_| 200).await;
    let client = client_of(&folder.kubeconfig(&cluster(&server), &json!({"token": "a b\n"})), Clock::real());
    let expected =
        "Get \"SERVER/api/v1/namespaces/ns/pods/p\": net/http: invalid header field value for \"Authorization\"";
    assert_eq!(asks(&client).await, Err(expected.to_owned()));
}

#[tokio::test]
async fn a_proxy_is_gone_through() {
    let (folder, _, server) = trusted("proxy", |_| 200).await;
    let (address, heads) = proxy().await;
    let mut cluster = cluster(&server);
    cluster["proxy-url"] = json!(format!("http://user:pa%40ss@{address}"));
    let client = client_of(&folder.kubeconfig(&cluster, &json!({"token": "t"})), Clock::real());
    assert_eq!(asks(&client).await, Ok(()));
    let head = heads.lock().unwrap().remove(0).to_ascii_lowercase();
    assert!(head.starts_with(&format!("connect 127.0.0.1:{} http/1.1\r\n", server.port)), "{head}");
    assert!(head.contains("proxy-authorization: basic dxnlcjpwyubzcw==\r\n"), "{head}");
    assert_eq!(server.take()[0].header("authorization"), "Bearer t");
}

#[tokio::test]
async fn lists_are_sent_again_when_the_server_says_and_as_often_as_client_go_does() {
    let busy = |asked: &Asked| if asked.number < 2 { 429 } else { 200 };
    let (folder, authority, server) = trusted("busy", busy).await;
    let path = folder.kubeconfig(&cluster(&server), &json!({"token": "t"}));
    let list = async || {
        let access = kubeconfig::access(&path, "", &InCluster::new("", "", "")).expect("a good kubeconfig");
        let client = Transport::new(access, Clock::real()).expect("a good kubeconfig").client("test", None);
        let request = http::Request::get("/api/v1/pods").body(Vec::new()).expect("a request");
        client.request_text(request).await.map_err(|error| error.to_string())
    };
    assert_eq!((list().await.as_deref(), server.take().len()), (Ok("{}"), 3));
    let dead = Server::start(authority.config(&authority.pair("127.0.0.1")), |_| 503).await;
    folder.kubeconfig(&cluster(&dead), &json!({"token": "t"}));
    assert!(list().await.is_err());
    assert_eq!(dead.take().len(), 11);
}

#[tokio::test]
async fn a_plugin_is_asked_again_once_its_token_is_refused_or_expired() {
    let answer = |asked: &Asked| if asked.header("authorization") == "Bearer bad" { 401 } else { 200 };
    let (folder, _, server) = trusted("plugin", answer).await;
    folder.plugin();
    folder.answer(&json!({"token": "bad"}));
    let user = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never",
        "provideClusterInfo": true,
    }});
    let time = SimClock::new(jiff::Timestamp::UNIX_EPOCH);
    let client = client_of(&folder.kubeconfig(&cluster(&server), &user), time.clock());
    assert_eq!(folder.ran().len(), 0, "nobody has asked yet");
    let refused = client.send(&Call::Get, &POD).await.expect_err("a bad token");
    assert!(matches!(&refused, ApiError::Status(status) if status.code == 401), "{refused:?}");
    // It was asked again at once, and had nothing better to say.
    assert_eq!(folder.ran().len(), 2);
    folder.answer(&json!({"token": "one", "expirationTimestamp": "1970-01-01T01:00:00Z"}));
    assert!(asks(&client).await.is_err(), "this one had the token of before");
    assert_eq!((asks(&client).await, folder.ran().len()), (Ok(()), 3));
    folder.answer(&json!({"token": "two"}));
    assert_eq!((asks(&client).await, folder.ran().len()), (Ok(()), 3));
    time.advance(Duration::from_secs(3_601));
    assert_eq!((asks(&client).await, folder.ran().len()), (Ok(()), 4));
    let tokens: Vec<_> = server.take().iter().map(|asked| asked.header("authorization").to_owned()).collect();
    assert_eq!(tokens, ["Bearer bad", "Bearer bad", "Bearer one", "Bearer one", "Bearer two"]);
    let told = &folder.ran()[0];
    assert_eq!(told["spec"]["interactive"], json!(false));
    assert_eq!(told["spec"]["cluster"]["server"], cluster(&server)["server"]);
    assert!(told["spec"]["cluster"]["certificate-authority-data"].is_string());
}

#[tokio::test]
async fn a_plugins_certificate_is_shown_and_its_successor_by_a_new_connection() {
    let (folder, authority, server) = trusted("plugin-certificate", |_| 200).await;
    folder.plugin();
    let [first, second] = ["one", "two"].map(|name| authority.pair(name));
    let status = |pair: &Pair, until: &str| {
        let (certificate, key) = (&pair.certificate, &pair.key);
        json!({"clientCertificateData": certificate, "clientKeyData": key, "expirationTimestamp": until})
    };
    folder.answer(&status(&first, "1970-01-01T01:00:00Z"));
    let exec =
        json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"});
    let time = SimClock::new(jiff::Timestamp::UNIX_EPOCH);
    let client = client_of(&folder.kubeconfig(&cluster(&server), &json!({"exec": exec})), time.clock());
    assert_eq!(asks(&client).await, Ok(()));
    folder.answer(&status(&second, "1970-01-01T02:00:00Z"));
    time.advance(Duration::from_secs(3_601));
    if asks(&client).await.is_err() {
        asks(&client).await.expect("a new connection");
    }
    let shown: Vec<_> = server.take().into_iter().map(|asked| asked.certificate).collect();
    assert_eq!((shown.first(), shown.last()), (Some(&Some(first.der)), Some(&Some(second.der))));
}

#[tokio::test]
async fn a_plugin_that_gives_nothing_is_named() {
    let folder = Folder::new("plugin-faults");
    let check = async |command: &str, answer: &str, expected: &str| {
        folder.plugin();
        folder.write("answer", answer);
        let exec =
            json!({"apiVersion": "client.authentication.k8s.io/v1", "command": command, "interactiveMode": "Never"});
        let server = json!({"server": "https://127.0.0.1:1"});
        let client = client_of(&folder.kubeconfig(&server, &json!({"exec": exec})), Clock::real());
        let told = asks(&client).await.expect_err("no credentials");
        let place = folder.0.display().to_string();
        let told = told.trim_start_matches("Get \"SERVER/api/v1/namespaces/ns/pods/p\": getting credentials: ");
        assert!(told.replace(&place, "DIR").starts_with(expected), "{told:?} is not {expected:?}");
    };
    let kind = "kind: ExecCredential\napiVersion: client.authentication.k8s.io/v1\n";
    check("no-such-plugin", "", "exec: executable no-such-plugin not found\n\nIt looks like you are trying").await;
    check("./none", "", "exec: fork/exec DIR/none: no such file or directory").await;
    check("/bin/false", "", "exec: executable /bin/false failed with exit code 1").await;
    check("./plugin", "{}", "decoding stdout: Object 'Kind' is missing in '{}'").await;
    check("./plugin", kind, "exec plugin didn't return a status field").await;
    check("./plugin", &format!("{kind}status: {{}}"), "exec plugin didn't return a token or cert/key pair").await;
    let half = format!("{kind}status: {{clientKeyData: k}}");
    check("./plugin", &half, "exec plugin returned only certificate or key, not both").await;
    let other = "kind: ExecCredential\napiVersion: client.authentication.k8s.io/v1beta1\nstatus: {token: t}\n";
    let versions = "exec plugin is configured to use API version client.authentication.k8s.io/v1, plugin returned version \
                    client.authentication.k8s.io/v1beta1";
    check("./plugin", other, versions).await;
}

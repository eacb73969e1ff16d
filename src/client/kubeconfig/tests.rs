//! Valid kubeconfigs and their results. `tests/controlplane/surface/clients` compares errors with upstream's binary.

use std::path::PathBuf;

use super::*;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("kubeconfig-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a folder");
    path
}

fn outside() -> InCluster {
    InCluster::new("", "", "")
}

const WHOLE: &str = "
clusters: [{name: c, cluster: {server: 'https://a:1/b?c', tls-server-name: name, certificate-authority: ../up/ca.crt}}]
users: [{name: u, user: {tokenFile: token, exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./x}}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
";

#[test]
fn relative_paths_start_at_the_kubeconfig() {
    let folder = folder("paths");
    for (name, text) in [("up/ca.crt", "ca"), ("conf/token", "t\n"), ("conf/kubeconfig", WHOLE)] {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let path = folder.join("conf/kubeconfig").display().to_string();
    let access = access(&path, "", &outside()).unwrap();
    assert_eq!(access.server, "https://a:1/b");
    let at = |name: &str| folder.join(name).display().to_string();
    assert_eq!((access.tls.ca_file, access.user.token_file), (at("up/ca.crt"), at("conf/token")));
    assert_eq!((&*access.user.token, &*access.tls.server_name), ("t\n", "name"));
    let exec = access.user.exec.unwrap();
    assert_eq!((exec.command, exec.interactive), (at("conf/x"), Interactive::IfAvailable));
    // `tls-server-name` belongs to the replaced server.
    let access = super::access(&path, "https://m", &outside()).unwrap();
    assert_eq!((access.server.to_string(), access.tls.server_name), ("https://m/".to_owned(), String::new()));
    let plain = super::access(&path, "m:80", &outside()).unwrap();
    assert!(
        plain.server == "http://m:80/" && plain.user == User::default(),
        "no credentials go where all can read them"
    );
    std::fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn service_account_is_used_without_kubeconfig_and_master() {
    let folder = folder("account");
    let inside = InCluster::new(&folder, "::1", "443");
    let missing = inside.access("").err().unwrap().to_string();
    assert_eq!(missing, format!("open {}: no such file or directory", folder.join("token").display()));
    assert_eq!(access("", "", &inside).err().unwrap().to_string(), EMPTY);
    std::fs::write(folder.join("token"), "t").expect("a file");
    let found = access("", "", &inside).unwrap();
    assert_eq!(
        (found.server.to_string(), &*found.user.token, &*found.tls.ca_file),
        ("https://[::1]:443/".to_owned(), "t", "")
    );
    std::fs::write(folder.join("ca.crt"), "-----BEGIN CERTIFICATE-----").expect("a file");
    assert!(access("", "", &inside).unwrap().tls.ca_file.ends_with("ca.crt"));
    // A server from `--master` alone gets no credentials. An empty file falls back to the service account.
    assert!(access("", "https://m", &inside).unwrap().user == User::default());
    let empty = folder.join("kubeconfig");
    std::fs::write(&empty, "").expect("a file");
    assert_eq!(access(&empty.display().to_string(), "", &inside).unwrap().user.token, "t");
    assert_eq!(outside().access("").err().unwrap().to_string(), in_cluster::NOT_IN_CLUSTER);
    std::fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn named_context_overrides_the_current_one() {
    let folder = folder("contexts");
    let path = folder.join("kubeconfig").display().to_string();
    let file = "
clusters: [{name: c, cluster: {server: 'https://c'}}, {name: d, cluster: {server: 'https://d'}}]
contexts: [{name: x, context: {cluster: c}}, {name: w, context: {cluster: d}}]
current-context: x
";
    std::fs::write(&path, file).expect("a file");
    let rules = LoadingRules::from_environment(Some(&path));
    let server = |context: Option<&str>| {
        let access = kubectl_access(&rules, context, &outside());
        access.map(|access| access.server.to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(server(None), Ok("https://c/".to_owned()));
    assert_eq!(server(Some("")), Ok("https://c/".to_owned()));
    assert_eq!(server(Some("w")), Ok("https://d/".to_owned()));
    assert_eq!(server(Some("z")), Err("context \"z\" does not exist".to_owned()));
    std::fs::write(&path, "").expect("a file");
    assert_eq!(server(None), Err(EMPTY.to_owned()));
    std::fs::remove_file(&path).expect("it is ours");
    assert_eq!(server(None), Err(format!("stat {path}: no such file or directory")));
    std::fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn server_addresses_are_parsed_as_in_go() {
    let check = |host: &str, expected: Result<&str, &str>| {
        let read = server::url(host).map(|url| url.to_string()).map_err(|error| error.to_string());
        assert_eq!(read.as_deref().map_err(String::as_str), expected, "{host}");
    };
    check("", Ok("http://localhost/"));
    check("https://a", Ok("https://a/"));
    check("a:1", Ok("http://a:1/"));
    check("::", Err("parse \"http://::\": invalid port \"::\" after host"));
    check("a/b", Err("host must be a URL or a host:port pair: \"a/b\""));
    check("https://a:port", Err("host must be a URL or a host:port pair: \"https://a:port\""));
}

//! Servers that are not to be trusted, or that trust nobody: neither scheduler ends for them, and both say the same of why. Of
//! one that is not there neither says anything, since it may come.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Failed;
use serde_json::{Value, json};

use super::tls_server::Server;
use crate::certificates::{Authority, params_of_host};
use crate::support::cluster::wait_for;
use crate::support::process::Process;
use crate::support::schedulers::all_at_once;
use crate::surface::{Whose, scratch};

/// Long enough for a start on a busy machine.
const BOUND: Duration = Duration::from_mins(1);

/// A server, and what is said of it.
struct Case {
    name: &'static str,
    cluster: Value,
    user: Value,
    said: String,
}

/// Each is said, and the scheduler still runs; told to end, it does so in the same way.
pub(crate) fn outlast_the_same_servers() -> Result<(), Failed> {
    let folder = scratch("servers")?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let (cases, _servers) = runtime.block_on(cases(&folder))?;
    let play = &|case: &Case| -> Result<(), String> {
        let file = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": case.cluster}],
            "users": [{"name": "u", "user": case.user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        });
        let path = folder.join(format!("{}.conf", case.name));
        std::fs::write(&path, file.to_string()).map_err(|error| error.to_string())?;
        let play = |whose: Whose| -> Result<Option<i32>, String> {
            let mut command = Command::new(whose.program());
            command.args(["--kubeconfig", &path.display().to_string(), "--secure-port=0", "--leader-elect=false"]);
            command.env_clear();
            let name = format!("{}-{whose:?}", case.name);
            let mut process = Process::start(&name, &folder, &mut command)?;
            wait_for(&format!("{name} to say {:?}", case.said), BOUND, || {
                if let Some(status) = process.ended() {
                    return Err(format!("{name} ended with {status}: {}", process.tail()));
                }
                // Both log texts in quotes.
                let said = process.output().replace("\\\"", "\"").contains(&case.said);
                Ok(said.then_some(()))
            })
            .map_err(|error| format!("{error}; {}", process.tail()))?;
            Ok(process.terminate()?.code())
        };
        let (theirs, ours) = (play(Whose::Upstreams)?, play(Whose::Ours)?);
        if theirs == ours {
            Ok(())
        } else {
            Err(format!("{}: upstream ends with {theirs:?}, ours with {ours:?}", case.name))
        }
    };
    let wrong: Vec<String> =
        all_at_once(cases.iter().map(|case| move || play(case))).into_iter().filter_map(Result::err).collect();
    println!("{} of {} agree", cases.len() - wrong.len(), cases.len());
    if !wrong.is_empty() {
        return Err(wrong.join("\n").into());
    }
    Ok(std::fs::remove_dir_all(folder).map_err(|error| error.to_string())?)
}

async fn cases(folder: &Path) -> Result<(Vec<Case>, Vec<Server>), String> {
    let (authority, other) = (Authority::new(), Authority::new());
    let ca = folder.join("ca.crt");
    std::fs::write(&ca, authority.pem()).map_err(|error| error.to_string())?;
    let mut expired = params_of_host("127.0.0.1");
    expired.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let good = || authority.config(&authority.pair("127.0.0.1"));
    let x509 = |text: &str| format!("tls: failed to verify certificate: x509: {text}");
    let token = json!({"token": "t"});
    let nobody = "exec: executable no-such-plugin not found";
    let plugin = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "interactiveMode": "Never",
    }});
    let (mut cases, mut servers) = (Vec::new(), Vec::new());
    for (name, config, user, said) in [
        ("unknown", other.config(&other.pair("127.0.0.1")), &token, x509("certificate signed by unknown authority")),
        (
            "expired",
            authority.config(&authority.pair_of(&expired)),
            &token,
            x509("certificate has expired or is not yet valid"),
        ),
        (
            "unnamed",
            authority.config(&authority.pair("api.example")),
            &token,
            x509("cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"),
        ),
        (
            "misnamed",
            authority.config(&authority.pair("10.0.0.1")),
            &token,
            x509("certificate is valid for 10.0.0.1, not 127.0.0.1"),
        ),
        ("unauthorized", good(), &token, "Unauthorized".to_owned()),
        ("plugin", good(), &plugin, nobody.to_owned()),
    ] {
        let server = Server::start(config, |_| 401).await;
        let cluster = json!({"server": format!("https://127.0.0.1:{}", server.port), "certificate-authority": ca});
        cases.push(Case { name, cluster, user: user.clone(), said });
        servers.push(server);
    }
    let pair = [("client-certificate", "client.crt"), ("client-key", "client.key")];
    let mut user = json!({});
    for (field, name) in pair {
        let path = folder.join(name);
        std::fs::write(&path, "nothing").map_err(|error| error.to_string())?;
        user[field] = json!(path);
    }
    let said = "tls: failed to find any PEM data in certificate input".to_owned();
    let cluster = json!({"server": format!("https://127.0.0.1:{}", servers[4].port), "certificate-authority": ca});
    cases.push(Case { name: "certificate", cluster, user, said });
    Ok((cases, servers))
}

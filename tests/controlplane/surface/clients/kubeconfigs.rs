//! Kubeconfigs, good and bad, with the flags and variables about clients.

use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
use rcgen::{CertificateParams, KeyPair};

use crate::surface::{Ended, Whose, judge, named_cases, scratch};

/// Each after a line `=== name | flags and variables`. Before they are written, [`Files::expand`] puts in what they have in
/// common.
const FILES: &str = include_str!("kubeconfigs.txt");

const HEAD: &str = "apiVersion: v1\nkind: Config\n";
const CONTEXT: &str = "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n";

/// Same exit code and same error. A good one gets as far as `--write-config-to`, for which clients have to be made.
pub(crate) fn read_kubeconfigs_the_same() -> Result<(), Failed> {
    let folder = scratch("kubeconfigs")?;
    let files = Files::write(&folder)?;
    judge(
        &named_cases(FILES, 130)?,
        |(head, _)| format!("kubeconfig {head}"),
        |(head, text)| {
            let (name, more) = head.split_once(" | ").unwrap_or((head, ""));
            let path = folder.join(format!("{}.conf", name.replace([' ', ','], "-")));
            fs::write(&path, files.expand(text)).map_err(|error| format!("{}: {error}", path.display()))?;
            let mut arguments = vec!["--secure-port=0".to_owned(), "--write-config-to=/dev/null".to_owned()];
            if !text.starts_with("NONE") {
                arguments.push(format!("--kubeconfig={}", path.display()));
            }
            let more = more.replace("DIR", &folder.display().to_string());
            let (flags, variables): (Vec<&str>, Vec<&str>) =
                more.split_whitespace().partition(|word| word.starts_with("--"));
            arguments.extend(flags.into_iter().map(str::to_owned));
            let variables = variables.into_iter().filter_map(|variable| variable.split_once('='));
            let variables: Vec<_> = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let run = |whose: Whose| -> Result<Ended, String> {
                let ended = whose.run_with(&arguments, &folder, &variables)?;
                // What is logged of a good one is not compared.
                let error = if ended.code == Some(0) { String::new() } else { ended.error };
                Ok(Ended { error, ..ended })
            };
            let (theirs, ours) = (run(Whose::Upstreams)?, run(Whose::Ours)?);
            Ok((theirs != ours).then(|| format!("  upstream {theirs:?}\n  ours     {ours:?}")))
        },
    )?;
    Ok(fs::remove_dir_all(folder).map_err(|error| error.to_string())?)
}

/// Values that kubeconfigs refer to, by placeholder.
struct Files(Vec<(&'static str, String)>);

impl Files {
    fn write(folder: &Path) -> Result<Self, String> {
        let write =
            |name: &str, text: &str| fs::write(folder.join(name), text).map_err(|error| format!("{name}: {error}"));
        let made = || -> Result<(String, String), rcgen::Error> {
            let key = KeyPair::generate()?;
            Ok((CertificateParams::new(vec!["client".to_owned()])?.self_signed(&key)?.pem(), key.serialize_pem()))
        };
        let [(authority, _), (certificate, key), (_, other)] =
            [made(), made(), made()].map(|made| made.expect("a pair"));
        for (name, text) in [("ca.crt", &*authority), ("client.crt", &certificate), ("client.key", &key)] {
            write(name, text)?;
        }
        write("token", "t0ken\n")?;
        write("empty", "")?;
        let broken = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        Ok(Self(vec![
            ("CA64", base64(&authority)),
            ("CERT64", base64(&certificate)),
            ("KEY64", base64(&key)),
            ("OTHER64", base64(&other)),
            ("BROKEN64", base64(broken)),
            ("DIR", folder.display().to_string()),
        ]))
    }

    /// The text of a file: `CONFIG` is a whole one, `CLUSTER`, `USER` and `PLAIN` are ones with this cluster, this user, and
    /// this user of a server that speaks plainly.
    fn expand(&self, text: &str) -> String {
        let cluster = |cluster: &str| format!("clusters: [{{name: c, cluster: {cluster}}}]\n");
        let user = |user: &str| format!("users: [{{name: u, user: {user}}}]\n");
        let (secure, plain) =
            (cluster("{server: \"https://127.0.0.1:1\"}"), cluster("{server: \"http://127.0.0.1:1\"}"));
        let mut out = String::new();
        for line in text.lines() {
            let piece = match line.split_once(' ') {
                _ if line == "CONFIG" => format!("{HEAD}{secure}{}{CONTEXT}", user("{token: t}")),
                _ if line == "NONE" => String::new(),
                Some(("CLUSTER", this)) => format!("{HEAD}{}{}{CONTEXT}", cluster(this), user("{token: t}")),
                Some(("USER", this)) => format!("{HEAD}{secure}{}{CONTEXT}", user(this)),
                Some(("PLAIN", this)) => format!("{HEAD}{plain}{}{CONTEXT}", user(this)),
                _ => format!("{line}\n"),
            };
            out += &piece;
        }
        self.0.iter().fold(out, |text, (word, value)| text.replace(word, value))
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

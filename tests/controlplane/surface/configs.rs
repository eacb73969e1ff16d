//! Configuration files, read by both binaries.

use std::fs;

use libtest_mimic::Failed;
use serde_json::Value;

use super::{Ended, Whose, judge, named_cases, scratch};

/// Files, each after a line `=== name`. Those whose name begins with `bare` are as they stand, the others have apiVersion and
/// kind put before them.
const FILES: &str = include_str!("configs.txt");

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

/// Same exit code, same error, and the same configuration written by `--write-config-to`.
pub(crate) fn configurations_are_read_the_same() -> Result<(), Failed> {
    let folder = scratch("configs")?;
    judge(
        &named_cases(FILES, 100)?,
        |(name, _)| format!("file {name}"),
        |(name, text)| {
            let head = if name.starts_with("bare") { "" } else { HEAD };
            let stem = name.replace(' ', "-");
            let path = folder.join(format!("{stem}.yaml"));
            fs::write(&path, format!("{head}{text}")).map_err(|error| format!("{}: {error}", path.display()))?;
            let run = |whose: Whose, side: &str| -> Result<(Ended, Option<Value>), String> {
                let out = folder.join(format!("{stem}.{side}"));
                // Nobody listens at that address: nothing needs an answer.
                let arguments = [
                    "--config".to_owned(),
                    path.display().to_string(),
                    "--secure-port=0".to_owned(),
                    "--master=http://127.0.0.1:1".to_owned(),
                    format!("--write-config-to={}", out.display()),
                ];
                let ended = whose.run(&arguments, &folder)?;
                let written = fs::read_to_string(&out).ok();
                let written =
                    written.map(|text| serde_yaml::from_str(&text).map_err(|error| format!("{error}: {text}")));
                // What is logged of it is not compared.
                let error = if ended.code == Some(0) { String::new() } else { ended.error };
                Ok((Ended { error, ..ended }, written.transpose()?))
            };
            let (theirs, ours) = (run(Whose::Upstreams, "upstream")?, run(Whose::Ours, "ours")?);
            if theirs == ours {
                return Ok(None);
            }
            let shown = |(ended, written): &(Ended, Option<Value>)| {
                format!("{ended:?} {}", written.as_ref().map(Value::to_string).unwrap_or_default())
            };
            Ok(Some(format!("  upstream {}\n  ours     {}", shown(&theirs), shown(&ours))))
        },
    )?;
    Ok(fs::remove_dir_all(folder).map_err(|error| error.to_string())?)
}

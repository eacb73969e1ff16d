//! Reads kubeconfig files and makes the paths in them absolute.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::super::access_error::AccessError;
use super::wire;
use crate::config::decode::{self, DecodeError, Reader};
use crate::config::read_file;
use crate::go::errno;
use crate::go::quote::quote;

/// Reads the file at `path`, which must exist.
/// Follows `client-go/tools/clientcmd/loader.go#ClientConfigLoadingRules.Load @v1.36.3`.
pub(super) fn load(path: &str) -> Result<wire::File, AccessError> {
    load_if_present(path)?
        .ok_or_else(|| AccessError::new(format!("stat {path}: {}", errno::text(&ErrorKind::NotFound.into()))))
}

/// Reads the file at `path`, or returns `None` if there is no such file.
pub(super) fn load_if_present(path: &str) -> Result<Option<wire::File>, AccessError> {
    if std::fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    let failed = |error: &dyn std::fmt::Display| {
        AccessError::new(format!("error loading config file {}: {error}", quoted_as_is(path)))
    };
    let data = read_file(Path::new(path)).map_err(|error| failed(&error))?;
    let mut file = parse(&data).map_err(|error| failed(&error))?;
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let folder = std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let folder = folder.map_err(|error| {
        AccessError::new(format!("could not determine the absolute path of config file {path}: {error}"))
    })?;
    resolve_paths(&mut file, &folder);
    Ok(Some(file))
}

/// Puts a path between quotes without escapes, as upstream does.
fn quoted_as_is(path: &str) -> String {
    format!("\"{path}\"")
}

/// Parses a file's bytes, always as YAML. Unknown and repeated keys are ignored.
/// Follows `client-go/tools/clientcmd/loader.go#Load @v1.36.3`.
fn parse(data: &[u8]) -> Result<wire::File, DecodeError> {
    if data.is_empty() {
        return Ok(wire::File::default());
    }
    let value = decode::parse_yaml(&decode::to_text(data)?)?;
    decode::check_meta(&value, "v1", "Config")?;
    let (mut file, _) = Reader::read::<wire::File>(&value)?;
    for exec in file.users.iter_mut().filter_map(|user| user.user.exec.as_mut()) {
        // v1beta1 has a default for `interactiveMode`; v1 requires the field.
        if exec.interactive_mode.is_empty() && exec.api_version == "client.authentication.k8s.io/v1beta1" {
            "IfAvailable".clone_into(&mut exec.interactive_mode);
        }
    }
    unique("NamedCluster", "api.Cluster", file.clusters.iter().map(|cluster| &*cluster.name))?;
    unique("NamedAuthInfo", "api.AuthInfo", file.users.iter().map(|user| &*user.name))?;
    unique("NamedContext", "api.Context", file.contexts.iter().map(|context| &*context.name))?;
    Ok(file)
}

/// Fails if a name occurs twice. Upstream's text then prints the whole list, including tokens; this text leaves the list out.
fn unique<'a>(list: &str, entry: &str, names: impl Iterator<Item = &'a str>) -> Result<(), DecodeError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            let name = quote(name);
            return Err(
                format!("error converting *[]{list} into *map[string]*{entry}: duplicate name {name} in list").into()
            );
        }
    }
    Ok(())
}

/// Resolves relative paths against the file's folder. A plugin's command counts as a path only if it contains a slash.
/// Follows `client-go/tools/clientcmd/loader.go#ResolveLocalPaths @v1.36.3`.
fn resolve_paths(file: &mut wire::File, folder: &Path) {
    let resolve = |path: &mut String| {
        if !path.is_empty() && Path::new(path).is_relative() {
            *path = clean(&folder.join(&path)).to_string_lossy().into_owned();
        }
    };
    for cluster in &mut file.clusters {
        resolve(&mut cluster.cluster.certificate_authority);
    }
    for user in &mut file.users {
        let user = &mut user.user;
        resolve(&mut user.client_certificate);
        resolve(&mut user.client_key);
        resolve(&mut user.token_file);
        if let Some(exec) = &mut user.exec
            && exec.command.contains('/')
        {
            resolve(&mut exec.command);
        }
    }
}

/// Removes `.` and `..` from a path, as Go's `filepath.Join` does.
fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                cleaned.pop();
            }
            component => cleaned.push(component),
        }
    }
    cleaned
}

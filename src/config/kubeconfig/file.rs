//! A kubeconfig file, read and with its paths made absolute.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::super::decode::{self, DecodeError, Reader};
use super::super::load::{ConfigError, go_text, read};
use super::super::text::quote;
use super::wire;

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) file: wire::File,
}

impl Contents {
    /// Reads the file at `path`. Follows `client-go/tools/clientcmd/loader.go#ClientConfigLoadingRules.Load @v1.36.3`.
    pub(super) fn load(path: &str) -> Result<Self, ConfigError> {
        if let Err(error) = std::fs::metadata(path)
            && error.kind() == std::io::ErrorKind::NotFound
        {
            return Err(ConfigError::new(format!("stat {path}: {}", go_text(&error))));
        }
        let failed = |error: &dyn std::fmt::Display| {
            ConfigError::new(format!("error loading config file {}: {error}", quoted_as_is(path)))
        };
        let data = read(Path::new(path)).map_err(|error| failed(&error))?;
        let mut file = parse(&data).map_err(|error| failed(&error))?;
        let folder = Path::new(path).parent().unwrap_or(Path::new(""));
        let folder = std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        let folder = folder.map_err(|error| {
            ConfigError::new(format!("could not determine the absolute path of config file {path}: {error}"))
        })?;
        resolve_paths(&mut file, &folder);
        Ok(Self { file })
    }

    pub(super) fn context(&self, name: &str) -> Option<&wire::Context> {
        self.file.contexts.iter().find(|context| context.name == name).map(|context| &context.context)
    }

    pub(super) fn cluster(&self, name: &str) -> Option<&wire::Cluster> {
        self.file.clusters.iter().find(|cluster| cluster.name == name).map(|cluster| &cluster.cluster)
    }

    pub(super) fn user(&self, name: &str) -> Option<&wire::User> {
        self.file.users.iter().find(|user| user.name == name).map(|user| &user.user)
    }
}

/// Upstream puts quotes around a path, and leaves it as it is.
fn quoted_as_is(path: &str) -> String {
    format!("\"{path}\"")
}

/// Reads a file's bytes, always as YAML, and leniently: unknown and repeated keys are passed over.
/// Follows `client-go/tools/clientcmd/loader.go#Load @v1.36.3`.
pub(super) fn parse(data: &[u8]) -> Result<wire::File, DecodeError> {
    if data.is_empty() {
        return Ok(wire::File::default());
    }
    let value = decode::parse_yaml(&decode::to_text(data)?)?;
    decode::check_meta(&value, "v1", "Config")?;
    let (mut file, _) = Reader::read::<wire::File>(&value)?;
    for exec in file.users.iter_mut().filter_map(|user| user.user.exec.as_mut()) {
        // Before version 1, plugins did not say.
        if exec.interactive_mode.is_empty() && exec.api_version == "client.authentication.k8s.io/v1beta1" {
            "IfAvailable".clone_into(&mut exec.interactive_mode);
        }
    }
    unique("NamedCluster", "api.Cluster", file.clusters.iter().map(|cluster| &*cluster.name))?;
    unique("NamedAuthInfo", "api.AuthInfo", file.users.iter().map(|user| &*user.name))?;
    unique("NamedContext", "api.Context", file.contexts.iter().map(|context| &*context.name))?;
    Ok(file)
}

/// Names are unique. Upstream's text goes on with all that the list has, tokens among it; here it ends before.
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

/// Relative paths begin at the file's folder; a plugin's command does if it is a path at all.
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

/// A path without `.` and `..`, as Go's `filepath.Join` leaves it.
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

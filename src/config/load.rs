//! Loads a [`Config`] from a file or a text.

use crate::go::errno;
use std::io::Read;
use std::path::Path;

use super::catalog::PluginCatalog;
use super::gates::FeatureGates;
use super::types::Config;
use super::{defaults, read, wire};

/// Size limit of configuration files in bytes: a thousand times the largest known ones.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// The error of a configuration that cannot be used, with upstream's text. Errors about a file's content name the field but
/// not the file; callers add the file's name if they need it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl Config {
    /// The default configuration, for a scheduler with these plugins.
    pub fn defaults(gates: &FeatureGates, plugins: &PluginCatalog) -> Self {
        defaults::resolve(wire::KubeSchedulerConfiguration::default(), gates, plugins)
    }

    /// Parses a configuration file in YAML or JSON and fills in the defaults, for a scheduler with these plugins. Does not
    /// validate, because flags are applied before the validation.
    pub fn parse(data: &[u8], gates: &FeatureGates, plugins: &PluginCatalog) -> Result<Self, ConfigError> {
        let wire = read::decode(data, plugins).map_err(|error| ConfigError::new(error.0))?;
        Ok(defaults::resolve(wire, gates, plugins))
    }

    /// Loads the configuration file at `path` and fills in the defaults, for a scheduler with these plugins. Does not validate,
    /// because flags are applied before the validation.
    pub fn load(path: &Path, gates: &FeatureGates, plugins: &PluginCatalog) -> Result<Self, ConfigError> {
        Self::parse(&read(path)?, gates, plugins)
    }
}

/// Reads a file of at most [`MAX_FILE_BYTES`].
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let failed = |verb: &str, error: &std::io::Error| {
        ConfigError::new(format!("{verb} {}: {}", path.display(), errno::text(error)))
    };
    let file = std::fs::File::open(path).map_err(|error| failed("open", &error))?;
    let mut data = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut data).map_err(|error| failed("read", &error))?;
    if data.len() as u64 > MAX_FILE_BYTES {
        let text = format!("read {}: file is larger than {MAX_FILE_BYTES} bytes", path.display());
        return Err(ConfigError::new(text));
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_read_are_named() {
        let (gates, plugins) = (FeatureGates::default(), PluginCatalog::default());
        let error = Config::load(Path::new("/no/such/file.yaml"), &gates, &plugins).expect_err("no file");
        assert_eq!(error.to_string(), "open /no/such/file.yaml: no such file or directory");
        let error = Config::load(Path::new("/"), &gates, &plugins).expect_err("a directory");
        assert_eq!(error.to_string(), "read /: is a directory");
        // `/dev/zero` never ends, so this tests the size limit.
        let error = Config::load(Path::new("/dev/zero"), &gates, &plugins).expect_err("endless");
        assert_eq!(error.to_string(), "read /dev/zero: file is larger than 16777216 bytes");
    }
}

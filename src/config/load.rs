//! From a file or a text to a [`Config`].

use crate::go::errno;
use std::io::Read;
use std::path::Path;

use super::catalog::PluginCatalog;
use super::gates::FeatureGates;
use super::types::Config;
use super::{defaults, read, wire};

/// The largest configuration file that is read, in bytes: a thousand times what the largest known ones have.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// Why there is no configuration; upstream's text. Texts from a file name its fields; callers that want the file's name
/// too prefix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl Config {
    /// The configuration without a file, for a scheduler with these plugins.
    pub fn defaults(gates: &FeatureGates, plugins: &PluginCatalog) -> Self {
        defaults::resolve(wire::KubeSchedulerConfiguration::default(), gates, plugins)
    }

    /// Reads and defaults the text of a configuration file, YAML or JSON, for a scheduler with these plugins. Not validated:
    /// flags come in between.
    pub fn parse(data: &[u8], gates: &FeatureGates, plugins: &PluginCatalog) -> Result<Self, ConfigError> {
        let wire = read::decode(data, plugins).map_err(|error| ConfigError::new(error.0))?;
        Ok(defaults::resolve(wire, gates, plugins))
    }

    /// Reads and defaults the configuration file at `path`, for a scheduler with these plugins. Not validated: flags come in
    /// between.
    pub fn load(path: &Path, gates: &FeatureGates, plugins: &PluginCatalog) -> Result<Self, ConfigError> {
        Self::parse(&read(path)?, gates, plugins)
    }
}

/// The bytes of a file, up to [`MAX_FILE_BYTES`].
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let failed = |verb: &str, error: &std::io::Error| {
        ConfigError::new(format!("{verb} {}: {}", path.display(), errno::text(error)))
    };
    let file = std::fs::File::open(path).map_err(|error| failed("open", &error))?;
    let mut data = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut data).map_err(|error| failed("read", &error))?;
    if data.len() as u64 > MAX_FILE_BYTES {
        let text = format!("read {}: larger than {MAX_FILE_BYTES} bytes, which is no configuration", path.display());
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
        // Endless: what is read is bounded.
        let error = Config::load(Path::new("/dev/zero"), &gates, &plugins).expect_err("endless");
        assert_eq!(error.to_string(), "read /dev/zero: larger than 16777216 bytes, which is no configuration");
    }
}

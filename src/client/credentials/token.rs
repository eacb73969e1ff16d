//! Bearer tokens; a token in a file is read again periodically.
//! Follows `client-go/transport/token_source.go#cachingTokenSource`, `#fileTokenSource @v1.36.3`.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::super::tls::Source;
use crate::clock::{Clock, Mono};

/// Time for which a token read from a file is cached: one minute, less 10 s, which a token may take to reach the server.
/// From `client-go/transport/token_source.go#NewCachedFileTokenSource @v1.36.3`.
const USED: Duration = Duration::from_secs(60 - 10);

/// A fixed token, or a token in a file.
pub(in crate::client) struct Token {
    /// Used until the file has been read successfully for the first time.
    first: String,
    file: Option<Source>,
    path: String,
    clock: Clock,
    /// The token last read, and the time of reading. The lock is held while a small file is read.
    last: Mutex<Option<(String, Mono)>>,
}

impl Token {
    pub(super) fn new(token: &str, file: &str, clock: &Clock) -> Result<Self, String> {
        let token = Self {
            first: token.to_owned(),
            file: (!file.is_empty()).then(|| Source::File(Path::new(file).to_owned())),
            path: file.to_owned(),
            clock: clock.clone(),
            last: Mutex::default(),
        };
        if token.first.is_empty()
            && let Some(file) = &token.file
        {
            token.read(file)?;
        }
        Ok(token)
    }

    fn read(&self, file: &Source) -> Result<String, String> {
        let path = &self.path;
        let bytes = file.read().map_err(|error| format!("failed to read token file {path:?}: {error}"))?;
        let token = String::from_utf8_lossy(&bytes).trim().to_owned();
        if token.is_empty() { Err(format!("read empty token from file {path:?}")) } else { Ok(token) }
    }

    /// Returns the token to use now. If the file has become unreadable, the last token stays in use.
    pub(super) fn current(&self) -> String {
        let Some(file) = &self.file else { return self.first.clone() };
        let now = self.clock.mono();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((token, at)) = &*last
            && now.since(*at) < USED
        {
            return token.clone();
        }
        match (self.read(file), &*last) {
            (Ok(token), _) => {
                *last = Some((token.clone(), now));
                token
            }
            (Err(error), Some((token, _))) => {
                tracing::error!("Unable to rotate token: {error}");
                token.clone()
            }
            (Err(_), None) => self.first.clone(),
        }
    }
}

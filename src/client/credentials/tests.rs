//! Tests of tokens, on a simulated clock. The tests of plugins are in `tests/it/client.rs`.

use std::time::Duration;

use super::token::Token;
use crate::clock::SimClock;

#[test]
fn token_file_is_reloaded_every_minute() {
    let path = std::env::temp_dir().join(format!("token-{}", std::process::id()));
    let file = path.display().to_string();
    let time = SimClock::new(jiff::Timestamp::UNIX_EPOCH);
    let token = Token::new("first", &file, &time.clock()).unwrap();
    assert_eq!(token.current(), "first", "there is no file");
    std::fs::write(&path, " one\n").unwrap();
    assert_eq!(token.current(), "one");
    std::fs::write(&path, "two").unwrap();
    time.advance(Duration::from_secs(49));
    assert_eq!(token.current(), "one");
    time.advance(Duration::from_secs(1));
    assert_eq!(token.current(), "two");
    std::fs::write(&path, "\n").unwrap();
    time.advance(Duration::from_mins(1));
    assert_eq!(token.current(), "two", "one that was good is used on");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(token.current(), "two");
    let error = Token::new("", &file, &time.clock()).err().unwrap();
    assert_eq!(error, format!("failed to read token file {file:?}: open {file}: no such file or directory"));
}

//! No source file has more than 500 lines.

use std::fs;

use crate::findings::{Finding, check};
use crate::{files, root};

const MAX_LINES: usize = 500;

#[test]
fn no_source_file_is_longer_than_500_lines() {
    let mut paths = Vec::new();
    files(&root().join("src"), "rs", &mut paths);
    files(&root().join("tests"), "rs", &mut paths);
    let lines = |file| (fs::read_to_string(&file).expect("a readable source").lines().count(), file);
    let long = paths.into_iter().map(lines).filter(|(lines, _)| *lines > MAX_LINES);
    let found: Vec<Finding> =
        long.map(|(lines, file)| Finding { file, line: lines, text: format!("{lines} lines") }).collect();
    check("size", &found);
}

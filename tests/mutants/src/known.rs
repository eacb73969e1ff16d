//! Mutants that are known to change nothing that a test could see.

use anyhow::{Result, bail};

use crate::mutant::Mutant;

/// A mutant that is known to survive, identified by its file, its line of code and its change, with the reason.
pub struct Known {
    file: String,
    code: String,
    change: String,
    why: String,
}

/// Parses the list: groups of four lines with an empty line between them. Lines that begin with `#` are ignored.
pub fn read(text: &str) -> Result<Vec<Known>> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.starts_with('#')).collect();
    let groups = lines.split(|line| line.is_empty()).filter(|group| !group.is_empty());
    let known = groups.map(|group| match group {
        [file, code, change, why] => Ok(Known {
            file: (*file).to_owned(),
            code: (*code).to_owned(),
            change: (*change).to_owned(),
            why: (*why).to_owned(),
        }),
        _ => bail!("four lines are wanted, a file, its line of code, the change, and why:\n{}", group.join("\n")),
    });
    known.collect()
}

impl Known {
    /// Whether this entry is about the mutant.
    pub fn is(&self, mutant: &Mutant) -> bool {
        (&self.file, &self.code, &self.change) == (&mutant.file, &mutant.code, &mutant.change)
    }
}

/// Returns the reason why the mutant survives, if it is known to survive.
pub fn why<'k>(known: &'k [Known], mutant: &Mutant) -> Option<&'k str> {
    known.iter().find(|known| known.is(mutant)).map(|known| &*known.why)
}

/// Returns the entries to which no mutant belongs any more.
pub fn stale(known: &[Known], mutants: &[Mutant]) -> Vec<String> {
    let gone = known.iter().filter(|known| !mutants.iter().any(|mutant| known.is(mutant)));
    gone.map(|known| format!("{}: {}: {}", known.file, known.code, known.change)).collect()
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn entry_has_four_lines() {
        let known = read("# said first\n\na.rs\n  let b = 1;\n1 → 0\nwhy\n\n\nc.rs\nd\ne\nf\n").expect("two entries");
        assert_eq!((known.len(), &*known[0].code, &*known[1].why), (2, "let b = 1;", "f"));
        assert!(read("a.rs\nlet b = 1;\n1 → 0\n").is_err());
    }
}

//! Heap profiles from the samples of jemalloc, which records one allocation per half mebibyte on average.
//!
//! The sampling rate is configured where the allocator is built (`.cargo/config.toml`). The same setting makes jemalloc count
//! all memory ever allocated, including freed memory. `_RJEM_MALLOC_CONF=prof:false` in the environment turns sampling off.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek as _};

use jemalloc_pprof::PROF_CTL;

use super::format::{Function, InlinedCalls, Kind, Profile, Sample};

/// Default kind of the profile `heap`.
pub(super) const IN_USE: &str = "inuse_space";

/// Default kind of the profile `allocs`.
pub(super) const ALLOCATED: &str = "alloc_space";

/// Kinds of the values, in order. From Go's `runtime/pprof.writeHeapProto`.
const KINDS: [Kind; 4] =
    [("alloc_objects", "count"), (ALLOCATED, "bytes"), ("inuse_objects", "count"), (IN_USE, "bytes")];

/// Number of innermost frames of a stack among which the allocator's own frames are searched.
const OWN_DEPTH: usize = 12;

/// Number and total bytes of sampled allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sampled {
    pieces: f64,
    bytes: f64,
}

/// One stack of jemalloc's dump: addresses, the innermost first, with the memory in use and all memory ever allocated.
#[derive(Debug, PartialEq)]
struct Stack {
    addresses: Vec<usize>,
    in_use: Sampled,
    allocated: Sampled,
}

/// Returns a heap profile, or `None` if the program's allocator does not sample.
pub(super) async fn profile() -> Result<Option<Profile>, String> {
    let Some(control) = PROF_CTL.as_ref() else { return Ok(None) };
    let mut control = control.lock().await;
    let taken = tokio::task::spawn_blocking(move || {
        let mut dump: File = control.dump().map_err(|error| error.to_string())?;
        drop(control);
        dump.rewind().map_err(|error| error.to_string())?;
        let (period, stacks) = parse(BufReader::new(dump))?;
        // There are no stacks if the program uses another allocator.
        if stacks.is_empty() {
            return Ok(None);
        }
        Ok(Some(of_stacks(period, &stacks)))
    });
    super::ended(taken.await)
}

/// Reads a dump in the format `heap_v2`: a line of addresses after `@`, then `t*: pieces: bytes [pieces: bytes]`, first in
/// use, then ever allocated. The total before the first stack and the list of mapped libraries at the end are ignored.
fn parse(dump: impl BufRead) -> Result<(f64, Vec<Stack>), String> {
    let mut lines = dump.lines();
    let head = lines.next().transpose().map_err(|error| error.to_string())?.unwrap_or_default();
    let period: f64 = head
        .strip_prefix("heap_v2/")
        .and_then(|period| period.parse().ok())
        .ok_or_else(|| format!("unexpected first line of jemalloc's profile: {head:?}"))?;
    let mut stacks = Vec::new();
    let mut addresses: Option<Vec<usize>> = None;
    for line in lines {
        let line = line.map_err(|error| error.to_string())?;
        let line = line.trim();
        if line == "MAPPED_LIBRARIES:" {
            break;
        }
        let wrong = || format!("unexpected line in jemalloc's profile: {line:?}");
        if let Some(words) = line.strip_prefix('@') {
            let address = |word: &str| usize::from_str_radix(word.trim_start_matches("0x"), 16).ok();
            addresses = Some(words.split_whitespace().map(address).collect::<Option<_>>().ok_or_else(wrong)?);
        } else if let Some(numbers) = line.strip_prefix("t*:")
            && let Some(addresses) = addresses.take()
        {
            let is_mark = |character: char| !character.is_ascii_digit();
            let numbers: Vec<f64> = numbers.split(is_mark).filter_map(|number| number.parse().ok()).collect();
            let [pieces, bytes, all_pieces, all_bytes] = numbers[..] else { return Err(wrong()) };
            let in_use = Sampled { pieces, bytes };
            stacks.push(Stack { addresses, in_use, allocated: Sampled { pieces: all_pieces, bytes: all_bytes } });
        }
    }
    Ok((period, stacks))
}

impl Sampled {
    /// Estimates the number and bytes of all allocations from the sampled ones: an allocation of `n` bytes is sampled with a
    /// probability of `1 - exp(-n / period)`.
    #[expect(clippy::cast_possible_truncation, reason = "sizes of memory are far below")]
    fn estimate(self, period: f64) -> [i64; 2] {
        if self.pieces == 0.0 {
            return [0, 0];
        }
        let share = 1.0 - (-self.bytes / self.pieces / period).exp();
        [(self.pieces / share).round() as i64, (self.bytes / share).round() as i64]
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the period is a power of two below that of the address space")]
fn of_stacks(period: f64, stacks: &[Stack]) -> Profile {
    let mut names: BTreeMap<usize, InlinedCalls> = BTreeMap::new();
    let sample = |stack: &Stack| {
        let places =
            stack.addresses.iter().map(|address| names.entry(*address).or_insert_with(|| place(*address)).clone());
        let [[pieces, bytes], [in_use, size]] = [stack.allocated, stack.in_use].map(|sampled| sampled.estimate(period));
        Sample {
            stack: without_allocator(places.collect()),
            values: vec![pieces, bytes, in_use, size],
            thread: String::new(),
        }
    };
    let mut samples: Vec<Sample> = stacks.iter().map(sample).collect();
    samples.sort_by_key(|sample| std::cmp::Reverse(sample.values[3]));
    Profile { kinds: KINDS.to_vec(), samples, period: Some((("space", "bytes"), period as i64)), ..Profile::default() }
}

/// Returns the functions at a return address, the innermost first. An unknown function is named by its address.
fn place(address: usize) -> InlinedCalls {
    let mut place = InlinedCalls::new();
    backtrace::resolve(std::ptr::without_provenance_mut(address), |symbol| {
        if let Some(name) = symbol.name() {
            let file = symbol.filename().map(|file| file.display().to_string()).unwrap_or_default();
            let system_name = name.as_str().unwrap_or_default().to_owned();
            place.push((Function { name: format!("{name:#}"), system_name, file }, symbol.lineno().unwrap_or(0)));
        }
    });
    if place.is_empty() {
        let name = format!("{address:#x}");
        place.push((Function { name: name.clone(), system_name: name, file: String::new() }, 0));
    }
    place
}

/// Removes the allocator's own frames, which are the innermost ones of every stack.
fn without_allocator(mut stack: Vec<InlinedCalls>) -> Vec<InlinedCalls> {
    let is_own = |place: &InlinedCalls| {
        let own = ["_rjem_", "tikv_jemalloc", "__rust_alloc", "__rust_realloc", "__rustc"];
        place.iter().any(|(function, _)| own.iter().any(|own| function.name.contains(own)))
    };
    let inner = &stack[..stack.len().min(OWN_DEPTH)];
    let own = inner.iter().rposition(is_own).map_or(0, |last| last + 1);
    // If all frames are the allocator's, the memory is its own.
    if own < stack.len() {
        stack.drain(..own);
    }
    stack
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "heap_v2/524288\n  t*: 3: 1049000 [7: 2049000]\n  t0: 3: 1049000 [7: 2049000]\n\
        @ 0x10 0x20\n  t*: 2: 1048576 [4: 2097152]\n  t1: 2: 1048576 [4: 2097152]\n\
        @ 0x10 0x30\n  t*: 0: 0 [1: 424]\n\nMAPPED_LIBRARIES:\n@ 0x40\n";

    #[test]
    fn a_dump_is_read() {
        let stacks = [
            Stack {
                addresses: vec![0x10, 0x20],
                in_use: Sampled { pieces: 2.0, bytes: 1_048_576.0 },
                allocated: Sampled { pieces: 4.0, bytes: 2_097_152.0 },
            },
            Stack {
                addresses: vec![0x10, 0x30],
                in_use: Sampled::default(),
                allocated: Sampled { pieces: 1.0, bytes: 424.0 },
            },
        ];
        let (period, read) = parse(DUMP.as_bytes()).unwrap();
        assert_eq!((period, &read[..]), (524_288.0, &stacks[..]));
    }

    #[test]
    fn a_dump_of_another_format_is_refused() {
        let refused = parse(&b"heap_v3/1\n"[..]).unwrap_err();
        assert_eq!(refused, "jemalloc's profile begins with \"heap_v3/1\" instead of its period");
        let refused = parse(&b"heap_v2/1\n@ 0x1\n t*: 1: 2\n"[..]).unwrap_err();
        assert_eq!(refused, "jemalloc's profile has a line \"t*: 1: 2\"");
    }

    /// An allocation of the period's size is sampled with a probability of 1 - 1/e. For a small allocation, the probability is
    /// about its size divided by the period.
    #[test]
    fn samples_stand_for_what_was_not_sampled() {
        let estimate = |pieces: f64, bytes: f64| Sampled { pieces, bytes }.estimate(524_288.0);
        assert_eq!(estimate(2.0, 1_048_576.0), [3, 1_658_823]);
        assert_eq!(estimate(1.0, 64.0), [8193, 524_320]);
        assert_eq!(estimate(0.0, 0.0), [0, 0]);
    }

    #[test]
    fn stacks_begin_with_who_asked() {
        let place = |name: &str| vec![(Function { name: name.to_owned(), ..Function::default() }, 0)];
        let names =
            |stack: Vec<InlinedCalls>| stack.into_iter().map(|mut place| place.remove(0).0.name).collect::<Vec<_>>();
        let stack = ["prof_backtrace", "_rjem_malloc", "alloc::finish_grow", "app::run"].map(place).to_vec();
        assert_eq!(names(without_allocator(stack)), ["alloc::finish_grow", "app::run"]);
        let own = ["_rjem_je_arena", "_rjem_malloc"].map(place).to_vec();
        assert_eq!(names(without_allocator(own)).len(), 2);
    }
}

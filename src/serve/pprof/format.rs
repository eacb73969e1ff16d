//! Profiles in the format of `github.com/google/pprof/proto/profile.proto`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::apimachinery::protobuf::Message;

/// A measured quantity and its unit.
pub(super) type Kind = (&'static str, &'static str);

/// A function and its source file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) system_name: String,
    pub(super) file: String,
}

/// One address of a stack: the functions inlined there, innermost first, and their lines.
pub(super) type InlinedCalls = Vec<(Function, u32)>;

/// Values measured at one stack, whose innermost frame comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) stack: Vec<InlinedCalls>,
    pub(super) values: Vec<i64>,
    pub(super) thread: String,
}

/// A profile before it is encoded.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    pub(super) kinds: Vec<Kind>,
    pub(super) samples: Vec<Sample>,
    /// Time of the profile in nanoseconds since 1970.
    pub(super) time_nanos: i64,
    pub(super) duration_nanos: i64,
    /// The period between two samples: its kind and its amount.
    pub(super) period: Option<(Kind, i64)>,
    /// A note to the reader.
    pub(super) comment: &'static str,
    /// The kind that is shown by default. If this is empty, the last kind is shown.
    pub(super) default_kind: &'static str,
}

/// Tables of the strings, functions and addresses that the encoding refers to by number.
#[derive(Default)]
struct Tables {
    strings: BTreeMap<String, u64>,
    functions: BTreeMap<Function, u64>,
    places: BTreeMap<InlinedCalls, u64>,
}

impl Sample {
    /// Creates a sample of something that is not code.
    pub(super) fn of(name: &str, values: Vec<i64>) -> Self {
        let function = Function { name: name.to_owned(), system_name: name.to_owned(), file: String::new() };
        Self { stack: vec![vec![(function, 0)]], values, thread: String::new() }
    }
}

fn number<T>(table: &mut BTreeMap<T, u64>, entry: T, first: u64) -> u64
where
    T: Ord,
{
    let next = table.len() as u64 + first;
    *table.entry(entry).or_insert(next)
}

impl Tables {
    /// Returns the number of a string. The empty string has to be numbered first.
    fn string(&mut self, text: &str) -> u64 {
        number(&mut self.strings, text.to_owned(), 0)
    }

    fn kind(&mut self, (what, unit): Kind) -> Message {
        Message::default().number(1, self.string(what)).number(2, self.string(unit))
    }

    fn place(&mut self, place: &InlinedCalls) -> u64 {
        for (function, _) in place {
            number(&mut self.functions, function.clone(), 1);
        }
        number(&mut self.places, place.clone(), 1)
    }
}

/// Returns the entries in the order of their numbers.
fn in_order<T>(table: &BTreeMap<T, u64>) -> Vec<(&T, u64)> {
    let mut entries: Vec<(&T, u64)> = table.iter().map(|(entry, number)| (entry, *number)).collect();
    entries.sort_by_key(|(_, number)| *number);
    entries
}

impl Profile {
    /// Returns the same profile with its time, in nanoseconds since 1970.
    pub(super) fn taken(self, now: i128) -> Self {
        Self { time_nanos: i64::try_from(now).unwrap_or(0), ..self }
    }

    /// Returns the same profile, which shows this kind by default.
    pub(super) fn by_default(self, default_kind: &'static str) -> Self {
        Self { default_kind, ..self }
    }

    /// Encodes and compresses the profile for `go tool pprof`.
    pub(super) fn gzipped(&self) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing into memory cannot fail.
        let _ = encoder.write_all(&self.encoded());
        encoder.finish().unwrap_or_default()
    }

    fn encoded(&self) -> Vec<u8> {
        let mut tables = Tables::default();
        tables.string("");
        let bits = |value: i64| u64::from_le_bytes(value.to_le_bytes());
        let mut out = Message::default();
        for kind in &self.kinds {
            out = out.message(1, tables.kind(*kind));
        }
        for sample in &self.samples {
            let stack = sample.stack.iter().map(|place| tables.place(place)).collect::<Vec<_>>();
            let message = stack.into_iter().fold(Message::default(), |message, place| message.number(1, place));
            let mut message = sample.values.iter().fold(message, |message, value| message.number(2, bits(*value)));
            if !sample.thread.is_empty() {
                let (key, value) = (tables.string("thread"), tables.string(&sample.thread));
                message = message.message(3, Message::default().number(1, key).number(2, value));
            }
            out = out.message(2, message);
        }
        for (place, id) in in_order(&tables.places) {
            let lines = place.iter().fold(Message::default().number(1, id), |message, (function, line)| {
                let id = tables.functions.get(function).copied().unwrap_or_default();
                message.message(4, Message::default().number(1, id).number(2, u64::from(*line)))
            });
            out = out.message(4, lines);
        }
        let functions: Vec<(Function, u64)> =
            in_order(&tables.functions).into_iter().map(|(function, id)| (function.clone(), id)).collect();
        for (function, id) in functions {
            let message = Message::default()
                .number(1, id)
                .number(2, tables.string(&function.name))
                .number(3, tables.string(&function.system_name))
                .number(4, tables.string(&function.file));
            out = out.message(5, message);
        }
        let [comment, default_kind] = [self.comment, self.default_kind].map(|text| tables.string(text));
        let period = self.period.map(|(kind, value)| (tables.kind(kind), value));
        for (text, _) in in_order(&tables.strings) {
            out = out.bytes(6, text);
        }
        out = out.number(9, bits(self.time_nanos)).number(10, bits(self.duration_nanos));
        if let Some((kind, value)) = period {
            out = out.message(11, kind).number(12, bits(value));
        }
        if comment > 0 {
            out = out.number(13, comment);
        }
        if default_kind > 0 {
            out = out.number(14, default_kind);
        }
        out.finish()
    }

    /// Returns the profile as readable text.
    pub(super) fn text(&self, name: &str) -> String {
        let total: i64 = self.samples.iter().filter_map(|sample| sample.values.last()).sum();
        let mut text = format!("{name} profile: total {total}\n");
        for sample in &self.samples {
            let values: Vec<String> = sample.values.iter().map(ToString::to_string).collect();
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{} @", values.join(" "));
            for (function, _) in sample.stack.iter().flatten() {
                let _ = writeln!(text, "#\t{}", function.name);
            }
        }
        if !self.comment.is_empty() {
            let _ = writeln!(text, "\n# {}", self.comment);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_is_encoded_in_pprof_format() {
        let profile = Profile {
            kinds: vec![("n", "count")],
            samples: vec![Sample::of("f", vec![3]), Sample::of("g", vec![4]), Sample::of("f", vec![5])],
            time_nanos: 7,
            ..Profile::default()
        };
        let expected: &[u8] = &[
            0x0a, 4, 0x08, 1, 0x10, 2, // n in count
            0x12, 4, 0x08, 1, 0x10, 3, 0x12, 4, 0x08, 2, 0x10, 4, 0x12, 4, 0x08, 1, 0x10, 5, // samples
            0x22, 8, 0x08, 1, 0x22, 4, 0x08, 1, 0x10, 0, 0x22, 8, 0x08, 2, 0x22, 4, 0x08, 2, 0x10, 0, // places
            0x2a, 8, 0x08, 1, 0x10, 3, 0x18, 3, 0x20, 0, 0x2a, 8, 0x08, 2, 0x10, 4, 0x18, 4, 0x20, 0, // functions
            0x32, 0, 0x32, 1, b'n', 0x32, 5, b'c', b'o', b'u', b'n', b't', 0x32, 1, b'f', 0x32, 1,
            b'g', // strings
            0x48, 7, 0x50, 0,
        ];
        assert_eq!(profile.encoded(), expected);
        assert_eq!(profile.text("x"), "x profile: total 12\n3 @\n#\tf\n4 @\n#\tg\n5 @\n#\tf\n");
    }
}

//! Decodes [`Value`]s into wire types as Go's strict decoder does, with its error texts.
//!
//! Follows `sigs.k8s.io/json/internal/golang/encoding/json/decode.go` and
//! `sigs.k8s.io/json/internal/golang/encoding/json/kubernetes_patch.go`, the version that Kubernetes 1.36.3 depends on.

use std::collections::{BTreeMap, BTreeSet};

use super::DecodeError;
use crate::go::duration::GoDuration;
use crate::go::json::Value;
use crate::go::quote::quote;

/// Maximum number of strict decoding errors that are kept.
const MAX_STRICT_ERRORS: usize = 100;

/// A type into which a [`Value`] can be decoded.
pub(crate) trait Wire {
    /// Go's name for the type in messages, such as `int32` or `v1.PluginSet`.
    fn go_type() -> String;

    /// Decodes `value` into `self`, and keeps the parts that `value` does not set. `go` is Go's name of the type if the field
    /// has a named type. A value of a wrong type is noted in `reader`, and decoding goes on. `Err` ends the decoding.
    fn read(&mut self, value: &Value, go: Option<&'static str>, reader: &mut Reader) -> Result<(), DecodeError>;
}

/// The current position of decoding, and the errors found so far.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// Name of the innermost struct, for messages.
    in_struct: &'static str,
    /// Field names from the root, including embedded structs but not indices.
    fields: Vec<&'static str>,
    /// Path segments from the root, including indices.
    path: Vec<String>,
    /// The first type mismatch, if any.
    type_error: Option<String>,
    strict: Vec<String>,
}

impl Reader {
    /// Decodes `value` into `T`. Returns the result with its strict decoding errors. A type mismatch is an `Err`.
    pub(crate) fn read<T: Wire + Default>(value: &Value) -> Result<(T, Vec<String>), DecodeError> {
        let mut reader = Self::default();
        let mut out = T::default();
        out.read(value, None, &mut reader)?;
        match reader.type_error {
            Some(text) => Err(DecodeError(text)),
            None => Ok((out, reader.strict)),
        }
    }

    /// Records that a value, described by `what`, cannot be decoded into `go_type`.
    pub(crate) fn mismatch(&mut self, what: &str, go_type: &str) {
        let text = self.mismatch_text(what, go_type);
        self.type_error.get_or_insert(text);
    }

    fn mismatch_text(&self, what: &str, go_type: &str) -> String {
        if self.fields.is_empty() {
            return format!("json: cannot unmarshal {what} into Go value of type {go_type}");
        }
        let field = self.fields.join(".");
        format!("json: cannot unmarshal {what} into Go struct field {}.{field} of type {go_type}", self.in_struct)
    }

    /// Decodes the entries of an object. `read_field` decodes one entry and returns whether it knows the key.
    pub(crate) fn object(
        &mut self,
        value: &Value,
        go_type: &str,
        mut read_field: impl FnMut(&str, &Value, &mut Self) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        let entries = match value {
            Value::Object(entries) => entries,
            Value::Null => return Ok(()),
            other => {
                self.mismatch(other.describe(), go_type);
                return Ok(());
            }
        };
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (key, value) in entries {
            if seen.contains(key.as_str()) {
                self.strict_error("duplicate field", key);
            }
            if read_field(key, value, self)? {
                seen.insert(key);
            } else {
                self.strict_error("unknown field", key);
            }
        }
        Ok(())
    }

    /// Decodes one field of a struct. `fields` is the field's name, after the names of embedded structs that contain it.
    pub(crate) fn field(
        &mut self,
        go_type: &'static str,
        fields: &[&'static str],
        read: impl FnOnce(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let in_struct = go_type.rsplit('.').next().unwrap_or(go_type);
        let outer = std::mem::replace(&mut self.in_struct, in_struct);
        let depth = self.fields.len();
        self.fields.extend(fields);
        let name = fields.last().copied().unwrap_or_default();
        self.path.push(if self.path.is_empty() { name.to_owned() } else { format!(".{name}") });
        let out = read(self);
        self.path.pop();
        self.fields.truncate(depth);
        self.in_struct = outer;
        out
    }

    fn at<T>(&mut self, segment: String, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(segment);
        let out = read(self);
        self.path.pop();
        out
    }

    fn strict_error(&mut self, fault: &str, key: &str) {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path.concat()) };
        let text = format!("{fault} {}", quote(&path));
        if self.strict.len() < MAX_STRICT_ERRORS && !self.strict.contains(&text) {
            self.strict.push(text);
        }
    }
}

/// Implements [`Wire`] for a struct, from its Go type and its fields. A field is `"key" => field`. `in "Embedded"` marks a
/// field that Go has in an embedded struct, and `as "type"` one whose Go type is a named type.
macro_rules! wire_struct {
    ($type:ty, $go:literal, {
        $($key:literal $(in $embedded:literal)? $(as $named:literal)? => $field:ident),+ $(,)?
    }) => {
        impl $crate::config::decode::Wire for $type {
            fn go_type() -> String {
                $go.to_owned()
            }

            fn read(
                &mut self,
                value: &$crate::go::json::Value,
                _go: Option<&'static str>,
                reader: &mut $crate::config::decode::Reader,
            ) -> Result<(), $crate::config::decode::DecodeError> {
                reader.object(value, $go, |key, value, reader| {
                    match key {
                        $($key => reader.field($go, &[$($embedded,)? $key], |reader| {
                            let named: &[&'static str] = &[$($named)?];
                            $crate::config::decode::Wire::read(&mut self.$field, value, named.first().copied(), reader)
                        })?,)+
                        _ => return Ok(false),
                    }
                    Ok(true)
                })
            }
        }
    };
}

/// Implements [`Wire`] and `ReadArgs` for a type of plugin arguments whose Go kind has the same name. The fields are written as
/// in [`wire_struct!`], without `in`. The macro adds apiVersion and kind.
macro_rules! wire_args {
    ($type:ident, { $($key:literal $(as $named:literal)? => $field:ident),+ $(,)? }) => {
        impl $crate::config::decode::Wire for $type {
            fn go_type() -> String {
                concat!("v1.", stringify!($type)).to_owned()
            }

            fn read(
                &mut self,
                value: &$crate::go::json::Value,
                _go: Option<&'static str>,
                reader: &mut $crate::config::decode::Reader,
            ) -> Result<(), $crate::config::decode::DecodeError> {
                const GO: &str = concat!("v1.", stringify!($type));
                reader.object(value, GO, |key, value, reader| {
                    match key {
                        "apiVersion" => reader.field(GO, &["TypeMeta", "apiVersion"], |reader| {
                            $crate::config::decode::Wire::read(&mut String::new(), value, None, reader)
                        })?,
                        "kind" => reader.field(GO, &["TypeMeta", "kind"], |reader| {
                            $crate::config::decode::Wire::read(&mut String::new(), value, None, reader)
                        })?,
                        $($key => reader.field(GO, &[$key], |reader| {
                            let named: &[&'static str] = &[$($named)?];
                            $crate::config::decode::Wire::read(&mut self.$field, value, named.first().copied(), reader)
                        })?,)+
                        _ => return Ok(false),
                    }
                    Ok(true)
                })
            }
        }

        impl $crate::config::ReadArgs for $type {
            fn read_args(written: &$crate::config::WrittenArgs<'_>) -> $crate::config::ReadArgsResult<Self> {
                Ok($crate::config::decode::Reader::read(written.0)?)
            }
        }
    };
}
pub(crate) use {wire_args, wire_struct};

impl Wire for bool {
    fn go_type() -> String {
        "bool".to_owned()
    }

    fn read(&mut self, value: &Value, go: Option<&'static str>, reader: &mut Reader) -> Result<(), DecodeError> {
        match value {
            Value::Null => {}
            Value::Bool(value) => *self = *value,
            other => reader.mismatch(other.describe(), go.unwrap_or("bool")),
        }
        Ok(())
    }
}

impl Wire for String {
    fn go_type() -> String {
        "string".to_owned()
    }

    fn read(&mut self, value: &Value, go: Option<&'static str>, reader: &mut Reader) -> Result<(), DecodeError> {
        match value {
            Value::Null => {}
            Value::String(text) => self.clone_from(text),
            other => reader.mismatch(other.describe(), go.unwrap_or("string")),
        }
        Ok(())
    }
}

macro_rules! wire_number {
    ($type:ty, $go:literal) => {
        impl Wire for $type {
            fn go_type() -> String {
                $go.to_owned()
            }

            fn read(
                &mut self,
                value: &Value,
                _go: Option<&'static str>,
                reader: &mut Reader,
            ) -> Result<(), DecodeError> {
                match value {
                    Value::Null => {}
                    Value::Number(literal) => match literal.parse::<$type>() {
                        Ok(value) if <$type>::is_in_range(value) => *self = value,
                        _ => reader.mismatch(&format!("number {literal}"), $go),
                    },
                    other => reader.mismatch(other.describe(), $go),
                }
                Ok(())
            }
        }
    };
}

/// Whether Go accepts a parsed number: a float must not have overflowed.
trait InRange {
    fn is_in_range(value: Self) -> bool;
}

impl InRange for i32 {
    fn is_in_range(_: Self) -> bool {
        true
    }
}

impl InRange for i64 {
    fn is_in_range(_: Self) -> bool {
        true
    }
}

impl InRange for f32 {
    fn is_in_range(value: Self) -> bool {
        value.is_finite()
    }
}

wire_number!(i32, "int32");
wire_number!(i64, "int64");
wire_number!(f32, "float32");

impl<T: Wire + Default> Wire for Option<T> {
    fn go_type() -> String {
        T::go_type()
    }

    fn read(&mut self, value: &Value, go: Option<&'static str>, reader: &mut Reader) -> Result<(), DecodeError> {
        if *value == Value::Null {
            *self = None;
            return Ok(());
        }
        self.get_or_insert_default().read(value, go, reader)
    }
}

impl<T: Wire + Default> Wire for Vec<T> {
    fn go_type() -> String {
        format!("[]{}", T::go_type())
    }

    fn read(&mut self, value: &Value, _go: Option<&'static str>, reader: &mut Reader) -> Result<(), DecodeError> {
        match value {
            Value::Null => self.clear(),
            Value::Array(items) => {
                self.clear();
                for (index, item) in items.iter().enumerate() {
                    let mut element = T::default();
                    reader.at(format!("[{index}]"), |reader| element.read(item, None, reader))?;
                    self.push(element);
                }
            }
            other => reader.mismatch(other.describe(), &Self::go_type()),
        }
        Ok(())
    }
}

impl Wire for BTreeMap<String, String> {
    fn go_type() -> String {
        "map[string]string".to_owned()
    }

    fn read(&mut self, value: &Value, _go: Option<&'static str>, reader: &mut Reader) -> Result<(), DecodeError> {
        reader.object(value, "map[string]string", |key, value, reader| {
            let segment = if reader.path.is_empty() { key.to_owned() } else { format!(".{key}") };
            let entry = self.entry(key.to_owned()).or_default();
            reader.at(segment, |reader| entry.read(value, None, reader))?;
            Ok(true)
        })
    }
}

/// Decodes a Go duration from a string. An invalid duration ends the decoding.
impl Wire for GoDuration {
    fn go_type() -> String {
        "v1.Duration".to_owned()
    }

    fn read(&mut self, value: &Value, _go: Option<&'static str>, reader: &mut Reader) -> Result<(), DecodeError> {
        let text = match value {
            Value::String(text) => text.as_str(),
            Value::Null => "",
            other => return Err(DecodeError(reader.mismatch_text(other.describe(), "string"))),
        };
        *self = text.parse().map_err(|error: crate::go::duration::ParseDurationError| error.to_string())?;
        Ok(())
    }
}

/// Bytes that a document contains in base64, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Wire for Bytes {
    fn go_type() -> String {
        "[]uint8".to_owned()
    }

    fn read(&mut self, value: &Value, _go: Option<&'static str>, reader: &mut Reader) -> Result<(), DecodeError> {
        match value {
            Value::Null => self.0.clear(),
            Value::String(text) => match crate::go::base64::decode(text) {
                Ok(bytes) => self.0 = bytes,
                Err(error) => {
                    reader.type_error.get_or_insert_with(|| error.to_string());
                }
            },
            other => reader.mismatch(other.describe(), "[]uint8"),
        }
        Ok(())
    }
}

/// Any value, kept as written. Null becomes `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Raw(pub(crate) Option<Value>);

impl Wire for Raw {
    fn go_type() -> String {
        "runtime.RawExtension".to_owned()
    }

    fn read(&mut self, value: &Value, _go: Option<&'static str>, _reader: &mut Reader) -> Result<(), DecodeError> {
        if *value != Value::Null {
            self.0 = Some(value.clone());
        }
        Ok(())
    }
}

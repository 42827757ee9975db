//! Values of a dictionary, of the kind that they must have.

use super::bencode::{Dict, Value};
use super::error::MetainfoError;

/// The dictionary under `key`; `shown` names the key with its parents.
pub(super) fn dict<'d, 'a>(
    from: &'d Dict<'a>,
    key: &str,
    shown: &'static str,
) -> Result<&'d Dict<'a>, MetainfoError> {
    let value = from.find(key).and_then(Value::as_dict);
    value.ok_or(MetainfoError::Field {
        key: shown,
        expected: "a dictionary",
    })
}

/// The number under `key`.
pub(super) fn int(from: &Dict<'_>, key: &str, shown: &'static str) -> Result<i64, MetainfoError> {
    let value = from.find(key).and_then(Value::as_int);
    value.ok_or(MetainfoError::Field {
        key: shown,
        expected: "a number",
    })
}

/// The string under `key`.
pub(super) fn string<'a>(
    from: &Dict<'a>,
    key: &str,
    shown: &'static str,
) -> Result<&'a [u8], MetainfoError> {
    let value = from.find(key).and_then(Value::as_bytes);
    value.ok_or(MetainfoError::Field {
        key: shown,
        expected: "a string",
    })
}

/// The `length` of a file.
pub(super) fn length(
    from: &Dict<'_>,
    shown: &'static str,
    file: impl FnOnce() -> String,
) -> Result<u64, MetainfoError> {
    let length = int(from, "length", shown)?;
    u64::try_from(length).map_err(|_| MetainfoError::FileLength { file: file() })
}

/// An optional text, from `key` with `.utf-8` after it if that exists. Bytes that are not UTF-8 are
/// replaced.
pub(super) fn text(from: &Dict<'_>, key: &str) -> Option<String> {
    let utf8 = from.find(&format!("{key}.utf-8"));
    let bytes = utf8.or_else(|| from.find(key))?.as_bytes()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

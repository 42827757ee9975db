//! What is wrong with a value that somebody wrote, in words that do not name types of Rust.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::strict;

/// Most fields among which the wrong one is looked for.
const MAX_FIELDS: usize = 64;
/// Most objects within each other in which it is looked for.
const MAX_DEPTH: usize = 4;

/// What is wrong with a JSON text that is no `T`: names the field.
pub(crate) fn explain<T: DeserializeOwned>(bytes: &[u8], error: &serde_json::Error) -> String {
    let value = match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => value,
        Err(error) => return format!("it is not JSON: {error}"),
    };
    let Err(without_place) = strict::from_value::<T>(value.clone()) else {
        // Only the text itself is wrong, as with a field that is there twice.
        return plain_words(&error.to_string());
    };
    let text = without_place.to_string();
    // These name it.
    let is_named = text.starts_with("missing field") || text.starts_with("unknown field");
    let field = match is_named {
        true => String::new(),
        false => wrong_field::<T>(&value, &text),
    };
    let words = plain_words(&text);
    match field.is_empty() {
        true => words,
        false => format!("`{field}`: {words}"),
    }
}

/// The names down to the wrong field, with dots between them; empty if it is not found. A field is
/// wrong if the error is another one, or none, without it.
fn wrong_field<T: DeserializeOwned>(value: &Value, error: &str) -> String {
    let mut path = Vec::new();
    while path.len() < MAX_DEPTH {
        let mut fields = Some(value);
        for name in &path {
            fields = fields.and_then(|inner| inner.get(name));
        }
        let Some(Value::Object(fields)) = fields else {
            break;
        };
        let mut names = fields.keys().take(MAX_FIELDS);
        let is_wrong = |name: &&String| {
            let mut others = value.clone();
            let mut inner = Some(&mut others);
            for name in &path {
                inner = inner.and_then(|inner| inner.get_mut(name));
            }
            if let Some(Value::Object(fields)) = inner {
                fields.remove(*name);
            }
            match strict::from_value::<T>(others) {
                Ok(_) => true,
                Err(other) => other.to_string() != error,
            }
        };
        let Some(name) = names.find(is_wrong) else {
            break;
        };
        path.push(name.clone());
    }
    path.join(".")
}

/// An error of a deserializer, without names of Rust's types.
#[must_use]
pub fn plain_words(error: &str) -> String {
    let (text, place) = match error.rfind(" at line ") {
        Some(at) => error.split_at(at),
        None => (error, ""),
    };
    let words = if let Some(field) = text.strip_prefix("missing field ") {
        format!("{field} is missing")
    } else if let Some(field) = text.strip_prefix("duplicate field ") {
        format!("{field} is there twice")
    } else if let Some((name, known)) = unknown(text) {
        match known {
            "" => format!("{name} is not known: nothing can be written there"),
            known => format!("{name} is not known: write {known}"),
        }
    } else if let Some(("", expected)) = text.split_once("invalid length ")
        && let Some((_, expected)) = expected.split_once(", expected ")
    {
        match expected.starts_with("struct ") {
            true => "an object with fields is expected, not a list".to_owned(),
            false => format!("{expected} is expected"),
        }
    } else if let Some((found, expected)) = mismatch(text) {
        format!("{} is expected, not {}", wanted(expected), given(found))
    } else {
        text.to_owned()
    };
    words + place
}

/// The name, and those that are known, of an unknown field or variant.
fn unknown(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("unknown field ");
    let rest = rest.or_else(|| text.strip_prefix("unknown variant "))?;
    match rest.split_once(", expected ") {
        Some((name, known)) => Some((name, known)),
        None => Some((rest.split_once(", there are no ")?.0, "")),
    }
}

/// What was found, and what is expected.
fn mismatch(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("invalid type: ");
    let rest = rest.or_else(|| text.strip_prefix("invalid value: "))?;
    // What is expected comes last; what was found may be any text.
    rest.rsplit_once(", expected ")
}

fn wanted(expected: &str) -> String {
    let whole = |from: &str, to: &str| format!("a whole number from {from} to {to}");
    match expected {
        "i8" => whole("-128", "127"),
        "i16" => whole("-32768", "32767"),
        "u8" => whole("0", "255"),
        "u16" => whole("0", "65535"),
        "u32" => whole("0", "4294967295"),
        "a nonzero u16" => whole("1", "65535"),
        "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "u64" | "usize" => "a whole number that is not negative".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a string" | "str" | "string" => "a text".to_owned(),
        "a boolean" | "bool" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "unit" | "null" => "nothing".to_owned(),
        _ if expected.starts_with("struct ") || expected.starts_with("internally tagged enum ") => {
            "an object with fields".to_owned()
        }
        _ if expected.starts_with("enum ") => "one of the known words".to_owned(),
        other => other.to_owned(),
    }
}

fn given(found: &str) -> String {
    let inner = |kind: &str| {
        found
            .strip_prefix(kind)
            .map(|value| value.trim_matches('`'))
    };
    match found {
        "null" | "unit value" | "Option value" => "null".to_owned(),
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        _ => {
            let number = inner("integer ").or_else(|| inner("floating point "));
            let value = number.or_else(|| inner("boolean "));
            let text = found.strip_prefix("string ");
            match (value, text) {
                (Some(value), _) => value.to_owned(),
                (None, Some(text)) => format!("the text {text}"),
                (None, None) => found.to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only whether it can be read counts")]
    struct Submit {
        source: String,
        #[serde(default)]
        priority: i8,
        #[serde(default)]
        names: Vec<String>,
        #[serde(default)]
        limits: BTreeMap<String, u64>,
        kind: Option<Kind>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Large,
    }

    fn wrong(text: &str) -> String {
        let error = strict::from_slice::<Submit>(text.as_bytes()).unwrap_err();
        explain::<Submit>(text.as_bytes(), &error)
    }

    #[test]
    fn errors_name_the_field_and_no_type() {
        for (text, expected) in [
            ("{}", "`source` is missing"),
            ("{\"source\":1}", "`source`: a text is expected, not 1"),
            (
                "{\"source\":\"a\",\"priority\":1000}",
                "`priority`: a whole number from -128 to 127 is expected, not 1000",
            ),
            (
                "{\"priority\":\"high, expected i8\",\"source\":\"a\"}",
                "`priority`: a whole number from -128 to 127 is expected, not the text \"high, expected i8\"",
            ),
            (
                "{\"source\":\"a\",\"names\":{}}",
                "`names`: a list is expected, not an object",
            ),
            (
                "{\"source\":\"a\",\"limits\":{\"x\":-1}}",
                "`limits.x`: a whole number that is not negative is expected, not -1",
            ),
            (
                "{\"source\":\"a\",\"kind\":\"small\"}",
                "`small` is not known: write `large`",
            ),
            (
                "{\"source\":\"a\",\"prio\":1}",
                "`prio` is not known: write one of `source`, `priority`, `names`, `limits`, `kind`",
            ),
            ("[1]", "an object with fields is expected, not a list"),
            ("[]", "an object with fields is expected, not a list"),
            ("5", "an object with fields is expected, not 5"),
        ] {
            assert!(wrong(text).ends_with(expected), "{text}: {}", wrong(text));
        }
        let twice = wrong("{\"source\":\"a\",\"source\":\"b\"}");
        assert!(
            twice.starts_with("`source` is there twice at line 1"),
            "{twice}"
        );
        assert!(
            wrong("{").starts_with("it is not JSON: EOF"),
            "{}",
            wrong("{")
        );
        assert!(
            wrong("").starts_with("it is not JSON: EOF"),
            "{}",
            wrong("")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_explained_without_names_of_types(text in "\\PC*") {
            if let Err(error) = strict::from_slice::<Submit>(text.as_bytes()) {
                let words = explain::<Submit>(text.as_bytes(), &error);
                prop_assert!(!words.contains("struct "), "{words}");
            }
            let _ = plain_words(&text);
        }

        #[test]
        fn any_field_is_explained(name in "[a-z]{1,6}|source|priority|names|limits|kind", value in "[0-9]{1,30}|\"[a-z]*\"|\\{\\}|\\[\\]|null|true|1e400") {
            let text = format!("{{\"{name}\":{value}}}");
            if let Err(error) = strict::from_slice::<Submit>(text.as_bytes()) {
                let words = explain::<Submit>(text.as_bytes(), &error);
                prop_assert!(!words.contains("struct ") && !words.contains(" i8"), "{words}");
            }
        }
    }
}

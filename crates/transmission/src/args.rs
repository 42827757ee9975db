//! The arguments of a call, typed.
//!
//! Transmission takes 0 and 1 for a boolean, and a boolean for a number; so does this. Where it
//! takes another type for a missing argument, this answers with an error that names the argument.
//! `null` is a missing argument, except for `ids`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::CallError;
use crate::ids::{Ids, TorrentRef};
use crate::names::canonical;

/// The arguments of a call by their names in snake_case. If a request has two spellings of a name,
/// the later one in the order of bytes counts.
#[derive(Debug, Default)]
pub(crate) struct Args(BTreeMap<String, Value>);

impl Args {
    pub fn new(map: Map<String, Value>) -> Self {
        let canonical = |(name, value): (String, Value)| (canonical(&name).into_owned(), value);
        Self(map.into_iter().map(canonical).collect())
    }

    /// An argument as it was sent.
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// An argument as `read` takes it, or an error which says that it must be `what`.
    fn read<'a, T>(
        &'a self,
        name: &str,
        what: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, CallError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        read(value)
            .map(Some)
            .ok_or_else(|| CallError::invalid(format!("{name} must be {what}")))
    }

    pub fn bool(&self, name: &str) -> Result<Option<bool>, CallError> {
        self.read(name, "a boolean", |value| match value {
            Value::Bool(value) => Some(*value),
            Value::Number(number) => match number.as_i64() {
                Some(0) => Some(false),
                Some(1) => Some(true),
                _ => None,
            },
            Value::String(text) => text.parse().ok(),
            _ => None,
        })
    }

    pub fn int(&self, name: &str) -> Result<Option<i64>, CallError> {
        self.read(name, "an integer", int)
    }

    /// A number that is not negative. Flood sends rates that it has divided by 1024: what is no integer is
    /// rounded up, so that a limit above zero is none of zero.
    pub fn amount(&self, name: &str) -> Result<Option<u64>, CallError> {
        self.read(name, "a number that is not negative", |value| {
            let number = int(value).or_else(|| exact(value.as_f64()?.ceil()));
            number?.try_into().ok()
        })
    }

    /// An integer that is not negative, as the type that holds it.
    pub fn small<T: TryFrom<i64>>(&self, name: &str) -> Result<Option<T>, CallError> {
        self.read(name, "an integer in its range", |value| {
            int(value)?.try_into().ok()
        })
    }

    pub fn real(&self, name: &str) -> Result<Option<f64>, CallError> {
        self.read(name, "a number", |value| match value {
            Value::String(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
            value => value.as_f64(),
        })
    }

    pub fn text(&self, name: &str) -> Result<Option<&str>, CallError> {
        self.read(name, "a string", Value::as_str)
    }

    /// An absolute path. An empty one is a missing one, as with Transmission; one that is relative
    /// is refused as `what`.
    pub fn folder(&self, name: &str, what: &'static str) -> Result<Option<String>, CallError> {
        match self.text(name)? {
            None | Some("") => Ok(None),
            Some(path) if path.starts_with('/') => Ok(Some(path.to_owned())),
            Some(_) => Err(CallError::PathNotAbsolute(what)),
        }
    }

    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>, CallError> {
        self.list(name, "a list of strings", |value| {
            value.as_str().map(str::to_owned)
        })
    }

    /// One string, or a list of them.
    pub fn text_or_texts(&self, name: &str) -> Result<Option<Vec<String>>, CallError> {
        if let Some(Value::String(text)) = self.get(name) {
            return Ok(Some(vec![text.clone()]));
        }
        self.texts(name)
    }

    /// Indices of files, or ids of trackers.
    pub fn indices(&self, name: &str) -> Result<Option<Vec<u64>>, CallError> {
        self.list(name, "a list of integers that are not negative", |value| {
            int(value)?.try_into().ok()
        })
    }

    /// Pairs of an id and a URL: flat in one list, or each in a list of its own, as transmission-rpc for
    /// Python sends them.
    pub fn pairs(&self, name: &str) -> Result<Option<Vec<(u64, String)>>, CallError> {
        self.read(name, "a list of ids, each with a URL after it", |value| {
            let pair = |pair: &[Value]| {
                let [id, url] = pair else { return None };
                Some((int(id)?.try_into().ok()?, url.as_str()?.to_owned()))
            };
            let list = value.as_array()?;
            match list.first() {
                Some(Value::Array(_)) => list.iter().map(|it| pair(it.as_array()?)).collect(),
                _ => list.chunks(2).map(pair).collect(),
            }
        })
    }

    fn list<T>(
        &self,
        name: &str,
        what: &str,
        item: impl FnMut(&Value) -> Option<T>,
    ) -> Result<Option<Vec<T>>, CallError> {
        self.read(name, what, |value| {
            value.as_array()?.iter().map(item).collect()
        })
    }

    /// Whether an argument is there and another value than this one, as its type is read.
    pub fn differs(&self, name: &str, value: Value) -> Result<bool, CallError> {
        let argument = match value {
            Value::Bool(_) => self.bool(name)?.map(Value::from),
            Value::Number(_) => self.int(name)?.map(Value::from),
            _ => self.get(name).cloned(),
        };
        Ok(argument.is_some_and(|argument| argument != value))
    }

    /// The torrents that a call is about: all of them if the argument is missing, none if it is an
    /// empty list.
    pub fn ids(&self) -> Result<Ids, CallError> {
        let reference = |value: &Value| match value {
            Value::String(text) => Some(TorrentRef::from_text(text)),
            value => Some(TorrentRef::Id(int(value)?)),
        };
        let ids = match self.0.get("ids") {
            None => Some(Ids::All),
            Some(Value::String(text)) if canonical(text) == "recently_active" => {
                Some(Ids::RecentlyActive)
            }
            Some(Value::Array(list)) => list
                .iter()
                .map(reference)
                .collect::<Option<_>>()
                .map(Ids::List),
            Some(one @ (Value::String(_) | Value::Number(_))) => {
                reference(one).map(|one| Ids::List(vec![one]))
            }
            Some(_) => None,
        };
        ids.ok_or_else(|| {
            CallError::invalid(
                "ids must be a number, a hash, a list of them or \"recently-active\"",
            )
        })
    }
}

/// A whole number. Some clients send `1.0`.
fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(value) => Some(i64::from(*value)),
        Value::Number(number) => number.as_i64().or_else(|| exact(number.as_f64()?)),
        _ => None,
    }
}

/// A whole number that is exact as `f64`.
fn exact(real: f64) -> Option<i64> {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    (real.fract() == 0.0 && real.abs() <= MAX_EXACT).then_some(real as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn args(value: Value) -> Args {
        match value {
            Value::Object(map) => Args::new(map),
            _ => panic!("an object"),
        }
    }

    #[test]
    fn types_are_taken_as_transmission_takes_them() {
        let args = args(json!({
            "a": true, "b": 1, "c": "false", "d": 2, "e": 3.0, "f": 0.5, "g": -1, "h": null,
            "downloadDir": "/x", "i": [0, 1], "j": [1, "http://a", 2, "http://b"], "k": [1], "l": "2.5",
            "m": [[1, "http://a"], [2, "http://b"]], "n": [[1, "http://a"], 2],
        }));
        assert_eq!(args.bool("a"), Ok(Some(true)));
        assert_eq!(args.bool("b"), Ok(Some(true)));
        assert_eq!(args.bool("c"), Ok(Some(false)));
        let error = CallError::InvalidParams("d must be a boolean".into());
        assert_eq!(args.bool("d"), Err(error));
        assert_eq!(args.int("a"), Ok(Some(1)));
        assert_eq!(args.int("e"), Ok(Some(3)));
        assert!(args.int("f").is_err());
        assert_eq!(args.real("f"), Ok(Some(0.5)));
        assert_eq!(args.real("l"), Ok(Some(2.5)));
        assert_eq!(args.int("g"), Ok(Some(-1)));
        assert!(args.amount("g").is_err());
        assert_eq!(args.amount("f"), Ok(Some(1)));
        assert!(args.amount("l").is_err());
        assert_eq!(args.text("h"), Ok(None));
        assert_eq!(args.text("none"), Ok(None));
        assert_eq!(args.text("download_dir"), Ok(Some("/x")));
        assert!(args.text("a").is_err());
        assert_eq!(args.indices("i"), Ok(Some(vec![0, 1])));
        assert!(args.texts("i").is_err());
        assert_eq!(
            args.pairs("j").unwrap().unwrap()[1],
            (2, "http://b".to_owned())
        );
        assert_eq!(args.pairs("m"), args.pairs("j"));
        assert!(args.pairs("k").is_err() && args.pairs("n").is_err());
    }

    #[test]
    fn ids_are_a_number_a_hash_a_list_or_recent() {
        let hash = "00112233445566778899AABBCCDDEEFF00112233";
        let reference = TorrentRef::from_text(hash);
        assert!(matches!(reference, TorrentRef::Hash(bytes) if bytes[19] == 0x33));
        let list = |list: &[TorrentRef]| Ok(Ids::List(list.to_vec()));
        for (ids, expected) in [
            (json!({}), Ok(Ids::All)),
            (json!({"ids": []}), list(&[])),
            (json!({"ids": 7}), list(&[TorrentRef::Id(7)])),
            (json!({"ids": hash}), list(&[reference])),
            (
                json!({"ids": [hash, 3]}),
                list(&[reference, TorrentRef::Id(3)]),
            ),
            (json!({"ids": ["no hash"]}), list(&[TorrentRef::Unknown])),
            (json!({"ids": "recently-active"}), Ok(Ids::RecentlyActive)),
            (json!({"ids": "recently_active"}), Ok(Ids::RecentlyActive)),
        ] {
            assert_eq!(args(ids).ids(), expected);
        }
        for ids in [
            json!(null),
            json!({}),
            json!([null]),
            json!(true),
            json!(1.5),
        ] {
            assert!(args(json!({"ids": ids})).ids().is_err(), "{ids}");
        }
    }
}

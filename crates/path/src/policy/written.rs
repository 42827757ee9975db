//! Documents of policies as they are written, in YAML or JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A document as it is written.
#[derive(Default)]
pub(super) struct Document(pub BTreeMap<String, Written>);

/// A policy as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    #[serde(default)]
    pub extends: Vec<String>,
    pub acl: Option<Vec<WrittenEntry>>,
    pub sequence: Option<String>,
    pub local_isd_ases: Option<Vec<String>>,
    pub remote_isd_ases: Option<Vec<WrittenRule>>,
    #[serde(default)]
    pub options: Vec<WrittenOption>,
}

/// An entry of an ACL. It needs quotes: otherwise YAML reads what follows a dash as a list.
pub(super) struct WrittenEntry(pub String);

impl<'de> Deserialize<'de> for WrittenEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = WrittenEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string (entries of an ACL need quotes: '- 2')")
            }

            fn visit_str<E>(self, text: &str) -> Result<WrittenEntry, E> {
                Ok(WrittenEntry(text.to_owned()))
            }
        }

        deserializer.deserialize_any(Text)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenRule {
    pub isd_as: Option<String>,
    #[serde(default)]
    pub reject: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenOption {
    #[serde(default)]
    pub weight: i64,
    pub policy: Written,
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Named)
    }
}

/// Reads names and policies: a mapping, as programs write it, or a list of mappings, as
/// scionproto's PathPolicy document shows it.
struct Named;

impl<'de> Visitor<'de> for Named {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names, each with its policy")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut document = Document::default();
        while let Some((name, policy)) = map.next_entry()? {
            document.add(name, policy)?;
        }
        Ok(document)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Document, A::Error> {
        let mut document = Document::default();
        while let Some(named) = seq.next_element::<BTreeMap<String, Written>>()? {
            for (name, policy) in named {
                document.add(name, policy)?;
            }
        }
        Ok(document)
    }
}

impl Document {
    fn add<E: Error>(&mut self, name: String, policy: Written) -> Result<(), E> {
        if self.0.contains_key(&name) {
            return Err(E::custom(format!("two policies are called {name:?}")));
        }
        self.0.insert(name, policy);
        Ok(())
    }
}

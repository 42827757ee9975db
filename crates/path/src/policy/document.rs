//! Documents of named policies, as YAML or JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::extend::{self, MOST_DEPTH, MOST_RULES};
use super::{AclError, Policy};
use crate::SequenceError;

/// Most bytes of a document.
const MOST_BYTES: usize = 256 * 1024;

/// How many names an error lists.
const NAMES_LISTED: usize = 8;

/// Named policies, as a document lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies(BTreeMap<String, Policy>);

/// A document holds no policies that can be used, or not the one asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// It is too large.
    #[error("a policy document of {bytes} bytes: at most {MOST_BYTES} are read")]
    TooLarge {
        /// How large it is, in bytes.
        bytes: usize,
    },
    /// It is neither YAML nor JSON, or says something that no policy says.
    #[error("no policy document: {0}")]
    Format(String),
    /// It has no policy in it.
    #[error(
        "the policy document has no policy in it: write for example 'mine: {{acl: [\"- 2\", \"+\"]}}'"
    )]
    Empty,
    /// An ACL is none.
    #[error("policy {policy:?}: {source}")]
    Acl {
        /// The policy it is in.
        policy: String,
        /// What is wrong with it.
        source: AclError,
    },
    /// A sequence is none.
    #[error("policy {policy:?}: {source}")]
    Sequence {
        /// The policy it is in.
        policy: String,
        /// What is wrong with it.
        source: SequenceError,
    },
    /// A text is no ISD-AS.
    #[error("policy {policy:?}: {text:?} is no ISD-AS: write for example 1-ff00:0:110")]
    IsdAs {
        /// The policy it is in.
        policy: String,
        /// The text.
        text: String,
    },
    /// A policy extends one that is not in the document.
    #[error("policy {policy:?} extends {extends:?}, which is not in the document{}", listed(.known))]
    Extends {
        /// The policy.
        policy: String,
        /// What it extends.
        extends: String,
        /// The names that are in the document.
        known: Vec<String>,
    },
    /// A policy extends itself, perhaps by way of others.
    #[error("policy {policy:?} extends itself: by way of {}", .way.join(", "))]
    Cycle {
        /// The policy.
        policy: String,
        /// The policies on the way, in order, back to itself.
        way: Vec<String>,
    },
    /// Policies extend others, or have options, over too many steps.
    #[error("policy {policy:?} leads over more than {MOST_DEPTH} steps of extends and options")]
    TooDeep {
        /// The policy.
        policy: String,
    },
    /// A policy with all its options has too many rules.
    #[error(
        "policy {policy:?} has {rules} rules with those of its options: at most {MOST_RULES} are applied"
    )]
    TooManyRules {
        /// The policy.
        policy: String,
        /// How many it has.
        rules: usize,
    },
    /// There is no policy of this name.
    #[error("no policy is called {name:?}{}", listed(.known))]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// There are several policies, and none was named.
    #[error("the document has several policies: name one{}", listed(.known))]
    Several {
        /// The names there are.
        known: Vec<String>,
    },
}

fn listed(names: &[String]) -> String {
    let mut some = names[..names.len().min(NAMES_LISTED)]
        .iter()
        .map(|name| format!("{name:?}"))
        .collect::<Vec<_>>();
    if names.len() > NAMES_LISTED {
        some.push(format!("and {} more", names.len() - NAMES_LISTED));
    }
    match some.is_empty() {
        true => String::new(),
        false => format!(": there is {}", some.join(", ")),
    }
}

impl Policies {
    /// Reads a document, YAML or JSON: names, each with its policy, as a mapping or as a list of
    /// mappings. A policy may have
    ///
    /// - `acl`: a list of entries as [`AclEntry`](super::AclEntry) reads them;
    /// - `sequence`: a [`Sequence`](crate::Sequence);
    /// - `local_isd_ases`: a list of ISD-ASes where paths may begin;
    /// - `remote_isd_ases`: a list of `isd_as` (0 for any) and perhaps `reject: true`, of which the
    ///   first that is true of where a path ends decides; paths that end elsewhere are left;
    /// - `options`: a list of `weight` (0 unless given; the greatest first) and `policy`;
    /// - `extends`: a list of names of policies; what a policy does not say itself is what the last
    ///   one in the list says, or the one before.
    ///
    /// # Errors
    /// What is wrong, in one line; unknown keys are. At most 256 KiB are read, and a policy leads
    /// over at most 32 steps and has at most 10,000 rules with those of its options.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        if text.len() > MOST_BYTES {
            let bytes = text.len();
            return Err(PolicyError::TooLarge { bytes });
        }
        let document: Document = serde_saphyr::from_str(text).map_err(|error| {
            let error = error.without_snippet().to_string();
            let line = error.lines().next().unwrap_or_default();
            // YAML reads what follows a dash as a list of its own.
            PolicyError::Format(match line.contains("string") {
                true => format!("{line} (entries of an ACL need quotes: '- 2')"),
                false => line.to_owned(),
            })
        })?;
        match document.0.is_empty() {
            true => Err(PolicyError::Empty),
            false => Ok(Self(extend::resolve(&document.0)?)),
        }
    }

    /// The policy of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn policy(&self, name: &str) -> Result<&Policy, PolicyError> {
        self.0.get(name).ok_or_else(|| PolicyError::Unknown {
            name: name.to_owned(),
            known: self.names(),
        })
    }

    /// The only policy there is.
    ///
    /// # Errors
    /// When there are several.
    pub fn only(&self) -> Result<&Policy, PolicyError> {
        let mut policies = self.0.values();
        match (policies.next(), policies.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(PolicyError::Several {
                known: self.names(),
            }),
        }
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

/// A document as it is written.
struct Document(BTreeMap<String, Written>);

/// A policy as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    #[serde(default)]
    pub extends: Vec<String>,
    pub acl: Option<Vec<String>>,
    pub sequence: Option<String>,
    pub local_isd_ases: Option<Vec<String>>,
    pub remote_isd_ases: Option<Vec<WrittenRule>>,
    #[serde(default)]
    pub options: Vec<WrittenOption>,
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
        let mut document = Document(BTreeMap::new());
        while let Some((name, policy)) = map.next_entry()? {
            document.add(name, policy).map_err(A::Error::custom)?;
        }
        Ok(document)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Document, A::Error> {
        let mut document = Document(BTreeMap::new());
        while let Some(named) = seq.next_element::<BTreeMap<String, Written>>()? {
            for (name, policy) in named {
                document.add(name, policy).map_err(A::Error::custom)?;
            }
        }
        Ok(document)
    }
}

impl Document {
    fn add(&mut self, name: String, policy: Written) -> Result<(), String> {
        match self.0.contains_key(&name) {
            true => Err(format!("two policies are called {name:?}")),
            false => {
                self.0.insert(name, policy);
                Ok(())
            }
        }
    }
}

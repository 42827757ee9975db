//! Documents of named policies, as YAML or JSON.

use std::collections::BTreeMap;

use super::error::{MOST_BYTES, PolicyError};
use super::extend;
use super::rules::Policy;
use super::written::Document;

/// Named policies, as a document lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies(BTreeMap<String, Policy>);

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
    /// What is wrong, in one line. Unknown keys are errors, as are more than 256 KiB, more than 32
    /// steps of `extends` and `options`, and more than 10,000 rules in a policy with its options.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        if text.len() > MOST_BYTES {
            let bytes = text.len();
            return Err(PolicyError::TooLarge { bytes });
        }
        let document: Document = serde_saphyr::from_str(text).map_err(|error| {
            let error = error.without_snippet().to_string();
            PolicyError::Format(error.lines().next().unwrap_or_default().to_owned())
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

//! Which paths a connection may use.

use std::str::FromStr;

use hawser_path::{Acl, Policies, Sequence};
use thiserror::Error;

/// Which paths a [`Connection`](crate::Connection) may use.
///
/// Read from a policy document in JSON or YAML, as scionproto's programs take it, with one policy.
///
/// ```
/// let policy: hawser::Policy = r#"{"home": {"acl": ["- 1-ff00:0:112", "+"]}}"#.parse()?;
/// # Ok::<(), hawser::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy(pub(crate) hawser_path::Policy);

/// A text is not a [`Policy`].
///
/// ```
/// let error = hawser::Policy::any().with_acl("- 1-ff00:0:112").unwrap_err();
/// assert!(error.to_string().contains("default"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a path policy: {0}")]
pub struct PolicyError(String);

impl Policy {
    /// A policy that allows every path.
    ///
    /// ```
    /// assert_eq!(hawser::Policy::any(), hawser::Policy::default());
    /// ```
    pub fn any() -> Self {
        Self::default()
    }

    /// Allows only paths of which `acl` allows every interface. Its entries, with `;` between them, are
    /// `+` or `-` and a hop predicate (`ISD`, `ISD-AS` or `ISD-AS#IF`); the first that matches an
    /// interface decides, the last is `+` or `-` alone. Takes the place of an earlier list.
    ///
    /// ```
    /// let policy = hawser::Policy::any().with_acl("- 1-ff00:0:110#3; - 2; +")?;
    /// # Ok::<(), hawser::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// [`PolicyError`] when it is not such a list, or has more than 10,000 entries.
    pub fn with_acl(mut self, acl: &str) -> Result<Self, PolicyError> {
        self.0 = self.0.with_acl(acl.parse::<Acl>().map_err(error)?);
        Ok(self)
    }

    /// Allows only paths that follow `sequence`, a regular expression over the ASes of a path as in
    /// scionproto, and all sequences added before.
    ///
    /// ```
    /// let policy = hawser::Policy::any().with_sequence("0* 1-ff00:0:120 0*")?;
    /// # Ok::<(), hawser::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// [`PolicyError`] when it is not such an expression.
    pub fn with_sequence(mut self, sequence: &str) -> Result<Self, PolicyError> {
        let sequence = sequence.parse::<Sequence>().map_err(error)?;
        self.0 = self.0.with_sequence(sequence);
        Ok(self)
    }
}

fn error(error: impl std::error::Error) -> PolicyError {
    PolicyError(error.to_string())
}

impl FromStr for Policy {
    type Err = PolicyError;

    /// Reads a document with one policy, of at most 256 KiB.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let policies = Policies::parse(text).map_err(error)?;
        policies.only().cloned().map(Self).map_err(error)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_policy_or_refused(text in "\\PC{0,60}|[-+ 0-9a-f:;#,*?()|]{0,40}") {
            for refused in [
                text.parse::<Policy>().err(),
                Policy::any().with_acl(&text).err(),
                Policy::any().with_sequence(&text).err(),
            ] {
                prop_assert!(refused.is_none_or(|error| !error.to_string().is_empty()));
            }
        }
    }
}

//! Errors of policy documents.

/// Most bytes of a document.
pub(super) const MOST_BYTES: usize = 256 * 1024;

/// Most names that an error lists.
const NAMES_LISTED: usize = 8;

/// Why a document cannot be used, or the requested policy is not in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The document is too large.
    #[error("a policy document of {bytes} bytes: at most {MOST_BYTES} are read")]
    TooLarge {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// The document is neither YAML nor JSON, or has a key that policies do not have.
    #[error("not a policy document: {0}")]
    Format(String),
    /// The document has no policy.
    #[error(
        "the policy document has no policy in it: write for example 'mine: {{acl: [\"- 2\", \"+\"]}}'"
    )]
    Empty,
    /// A policy in the document is invalid, or cannot be combined with those it extends.
    #[error("policy {policy:?}{why}")]
    Policy {
        /// The policy.
        policy: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no policy of this name.
    #[error("no policy is called {name:?}{}", listed(.known))]
    Unknown {
        /// The name.
        name: String,
        /// The names in the document.
        known: Vec<String>,
    },
    /// There are several policies, and none was named.
    #[error("the document has several policies: name one{}", listed(.known))]
    Several {
        /// The names in the document.
        known: Vec<String>,
    },
}

pub(super) fn listed(names: &[String]) -> String {
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

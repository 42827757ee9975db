//! What can be wrong with documents of policies.

use super::acl::AclError;
use crate::SequenceError;

/// Most bytes of a document.
pub(super) const MOST_BYTES: usize = 256 * 1024;

/// Most steps from a policy over what it extends and over its options.
pub(super) const MOST_DEPTH: usize = 32;

/// Most rules of a policy with those of its options. Options of options multiply what a short
/// document says.
pub(super) const MOST_RULES: usize = 10_000;

/// How many names an error lists.
const NAMES_LISTED: usize = 8;

/// Why a document cannot be used, or the requested policy is not in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// It is too large.
    #[error("a policy document of {bytes} bytes: at most {MOST_BYTES} are read")]
    TooLarge {
        /// How large it is, in bytes.
        bytes: usize,
    },
    /// It is neither YAML nor JSON, or has a key that policies do not have.
    #[error("not a policy document: {0}")]
    Format(String),
    /// It has no policy.
    #[error(
        "the policy document has no policy in it: write for example 'mine: {{acl: [\"- 2\", \"+\"]}}'"
    )]
    Empty,
    /// An ACL cannot be read.
    #[error("policy {policy:?}: {source}")]
    Acl {
        /// The policy it is in.
        policy: String,
        /// What is wrong with it.
        source: AclError,
    },
    /// A sequence cannot be read.
    #[error("policy {policy:?}: {source}")]
    Sequence {
        /// The policy it is in.
        policy: String,
        /// What is wrong with it.
        source: SequenceError,
    },
    /// A text is not an ISD-AS.
    #[error("policy {policy:?}: {text:?} is not an ISD-AS: write for example 1-ff00:0:110")]
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
    /// A policy extends itself, perhaps through others.
    #[error("policy {policy:?} extends itself through {}", .through.join(", "))]
    Cycle {
        /// The policy.
        policy: String,
        /// The policies in between, in order, and itself.
        through: Vec<String>,
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

//! Path policies, as in scionproto: which paths a user allows.
//!
//! Source: scionproto, "PathPolicy", and its `pathpol`. Paths are judged as its program judges
//! them. What the program does not implement yet follows the document: options are tried by
//! descending weight in whatever order they are listed, and an option may extend a named policy.

mod acl;
mod document;
mod error;
mod rules;
#[cfg(test)]
mod tests;
mod written;

pub use self::acl::{Acl, AclEntry, AclError};
pub use self::document::Policies;
pub use self::error::PolicyError;
pub use self::rules::Policy;

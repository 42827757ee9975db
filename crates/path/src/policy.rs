//! Which paths a user allows, as scionproto's path policies say it.
//!
//! Source: scionproto, "PathPolicy", and its `pathpol`. What its program does to a path is done
//! here. What it does not do yet is as the document has it: options are tried by falling weight
//! however they are listed, and an option may extend a named policy.

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

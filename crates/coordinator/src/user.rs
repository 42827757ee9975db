//! Users.

use std::fmt;

use hawser_http::TokenHash;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The number of a user; never given again.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
#[schema(maximum = 18446744073709551615u64)]
pub struct UserId(pub u64);

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything.
    Admin,
    /// Reads, and sets limits of the links of the own ASes up to their maxima.
    User,
    /// Reads.
    Reader,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The number.
    pub id: UserId,
    /// The name; no other user has it.
    pub name: String,
    /// What the user may do.
    pub role: Role,
    /// The hash of the user's token; `None` if it was revoked.
    pub token: Option<TokenHash>,
}

//! The sides of a session.

use serde::{Deserialize, Serialize};

/// The side of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// This host opened it, for its programs.
    Client,
    /// The other host did, for this one's servers.
    Server,
}

impl Role {
    /// That of the other host.
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

//! What transfers.

use std::fmt;
use std::str::FromStr;

/// What transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// A download by `hawser get` from one `hawser seed`.
    Get,
    /// A bulk transfer by `hawser send` to a `hawser receive` that discards it.
    Send,
    /// A TCP program through `hawser shim up --carrier quic`.
    ShimQuic,
    /// A TCP program through `hawser shim up --carrier mptcp`.
    ShimMptcp,
}

impl Transfer {
    /// All transfers.
    pub const ALL: [Self; 4] = [Self::Get, Self::Send, Self::ShimQuic, Self::ShimMptcp];

    /// Whether a TCP program connects through the shim.
    pub fn is_shim(self) -> bool {
        matches!(self, Self::ShimQuic | Self::ShimMptcp)
    }
}

impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Get => "get",
            Self::Send => "send",
            Self::ShimQuic => "shim-quic",
            Self::ShimMptcp => "shim-mptcp",
        })
    }
}

impl FromStr for Transfer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|one| one.to_string() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(|one| one.to_string());
            format!(
                "there is no transfer {text:?}: there are {}",
                names.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        for transfer in Transfer::ALL {
            assert_eq!(transfer.to_string().parse(), Ok(transfer));
        }
        let error = "shim".parse::<Transfer>().unwrap_err();
        assert!(
            error.contains("get, send, shim-quic, shim-mptcp"),
            "{error}"
        );
    }
}

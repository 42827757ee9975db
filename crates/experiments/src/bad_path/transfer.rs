//! What transfers.

use std::fmt;

use crate::shape::Choice;

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

impl Choice for Transfer {
    const WHAT: &'static str = "transfer";
    const ALL: &'static [Self] = &[Self::Get, Self::Send, Self::ShimQuic, Self::ShimMptcp];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::assert_named;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        assert_named::<Transfer>();
    }
}

//! What sends over the far path.

use std::fmt;

use crate::papers::hercules;
use crate::shape::Choice;

/// What sends over the far path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// `hawser send` to `hawser receive`.
    Bulk,
    /// A QUIC stream (`hawser perf`).
    Quic,
    /// TCP over plain IP, by `iperf3`.
    Tcp {
        /// The congestion control, by the kernel's name.
        algorithm: &'static str,
        /// Flows at once.
        flows: u16,
    },
    /// `rsync` to its daemon, over plain IP.
    Rsync,
}

const fn tcp(algorithm: &'static str, flows: u16) -> Tool {
    Tool::Tcp { algorithm, flows }
}

impl Tool {
    /// Whether it uses plain IP.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Tcp { .. } | Self::Rsync)
    }

    /// The paper's figure of the same kind, as a share of its link: of Hercules it is a lower bound, of
    /// one TCP flow an upper one.
    pub fn paper_share(self) -> Option<f64> {
        match self {
            Self::Bulk => Some(hercules::FAR / hercules::LINK),
            Self::Tcp { flows: 1, .. } => Some(hercules::FAR_TCP / hercules::LINK),
            _ => None,
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bulk => f.pad("hawser-send"),
            Self::Quic => f.pad("hawser-quic"),
            Self::Tcp { algorithm, flows } => f.pad(&format!("{algorithm}-{flows}")),
            Self::Rsync => f.pad("rsync"),
        }
    }
}

impl Choice for Tool {
    const WHAT: &'static str = "tool";
    const ALL: &'static [Self] = &[
        Self::Bulk,
        Self::Quic,
        tcp("cubic", 1),
        tcp("cubic", 4),
        tcp("cubic", 10),
        tcp("bbr", 1),
        tcp("bbr", 4),
        tcp("bbr", 10),
        tcp("htcp", 1),
        tcp("htcp", 4),
        tcp("htcp", 10),
        Self::Rsync,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::assert_named;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        assert_named::<Tool>();
    }
}

//! Kinds of reasons, to count them by.

use crate::{Reason, Sensed};

impl Reason {
    /// A few words that are the same for all reasons of a kind, without their figures.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::First { .. } => "best left",
            Self::Disjoint { .. } => "shares no interface with another selected",
            Self::Shares { .. } => "shares an interface with one selected",
            Self::Limit { .. } | Self::LimitAt { .. } => "limit reached",
            Self::SlowHandshake { .. } => "slow handshake",
            Self::SlowSlot { .. } => "slow slot",
            Self::Probing { .. } => "probed after waiting",
            Self::ProbedAgain { .. } => "carries enough again",
            Self::TakesOver { .. } => "takes over",
            Self::SharesFewest { .. } => "shares fewest interfaces",
            Self::SharesMore { .. } => "shares more interfaces",
            Self::Spread { .. } => "spread",
            Self::NotNeeded { .. } => "not needed",
            Self::Apart { .. } => "shares no interface with one in use to any peer",
            Self::SharesAtNoCost { .. } => "shares an interface at no cost",
            Self::SharesWithPeer { .. } => "shares an interface with one in use",
            Self::PeerLimit { .. } => "peer's limit reached",
            Self::NextTurn => "until its turn",
            Self::Withdrawn { .. } => "peer left",
            Self::Sensed(Sensed::Trial { .. }) => "sensing: tried",
            Self::Sensed(Sensed::Gain { .. }) => "sensing: gain",
            Self::Sensed(Sensed::Bottleneck { .. }) => "sensing: bottleneck",
            Self::Sensed(Sensed::NoGain { .. }) => "sensing: no gain",
            Self::Sensed(_) => "sensing: other",
            Self::Copy
            | Self::Unfit { .. }
            | Self::Policy { .. }
            | Self::RemoteChooses
            | Self::Fails { .. }
            | Self::NotOffered => "other",
        }
    }
}

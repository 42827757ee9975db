//! What kind of reason a reason is.

use hawser_path::{Reason, Sensed};

/// In a few words, the same for all reasons of a kind.
pub(super) fn of(reason: &Reason) -> &'static str {
    match reason {
        Reason::First { .. } => "best left",
        Reason::Disjoint { .. } => "shares no interface with another selected",
        Reason::Shares { .. } => "shares an interface with one selected",
        Reason::Limit { .. } | Reason::LimitAt { .. } => "limit reached",
        Reason::SlowHandshake { .. } => "slow handshake",
        Reason::SlowSlot { .. } => "slow slot",
        Reason::Probing { .. } => "probed after waiting",
        Reason::ProbedAgain { .. } => "carries enough again",
        Reason::TakesOver { .. } => "takes over",
        Reason::SharesFewest { .. } => "shares fewest interfaces",
        Reason::SharesMore { .. } => "shares more interfaces",
        Reason::Spread { .. } => "spread",
        Reason::NotNeeded { .. } => "not needed",
        Reason::Apart { .. } => "shares no interface with one in use to any peer",
        Reason::SharesAtNoCost { .. } => "shares an interface at no cost",
        Reason::SharesWithPeer { .. } => "shares an interface with one in use",
        Reason::PeerLimit { .. } => "peer's limit reached",
        Reason::NextTurn => "until its turn",
        Reason::Withdrawn { .. } => "peer left",
        Reason::Sensed(Sensed::Trial { .. }) => "sensing: tried",
        Reason::Sensed(Sensed::Gain { .. }) => "sensing: gain",
        Reason::Sensed(Sensed::Bottleneck { .. }) => "sensing: bottleneck",
        Reason::Sensed(Sensed::NoGain { .. }) => "sensing: no gain",
        Reason::Sensed(_) => "sensing: other",
        _ => "other",
    }
}

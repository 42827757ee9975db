//! Why a path is used or not.

mod sensed;

use std::time::Duration;

use hawser_address::IsdAsn;
use serde::{Serialize, Serializer};
use thiserror::Error;

pub use self::sensed::Sensed;
use crate::text::{mbit, plural};
use crate::{Fingerprint, Interface};

/// Why a path is taken, left or waiting. Printed and serialized as one short line of text. A
/// transfer with further reasons wraps this type in its own.
///
/// It implements `Error` for callers that fail because a path is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// Taken: the best in rank of the paths not yet taken.
    #[error("best remaining by {by}: {value}")]
    First {
        /// What it ranks by, such as `latency`.
        by: &'static str,
        /// The values it ranks by.
        value: String,
    },
    /// Taken: belongs to the largest set of paths without a common interface.
    #[error("shares no interface: {value}")]
    Disjoint {
        /// The values it ranks by.
        value: String,
    },
    /// Left: overlaps with a path that was taken.
    #[error("shares {interface} with path {}", .with.short())]
    Shares {
        /// The first interface on this path that both cross.
        interface: Interface,
        /// The path that was taken.
        with: Fingerprint,
    },
    /// Left: another copy of the same path expires later, or was given first.
    #[error("another copy of this path is preferred")]
    Copy,
    /// Left before the comparison: the path cannot be used.
    #[error("{why}")]
    Unfit {
        /// Why, in one line.
        why: String,
    },
    /// Waiting: its handshake was too slow compared with the fastest one (000, Alg. 2).
    #[error("handshake {} ms, {} of the best's weight", .handshake.as_millis(), share(*.share_ppm))]
    SlowHandshake {
        /// How long the handshake took.
        handshake: Duration,
        /// Its weight, in millionths of the best path's weight.
        share_ppm: u32,
    },
    /// Waiting: it carried too little in a time slot compared with the best path (000, Alg. 3).
    #[error("{}, {} of the best", mbit(*.rate), share(*.share_ppm))]
    SlowSlot {
        /// Bits per second in that slot.
        rate: u64,
        /// Its weight, in millionths of the best path's weight.
        share_ppm: u32,
    },
    /// Waiting: it delivers so much later than the best path that what is to arrive in order would wait
    /// for it.
    #[error("round trip {} ms, {} ms over another path", .rtt.as_millis(), .best.as_millis())]
    Lags {
        /// Its round-trip time, the shortest of late.
        rtt: Duration,
        /// That of the best path.
        best: Duration,
    },
    /// Waiting: it loses many more packets than another path, and their retransmissions would delay
    /// ordered delivery over all paths.
    #[error("loses {} of its packets, another path {}", share(*.share_ppm), share(*.best_ppm))]
    Loses {
        /// The share of its packets that was lost of late, in millionths.
        share_ppm: u32,
        /// The same of the path that loses least.
        best_ppm: u32,
    },
    /// Taken: it waited, and is used for a while so that it can be weighed again.
    #[error("probed after waiting {slots} time slot{}", plural(*.slots as usize))]
    Probing {
        /// How many time slots it waited.
        slots: u32,
    },
    /// Taken: it waited, was probed, and carries enough now.
    #[error("probed again, {}", mbit(*.rate))]
    ProbedAgain {
        /// Bits per second when it was weighed.
        rate: u64,
    },
    /// Taken: it waited, and the paths in use deliver nothing, or one of them was lost.
    #[error("takes over{}", taken_over(.from))]
    TakesOver {
        /// The path that was lost; `None` if the paths in use deliver nothing.
        from: Option<Fingerprint>,
    },
    /// The result of a trial of whether it shares a bottleneck with paths in use.
    #[error(transparent)]
    Sensed(#[from] Sensed),
    /// Left: a [`Policy`](crate::Policy) does not allow it.
    #[error("policy: {why}")]
    Policy {
        /// Which rule of the policy, in one line.
        why: String,
    },
    /// Left: the wanted number of paths was taken, all of which rank before it or are disjoint from
    /// each other.
    #[error("limit of {max} path{} reached{}", plural(*.max), after_colon(.value))]
    Limit {
        /// Number of paths wanted.
        max: usize,
        /// The values it ranks by; `None` if these are its hops.
        value: Option<String>,
    },
    /// Taken: overlaps with paths taken before it, but no less than every path that was left.
    #[error("shares {0}, least overlap available")]
    SharesFewest(Overlap),
    /// Left: overlaps too much with the paths that were taken.
    #[error("shares {overlap}, more than {most}")]
    SharesMore {
        /// The interfaces that it shares with them.
        overlap: Overlap,
        /// Most interfaces that it may share.
        most: usize,
    },
    /// Taken: one of the paths over which the bytes are spread.
    #[error("carries {} %: {value}; {}", percent(*.permille), heaviest(.most, *.limit, *.kept))]
    Spread {
        /// Its share, in thousandths of all bytes.
        permille: u16,
        /// The AS between the ends that carries most, and its share in thousandths; `None` if there
        /// is no AS between the ends.
        most: Option<(IsdAsn, u16)>,
        /// The largest share wanted for any AS, in per cent.
        limit: u8,
        /// Whether the limit is kept.
        kept: bool,
        /// The values it ranks by.
        value: String,
    },
    /// Left: the paths taken keep the limit, and each further path exposes bytes to further ASes.
    #[error("{enough} path{} spread enough: {value}", plural(*.enough))]
    NotNeeded {
        /// How many were taken.
        enough: usize,
        /// The values it ranks by.
        value: String,
    },
    /// Taken: crosses no interface that a path in use to any peer crosses.
    #[error("shares no interface with any path in use{}", exception(*.but_unavoidable))]
    Apart {
        /// Whether the only link out of the uploader's AS or into the peer's AS was ignored, since
        /// no path can avoid it.
        but_unavoidable: bool,
    },
    /// Taken: sensing found that it does not slow the path it shares an interface with.
    #[error("shares {0} at no cost to it")]
    SharesAtNoCost(PeerOverlap),
    /// Left: overlaps with a path in use, to the same peer or another.
    #[error("shares {0}")]
    SharesWithPeer(PeerOverlap),
    /// Left: the peer uses as many paths as it accepts.
    #[error("{peer} gets at most {max} path{}", plural(*.max))]
    PeerLimit {
        /// The peer.
        peer: String,
        /// Most paths that it accepts.
        max: usize,
    },
    /// Waiting: every path to this peer conflicts with paths that other peers use.
    #[error("all paths conflict; waiting for a turn")]
    NextTurn,
    /// Waiting: other peers hold all slots of the uploader, so that nothing is sent to this one.
    #[error("other peers hold all slots; waiting for one")]
    NoSlot,
    /// Left: the peer left, or the path is no longer on offer.
    #[error("no longer offered to {peer}")]
    Withdrawn {
        /// The peer.
        peer: String,
    },
    /// Left: it fails; while it is retried, another path is used in its place.
    #[error("{why}")]
    Fails {
        /// Why it last failed, in one line.
        why: String,
    },
    /// Left: the path is not offered any more.
    #[error("not offered any more")]
    NotOffered,
    /// Left: the remote chooses the paths, and one other path is enough to contact it.
    #[error("not chosen by the remote")]
    RemoteChooses,
}

/// The interfaces that a path shares with paths that were taken. Printed as `2 interfaces
/// (1-ff00:0:2#1, …) with path ab12cd34`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{count} interface{} ({interface}{}) with path {}",
    plural(*.count),
    if *.count == 1 { "" } else { ", …" },
    .with.short()
)]
pub struct Overlap {
    /// Number of its interfaces that those paths cross too.
    pub count: usize,
    /// The first of them on this path.
    pub interface: Interface,
    /// The path with which it shares most.
    pub with: Fingerprint,
}

/// The interface that a path shares with a path in use to a peer. Printed as `1-ff00:0:2#1 with
/// path ab12cd34 of host 3`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{interface} with path {} of {peer}", .with.short())]
pub struct PeerOverlap {
    /// The first interface on this path that both cross.
    pub interface: Interface,
    /// The path in use.
    pub with: Fingerprint,
    /// The peer that the path in use leads to.
    pub peer: String,
}

fn after_colon(value: &Option<String>) -> String {
    let value = value.as_ref();
    value.map_or_else(String::new, |value| format!(": {value}"))
}

fn taken_over(from: &Option<Fingerprint>) -> String {
    match from {
        Some(path) => format!(" from path {}", path.short()),
        None => ": no other path delivers".to_owned(),
    }
}

fn exception(but: bool) -> &'static str {
    match but {
        true => ", but those of the only way out or in",
        false => "",
    }
}

fn percent(permille: u16) -> f64 {
    f64::from(permille) / 10.0
}

/// Describes the AS that carries most of the spread bytes.
fn heaviest(most: &Option<(IsdAsn, u16)>, limit: u8, kept: bool) -> String {
    match most.map(|(isd_as, carried)| (isd_as, percent(carried))) {
        None => "no AS between the ends".to_owned(),
        Some((isd_as, carried)) if kept => {
            format!("most is over {isd_as}: {carried} %, limit {limit} %")
        }
        Some((isd_as, carried)) => {
            format!("{limit} % cannot be kept: {isd_as} carries {carried} %, least there is")
        }
    }
}

/// Formats millionths as a percentage.
fn share(ppm: u32) -> String {
    let percent = f64::from(ppm) / 1e4;
    match ppm {
        10_000.. => format!("{percent:.0} %"),
        1_000.. => format!("{percent:.1} %"),
        _ => "less than 0.1 %".to_owned(),
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Reason {
    /// Whether a selection has left a path because it shares interfaces with others that it has
    /// taken, so that sensing may try it.
    pub fn is_overlap(&self) -> bool {
        match self {
            Self::Shares { .. } | Self::SharesMore { .. } => true,
            Self::First { .. }
            | Self::Disjoint { .. }
            | Self::Copy
            | Self::Unfit { .. }
            | Self::SlowHandshake { .. }
            | Self::SlowSlot { .. }
            | Self::Lags { .. }
            | Self::Loses { .. }
            | Self::Probing { .. }
            | Self::ProbedAgain { .. }
            | Self::TakesOver { .. }
            | Self::Sensed(_)
            | Self::Policy { .. }
            | Self::Limit { .. }
            | Self::SharesFewest(_)
            | Self::Spread { .. }
            | Self::NotNeeded { .. }
            | Self::Apart { .. }
            | Self::SharesAtNoCost(_)
            | Self::SharesWithPeer(_)
            | Self::PeerLimit { .. }
            | Self::NextTurn
            | Self::NoSlot
            | Self::Withdrawn { .. }
            | Self::Fails { .. }
            | Self::NotOffered
            | Self::RemoteChooses => false,
        }
    }

    /// Whether what a path carries, or the others without it, is being measured.
    pub fn is_measured(&self) -> bool {
        matches!(self, Self::Sensed(_))
    }

    /// A short name for the kind of reason, without figures, to count reasons by.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::First { .. } => "best remaining",
            Self::Disjoint { .. } => "shares no interface with another selected",
            Self::Shares { .. } => "shares an interface with one selected",
            Self::Limit { .. } => "limit reached",
            Self::SlowHandshake { .. } => "slow handshake",
            Self::SlowSlot { .. } => "slow slot",
            Self::Lags { .. } => "delivers much later",
            Self::Loses { .. } => "loses many packets",
            Self::Probing { .. } => "probed after waiting",
            Self::ProbedAgain { .. } => "carries enough again",
            Self::TakesOver { .. } => "takes over",
            Self::SharesFewest(_) => "least overlap available",
            Self::SharesMore { .. } => "shares more interfaces",
            Self::Spread { .. } => "spread",
            Self::NotNeeded { .. } => "not needed",
            Self::Apart { .. } => "shares no interface with one in use to any peer",
            Self::SharesAtNoCost(_) => "shares an interface at no cost",
            Self::SharesWithPeer(_) => "shares an interface with one in use",
            Self::PeerLimit { .. } => "peer's limit reached",
            Self::NextTurn => "waiting for a turn",
            Self::NoSlot => "no slot",
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

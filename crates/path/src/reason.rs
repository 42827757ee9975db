//! Why a path is used or not.

mod kind;
mod sensed;

use std::fmt;
use std::time::Duration;

use sciparse::identifier::isd_asn::IsdAsn;
use serde::{Serialize, Serializer};

pub use self::sensed::Sensed;
use crate::rate::Rate;
use crate::{Fingerprint, Interface};

/// Why a path was taken, left or is waiting. Printed, and in serde, as a short line for people. A
/// transfer with reasons of its own wraps this type in one of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Taken: no path ranked before it was left.
    First {
        /// What the first in rank is called, such as `lowest latency`.
        best: &'static str,
        /// What it ranks by.
        value: String,
    },
    /// Taken: one of the largest set of paths without a common interface.
    Disjoint {
        /// What it ranks by.
        value: String,
    },
    /// Left: overlaps with a path that was taken.
    Shares {
        /// The first interface on this path that both cross.
        interface: Interface,
        /// The path that was taken.
        with: Fingerprint,
    },
    /// Left: as many paths as wanted were taken.
    Limit {
        /// How many were wanted.
        max: usize,
    },
    /// Left: another copy of the same path expires later, or was given first.
    Copy,
    /// Left before any were compared: nothing can be sent over it as it should be.
    Unfit {
        /// Why, in one line.
        why: String,
    },
    /// Waiting: its handshake took too long beside the best's (000, Alg. 2).
    SlowHandshake {
        /// How long it took.
        handshake: Duration,
        /// Its weight, in millionths of the best's.
        share_ppm: u32,
    },
    /// Waiting: it carried too little in a time slot beside the best (000, Alg. 3).
    SlowSlot {
        /// Bits per second in that slot.
        rate: u64,
        /// Its weight, in millionths of the best's.
        share_ppm: u32,
    },
    /// Taken: it waited and is used for a while to be weighed again.
    Probing {
        /// How many time slots it waited.
        slots: u32,
    },
    /// Taken: it waited, was probed, and carries enough now.
    ProbedAgain {
        /// Bits per second when it was weighed.
        rate: u64,
    },
    /// Taken: it waited, and those in use deliver nothing, or one of them is gone.
    TakesOver {
        /// The path that is gone.
        from: Option<Fingerprint>,
    },
    /// Whether it shares a bottleneck with paths in use is being found out, or was.
    Sensed(Sensed),
    /// Left: a [`Policy`](crate::Policy) does not keep it.
    Policy {
        /// What in the policy, in one line.
        why: String,
    },
    /// Left: as many paths as wanted were taken, all of them ranked before it or apart from others.
    LimitAt {
        /// How many were wanted.
        max: usize,
        /// What it ranks by.
        value: String,
    },
    /// Taken: overlaps with paths that were taken before, but no path that was left overlapped
    /// less.
    SharesFewest {
        /// How many of its interfaces those paths cross too.
        count: usize,
        /// The first of them on this path.
        interface: Interface,
        /// The path with which it shares most.
        with: Fingerprint,
    },
    /// Left: overlaps too much with the paths that were taken.
    SharesMore {
        /// How many of its interfaces those paths cross too.
        count: usize,
        /// The first of them on this path.
        interface: Interface,
        /// The path with which it shares most.
        with: Fingerprint,
        /// How many it might share.
        most: usize,
    },
    /// Taken: one of the paths over which the bytes are spread.
    Spread {
        /// Its share, in thousandths of all bytes.
        permille: u16,
        /// The AS between the ends that carries most, and its share in thousandths.
        most: Option<(IsdAsn, u16)>,
        /// The largest share wanted for any AS, in per cent.
        limit: u8,
        /// Whether the limit is kept.
        kept: bool,
        /// What it ranks by.
        value: String,
    },
    /// Left: the paths that were taken do, and further ones show bytes to further ASes.
    NotNeeded {
        /// How many were taken.
        enough: usize,
        /// What it ranks by.
        value: String,
    },
    /// Taken: crosses no interface that a path in use to any peer crosses.
    Apart {
        /// Whether that leaves out the only link out of the uploader's AS, or into the peer's, which
        /// no path could avoid.
        but_only_way: bool,
    },
    /// Taken: sensing found that it does not slow the path it shares an interface with.
    SharesAtNoCost {
        /// The first interface on this path that both cross.
        interface: Interface,
        /// The other path.
        with: Fingerprint,
        /// The peer that the other path leads to.
        peer: String,
    },
    /// Left: overlaps with a path in use, to the same peer or another.
    SharesWithPeer {
        /// The first interface on this path that both cross.
        interface: Interface,
        /// The path in use.
        with: Fingerprint,
        /// The peer that the other path leads to.
        peer: String,
    },
    /// Left: the peer uses as many paths as it takes.
    PeerLimit {
        /// The peer.
        peer: String,
        /// How many it takes.
        max: usize,
    },
    /// Waiting: other peers use all that could be used for this one.
    NextTurn,
    /// Left: the peer left, or the path is no longer on offer.
    Withdrawn {
        /// The peer.
        peer: String,
    },
    /// Left: it fails, and while it is tried again another path is used in its place.
    Fails {
        /// Why it last failed, in one line.
        why: String,
    },
    /// Left: the path is not offered any more.
    NotOffered,
    /// Left: the remote chooses among the paths, and another one is enough to reach it.
    RemoteChooses,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        match self {
            Self::First { best, value } => write!(f, "{best} left: {value}"),
            Self::Disjoint { value } => write!(f, "shares no interface: {value}"),
            Self::Shares { interface, with } => {
                write!(f, "shares {interface} with path {}", with.short())
            }
            Self::Limit { max } => write!(f, "limit of {max} path{} reached", plural(*max)),
            Self::Copy => f.write_str("another copy of this path is preferred"),
            Self::Unfit { why } | Self::Fails { why } => f.write_str(why),
            Self::SlowHandshake {
                handshake,
                share_ppm,
            } => write!(
                f,
                "handshake {} ms, {} of the best's weight",
                handshake.as_millis(),
                Share(*share_ppm)
            ),
            Self::SlowSlot { rate, share_ppm } => {
                write!(f, "{}, {} of the best", Rate(*rate), Share(*share_ppm))
            }
            Self::Probing { slots } => {
                let plural = plural(*slots as usize);
                write!(f, "probed after waiting {slots} time slot{plural}")
            }
            Self::ProbedAgain { rate } => write!(f, "probed again, {}", Rate(*rate)),
            Self::TakesOver { from: Some(path) } => {
                write!(f, "takes over from path {}", path.short())
            }
            Self::TakesOver { from: None } => f.write_str("takes over: no other path delivers"),
            Self::Sensed(sensed) => sensed.fmt(f),
            Self::Policy { why } => write!(f, "policy: {why}"),
            Self::LimitAt { max, value } => {
                write!(f, "limit of {max} path{} reached: {value}", plural(*max))
            }
            Self::SharesFewest {
                count,
                interface,
                with,
            } => {
                sharing(f, *count, interface, with)?;
                f.write_str(", fewest there are")
            }
            Self::SharesMore {
                count,
                interface,
                with,
                most,
            } => {
                sharing(f, *count, interface, with)?;
                write!(f, ", more than {most}")
            }
            Self::Spread {
                permille,
                most,
                limit,
                kept,
                value,
            } => {
                let percent = |permille: u16| f64::from(permille) / 10.0;
                write!(f, "carries {} %: {value}; ", percent(*permille))?;
                let most = most.map(|(isd_as, carried)| (isd_as, percent(carried)));
                match (most, kept) {
                    (None, _) => f.write_str("no AS between the ends"),
                    (Some((isd_as, carried)), true) => {
                        write!(f, "most is over {isd_as}: {carried} %, limit {limit} %")
                    }
                    (Some((isd_as, carried)), false) => write!(
                        f,
                        "{limit} % cannot be kept: {isd_as} carries {carried} %, least there is"
                    ),
                }
            }
            Self::NotNeeded { enough, value } => {
                write!(f, "{enough} path{} spread enough: {value}", plural(*enough))
            }
            Self::Apart { but_only_way } => {
                f.write_str("shares no interface with any path in use")?;
                match but_only_way {
                    true => f.write_str(", but those of the only way out or in"),
                    false => Ok(()),
                }
            }
            Self::SharesAtNoCost {
                interface,
                with,
                peer,
            } => {
                let with = with.short();
                write!(
                    f,
                    "shares {interface} with path {with} of {peer} at no cost to it"
                )
            }
            Self::SharesWithPeer {
                interface,
                with,
                peer,
            } => write!(f, "shares {interface} with path {} of {peer}", with.short()),
            Self::PeerLimit { peer, max } => {
                write!(f, "{peer} gets at most {max} path{}", plural(*max))
            }
            Self::NextTurn => f.write_str("nothing is free, next turn"),
            Self::Withdrawn { peer } => write!(f, "no longer offered to {peer}"),
            Self::NotOffered => f.write_str("not offered any more"),
            Self::RemoteChooses => f.write_str("not chosen by the remote"),
        }
    }
}

/// Millionths, as a percentage for people.
struct Share(u32);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            10_000.. => write!(f, "{:.0} %", f64::from(self.0) / 1e4),
            1_000.. => write!(f, "{:.1} %", f64::from(self.0) / 1e4),
            _ => f.write_str("less than 0.1 %"),
        }
    }
}

/// `shares 2 interfaces (1-ff00:0:2#1, …) with path ab12cd34`.
fn sharing(
    f: &mut fmt::Formatter<'_>,
    count: usize,
    interface: &Interface,
    with: &Fingerprint,
) -> fmt::Result {
    let (plural, more) = if count == 1 { ("", "") } else { ("s", ", …") };
    let with = with.short();
    write!(
        f,
        "shares {count} interface{plural} ({interface}{more}) with path {with}"
    )
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

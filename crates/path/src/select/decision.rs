//! What was decided about each path, and why.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::sense::Sensed;
use crate::{Fingerprint, Interface};

/// What [`select`](super::select()) decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Indices of the paths taken, best first.
    pub taken: Vec<usize>,
    /// One for each path, in the order in which they were given.
    pub decisions: Vec<Decision>,
    /// The interfaces that were not counted when paths were compared, because every path has to
    /// use them.
    pub ignored: Vec<Interface>,
}

/// What was decided about one path. Printed as `left: limit of 2 paths reached`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Whether it is used.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
}

impl Decision {
    /// Taken, because of `reason`.
    #[must_use]
    pub fn taken(reason: Reason) -> Self {
        Self {
            verdict: Verdict::Taken,
            reason,
        }
    }

    /// Left, because of `reason`.
    #[must_use]
    pub fn left(reason: Reason) -> Self {
        Self {
            verdict: Verdict::Left,
            reason,
        }
    }

    /// Waiting, because of `reason`.
    #[must_use]
    pub fn waiting(reason: Reason) -> Self {
        Self {
            verdict: Verdict::Waiting,
            reason,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.verdict, self.reason)
    }
}

/// Whether a path is used. Printed as, and in serde: `taken`, `left`, `waiting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is used.
    Taken,
    /// It is not.
    Left,
    /// It was taken and is kept connected, but nothing is sent over it for now.
    Waiting,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Taken => "taken",
            Self::Left => "left",
            Self::Waiting => "waiting",
        })
    }
}

/// Why a path was taken, left or is waiting. Printed as a short line for people; serde uses that line too.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Taken: no path ranked before it was left.
    ShortestLeft {
        /// Its hops.
        hops: usize,
    },
    /// Taken: one of the largest set of paths without a common interface.
    Disjoint {
        /// Its hops.
        hops: usize,
    },
    /// Left: overlaps with a path that was taken.
    Shares {
        /// The first interface on the way that both cross.
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
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        match self {
            Self::ShortestLeft { hops } => {
                write!(f, "shortest left: {hops} hop{}", plural(*hops))
            }
            Self::Disjoint { hops } => {
                write!(f, "shares no interface: {hops} hop{}", plural(*hops))
            }
            Self::Shares { interface, with } => {
                write!(f, "shares {interface} with path {}", with.short())
            }
            Self::Limit { max } => write!(f, "limit of {max} path{} reached", plural(*max)),
            Self::Copy => f.write_str("another copy of this path is preferred"),
            Self::Unfit { why } => f.write_str(why),
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
                write!(f, "probed after waiting {slots} time slot{}", {
                    if *slots == 1 { "" } else { "s" }
                })
            }
            Self::ProbedAgain { rate } => write!(f, "probed again, {}", Rate(*rate)),
            Self::TakesOver { from: Some(path) } => {
                write!(f, "takes over from path {}", path.short())
            }
            Self::TakesOver { from: None } => f.write_str("takes over: no other path delivers"),
            Self::Sensed(sensed) => sensed.fmt(f),
            Self::Policy { why } => write!(f, "policy: {why}"),
        }
    }
}

/// Bits per second, for people.
pub(crate) struct Rate(pub u64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} Mbit/s", self.0 as f64 / 1e6)
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

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

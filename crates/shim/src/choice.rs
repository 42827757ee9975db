//! Which carrier a program's connection takes: no I/O, no clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a measurement counts.
const FRESH: Duration = Duration::from_secs(600);
/// Bytes that a carrier must have carried for its rate to count.
const ENOUGH: u64 = 8 << 20;
/// Bytes that an interval needs to count: with fewer, programs had little to send.
const INTERVAL: u64 = 64 << 10;
/// An interval counts for a carrier if the other one carried at most this part of its bytes.
const ALONE: u64 = 10;
/// Most connections in the time of [`FRESH`] that take a carrier for it to be measured.
const TRIES: u32 = 4;
/// QUIC is taken if it is faster than MPTCP by this factor: MPTCP's connections outlive the carrier.
const BETTER: f64 = 1.1;

/// What carries a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CarrierKind {
    /// The kernel's MPTCP.
    Mptcp,
    /// A stream over several QUIC connections.
    Quic,
}

impl fmt::Display for CarrierKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mptcp => "mptcp",
            Self::Quic => "quic",
        })
    }
}

/// What carries the connections of this host's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CarrierChoice {
    /// One carrier.
    Always(CarrierKind),
    /// What was measured to be faster to each destination; MPTCP until then.
    #[default]
    Auto,
}

impl fmt::Display for CarrierChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(kind) => kind.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl FromStr for CarrierChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "mptcp" => Ok(Self::Always(CarrierKind::Mptcp)),
            "quic" => Ok(Self::Always(CarrierKind::Quic)),
            "auto" => Ok(Self::Auto),
            _ => Err("write mptcp, quic or auto".to_owned()),
        }
    }
}

impl CarrierChoice {
    /// The carriers that may be taken, of those that are `available`.
    pub fn among(self, available: CarrierSet) -> CarrierSet {
        match self {
            Self::Always(kind) => available.intersection(CarrierSet::of(kind)),
            Self::Auto => available,
        }
    }
}

/// Some of the carriers, as a byte of the protocol has them: bit 0 is MPTCP, bit 1 QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CarrierSet(pub u8);

impl fmt::Display for CarrierSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            match (self.has(CarrierKind::Mptcp), self.has(CarrierKind::Quic)) {
                (true, true) => "auto",
                (true, false) => "mptcp",
                (false, true) => "quic",
                (false, false) => "none",
            },
        )
    }
}

impl CarrierSet {
    /// One carrier.
    pub fn of(kind: CarrierKind) -> Self {
        Self(match kind {
            CarrierKind::Mptcp => 1,
            CarrierKind::Quic => 2,
        })
    }

    /// Those of this set, and `kind`.
    pub fn with(self, kind: CarrierKind) -> Self {
        Self(self.0 | Self::of(kind).0)
    }

    /// Those that are in both sets.
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether `kind` is one of them.
    pub fn has(self, kind: CarrierKind) -> bool {
        self.0 & Self::of(kind).0 != 0
    }

    /// Whether there is none that this version knows.
    pub fn is_empty(self) -> bool {
        !self.has(CarrierKind::Mptcp) && !self.has(CarrierKind::Quic)
    }
}

/// What was measured of one carrier.
#[derive(Debug, Default)]
struct Record {
    /// Bytes of the intervals that count.
    bytes: u64,
    /// The highest rate in one of them, in bytes/s, and when that was.
    best: f64,
    at: Duration,
    /// Connections that took this carrier for it to be measured, and when the first one did.
    tries: u32,
    tried: Duration,
}

/// How fast each carrier was to one destination. Times count from any beginning.
#[derive(Debug, Default)]
pub struct Measured {
    mptcp: Record,
    quic: Record,
}

impl Measured {
    /// Records how many bytes of programs each carrier has carried to and from the destination in an
    /// interval of length `span`. It counts for a carrier that was busy, and alone.
    pub fn observe(&mut self, mptcp: u64, quic: u64, span: Duration, now: Duration) {
        for (record, own, other) in [
            (&mut self.mptcp, mptcp, quic),
            (&mut self.quic, quic, mptcp),
        ] {
            record.expire(now);
            if own < INTERVAL || other > own / ALONE || span.is_zero() {
                continue;
            }
            record.bytes += own;
            let rate = own as f64 / span.as_secs_f64();
            if rate > record.best {
                (record.best, record.at) = (rate, now);
            }
        }
    }

    /// The carrier of the next connection, one of `available`; `None` if there is none.
    ///
    /// It is the faster one by the highest rate of the last ten minutes; without measurements MPTCP.
    /// If only one was measured, the other one is tried by a few connections.
    pub fn choose(&mut self, available: CarrierSet, now: Duration) -> Option<CarrierKind> {
        use CarrierKind::{Mptcp, Quic};
        match (available.has(Mptcp), available.has(Quic)) {
            (false, false) => return None,
            (true, false) => return Some(Mptcp),
            (false, true) => return Some(Quic),
            (true, true) => {}
        }
        self.mptcp.expire(now);
        self.quic.expire(now);
        Some(match (self.mptcp.rate(), self.quic.rate()) {
            (None, None) => Mptcp,
            (Some(_), None) if self.quic.may_try(now) => Quic,
            (Some(_), None) => Mptcp,
            (None, Some(_)) if self.mptcp.may_try(now) => Mptcp,
            (None, Some(_)) => Quic,
            (Some(mptcp), Some(quic)) if quic > mptcp * BETTER => Quic,
            (Some(_), Some(_)) => Mptcp,
        })
    }

    /// The rate of `kind` that counts now, in bytes/s.
    pub fn rate(&self, kind: CarrierKind) -> Option<f64> {
        match kind {
            CarrierKind::Mptcp => self.mptcp.rate(),
            CarrierKind::Quic => self.quic.rate(),
        }
    }
}

impl Record {
    fn rate(&self) -> Option<f64> {
        (self.bytes >= ENOUGH).then_some(self.best)
    }

    fn expire(&mut self, now: Duration) {
        if self.bytes > 0 && now.saturating_sub(self.at) > FRESH {
            (self.bytes, self.best) = (0, 0.0);
        }
    }

    fn may_try(&mut self, now: Duration) -> bool {
        if self.tries == 0 || now.saturating_sub(self.tried) > FRESH {
            (self.tries, self.tried) = (0, now);
        }
        self.tries += 1;
        self.tries <= TRIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CarrierKind::{Mptcp, Quic};

    const BOTH: CarrierSet = CarrierSet(3);
    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Ten seconds from `start` in which each carrier carries these MB a second.
    fn busy(measured: &mut Measured, mptcp: u64, quic: u64, start: u64) {
        for second in start..start + 10 {
            measured.observe(mptcp << 20, quic << 20, SECOND, at(second));
        }
    }

    #[test]
    fn what_is_there_is_taken() {
        let mut measured = Measured::default();
        busy(&mut measured, 10, 0, 0);
        let choose = |set, measured: &mut Measured| measured.choose(set, at(10));
        assert_eq!(choose(CarrierSet(0), &mut measured), None);
        assert_eq!(choose(CarrierSet(4), &mut measured), None);
        assert_eq!(choose(CarrierSet::of(Quic), &mut measured), Some(Quic));
        assert_eq!(choose(CarrierSet::of(Mptcp), &mut measured), Some(Mptcp));
        assert_eq!(
            CarrierChoice::Always(Quic).among(CarrierSet::of(Mptcp)),
            CarrierSet(0)
        );
        assert_eq!(CarrierChoice::Auto.among(BOTH), BOTH);
    }

    #[test]
    fn it_begins_with_mptcp_and_tries_quic_once_that_is_measured() {
        let mut measured = Measured::default();
        let taken: Vec<_> = (0..9)
            .filter_map(|_| measured.choose(BOTH, at(0)))
            .collect();
        assert_eq!(taken, [Mptcp; 9]);
        busy(&mut measured, 5, 0, 0);
        let taken: Vec<_> = (0..6)
            .filter_map(|_| measured.choose(BOTH, at(11)))
            .collect();
        assert_eq!(taken, [Quic, Quic, Quic, Quic, Mptcp, Mptcp]);
    }

    #[test]
    fn the_faster_one_is_taken_and_mptcp_if_they_are_alike() {
        for (mptcp, quic, expected) in [(5, 8, Quic), (8, 5, Mptcp), (100, 105, Mptcp)] {
            let mut measured = Measured::default();
            busy(&mut measured, mptcp, 0, 0);
            busy(&mut measured, 0, quic, 10);
            assert_eq!(measured.choose(BOTH, at(20)), Some(expected));
        }
    }

    #[test]
    fn little_bytes_and_mixed_intervals_measure_nothing() {
        let mut measured = Measured::default();
        busy(&mut measured, 5, 5, 0);
        measured.observe(ENOUGH - 1, 0, SECOND, at(10));
        (0..1000).for_each(|second| measured.observe(0, INTERVAL - 1, SECOND, at(second % 9)));
        assert_eq!((measured.rate(Mptcp), measured.rate(Quic)), (None, None));
    }

    #[test]
    fn measurements_are_forgotten_after_a_while() {
        let mut measured = Measured::default();
        busy(&mut measured, 5, 0, 0);
        busy(&mut measured, 0, 9, 300);
        assert_eq!(measured.choose(BOTH, at(310)), Some(Quic));
        // MPTCP's has expired: it is tried again.
        let taken: Vec<_> = (0..5)
            .filter_map(|_| measured.choose(BOTH, at(700)))
            .collect();
        assert_eq!(taken, [Mptcp, Mptcp, Mptcp, Mptcp, Quic]);
        assert_eq!(measured.choose(BOTH, at(2000)), Some(Mptcp));
    }
}

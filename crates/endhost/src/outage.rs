//! Reported outages, and how long paths over them are withheld.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use hawser_address::IsdAsn;
use hawser_packet::ScmpError;
use hawser_path::Interface;

use crate::path::interfaces;

/// How long a report withholds paths even if they are offered again. Their source may itself
/// withhold paths over dead links; until it does, its answers are older than the report. Where the
/// source offers them all the time (scionproto's daemon does), this is also how often a link that
/// stays down is tried: one that works again is used about that much later.
pub(crate) const HOLD: Duration = Duration::from_millis(500);
/// How long a report withholds paths while their source does not answer: then they are tried again,
/// and outages that last are reported again.
pub(crate) const HOLD_WITHOUT_ANSWERS: Duration = Duration::from_secs(3);
/// Longest hold of a link that works and fails in turn.
const LONGEST_HOLD: Duration = Duration::from_secs(32);
/// A report within this time after the end of the last hold doubles the hold, if the link worked in
/// between. An outage that lasts is not a relapse: a daemon may offer its paths all the time
/// (scionproto's does), and each try shows whether the link works again.
const RELAPSE: Duration = Duration::from_secs(10);
/// How long a report is remembered.
const MEMORY: Duration = Duration::from_secs(600);

/// An outage, which cuts all paths over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outage {
    /// The link at an interface is down.
    Interface(Interface),
    /// Two interfaces of an AS cannot reach each other.
    Inside {
        /// The AS.
        isd_as: IsdAsn,
        /// The two interfaces; 0 for the hosts of the AS.
        ids: (u16, u16),
    },
}

impl Outage {
    /// The outage that an SCMP error reports; `None` for errors of other kinds.
    pub fn of(error: &ScmpError) -> Option<Self> {
        match *error {
            ScmpError::ExternalInterfaceDown { isd_as, interface } => {
                let id = interface;
                Some(Self::Interface(Interface { isd_as, id }))
            }
            ScmpError::InternalConnectivityDown {
                isd_as,
                ingress,
                egress,
            } => {
                let ids = (ingress, egress);
                Some(Self::Inside { isd_as, ids })
            }
            _ => None,
        }
    }

    /// Whether this cuts a path over `interfaces`, in order of travel.
    pub fn cuts(&self, interfaces: &[Interface]) -> bool {
        match *self {
            Self::Interface(interface) => interfaces.contains(&interface),
            Self::Inside { isd_as, ids } => {
                let is_it = |at: Interface, (one, other): (u16, u16)| {
                    at.isd_as == isd_as && (ids == (one, other) || ids == (other, one))
                };
                // Interface 0 stands for the hosts of the AS.
                let mut ends = interfaces.first().into_iter().chain(interfaces.last());
                let mut between = interfaces.windows(2).skip(1).step_by(2);
                ends.any(|end| is_it(*end, (0, end.id)))
                    || between.any(|inside| is_it(inside[0], (inside[0].id, inside[1].id)))
            }
        }
    }

    /// Whether this may cut a path from `src` to `dst` over interfaces with these `ids`, in order
    /// of travel, whose intermediate ASes are unknown.
    pub fn may_cut(&self, src: IsdAsn, dst: IsdAsn, ids: &[u16]) -> bool {
        let between = match *self {
            Self::Interface(Interface { isd_as, .. }) | Self::Inside { isd_as, .. } => isd_as,
        };
        // Any AS but the ends: no path crosses an AS twice.
        let between = match between == src || between == dst {
            true => IsdAsn::WILDCARD,
            false => between,
        };
        self.cuts(&interfaces(src, dst, ids, between))
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(interface) => write!(f, "{interface}"),
            Self::Inside { isd_as, ids } => {
                write!(f, "{isd_as} between #{} and #{}", ids.0, ids.1)
            }
        }
    }
}

/// The reported outages, each with the time for which it withholds paths.
#[derive(Debug, Default)]
pub(crate) struct Outages(HashMap<Outage, Record>);

#[derive(Debug)]
struct Record {
    since: Instant,
    /// The time until which paths are withheld even if they are offered.
    until: Instant,
    hold: Duration,
    /// When paths over it were offered again, which ends the outage.
    over: Option<Instant>,
    /// Whether a packet over it was acknowledged since.
    worked: bool,
}

impl Outages {
    /// Records a report. Returns whether it is new.
    pub(crate) fn report(&mut self, outage: Outage, now: Instant) -> bool {
        self.0.retain(|_, record| now < record.until + MEMORY);
        let hold = match self.0.get(&outage) {
            Some(last) => match last.over {
                None => return false,
                Some(over) if last.worked && now < over + RELAPSE => {
                    (last.hold * 2).min(LONGEST_HOLD)
                }
                Some(_) => HOLD,
            },
            None => HOLD,
        };
        let record = Record {
            since: now,
            until: now + hold,
            hold,
            over: None,
            worked: false,
        };
        self.0.insert(outage, record);
        true
    }

    /// Records that a path over `interfaces` was offered in answer to a request sent at `asked`.
    /// Returns whether that ends an outage.
    pub(crate) fn offered(&mut self, interfaces: &[Interface], asked: Instant) -> bool {
        let mut ends = false;
        for (outage, record) in &mut self.0 {
            if record.over.is_none() && record.until <= asked && outage.cuts(interfaces) {
                record.over = Some(asked);
                ends = true;
            }
        }
        ends
    }

    /// Removes the reports from before `sent` about a path over `interfaces`, because a packet sent
    /// then was acknowledged. Returns whether there was any.
    pub(crate) fn clear(&mut self, interfaces: &[Interface], sent: Instant) -> bool {
        let before = self.0.len();
        for (outage, record) in &mut self.0 {
            if record.over.is_some_and(|over| sent > over) && outage.cuts(interfaces) {
                record.worked = true;
            }
        }
        self.0.retain(|outage, record| {
            record.over.is_some() || sent <= record.since || !outage.cuts(interfaces)
        });
        self.0.len() != before
    }

    /// Whether an outage that still counts cuts a path over `interfaces`.
    pub(crate) fn cut(&self, interfaces: &[Interface]) -> bool {
        self.0
            .iter()
            .any(|(outage, record)| record.over.is_none() && outage.cuts(interfaces))
    }

    /// When the first hold ends that lasts longer than until `after`, of the outages that cut a path over
    /// `interfaces`.
    pub(crate) fn next_end(&self, interfaces: &[Interface], after: Instant) -> Option<Instant> {
        let cuts = |(outage, record): &(&Outage, &Record)| {
            record.over.is_none() && record.until > after && outage.cuts(interfaces)
        };
        let held = self.0.iter().filter(cuts);
        held.map(|(_, record)| record.until).min()
    }

    /// Whether any outage still counts.
    pub(crate) fn any(&self, now: Instant) -> bool {
        self.0
            .values()
            .any(|record| record.over.is_none() && now < record.until + MEMORY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interfaces(text: &str) -> Vec<Interface> {
        text.split(' ').map(|one| one.parse().unwrap()).collect()
    }

    fn down(text: &str) -> Outage {
        Outage::Interface(text.parse().unwrap())
    }

    const OVER_TWO: &str = "1-ff00:0:1#1 1-ff00:0:2#2 1-ff00:0:2#3 1-ff00:0:3#4";

    #[test]
    fn an_outage_cuts_the_paths_over_it() {
        let path = interfaces(OVER_TWO);
        assert!(down("1-ff00:0:2#3").cuts(&path));
        assert!(!down("1-ff00:0:2#4").cuts(&path));
        assert!(!down("1-ff00:0:3#3").cuts(&path));
        let inside = |isd_as: &str, ingress, egress| Outage::Inside {
            isd_as: isd_as.parse().unwrap(),
            ids: (ingress, egress),
        };
        assert!(inside("1-ff00:0:2", 2, 3).cuts(&path));
        assert!(
            inside("1-ff00:0:2", 3, 2).cuts(&path),
            "in either direction"
        );
        assert!(
            !inside("1-ff00:0:1", 1, 2).cuts(&path),
            "a link is not inside"
        );
        assert!(!inside("1-ff00:0:2", 2, 5).cuts(&path));
        for (isd_as, ids) in [("1-ff00:0:1", (0, 1)), ("1-ff00:0:3", (4, 0))] {
            assert!(inside(isd_as, ids.0, ids.1).cuts(&path), "hosts of an end");
        }
        assert!(
            !inside("1-ff00:0:2", 0, 2).cuts(&path),
            "hosts of an AS between do not matter"
        );
    }

    #[test]
    fn without_intermediate_ases_only_ids_are_compared() {
        let [src, dst] = ["1-ff00:0:1", "1-ff00:0:3"].map(|text| text.parse().unwrap());
        let may_cut = |outage: Outage| outage.may_cut(src, dst, &[1, 2, 3, 4]);
        for on_it in [
            "1-ff00:0:1#1",
            "1-ff00:0:2#2",
            "1-ff00:0:9#3",
            "1-ff00:0:3#4",
        ] {
            assert!(may_cut(down(on_it)), "{on_it}");
        }
        for elsewhere in [
            "1-ff00:0:1#2",
            "1-ff00:0:2#1",
            "1-ff00:0:2#5",
            "1-ff00:0:3#3",
        ] {
            assert!(!may_cut(down(elsewhere)), "{elsewhere}");
        }
        assert!(!down("1-ff00:0:1#1").may_cut(src, src, &[]));
    }

    #[test]
    fn an_acknowledgement_ends_a_hold_from_before_the_packet_was_sent() {
        let (path, t0) = (interfaces(OVER_TWO), Instant::now());
        let later = t0 + Duration::from_millis(1);
        let mut outages = Outages::default();
        assert!(outages.report(down("1-ff00:0:2#3"), t0));
        assert!(!outages.clear(&path, t0), "sent before the report");
        assert!(!outages.clear(&interfaces("1-ff00:0:1#1 1-ff00:0:2#2"), later));
        assert!(outages.cut(&path));
        assert!(outages.clear(&path, later));
        assert!(!outages.cut(&path) && !outages.any(later));
        assert!(outages.report(down("1-ff00:0:2#3"), later));
        outages.offered(&path, later + HOLD);
        assert!(
            !outages.cut(&path),
            "a false report does not lengthen the next hold"
        );
    }

    #[test]
    fn paths_offered_after_the_hold_are_usable() {
        let (path, t0) = (interfaces(OVER_TWO), Instant::now());
        let mut outages = Outages::default();
        assert!(outages.report(down("1-ff00:0:2#3"), t0));
        assert!(
            !outages.report(down("1-ff00:0:2#3"), t0),
            "recorded already"
        );
        outages.offered(&path, t0 + HOLD / 2);
        assert!(
            outages.cut(&path),
            "an answer from before the hold is stale"
        );
        outages.offered(&path, t0 + HOLD);
        assert!(!outages.cut(&path));
        assert!(!outages.any(t0 + HOLD));
    }

    #[test]
    fn an_outage_that_lasts_is_tried_after_each_hold_though_its_paths_are_offered_all_the_time() {
        let (path, mut now) = (interfaces(OVER_TWO), Instant::now());
        let mut outages = Outages::default();
        for _ in 0..100 {
            assert!(outages.report(down("1-ff00:0:2#3"), now));
            now += HOLD;
            outages.offered(&path, now);
            assert!(!outages.cut(&path));
        }
    }

    #[test]
    fn a_relapse_doubles_the_hold() {
        let (path, mut now) = (interfaces(OVER_TWO), Instant::now());
        let mut outages = Outages::default();
        let mut hold = HOLD;
        for _ in 0..10 {
            assert!(outages.report(down("1-ff00:0:2#3"), now));
            outages.offered(&path, now + hold - Duration::from_millis(1));
            assert!(outages.cut(&path));
            now += hold;
            outages.offered(&path, now);
            assert!(!outages.cut(&path));
            now += Duration::from_millis(1);
            outages.clear(&path, now);
            hold = (hold * 2).min(LONGEST_HOLD);
        }
        assert_eq!(hold, LONGEST_HOLD);
        now += RELAPSE + HOLD;
        assert!(outages.report(down("1-ff00:0:2#3"), now));
        outages.offered(&path, now + HOLD);
        assert!(!outages.cut(&path), "long after, the first hold counts");
    }
}

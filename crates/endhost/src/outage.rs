//! What routers report down, and for how long it is believed.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use hawser_packet::ScmpError;
use hawser_path::Interface;
use sciparse::identifier::isd_asn::IsdAsn;

/// How long a report keeps paths out before what is offered counts again. Whoever offers paths may
/// take those over dead links out itself; until it has, its answers are older than the report.
const HOLD: Duration = Duration::from_secs(1);
/// How long a report keeps paths out while nobody answers: then only trying tells, and what is down
/// still is reported again.
pub(crate) const HOLD_WITHOUT_ANSWERS: Duration = Duration::from_secs(3);
/// A link that is reported down again and again is kept out this long at most.
const LONGEST_HOLD: Duration = Duration::from_secs(32);
/// A report so soon after the last one ended doubles the hold.
const RELAPSE: Duration = Duration::from_secs(10);
/// Nothing is remembered longer than this.
const MEMORY: Duration = Duration::from_secs(600);

/// Something paths cannot be used over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outage {
    /// The link at an interface is down.
    Interface(Interface),
    /// Two interfaces of an AS cannot reach each other.
    Inside {
        /// The AS.
        isd_as: IsdAsn,
        /// One of the two interfaces; 0 for the hosts of the AS.
        ingress: u16,
        /// The other.
        egress: u16,
    },
}

impl Outage {
    /// What an SCMP error says is down, if it is of that kind.
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
            } => Some(Self::Inside {
                isd_as,
                ingress,
                egress,
            }),
            _ => None,
        }
    }

    /// Whether a path over `interfaces`, in order of travel, is cut by this.
    pub fn cuts(&self, interfaces: &[Interface]) -> bool {
        match *self {
            Self::Interface(interface) => interfaces.contains(&interface),
            Self::Inside {
                isd_as,
                ingress,
                egress,
            } => {
                let is_it = |at: Interface, ids: (u16, u16)| {
                    at.isd_as == isd_as && (ids == (ingress, egress) || ids == (egress, ingress))
                };
                // Hosts have number 0.
                let mut ends = interfaces.first().into_iter().chain(interfaces.last());
                let mut between = interfaces.windows(2).skip(1).step_by(2);
                ends.any(|end| is_it(*end, (0, end.id)))
                    || between.any(|inside| is_it(inside[0], (inside[0].id, inside[1].id)))
            }
        }
    }

    /// Whether a path from `src` to `dst` over interfaces with these `ids`, in order of travel, may
    /// be cut by this: the ASes between are not known.
    pub fn may_cut(&self, src: IsdAsn, dst: IsdAsn, ids: &[u16]) -> bool {
        let isd_as = match *self {
            Self::Interface(Interface { isd_as, .. }) | Self::Inside { isd_as, .. } => isd_as,
        };
        let last = ids.len().saturating_sub(1);
        let interfaces: Vec<Interface> = (ids.iter().enumerate())
            .map(|(at, id)| Interface {
                isd_as: match at {
                    0 => src,
                    at if at == last => dst,
                    // Any but the ends: no path crosses an AS twice.
                    _ if isd_as == src || isd_as == dst => IsdAsn::WILDCARD,
                    _ => isd_as,
                },
                id: *id,
            })
            .collect();
        self.cuts(&interfaces)
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(interface) => write!(f, "{interface}"),
            Self::Inside {
                isd_as,
                ingress,
                egress,
            } => write!(f, "{isd_as} between #{ingress} and #{egress}"),
        }
    }
}

/// The outages reported, each with how long it is believed.
#[derive(Debug, Default)]
pub(crate) struct Outages(HashMap<Outage, Record>);

#[derive(Debug)]
struct Record {
    since: Instant,
    /// The report holds until then, whatever is offered.
    until: Instant,
    hold: Duration,
    /// When paths over it were offered again.
    over: Option<Instant>,
}

impl Outages {
    /// Takes a report in. Says whether it is news.
    pub(crate) fn report(&mut self, outage: Outage, now: Instant) -> bool {
        self.0.retain(|_, record| now < record.until + MEMORY);
        let hold = match self.0.get(&outage) {
            Some(Record { over: None, .. }) => return false,
            Some(Record {
                over: Some(over),
                hold,
                ..
            }) if now < *over + RELAPSE => (*hold * 2).min(LONGEST_HOLD),
            _ => HOLD,
        };
        let until = now + hold;
        self.0.insert(
            outage,
            Record {
                since: now,
                until,
                hold,
                over: None,
            },
        );
        true
    }

    /// Takes in that who was asked at `asked` offers a path over `interfaces`.
    pub(crate) fn offered(&mut self, interfaces: &[Interface], asked: Instant) {
        for (outage, record) in &mut self.0 {
            if record.over.is_none() && record.until <= asked && outage.cuts(interfaces) {
                record.over = Some(asked);
            }
        }
    }

    /// Ends the hold of everything on a path over `interfaces` that was reported down before
    /// `sent`, because a packet sent then was acknowledged. Returns whether there was any.
    pub(crate) fn refute(&mut self, interfaces: &[Interface], sent: Instant) -> bool {
        let before = self.0.len();
        self.0.retain(|outage, record| {
            record.over.is_some() || sent <= record.since || !outage.cuts(interfaces)
        });
        self.0.len() != before
    }

    /// Whether a path over `interfaces` is cut by something that counts as down.
    pub(crate) fn cut(&self, interfaces: &[Interface]) -> bool {
        self.0
            .iter()
            .any(|(outage, record)| record.over.is_none() && outage.cuts(interfaces))
    }

    /// Whether anything counts as down.
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
    fn cuts_what_leads_over_it() {
        let path = interfaces(OVER_TWO);
        assert!(down("1-ff00:0:2#3").cuts(&path));
        assert!(!down("1-ff00:0:2#4").cuts(&path));
        assert!(!down("1-ff00:0:3#3").cuts(&path));
        let inside = |isd_as: &str, ingress, egress| Outage::Inside {
            isd_as: isd_as.parse().unwrap(),
            ingress,
            egress,
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
            "hosts on the way are no matter"
        );
    }

    #[test]
    fn without_the_ases_between_only_ids_tell() {
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
    fn what_arrives_ends_a_hold_from_before_it_was_sent() {
        let (path, t0) = (interfaces(OVER_TWO), Instant::now());
        let later = t0 + Duration::from_millis(1);
        let mut outages = Outages::default();
        assert!(outages.report(down("1-ff00:0:2#3"), t0));
        assert!(!outages.refute(&path, t0), "sent before the report");
        assert!(!outages.refute(&interfaces("1-ff00:0:1#1 1-ff00:0:2#2"), later));
        assert!(outages.cut(&path));
        assert!(outages.refute(&path, later));
        assert!(!outages.cut(&path) && !outages.any(later));
        assert!(outages.report(down("1-ff00:0:2#3"), later));
        outages.offered(&path, later + HOLD);
        assert!(!outages.cut(&path), "a false report makes no longer hold");
    }

    #[test]
    fn what_is_offered_is_believed_again_after_the_hold() {
        let (path, t0) = (interfaces(OVER_TWO), Instant::now());
        let mut outages = Outages::default();
        assert!(outages.report(down("1-ff00:0:2#3"), t0));
        assert!(!outages.report(down("1-ff00:0:2#3"), t0), "known already");
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
    fn a_relapse_is_held_longer() {
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
            hold = (hold * 2).min(LONGEST_HOLD);
        }
        assert_eq!(hold, LONGEST_HOLD);
        now += RELAPSE;
        assert!(outages.report(down("1-ff00:0:2#3"), now));
        outages.offered(&path, now + HOLD);
        assert!(!outages.cut(&path), "long after, the first hold counts");
    }
}

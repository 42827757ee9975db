//! Counters become rates. Pure: every call is given the time.

use std::collections::BTreeMap;

use hawser_coordinator::{Direction, LinkCounters, LinkId, LinkUsage, State};
use hawser_topology::IsdAsn;

use crate::history::{History, Series};

/// Age at which a report says nothing of now, in milliseconds.
const MAX_REPORT_AGE: u64 = 10_000;

/// The reports of attachment points, and when they came.
pub(crate) type Reports = BTreeMap<IsdAsn, (u64, Vec<LinkUsage>)>;

/// What is known of a link in one direction.
#[derive(Debug, Default)]
struct Track {
    counters: Option<(u64, LinkCounters)>,
    rate: Option<f64>,
    history: History,
}

impl Track {
    /// Takes in counters of the time `at`.
    fn observe(&mut self, at: u64, counters: Option<LinkCounters>) {
        let Some(counters) = counters else {
            (self.counters, self.rate) = (None, None);
            return;
        };
        let Some((before_at, before)) = self.counters else {
            self.counters = Some((at, counters));
            return;
        };
        if at <= before_at {
            return;
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "a rate need not be exact to the bit"
        )]
        let rate = |bytes: u64| bytes as f64 * 8000.0 / (at - before_at) as f64;
        // Fewer than before: they began anew in between.
        self.rate = counters.bytes.checked_sub(before.bytes).map(rate);
        self.counters = Some((at, counters));
    }
}

/// The use of a link in one direction now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Use {
    pub link: LinkId,
    pub direction: Direction,
    pub counters: LinkCounters,
    /// Bit/s, if there are two reports.
    pub rate: Option<f64>,
}

/// The rates of all links, now and before.
#[derive(Debug, Default)]
pub(crate) struct Sampler(BTreeMap<(LinkId, Direction), Track>);

impl Sampler {
    /// Takes in the last reports. Returns the use of all links that have been reported of late.
    pub fn tick(&mut self, now: u64, reports: &Reports, state: &State) -> Vec<Use> {
        self.0
            .retain(|(link, _), _| state.limits_of(*link).is_some());
        for (isd_as, (at, report)) in reports {
            let fresh = now.saturating_sub(*at) < MAX_REPORT_AGE;
            for one in report {
                let directions = Direction::ALL.into_iter();
                // Each end of a link between user ASes counts what it sends.
                for direction in directions.filter(|of| state.counts(*isd_as, one.link, *of)) {
                    let counters = one.of(direction).filter(|_| fresh);
                    let track = self.0.entry((one.link, direction)).or_default();
                    track.observe(*at, counters);
                }
            }
        }
        let mut used = Vec::new();
        for ((link, direction), track) in &mut self.0 {
            let limit = state.limits_of(*link);
            let limit = limit.and_then(|limits| limits.of(*direction));
            track.history.push(now, track.rate, limit);
            if let Some((_, counters)) = track.counters {
                used.push(Use {
                    link: *link,
                    direction: *direction,
                    counters,
                    rate: track.rate,
                });
            }
        }
        used
    }

    /// The rates of a link over the last `span` seconds.
    pub fn series(&self, link: LinkId, direction: Direction, now: u64, span: u64) -> Series {
        match self.0.get(&(link, direction)) {
            Some(track) => track.history.series(now, span),
            None => History::default().series(now, span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let link = serde_json::json!({
            "id": 1, "maximum": {}, "limit": { "egress": 9000 },
            "attachment_point": { "isd_as": "0-0" }, "user_as": { "isd_as": "0-1" },
        });
        let mut state = State::default();
        state
            .links
            .insert(LinkId(1), serde_json::from_value(link).unwrap());
        state
    }

    fn report(at: u64, bytes: u64) -> Reports {
        let usage = LinkUsage {
            link: LinkId(1),
            egress: Some(LinkCounters {
                bytes,
                ..LinkCounters::default()
            }),
            ingress: None,
        };
        let foreign = LinkUsage {
            link: LinkId(2),
            ..usage
        };
        [(IsdAsn::WILDCARD, (at, vec![usage, foreign]))].into()
    }

    #[test]
    fn each_end_of_a_link_between_user_ases_counts_its_direction() {
        let link = serde_json::json!({
            "id": 1, "kind": "peer", "ends": [{ "isd_as": "1-1" }, { "isd_as": "1-2" }],
            "limit": { "egress": 9000 },
        });
        let mut state = State::default();
        let link = serde_json::from_value(link).unwrap();
        state.as_links.insert(LinkId(1), link);
        let counters = |bytes| {
            Some(LinkCounters {
                bytes,
                ..LinkCounters::default()
            })
        };
        let reports = |at, [egress, ingress]: [u64; 2]| -> Reports {
            let usage = |egress, ingress| LinkUsage {
                link: LinkId(1),
                egress,
                ingress,
            };
            let first = vec![usage(counters(egress), None)];
            let second = vec![usage(None, counters(ingress))];
            let [one, other] = ["1-1", "1-2"].map(|text| text.parse().unwrap());
            [(one, (at, first)), (other, (at, second))].into()
        };
        let mut sampler = Sampler::default();
        sampler.tick(1000, &reports(1000, [0, 0]), &state);
        let used = sampler.tick(2000, &reports(2000, [100, 200]), &state);
        let rates: Vec<_> = used.iter().map(|one| (one.direction, one.rate)).collect();
        let expected = [
            (Direction::Egress, Some(800.0)),
            (Direction::Ingress, Some(1600.0)),
        ];
        assert_eq!(rates, expected);
    }

    #[test]
    fn a_rate_is_the_difference_of_two_reports() {
        let (mut sampler, state) = (Sampler::default(), state());
        let rates = |used: &[Use]| used.iter().map(|one| one.rate).collect::<Vec<_>>();
        assert_eq!(
            rates(&sampler.tick(1000, &report(1000, 500), &state)),
            [None]
        );
        assert_eq!(
            rates(&sampler.tick(3000, &report(3000, 750), &state)),
            [Some(1000.0)]
        );
        // The same report again is no new rate, and counters that begin anew have none.
        assert_eq!(
            rates(&sampler.tick(4000, &report(3000, 750), &state)),
            [Some(1000.0)]
        );
        assert_eq!(
            rates(&sampler.tick(5000, &report(5000, 10), &state)),
            [None]
        );
        // An attachment point that is silent says nothing.
        assert_eq!(rates(&sampler.tick(20_000, &report(5000, 10), &state)), []);
        let series = sampler.series(LinkId(1), Direction::Egress, 20_000, 60);
        assert_eq!(series.rates, [Some(1000.0), Some(1000.0)]);
        assert_eq!(series.limits, [(1000, Some(9000))]);
        let gone = sampler.tick(21_000, &report(21_000, 10), &State::default());
        assert_eq!(gone, []);
        assert!(sampler.0.is_empty());
    }
}

//! How fast each connection can be expected to deliver what is requested now.
//!
//! The bytes that arrive over a connection do not say that: a peer that answers late sends at the
//! full rate of its path what others have sent meanwhile, and then nothing for as long as it is late.

use std::collections::BTreeMap;
use std::time::Instant;

use super::Source;
use super::pace::{STALL, patience};
use crate::picker::{ConnId, Picker};
use crate::pipeline::Subflow;
use crate::wire::BLOCK;

/// When each connection last answered a request.
#[derive(Debug, Default)]
pub(super) struct Progress {
    last: BTreeMap<ConnId, Last>,
}

#[derive(Debug)]
struct Last {
    /// Requests answered so far.
    answered: u64,
    /// When that number last changed, or no request was outstanding.
    at: Instant,
}

impl Progress {
    /// Takes note of the answers that have arrived over each connection.
    pub fn observe(&mut self, picker: &Picker, sources: &BTreeMap<ConnId, Source>, now: Instant) {
        self.last.retain(|id, _| picker.answered(*id).is_some());
        for (id, source) in sources {
            let Some(answered) = picker.answered(*id) else {
                continue;
            };
            let last = Last { answered, at: now };
            let known = self.last.entry(*id).or_insert(last);
            let is_idle = source.subflow.asked == 0 && !picker.is_late(*id);
            if known.answered != answered || is_idle {
                *known = Last { answered, at: now };
            }
        }
    }

    /// A connection with the rate that can be expected of it: over one that has not answered for
    /// longer than one that delivers would take, no more than a block arrives in that time. One that
    /// has stalled was silent for at least [`STALL`].
    pub fn expect(&self, id: ConnId, is_late: bool, subflow: Subflow, now: Instant) -> Subflow {
        let last = self.last.get(&id).map_or(now, |last| last.at);
        let mut silence = now.saturating_duration_since(last);
        if is_late {
            silence = silence.max(STALL.0);
        }
        if silence <= patience(subflow.rtt) {
            return subflow;
        }
        let most = f64::from(BLOCK) / silence.as_secs_f64();
        let rate = Some(subflow.rate.map_or(most, |rate| rate.min(most)));
        Subflow { rate, ..subflow }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bitfield::Bitfield;
    use crate::pieces::Pieces;

    const MS: Duration = Duration::from_millis(1);
    const RTT: Duration = Duration::from_millis(40);

    /// A connection that delivers a megabyte per second.
    fn sources(asked: usize) -> BTreeMap<ConnId, Source> {
        let subflow = Subflow {
            rate: Some(1e6),
            rtt: RTT,
            asked,
        };
        let source = Source {
            path: hawser_path::Fingerprint::local(hawser_endhost::IsdAsn(1)),
            subflow,
            depth: 10,
            time: RTT,
        };
        BTreeMap::from([(1, source)])
    }

    #[test]
    fn bytes_that_answer_nothing_make_no_rate() {
        let start = Instant::now();
        let pieces = Pieces {
            length: 4 * BLOCK,
            total: 64 * u64::from(BLOCK),
        };
        let mut picker = Picker::new(pieces, Bitfield::empty(pieces.count()), 1);
        picker.add_conn(1, 1);
        picker.set_has(1, Bitfield::full(pieces.count()));
        let mut progress = Progress::default();
        let mut rate = |picker: &Picker, ms: u32| {
            let now = start + ms * MS;
            let asked = picker.asked(1);
            let sources = sources(asked);
            progress.observe(picker, &sources, now);
            let expected = progress.expect(1, picker.is_late(1), sources[&1].subflow, now);
            expected.rate.unwrap()
        };
        // Without requests there is nothing to answer.
        assert_eq!(rate(&picker, 0), 1e6);
        assert_eq!(rate(&picker, 5000), 1e6);
        let requests = picker.pick(1, 8).requests;
        assert_eq!(rate(&picker, 5250), 1e6);
        assert_eq!(rate(&picker, 5500), 2.0 * f64::from(BLOCK));
        picker.receive(1, requests[0], start);
        assert_eq!(rate(&picker, 5550), 1e6);
        // An answer to a request made before the stall shows nothing; one made since does.
        picker.suspend(1);
        picker.resume(1);
        assert_eq!(rate(&picker, 5600), f64::from(BLOCK));
        picker.receive(1, requests[1], start);
        assert_eq!(rate(&picker, 7550), f64::from(BLOCK) / 2.0);
        let requests = picker.pick(1, 1).requests;
        picker.receive(1, requests[0], start);
        assert_eq!(rate(&picker, 7600), 1e6);
    }
}

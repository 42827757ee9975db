//! A bottleneck on virtual time: senders that share one link with a queue that drops what does not
//! fit.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::super::announced::Announced;
use super::super::cubic::Cubic;

/// Bytes of a packet.
pub(super) const MTU: u16 = 1300;
const TICK: Duration = Duration::from_micros(100);
/// Later packets that arrive until one counts as lost (RFC 9002, 6.1.1).
const REORDERED: u64 = 3;
/// Without an acknowledgement for this long all packets count as lost, as after a probe timeout.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes that a sender may send at once, and its rate relative to a window per round trip (as
/// noq's).
const BURST: f64 = 10.0 * MTU as f64;
const PACE: f64 = 1.25;

/// A bottleneck link.
#[derive(Clone, Copy)]
pub(super) struct Link {
    /// Bytes per second.
    pub(super) rate: f64,
    /// The round-trip time when the queue is empty.
    pub(super) rtt: Duration,
    /// The delay of the full queue.
    pub(super) queue: Duration,
}

/// A sender that always has data to send, from a time on.
pub(super) struct Sender {
    pub(super) cubic: Cubic,
    pub(super) begins: Duration,
    /// Bytes that arrived.
    pub(super) arrived: u64,
    pub(super) lost: u64,
    rtt: Option<Duration>,
    tokens: f64,
    next: u64,
    flying: VecDeque<(u64, Instant)>,
    /// Packets that passed the queue, with the time at which their acknowledgement arrives.
    acks: VecDeque<(Instant, u64)>,
}

impl Sender {
    pub(super) fn new(begins: Duration, known: Announced) -> Self {
        Self {
            cubic: Cubic::new(MTU, known),
            begins,
            arrived: 0,
            lost: 0,
            rtt: None,
            tokens: BURST,
            next: 0,
            flying: VecDeque::new(),
            acks: VecDeque::new(),
        }
    }

    fn take_acks(&mut self, now: Instant) {
        if let Some((_, sent)) = self.flying.back().copied()
            && self.acks.is_empty()
            && now > sent + TIMEOUT
        {
            self.lost += self.flying.len() as u64;
            self.flying.clear();
            self.cubic.lost(now, sent, false);
        }
        while let Some((_, number)) = self.acks.pop_front_if(|(at, _)| *at <= now) {
            let Ok(place) = self.flying.binary_search_by_key(&number, |(one, _)| *one) else {
                continue;
            };
            let (_, sent) = self.flying.remove(place).unwrap();
            let sample = now - sent;
            self.rtt = Some(self.rtt.map_or(sample, |old| (7 * old + sample) / 8));
            self.arrived += u64::from(MTU);
            self.cubic.acked(now, sent, MTU.into(), false);
            let mut last_lost = None;
            while let Some((_, sent)) = self
                .flying
                .pop_front_if(|(one, _)| *one + REORDERED <= number)
            {
                last_lost = Some(sent);
                self.lost += 1;
            }
            if let Some(sent) = last_lost {
                self.cubic.lost(now, sent, false);
            }
        }
    }
}

impl Link {
    /// Runs `senders` for `length`, and calls `each_second` with them every second.
    pub(super) fn run(
        self,
        senders: &mut [Sender],
        length: Duration,
        mut each_second: impl FnMut(&[Sender]),
    ) {
        let start = Instant::now();
        let (mut now, mut free_at) = (start, start);
        let mut second = start + Duration::from_secs(1);
        while now < start + length {
            now += TICK;
            if now >= second {
                second += Duration::from_secs(1);
                each_second(senders);
            }
            for sender in senders.iter_mut().filter(|one| now >= start + one.begins) {
                sender.take_acks(now);
                let window = sender.cubic.window();
                let rtt = sender.rtt.unwrap_or(TIMEOUT).as_secs_f64();
                let more = PACE * window as f64 * TICK.as_secs_f64() / rtt;
                sender.tokens = (sender.tokens + more).min(BURST);
                while sender.tokens >= MTU.into()
                    && (sender.flying.len() as u64 + 1) * u64::from(MTU) <= window
                {
                    sender.tokens -= f64::from(MTU);
                    sender.flying.push_back((sender.next, now));
                    free_at = free_at.max(now);
                    if free_at - now < self.queue {
                        free_at += Duration::from_secs_f64(f64::from(MTU) / self.rate);
                        sender.acks.push_back((free_at + self.rtt, sender.next));
                    }
                    sender.next += 1;
                }
            }
        }
    }
}

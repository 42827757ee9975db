//! A bottleneck on virtual time: senders that share one link, which drops what its queue has no room
//! for, and some packets at random.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use noq_proto::congestion::Controller;

use super::super::announced::Announced;
use super::super::{Choice, Congestion, Control, Factory, Records};
use crate::progress::Progress;

/// Bytes of a packet.
pub(super) const MTU: u16 = 1300;
const TICK: Duration = Duration::from_micros(100);
/// Later packets that arrive until one counts as lost (RFC 9002, 6.1.1).
const REORDERED: u64 = 3;
/// Without an acknowledgement for this long all packets count as lost, as after a probe timeout.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Time after which a sender sends again, as the driver's.
const BATCH: Duration = Duration::from_micros(500);

/// A bottleneck link.
#[derive(Clone, Copy)]
pub(super) struct Link {
    /// Bytes per second.
    pub(super) rate: f64,
    /// The round-trip time when the queue is empty.
    pub(super) rtt: Duration,
    /// The delay of the full queue.
    pub(super) queue: Duration,
    /// The share of packets lost at random.
    pub(super) loss: f64,
    /// A time from which the link has another rate.
    pub(super) change: Option<(Duration, f64)>,
}

/// A sender that always has data to send, from a time on.
pub(super) struct Sender {
    pub(super) control: Control,
    pub(super) choice: Choice,
    pub(super) begins: Duration,
    /// Bytes that arrived.
    pub(super) arrived: u64,
    pub(super) lost: u64,
    tokens: f64,
    refilled: Option<Instant>,
    sent: Option<Instant>,
    next: u64,
    flying: VecDeque<(u64, Instant)>,
    /// Packets that passed the queue, with the time at which their acknowledgement arrives.
    acks: VecDeque<(Instant, u64)>,
}

impl Sender {
    pub(super) fn new(begins: Duration, known: Announced, setting: Congestion) -> Self {
        let factory = Factory {
            announced: known,
            records: Records {
                progress: Progress::default(),
                choice: Choice::new(setting),
            },
        };
        let random = fastrand::Rng::with_seed(begins.as_millis() as u64);
        Self {
            control: factory.control(Instant::now(), MTU, random),
            choice: factory.records.choice,
            begins,
            arrived: 0,
            lost: 0,
            tokens: 10.0 * f64::from(MTU),
            refilled: None,
            sent: None,
            next: 0,
            flying: VecDeque::new(),
            acks: VecDeque::new(),
        }
    }

    fn in_flight(&self) -> u64 {
        self.flying.len() as u64 * u64::from(MTU)
    }

    fn take_acks(&mut self, now: Instant) {
        if let Some((_, sent)) = self.flying.back().copied()
            && self.acks.is_empty()
            && now > sent + TIMEOUT
        {
            self.lose(now, u64::MAX);
        }
        let mut largest = None;
        while let Some((_, number)) = self.acks.pop_front_if(|(at, _)| *at <= now) {
            let Ok(place) = self.flying.binary_search_by_key(&number, |(one, _)| *one) else {
                continue;
            };
            let (_, sent) = self.flying.remove(place).unwrap();
            self.arrived += u64::from(MTU);
            self.control.acked(now, sent, MTU.into(), number, false);
            largest = Some(number);
        }
        if let Some(largest) = largest {
            let in_flight = self.in_flight();
            (self.control).on_end_acks(now, in_flight, false, Some(largest));
            self.lose(now, (largest + 1).saturating_sub(REORDERED));
        }
    }

    /// Counts packets below `number` as lost.
    fn lose(&mut self, now: Instant, number: u64) {
        let (mut last, before) = (None, self.lost);
        while let Some((one, sent)) = self.flying.pop_front_if(|(one, _)| *one < number) {
            self.control.on_packet_lost(MTU, one, now);
            self.lost += 1;
            last = Some((one, sent));
        }
        if let Some((one, sent)) = last {
            let bytes = (self.lost - before) * u64::from(MTU);
            (self.control).on_congestion_event(now, sent, false, false, bytes, one);
        }
    }

    /// Whether a packet may be sent, as noq's pacer and window have it.
    fn may_send(&mut self, now: Instant) -> bool {
        if self.in_flight() + u64::from(MTU) > self.control.window() {
            self.control.on_cwnd_limited();
            return false;
        }
        let rate = self.control.metrics().pacing_rate;
        let rate = rate.unwrap_or(self.control.window() * 10) as f64;
        let mtu = f64::from(MTU);
        let burst = (rate * 2e-3).clamp(10.0 * mtu, 256.0 * mtu);
        let burst = burst.min((rate * 10e-3).max(mtu));
        let since = self.refilled.replace(now).map_or(TICK, |last| now - last);
        self.tokens = (self.tokens + rate * since.as_secs_f64()).min(burst);
        self.tokens >= mtu
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
        let mut random = fastrand::Rng::with_seed(7);
        while now < start + length {
            now += TICK;
            if now >= second {
                second += Duration::from_secs(1);
                each_second(senders);
            }
            let changed = self.change.filter(|(at, _)| now >= start + *at);
            let rate = changed.map_or(self.rate, |(_, rate)| rate);
            for sender in senders.iter_mut().filter(|one| now >= start + one.begins) {
                sender.take_acks(now);
                if sender.sent.is_some_and(|sent| now < sent + BATCH) {
                    continue;
                }
                while sender.may_send(now) {
                    sender.sent = Some(now);
                    sender.tokens -= f64::from(MTU);
                    sender.control.on_packet_sent(now, MTU, sender.next);
                    sender.flying.push_back((sender.next, now));
                    free_at = free_at.max(now);
                    if free_at - now < self.queue {
                        free_at += Duration::from_secs_f64(f64::from(MTU) / rate);
                        if self.loss == 0.0 || random.f64() >= self.loss {
                            sender.acks.push_back((free_at + self.rtt, sender.next));
                        }
                    }
                    sender.next += 1;
                }
            }
        }
    }
}

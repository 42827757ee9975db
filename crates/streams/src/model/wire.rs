//! One direction of a QUIC connection over one path: bytes arrive in order, and what is lost is sent
//! again by the connection itself.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use crate::{Estimate, Losses};

/// Bytes of a packet.
const PACKET: usize = 1200;
/// Congestion windows that a connection takes, and the least it takes, as `hawser-quic` has them.
const SEND_WINDOWS: u64 = 3;
const MIN_SEND_WINDOW: u64 = 128 << 10;

/// After how long without an answer a lane is ended.
const SILENT: Duration = Duration::from_millis(300);

/// What a path does with packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// Bytes in a millisecond.
    pub rate: u64,
    /// Milliseconds in one direction.
    pub delay: u64,
    /// The part of all packets that is lost.
    pub loss: f64,
    /// It works and does not in turns, for as many milliseconds each.
    pub flaps: Option<u64>,
}

impl Link {
    /// 50 Mbit/s, a round trip of 20 ms.
    pub(super) const GOOD: Self = Self {
        rate: 6250,
        delay: 10,
        loss: 0.0,
        flaps: None,
    };

    fn rtt(&self) -> Duration {
        Duration::from_millis(2 * self.delay)
    }

    fn is_up(&self, now: Duration) -> bool {
        let period = |flaps: u64| (now.as_millis() as u64 / flaps).is_multiple_of(2);
        self.flaps.is_none_or(period)
    }

    /// The congestion window of a loss-based control: what the path holds and a short queue, or what
    /// the losses leave (Mathis et al., 1997).
    fn window(&self) -> u64 {
        let holds = self.rate * (2 * self.delay + 20);
        let lossy = (1.22 / self.loss.sqrt()).max(2.0) * PACKET as f64;
        holds.min(lossy as u64)
    }
}

#[derive(Debug)]
struct Packet {
    number: u64,
    bytes: Bytes,
    /// How often it was lost.
    losses: u32,
    /// When it was sent.
    at: Duration,
    has_arrived: bool,
}

/// One direction.
#[derive(Debug)]
pub(super) struct Wire {
    link: Link,
    random: fastrand::Rng,
    next: u64,
    waiting: VecDeque<Packet>,
    /// Under way: when the sender learns what became of it, when it arrives, if it does.
    flight: Vec<(Duration, Option<Duration>, Packet)>,
    /// When the link has sent what it has.
    free: Duration,
    arrived: BTreeMap<u64, Bytes>,
    read: u64,
    /// Smoothed.
    rtt: Duration,
    /// Packets.
    sent: u64,
    lost: u64,
    losses: Losses,
}

impl Wire {
    pub(super) fn new(link: Link, seed: u64) -> Self {
        Self {
            link,
            random: fastrand::Rng::with_seed(seed),
            next: 0,
            waiting: VecDeque::new(),
            flight: Vec::new(),
            free: Duration::ZERO,
            arrived: BTreeMap::new(),
            read: 0,
            rtt: link.rtt(),
            sent: 0,
            lost: 0,
            losses: Losses::default(),
        }
    }

    /// What QUIC has measured.
    pub(super) fn estimate(&mut self) -> Estimate {
        Estimate {
            rtt: self.rtt,
            window: self.link.window(),
            loss: self.losses.update(self.sent, self.lost),
        }
    }

    /// Whether the path has been down for so long that the carrier notices.
    pub(super) fn is_silent(&self, now: Duration) -> bool {
        !self.link.is_up(now) && !self.link.is_up(now.saturating_sub(SILENT))
    }

    /// Takes of `bytes` what there is room for; whether that is all.
    pub(super) fn write(&mut self, bytes: &mut Bytes) -> bool {
        let taken = self.waiting.iter().map(|packet| packet.bytes.len());
        let flight = self.flight.iter().map(|(_, _, packet)| packet.bytes.len());
        let mut taken = taken.chain(flight).sum::<usize>() as u64;
        let most = (self.link.window() * SEND_WINDOWS).max(MIN_SEND_WINDOW);
        while !bytes.is_empty() && taken < most {
            let packet = bytes.split_to(bytes.len().min(PACKET));
            taken += packet.len() as u64;
            self.waiting.push_back(Packet {
                number: self.next,
                bytes: packet,
                losses: 0,
                at: Duration::ZERO,
                has_arrived: false,
            });
            self.next += 1;
        }
        bytes.is_empty()
    }

    /// QUIC sends as many acknowledgements of what came the other way, which are never lost to it.
    pub(super) fn acknowledge(&mut self, packets: u64) {
        self.sent += packets;
    }

    /// Sends and receives until `now`. Returns how many packets arrived.
    pub(super) fn work(&mut self, now: Duration) -> u64 {
        let (mut lost, mut arrived) = (Vec::new(), 0);
        for (known, arrives, mut packet) in std::mem::take(&mut self.flight) {
            if let Some(at) = arrives.filter(|at| *at <= now) {
                if !packet.has_arrived {
                    packet.has_arrived = true;
                    arrived += 1;
                    self.arrived.insert(packet.number, packet.bytes.clone());
                }
                if at + self.link.rtt() / 2 <= now {
                    self.rtt =
                        (self.rtt * 7 + (at + self.link.rtt() / 2).saturating_sub(packet.at)) / 8;
                    continue;
                }
            }
            match known <= now && arrives.is_none() {
                true => lost.push(packet),
                false => self.flight.push((known, arrives, packet)),
            }
        }
        lost.sort_by_key(|packet| std::cmp::Reverse(packet.number));
        for mut packet in lost {
            packet.losses += 1;
            self.lost += 1;
            self.waiting.push_front(packet);
        }
        let window = self.link.window();
        let mut flight: u64 = (self.flight.iter())
            .map(|(_, _, packet)| packet.bytes.len() as u64)
            .sum();
        while flight < window
            && let Some(packet) = self.waiting.pop_front()
        {
            flight += packet.bytes.len() as u64;
            self.send(packet, now);
        }
        arrived
    }

    fn send(&mut self, mut packet: Packet, now: Duration) {
        packet.at = now;
        self.sent += 1;
        let micros = (packet.bytes.len() as u64 * 1000).div_ceil(self.link.rate);
        self.free = self.free.max(now) + Duration::from_micros(micros);
        let arrives = self.free + self.link.rtt() / 2;
        let is_lost = !self.link.is_up(now) || self.random.f64() < self.link.loss;
        // By the acknowledgement of a later packet, or after a probe timeout.
        let noticed = self.link.rtt() * 5 / 4 * 2_u32.pow(packet.losses.min(4));
        let known = self.free + noticed + Duration::from_millis(5);
        let arrives = (!is_lost).then_some(arrives);
        self.flight.push((known, arrives, packet));
    }

    /// The next bytes in order that have arrived.
    pub(super) fn read(&mut self) -> Option<Bytes> {
        let bytes = self.arrived.remove(&self.read)?;
        self.read += 1;
        Some(bytes)
    }
}

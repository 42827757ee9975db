//! Delivery rates: how fast packets arrive, measured for every acknowledgement
//! (draft-ietf-ccwg-bbr-05, 4.1).
//!
//! A sample spans the time from the sending of an acknowledged packet to its acknowledgement, and
//! counts what was delivered meanwhile. The rate at which its packets were sent bounds it, so that
//! acknowledgements that arrive together do not look like a fast path.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Rounds after which a packet that was neither acknowledged nor lost is forgotten: QUIC drops the
/// packets of a handshake without saying so.
const FORGOTTEN: u64 = 16;
/// Packet numbers that may be skipped at once. More is another packet number space.
const MAX_SKIPPED: u64 = 1024;

/// Packets in flight, and what was delivered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delivery {
    /// Bytes acknowledged so far (C.delivered), and when the last of them were.
    delivered: u64,
    delivered_at: Option<Instant>,
    /// When the newest acknowledged packet was sent; after an idle time, the first one since
    /// (C.first_send_time).
    first_sent: Option<Instant>,
    /// Bytes lost so far (C.lost).
    lost: u64,
    /// Bytes in flight.
    in_flight: u64,
    /// Packets sent until this much is delivered do not show what the path carries: the application
    /// had no more to send.
    app_limited: Option<u64>,
    /// Packets by number, from the number `first` on.
    packets: VecDeque<Option<Packet>>,
    first: u64,
    round: u64,
    round_end: u64,
    /// The newest packet of the present acknowledgement, and its bytes altogether.
    newest: Option<Packet>,
    /// When the oldest packet of the present acknowledgement was sent.
    oldest: Option<Instant>,
    acked: u64,
}

/// A packet in flight, with the state at its sending.
#[derive(Debug, Clone, Copy)]
struct Packet {
    sent: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    in_flight: u64,
    round: u64,
    app_limited: bool,
}

/// What an acknowledgement shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Bytes per second; `None` where the time was too short to tell.
    pub(crate) rate: Option<f64>,
    /// The round-trip time of the newest packet.
    pub(crate) rtt: Duration,
    /// The time within which its packets were sent.
    pub(crate) spread: Duration,
    /// Bytes that this acknowledgement covers first.
    pub(crate) acked: u64,
    /// Bytes delivered since the newest packet was sent, and before that.
    pub(crate) delivered: u64,
    pub(crate) prior: u64,
    /// Bytes lost since the newest packet was sent.
    pub(crate) lost: u64,
    /// Bytes in flight when the newest packet was sent, with it.
    pub(crate) in_flight_then: u64,
    /// Bytes in flight now.
    pub(crate) in_flight: u64,
    /// The application had no more to send when the newest packet was sent.
    pub(crate) app_limited: bool,
}

/// A lost packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loss {
    pub(crate) bytes: u64,
    pub(crate) number: u64,
    /// Bytes in flight when it was sent, with it.
    pub(crate) in_flight_then: u64,
    /// Bytes lost since it was sent, with it.
    pub(crate) lost: u64,
    /// The application had no more to send when it was sent.
    pub(crate) app_limited: bool,
}

impl Delivery {
    /// Bytes delivered so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes lost so far.
    pub(crate) fn lost_so_far(&self) -> u64 {
        self.lost
    }

    /// Bytes in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Counts everything in flight as lost.
    pub(crate) fn forget(&mut self) {
        self.lost += self.in_flight;
        self.in_flight = 0;
        self.packets.clear();
    }

    /// Whether nothing is in flight because the application had no more to send.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.app_limited.is_some()
    }

    /// Records the sending of packet `number`.
    pub(crate) fn sent(&mut self, now: Instant, bytes: u64, number: u64) {
        if self.in_flight == 0 {
            self.first_sent = Some(now);
            self.delivered_at = Some(now);
        }
        self.in_flight += bytes;
        let packet = Packet {
            sent: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at.unwrap_or(now),
            first_sent: self.first_sent.unwrap_or(now),
            lost: self.lost,
            in_flight: self.in_flight,
            round: self.round,
            app_limited: self.app_limited.is_some(),
        };
        let oldest = self.round.saturating_sub(FORGOTTEN);
        while let Some(front) = self.packets.front()
            && front.is_none_or(|packet| packet.round < oldest)
        {
            self.packets.pop_front();
            self.first += 1;
        }
        let next = self.first + self.packets.len() as u64;
        match number.checked_sub(next) {
            // A packet of the handshake, which has numbers of its own: not measured.
            None if number >= self.first => return,
            Some(skipped @ 0..MAX_SKIPPED) if !self.packets.is_empty() => {
                self.packets.extend((0..skipped).map(|_| None));
            }
            _ => {
                self.packets.clear();
                self.first = number;
            }
        }
        self.packets.push_back(Some(packet));
    }

    fn take(&mut self, number: u64, sent: Option<Instant>) -> Option<Packet> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let place = self.packets.get_mut(at)?;
        place.take_if(|packet| sent.is_none_or(|sent| packet.sent == sent))
    }

    /// Records the acknowledgement of packet `number`, which was sent at `sent`.
    pub(crate) fn acked(&mut self, now: Instant, sent: Instant, bytes: u64, number: u64) {
        self.delivered += bytes;
        self.delivered_at = Some(now);
        self.acked += bytes;
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let Some(packet) = self.take(number, Some(sent)) else {
            return;
        };
        self.oldest = Some(self.oldest.map_or(sent, |oldest| oldest.min(sent)));
        if self.newest.is_none_or(|newest| packet.sent >= newest.sent) {
            self.newest = Some(packet);
        }
    }

    /// Ends an acknowledgement, after which `in_flight` bytes are in flight. `app_limited`: the
    /// application has no more to send. `min_rtt` is the shortest round-trip time: a sample over
    /// less says nothing.
    pub(crate) fn end(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        min_rtt: Option<Duration>,
    ) -> Option<Sample> {
        self.in_flight = in_flight;
        if app_limited {
            self.app_limited = Some(self.delivered + in_flight);
        } else if self.app_limited.is_some_and(|end| self.delivered > end) {
            self.app_limited = None;
        }
        let acked = std::mem::take(&mut self.acked);
        let newest = self.newest.take()?;
        let oldest = self.oldest.take().unwrap_or(newest.sent);
        self.first_sent = Some(newest.sent);
        if newest.delivered >= self.round_end {
            self.round_end = self.delivered;
            self.round += 1;
        }
        let sending = newest.sent.saturating_duration_since(newest.first_sent);
        let arriving = now.saturating_duration_since(newest.delivered_at);
        let interval = sending.max(arriving);
        let delivered = self.delivered - newest.delivered;
        let long = !interval.is_zero() && min_rtt.is_none_or(|min| interval >= min);
        Some(Sample {
            rate: long.then(|| delivered as f64 / interval.as_secs_f64()),
            rtt: now.saturating_duration_since(newest.sent),
            spread: newest.sent.saturating_duration_since(oldest),
            acked,
            delivered,
            prior: newest.delivered,
            lost: self.lost - newest.lost,
            in_flight_then: newest.in_flight,
            in_flight,
            app_limited: newest.app_limited,
        })
    }

    /// Records the loss of packet `number`; `None` if it was not measured.
    pub(crate) fn lost(&mut self, bytes: u64, number: u64) -> Option<Loss> {
        self.lost += bytes;
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let packet = self.take(number, None)?;
        Some(Loss {
            bytes,
            number,
            in_flight_then: packet.in_flight,
            lost: self.lost - packet.lost,
            app_limited: packet.app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn acknowledgements_that_arrive_together_show_the_rate_of_sending() {
        let (mut delivery, start) = (Delivery::default(), Instant::now());
        // A packet every millisecond; each ten are acknowledged at once, 20 ms after the last.
        let mut last = None;
        for time in 0..100u32 {
            let now = start + time * MS;
            delivery.sent(now, 1000, time.into());
            let Some(first) = time.checked_sub(29).filter(|first| first % 10 == 0) else {
                continue;
            };
            for number in first..first + 10 {
                delivery.acked(now, start + number * MS, 1000, number.into());
            }
            let sample = delivery.end(now, 20_000, false, Some(20 * MS)).unwrap();
            assert_eq!((sample.acked, sample.rtt), (10_000, 20 * MS));
            last = sample.rate;
        }
        let rate = last.unwrap();
        assert!((0.95e6..1.05e6).contains(&rate), "{rate}");
    }

    #[test]
    fn what_the_application_limits_is_marked() {
        let (mut delivery, start) = (Delivery::default(), Instant::now());
        let mut exchange = |at: u32, number, limited| {
            let sent = start + at * MS;
            delivery.sent(sent, 1000, number);
            delivery.acked(sent + 5 * MS, sent, 1000, number);
            delivery.end(sent + 5 * MS, 0, limited, None).unwrap()
        };
        assert!(!exchange(0, 0, true).app_limited);
        assert!(exchange(10, 1, false).app_limited);
        assert!(!exchange(20, 2, false).app_limited);
    }

    #[test]
    fn packets_of_a_handshake_do_not_stay() {
        let (mut delivery, mut now) = (Delivery::default(), Instant::now());
        // Never acknowledged.
        delivery.sent(now, 1200, 0);
        delivery.sent(now, 1200, 0);
        for number in 1..1000 {
            delivery.sent(now, 1200, number);
            delivery.acked(now + MS, now, 1200, number);
            delivery.end(now + MS, 2400, false, None);
            now += MS;
        }
        assert!(delivery.packets.len() < 50, "{}", delivery.packets.len());
        // Another packet number space starts from 0.
        delivery.sent(now, 1200, 0);
        assert!(delivery.lost(1200, 0).is_some());
        assert!(delivery.lost(1200, 7).is_none());
    }
}

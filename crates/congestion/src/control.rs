//! What every rate control does.

use std::fmt;
use std::time::Instant;

use super::carried::Carried;

/// Controls how fast one subflow sends.
///
/// The subflow reports every packet that it sends, and what became of it. Packet numbers increase
/// with every packet. After the packets of one acknowledgement, acknowledged and lost, it calls
/// [`end`](Self::end), and then asks for [`rate`](Self::rate) and [`window`](Self::window).
pub trait RateControl: fmt::Debug + Send {
    /// Packet `number` of `bytes` bytes is sent.
    fn sent(&mut self, now: Instant, number: u64, bytes: u64);

    /// Packet `number` of `bytes` bytes, sent at `sent`, is acknowledged.
    fn acked(&mut self, now: Instant, number: u64, sent: Instant, bytes: u64);

    /// Packet `number` of `bytes` bytes, sent at `sent`, counts as lost.
    fn lost(&mut self, now: Instant, number: u64, sent: Instant, bytes: u64);

    /// An acknowledgement is handled, and `in_flight` bytes are still in flight. `app_limited`: less
    /// is sent than allowed, because there is nothing to send.
    fn end(&mut self, now: Instant, in_flight: u64, app_limited: bool);

    /// Nothing was acknowledged for several probe timeouts: all packets in flight count as lost.
    fn timed_out(&mut self, now: Instant);

    /// From now on `share` subflows, this one included, share a link, and are to take one flow's share
    /// of it together. Only BBR does something about it.
    fn couple(&mut self, share: u32) {
        let _ = share;
    }

    /// Others over a shared link have given something up: this one may send at `rate` bytes per second
    /// now. Only BBR does.
    fn take(&mut self, rate: f64) {
        let _ = rate;
    }

    /// What the path carries, once the start is over.
    fn carried(&self) -> Option<Carried> {
        None
    }

    /// The path has carried this before. Only a start by trains uses it.
    fn remember(&mut self, carried: Carried) {
        let _ = carried;
    }

    /// Whether the path is being probed by trains of packets, so that acknowledgements should come soon
    /// after packets.
    fn is_probing(&self) -> bool {
        false
    }

    /// The pacing rate, in bytes per second.
    fn rate(&self) -> f64;

    /// Most bytes in flight.
    fn window(&self) -> u64;

    /// The name of the algorithm at work.
    fn name(&self) -> &'static str;
}

impl<C: RateControl + ?Sized> RateControl for Box<C> {
    fn sent(&mut self, now: Instant, number: u64, bytes: u64) {
        (**self).sent(now, number, bytes);
    }

    fn acked(&mut self, now: Instant, number: u64, sent: Instant, bytes: u64) {
        (**self).acked(now, number, sent, bytes);
    }

    fn lost(&mut self, now: Instant, number: u64, sent: Instant, bytes: u64) {
        (**self).lost(now, number, sent, bytes);
    }

    fn end(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        (**self).end(now, in_flight, app_limited);
    }

    fn timed_out(&mut self, now: Instant) {
        (**self).timed_out(now);
    }

    fn couple(&mut self, share: u32) {
        (**self).couple(share);
    }

    fn take(&mut self, rate: f64) {
        (**self).take(rate);
    }

    fn carried(&self) -> Option<Carried> {
        (**self).carried()
    }

    fn remember(&mut self, carried: Carried) {
        (**self).remember(carried);
    }

    fn is_probing(&self) -> bool {
        (**self).is_probing()
    }

    fn rate(&self) -> f64 {
        (**self).rate()
    }

    fn window(&self) -> u64 {
        (**self).window()
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }
}

//! What the owner knows of one connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hawser_path::Fingerprint;
use tokio::sync::mpsc;

use super::uploads::Terms;
use crate::peer::{Counts, Outgoing};
use crate::picker::GroupId;
use crate::pipeline::{self, Lane, Meter};
use crate::transport::Connection;
use crate::wire::{Message, encode};

/// What common clients queue at least when they do not say (libtorrent's default).
const UNTOLD_LIMIT: usize = 250;

/// A connection that was asked for blocks and delivers no byte for this long, or for this many
/// round trips if that is longer, is stalled.
const STALL: (Duration, u32) = (Duration::from_secs(1), 4);

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// We dialed the remote of this index over this path.
    Dialed(usize, Fingerprint),
    /// We connected back over this path to who downloads from us.
    Back(Fingerprint),
    /// The peer dialed us.
    Accepted,
}

/// A path-level peer we are connected to.
#[derive(Debug)]
pub(super) struct Conn<C> {
    pub connection: Arc<C>,
    pub origin: Origin,
    pub group: GroupId,
    pub counts: Arc<Counts>,
    /// Who chooses paths, and whether the peer may ask for blocks.
    pub terms: Terms,
    messages: mpsc::UnboundedSender<Outgoing>,
    /// The peer answers requests.
    pub unchoked: bool,
    /// We said that it has something we want.
    pub interested: bool,
    /// Nothing is asked for over it for now: its path waits.
    pub held: bool,
    /// It is to be closed once what was asked for is here.
    pub retiring: bool,
    /// Since when nothing comes although blocks were asked for.
    pub stalled: Option<Instant>,
    /// Requests it is willing to queue.
    limit: usize,
    /// Bytes of blocks received.
    pub bytes: u64,
    meter: Meter,
    /// Bytes read from it when last looked.
    heard: u64,
    heard_at: Instant,
    /// Since when something is asked for; `None` while nothing is.
    busy: Option<Instant>,
    /// The rate while it was last busy, in bytes per second.
    last_rate: Option<f64>,
    /// For display: bytes per second down and up, averaged over about a second.
    pub shown: Shown,
}

/// Smoothed rates for people to read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shown {
    pub down: f64,
    pub up: f64,
    counted_down: u64,
    counted_up: u64,
}

impl<C: Connection> Conn<C> {
    pub fn new(
        connection: Arc<C>,
        origin: Origin,
        group: GroupId,
        counts: Arc<Counts>,
        terms: Terms,
        messages: mpsc::UnboundedSender<Outgoing>,
    ) -> Conn<C> {
        let now = terms.since;
        Conn {
            connection,
            origin,
            group,
            counts,
            terms,
            messages,
            unchoked: false,
            interested: true,
            held: false,
            retiring: false,
            stalled: None,
            limit: UNTOLD_LIMIT,
            bytes: 0,
            meter: Meter::new(now),
            heard: 0,
            heard_at: now,
            busy: None,
            last_rate: None,
            shown: Shown::default(),
        }
    }

    /// Whether we dialed it to download from a peer we were told of; such connections are counted
    /// with the paths to it.
    pub fn is_of_remote(&self) -> bool {
        matches!(self.origin, Origin::Dialed(..))
    }

    /// Sends messages; they are lost when the connection has ended, which is told elsewhere.
    pub fn send(&self, messages: impl IntoIterator<Item = Message>) {
        let mut bytes = Vec::new();
        messages.into_iter().for_each(|m| encode(&m, &mut bytes));
        if !bytes.is_empty() {
            let _ = self.messages.send(Outgoing::Messages(bytes));
        }
    }

    /// Lets the peer ask for nothing more; what it was sent is still delivered, then the peer sees
    /// the end of the stream.
    pub fn finish(&mut self) {
        self.choke();
        let _ = self.messages.send(Outgoing::End);
    }

    /// How many requests the peer says it queues.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = (limit as usize).clamp(1, crate::peer::QUEUE);
    }

    /// Looks at what was read since last time. Whether there was anything.
    pub fn listen(&mut self, now: Instant) -> bool {
        let received = self.counts.received.load(Ordering::Relaxed);
        let new = received - self.heard;
        if new == 0 {
            return false;
        }
        self.heard = received;
        self.heard_at = now;
        self.meter.add(now, new);
        true
    }

    /// Says how many blocks are asked for now.
    pub fn set_asked(&mut self, asked: usize, now: Instant) {
        match (asked, self.busy) {
            (0, Some(_)) => {
                self.last_rate = self.rate(now);
                self.busy = None;
            }
            (1.., None) => {
                self.meter.restart(now);
                self.busy = Some(now);
                self.heard_at = now;
            }
            _ => {}
        }
    }

    /// Bytes per second it delivers when asked; `None` until it has shown it.
    fn rate(&self, now: Instant) -> Option<f64> {
        self.estimate(now, self.meter.rate(now))
    }

    /// `measured`, except where nothing can have arrived yet since it was asked again.
    fn estimate(&self, now: Instant, measured: f64) -> Option<f64> {
        let Some(busy) = self.busy else {
            return self.last_rate;
        };
        let warming = now.saturating_duration_since(busy) < self.patience();
        match self.last_rate {
            Some(last) if warming => Some(measured.max(last)),
            None if self.bytes == 0 && warming => None,
            _ => Some(measured),
        }
    }

    fn patience(&self) -> Duration {
        self.connection.rtt() * 2 + Duration::from_millis(200)
    }

    /// As the plan sees it.
    pub fn lane(&self, asked: usize, now: Instant) -> Lane {
        Lane {
            rate: self.rate(now),
            rtt: self.connection.rtt(),
            asked,
        }
    }

    /// How many blocks to keep asked for if nothing else limits it.
    pub fn depth(&self, now: Instant) -> usize {
        let peak = self.estimate(now, self.meter.peak(now));
        pipeline::depth(peak, self.connection.rtt(), self.limit)
    }

    /// Whether blocks are asked for and nothing came for too long.
    pub fn is_silent(&self, now: Instant) -> bool {
        let patience = STALL.0.max(self.connection.rtt() * STALL.1);
        self.busy.is_some() && now.saturating_duration_since(self.heard_at) > patience
    }

    /// It delivers nothing: what it did before says nothing about what it will do.
    pub fn stall(&mut self, now: Instant) {
        self.stalled.get_or_insert(now);
        self.busy = None;
        self.last_rate = None;
    }

    /// Updates the rates for display, `elapsed` after the last time.
    pub fn show(&mut self, elapsed: Duration) {
        let up = self.counts.uploaded.load(Ordering::Relaxed);
        let shown = &mut self.shown;
        let new = (self.bytes - shown.counted_down, up - shown.counted_up);
        (shown.counted_down, shown.counted_up) = (self.bytes, up);
        smooth(&mut shown.down, new.0, elapsed);
        smooth(&mut shown.up, new.1, elapsed);
    }
}

/// Moves an average over about a second on by `bytes` in `elapsed`.
pub(super) fn smooth(average: &mut f64, bytes: u64, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let weight = 1.0 - (-seconds).exp();
    *average += weight * (bytes as f64 / seconds - *average);
}

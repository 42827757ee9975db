//! What the owner knows of one connection.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::remotes::RemoteId;
use super::subflow::{Dialed, Peer};
use super::uploads::Serving;
use crate::peer::{Outgoing, Traffic};
use crate::picker::GroupId;
use crate::pipeline::{self, Meter, Subflow};
use crate::transport::Connection;
use crate::wire::{Message, encode};

/// Requests that a peer queues when it does not say how many (`reqq`, BEP 10): libtorrent's
/// default.
const DEFAULT_QUEUE: u32 = 250;

/// One in this many of the requests that a peer says it queues is left free: Transmission drops the
/// request that would fill its queue, others count what they have read from disk and not sent.
const SPARE: u32 = 8;

/// A block is asked for again when one asked for later arrived this long ago, or this many round
/// trips if that is longer. Peers answer in order, but for what their disk has ready first.
const OVERTAKEN: (Duration, u32) = (Duration::from_secs(2), 8);

/// Pauses between single requests over a stalled connection: a peer that forgot what it was asked
/// for answers the next one.
const RETRIES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(16);

/// A connection that was asked for blocks and delivers no byte for this long, or for this many
/// round trips if that is longer, is stalled.
const STALL: (Duration, u32) = (Duration::from_secs(1), 4);

/// A path-level peer we are connected to.
pub(super) struct Conn {
    pub connection: Arc<dyn Connection>,
    /// What it was dialed as; `None` if the peer opened it.
    pub dialed: Option<Dialed>,
    pub group: GroupId,
    pub traffic: Arc<Traffic>,
    /// When it was established.
    pub since: Instant,
    /// Who chooses paths, and whether the peer may ask for blocks.
    pub serving: Serving,
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
    /// When a single request is sent next while stalled, and the pause after that.
    retry: (Instant, Duration),
    /// It said that it downloads nothing (BEP 21).
    pub upload_only: bool,
    /// Pieces it had and took back.
    pub taken_back: u64,
    /// Most requests to keep waiting there.
    pub limit: usize,
    /// Bytes of blocks received.
    pub bytes: u64,
    meter: Meter,
    /// Bytes read from it when last looked.
    read: u64,
    read_at: Instant,
    /// Since when something is asked for; `None` while nothing is.
    busy: Option<Instant>,
    /// The rate while it was last busy, in bytes per second.
    last_rate: Option<f64>,
    pub shown_down: Average,
    pub shown_up: Average,
}

/// A rate averaged over about a second, for people to read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Average {
    /// Bytes per second.
    pub rate: f64,
    counted: u64,
}

impl Average {
    /// Moves on to `total` bytes, `elapsed` after the last time.
    pub fn advance(&mut self, total: u64, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64().max(1e-3);
        let weight = 1.0 - (-seconds).exp();
        let new = total - std::mem::replace(&mut self.counted, total);
        self.rate += weight * (new as f64 / seconds - self.rate);
    }
}

impl Conn {
    /// A connection over which `messages` are sent from now on.
    pub fn new(
        connection: Arc<dyn Connection>,
        dialed: Option<Dialed>,
        group: GroupId,
        serving: Serving,
        messages: mpsc::UnboundedSender<Outgoing>,
        now: Instant,
    ) -> Self {
        Self {
            connection,
            dialed,
            group,
            traffic: Arc::default(),
            since: now,
            serving,
            messages,
            unchoked: false,
            interested: true,
            held: false,
            retiring: false,
            stalled: None,
            retry: (now, *RETRIES.start()),
            upload_only: false,
            taken_back: 0,
            limit: queued(DEFAULT_QUEUE),
            bytes: 0,
            meter: Meter::new(now),
            read: 0,
            read_at: now,
            busy: None,
            last_rate: None,
            shown_down: Average::default(),
            shown_up: Average::default(),
        }
    }

    /// The remote it was dialed to, if it was. Such connections are counted with its paths.
    pub fn remote(&self) -> Option<(RemoteId, Dialed)> {
        match self.dialed? {
            dialed @ Dialed {
                to: Peer::Remote(id),
                ..
            } => Some((id, dialed)),
            _ => None,
        }
    }

    /// Bytes of blocks sent over it.
    pub fn uploaded(&self) -> u64 {
        self.traffic.uploaded.load(Ordering::Relaxed)
    }

    /// Sends messages; they are lost when the connection has ended, which its task reports.
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

    /// Looks at what was read since last time. Whether there was anything.
    pub fn observe(&mut self, now: Instant) -> bool {
        let received = self.traffic.received.load(Ordering::Relaxed);
        let new = received - self.read;
        if new == 0 {
            return false;
        }
        self.read = received;
        self.read_at = now;
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
                self.read_at = now;
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
        let patience = self.connection.rtt() * 2 + Duration::from_millis(200);
        let warming = now.saturating_duration_since(busy) < patience;
        match self.last_rate {
            Some(last) if warming => Some(measured.max(last)),
            None if self.bytes == 0 && warming => None,
            _ => Some(measured),
        }
    }

    /// As the plan sees it.
    pub fn subflow(&self, asked: usize, now: Instant) -> Subflow {
        Subflow {
            rate: self.rate(now),
            rtt: self.connection.rtt(),
            asked,
        }
    }

    /// How many blocks to keep asked for if nothing else limits it.
    pub fn depth(&self, now: Instant) -> usize {
        let peak = self.estimate(now, self.meter.peak(now));
        let slack = match self.connection.peer().ip() {
            Some(_) => pipeline::IP_SLACK,
            None => pipeline::SLACK,
        };
        pipeline::depth(peak, self.connection.rtt(), slack, self.limit)
    }

    /// Whether blocks are asked for and nothing came for too long.
    pub fn is_silent(&self, now: Instant) -> bool {
        let patience = STALL.0.max(self.connection.rtt() * STALL.1);
        self.busy.is_some() && now.saturating_duration_since(self.read_at) > patience
    }

    /// Whether blocks are asked for.
    pub fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    /// A block that one asked for later overtook at this time, or before, was forgotten.
    pub fn overtaken_by(&self, now: Instant) -> Option<Instant> {
        let patience = OVERTAKEN.0.max(self.connection.rtt() * OVERTAKEN.1);
        now.checked_sub(patience)
    }

    /// Whether a single request is due over it, being stalled; the next one is later.
    pub fn is_retry_due(&mut self, now: Instant) -> bool {
        let (at, pause) = self.retry;
        let due = self.stalled.is_some() && self.unchoked && at <= now;
        if due {
            self.retry = (now + pause, (pause * 2).min(*RETRIES.end()));
        }
        due
    }

    /// It delivers nothing: what it did before says nothing about what it will do.
    pub fn stall(&mut self, now: Instant) {
        if self.stalled.is_none() {
            self.retry = (now + *RETRIES.start(), *RETRIES.start());
        }
        self.stalled.get_or_insert(now);
        self.busy = None;
        self.last_rate = None;
    }

    /// Updates the rates for display, `elapsed` after the last time.
    pub fn show(&mut self, elapsed: Duration) {
        self.shown_down.advance(self.bytes, elapsed);
        self.shown_up.advance(self.uploaded(), elapsed);
    }
}

/// Most requests to keep waiting at a peer that queues `queue`.
pub(super) fn queued(queue: u32) -> usize {
    let spare = (queue / SPARE).max(1);
    (queue.saturating_sub(spare) as usize).clamp(1, crate::peer::QUEUE)
}

//! The state of one connection, as the owner sees it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hawser_address::PeerAddr;
use tokio::sync::mpsc;

use super::answers::Answers;
use super::padded::PaddedBlocks;
use super::remotes::RemoteId;
use super::subflow::{Dialed, Peer};
use super::uploads::Serving;
use crate::close::CloseCode;
use crate::peer::{Outgoing, Traffic};
use crate::picker::GroupId;
use crate::pipeline::{self, MIN_DEPTH, Subflow};
use crate::requests::{Pace, Source};
use crate::transport::Connection;
use crate::wire::{BLOCK, Message, PeerId, Request, encode};

/// Requests that a peer queues when it does not say how many (`reqq`, BEP 10): libtorrent's
/// default.
const DEFAULT_QUEUE: u32 = 250;

/// One in this many of the requests that a peer queues is left free: Transmission drops the request
/// that would fill its queue, others also count blocks read from disk and not yet sent.
const SPARE: u32 = 8;

/// A block is requested again when one requested later arrived this long ago, or this many round
/// trips if that is longer. Peers answer in order, except for blocks that their disk has ready.
const OVERTAKEN: (Duration, u32) = (Duration::from_secs(2), 8);

/// Intervals between single requests over a stalled connection: a peer that forgot its requests
/// answers the next one.
const RETRIES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(16);

/// Most bytes of messages, without Have, that wait for a peer that reads nothing; then the connection is
/// closed. Requests and their cancellation are at most a quarter of it, and each answer to a message of
/// the peer is some hundred bytes at most.
const MAX_UNSENT: usize = 1 << 20;

/// A path-level peer we are connected to.
pub(super) struct Conn {
    pub connection: Arc<dyn Connection>,
    /// The subflow it was dialed for; `None` if the peer opened it.
    pub dialed: Option<Dialed>,
    /// The connections with the same key. Who has sent something is proved by a key alone.
    pub group: GroupId,
    /// Its peer, which may have connections over both networks: see [`Connections::peer_of`].
    pub peer: GroupId,
    pub traffic: Arc<Traffic>,
    /// When it was established.
    pub since: Instant,
    /// Which side chooses paths, and whether the peer may request blocks.
    pub serving: Serving,
    /// Unbounded, as the owner never waits for a peer. What waits in it while the peer reads nothing is
    /// bounded: each piece is announced at most once, and all else by [`MAX_UNSENT`].
    messages: mpsc::UnboundedSender<Outgoing>,
    pub wants: Wants,
    pub ordered: Ordered,
    pub stall: Stall,
    pub theirs: Theirs,
    /// Bytes of blocks received.
    pub bytes: u64,
    /// How fast it delivers.
    pub pace: Pace,
    pub shown: Shown,
}

/// What this side wants from the peer.
#[derive(Debug, Default)]
pub(super) struct Wants {
    /// The last interest message sent to the peer was Interested (BEP 3).
    pub interested: bool,
    /// A block was requested.
    requested: bool,
    /// Its requests for blocks that end in padding; `None` if the torrent has none.
    pub padded: Option<PaddedBlocks>,
}

impl Wants {
    /// A message to the peer as it is sent.
    fn adapt(&self, message: Message) -> Message {
        match (message, &self.padded) {
            (Message::Request(it), Some(padded)) => Message::Request(padded.adapt(it)),
            (Message::Cancel(it), Some(padded)) => Message::Cancel(padded.adapt(it)),
            (other, _) => other,
        }
    }
}

/// What the path manager ordered about a connection.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    /// Nothing is requested over it for now: its path waits.
    pub held: bool,
    /// It is closed once the requested blocks have arrived.
    pub retiring: bool,
}

/// Whether a connection is stalled.
#[derive(Debug)]
pub(super) struct Stall {
    /// Since when it is; `None` while it is not.
    pub since: Option<Instant>,
    /// Whether the peer answers while it is.
    pub answers: Answers,
    /// Time of the next single request while it is, and the interval after it.
    retry: (Instant, Duration),
}

/// What the peer of a connection told.
#[derive(Debug)]
pub(super) struct Theirs {
    /// The id in its handshake.
    pub id: PeerId,
    /// The name of its program, as far as that is known.
    pub client: Option<Arc<str>>,
    /// The port at which it accepts connections, if it said so (BEP 10).
    pub port: Option<u16>,
    /// The id under which it takes `ut_metadata` messages, if it does (BEP 9).
    pub metadata: Option<u8>,
    /// Number of addresses of other peers that were taken from it.
    pub peers_taken: usize,
    /// It has named a node of the DHT (BEP 5). Only the first counts, so that no peer alone decides
    /// which are known.
    pub has_named_node: bool,
    /// It understands messages about hashes (BEP 52).
    pub version_two: bool,
    /// It answers requests.
    pub unchoked: bool,
    /// When it last said whether it does.
    pub choke_at: Instant,
    /// It downloads nothing (BEP 21).
    pub upload_only: bool,
    /// Number of pieces that it had and took back.
    pub taken_back: u64,
    /// Most requests to keep queued at it.
    pub limit: usize,
}

/// The rates of a connection, for display.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub down: Average,
    pub up: Average,
}

/// A rate averaged over about a second, for display.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Average {
    /// Bytes per second.
    pub rate: f64,
    counted: u64,
}

impl Average {
    /// Advances to `total` bytes, `elapsed` after the last call.
    pub fn advance(&mut self, total: u64, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64().max(1e-3);
        let weight = 1.0 - (-seconds).exp();
        let new = total - std::mem::replace(&mut self.counted, total);
        self.rate += weight * (new as f64 / seconds - self.rate);
    }
}

impl Conn {
    /// Whether it comes over the other network from the host of `addr`.
    pub fn is_from_host(&self, addr: PeerAddr) -> bool {
        match (self.connection.peer(), addr) {
            (PeerAddr::Scion(scion), PeerAddr::Ip(ip))
            | (PeerAddr::Ip(ip), PeerAddr::Scion(scion)) => {
                scion.host.ip().to_canonical() == ip.ip().to_canonical()
            }
            _ => false,
        }
    }

    /// Creates a connection to the peer with this id that sends its messages through `messages`.
    pub fn new(
        connection: Arc<dyn Connection>,
        dialed: Option<Dialed>,
        group: GroupId,
        id: PeerId,
        serving: Serving,
        messages: mpsc::UnboundedSender<Outgoing>,
        now: Instant,
    ) -> Self {
        Self {
            connection,
            dialed,
            group,
            peer: group,
            traffic: Arc::default(),
            since: now,
            serving,
            messages,
            wants: Wants::default(),
            ordered: Ordered::default(),
            stall: Stall {
                since: None,
                answers: Answers::new(now),
                retry: (now, *RETRIES.start()),
            },
            theirs: Theirs {
                client: id.client().map(Into::into),
                id,
                port: None,
                metadata: None,
                peers_taken: 0,
                has_named_node: false,
                version_two: false,
                unchoked: false,
                choke_at: now,
                upload_only: false,
                taken_back: 0,
                limit: queued(DEFAULT_QUEUE),
            },
            bytes: 0,
            pace: Pace::new(now),
            shown: Shown::default(),
        }
    }

    /// The remote it was dialed to, if any. Such connections are counted with the remote's paths.
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

    /// Sends messages. They are lost if the connection has ended, which its task reports. Closes the
    /// connection of a peer that causes ever more messages and reads none.
    pub fn send(&self, messages: impl IntoIterator<Item = Message>) {
        let (mut bytes, mut counted) = (Vec::new(), 0);
        for message in messages {
            let before = bytes.len();
            let message = self.wants.adapt(message);
            encode(&message, &mut bytes);
            if !matches!(message, Message::Have(_)) {
                counted += bytes.len() - before;
            }
        }
        if bytes.is_empty() {
            return;
        }
        let unsent = self.traffic.unsent.fetch_add(counted, Ordering::Relaxed) + counted;
        if unsent > MAX_UNSENT {
            self.connection
                .close(CloseCode::Plain, "it reads nothing of what is sent to it");
            return;
        }
        let _ = self.messages.send(Outgoing::Messages(bytes, counted));
    }

    /// Requests blocks. From the first one, the peer may have many under way.
    pub fn request(&mut self, requests: impl IntoIterator<Item = Request>) {
        if !std::mem::replace(&mut self.wants.requested, true) {
            self.connection.expect_data();
        }
        let requests: Vec<_> = requests.into_iter().collect();
        if let Some(padded) = &mut self.wants.padded {
            requests.iter().for_each(|it| padded.requested(*it));
        }
        self.send(requests.into_iter().map(Message::Request));
    }

    /// Chokes the peer, and ends the stream once everything sent is delivered.
    pub fn finish(&mut self) {
        self.choke();
        let _ = self.messages.send(Outgoing::End);
    }

    /// Takes note of bytes read since the last call. Returns whether there were any.
    pub fn observe(&mut self, now: Instant) -> bool {
        if self.stall.since.is_some() || self.pace.is_busy() {
            self.stall.answers.observe(self.connection.received(), now);
        }
        let read = self.traffic.received.load(Ordering::Relaxed);
        self.pace.observe(read, self.is_backlogged(), now)
    }

    /// Whether this side reads nothing at present, as what was read waits for the disk.
    pub fn is_backlogged(&self) -> bool {
        self.traffic.backlogged.load(Ordering::Relaxed)
    }

    /// Counts the bytes of a block received.
    pub fn delivered(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.pace.delivered();
    }

    /// Sets the number of outstanding requests.
    pub fn set_asked(&mut self, asked: usize, now: Instant) {
        self.pace.set_asked(asked, self.connection.rtt(), now);
    }

    /// It, as one to request blocks over; `asked` of them are outstanding. No more are requested than
    /// arrive in time at `limit`, in bytes per second: others would fill the windows of the
    /// connection, and could not be cancelled any more.
    pub fn source(&self, asked: usize, limit: Option<u64>, now: Instant) -> Source {
        let rtt = self.connection.rtt();
        let slack = match self.theirs.id.is_hawser() {
            true => pipeline::SLACK,
            false => pipeline::BURST_SLACK,
        };
        let time = pipeline::time(rtt, slack);
        let most = limit.map_or(usize::MAX, |limit| {
            let blocks = limit as f64 * time.as_secs_f64() / f64::from(BLOCK);
            (blocks as usize).max(MIN_DEPTH)
        });
        let depth = pipeline::depth(self.pace.peak(rtt, now), rtt, slack, self.theirs.limit);
        Source {
            path: self.connection.fingerprint(),
            subflow: Subflow {
                rate: self.pace.rate(rtt, now),
                rtt,
                asked,
            },
            depth: depth.min(most),
            time,
        }
    }

    /// A block that one requested later overtook at or before this time counts as forgotten.
    pub fn overtaken_by(&self, now: Instant) -> Option<Instant> {
        let patience = OVERTAKEN.0.max(self.connection.rtt() * OVERTAKEN.1);
        now.checked_sub(patience)
    }

    /// Whether a single request is due on a stalled connection; schedules the next one.
    pub fn is_retry_due(&mut self, now: Instant) -> bool {
        let (at, pause) = self.stall.retry;
        let due = self.stall.since.is_some() && self.theirs.unchoked && at <= now;
        if due {
            self.stall.retry = (now + pause, (pause * 2).min(*RETRIES.end()));
        }
        due
    }

    /// Marks it as stalled and forgets its rate, which predicts nothing any more.
    pub fn stall(&mut self, now: Instant) {
        if self.stall.since.is_none() {
            self.stall.retry = (now + *RETRIES.start(), *RETRIES.start());
        }
        self.stall.since.get_or_insert(now);
        self.pace.stall();
    }

    /// Updates the rates for display, `elapsed` after the last call.
    pub fn show(&mut self, elapsed: Duration) {
        self.shown.down.advance(self.bytes, elapsed);
        self.shown.up.advance(self.uploaded(), elapsed);
    }
}

/// Most requests to keep queued at a peer that queues `queue`.
pub(super) fn queued(queue: u32) -> usize {
    let spare = (queue / SPARE).max(1);
    (queue.saturating_sub(spare) as usize).clamp(1, crate::peer::MAX_WAITING)
}

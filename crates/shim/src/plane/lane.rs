//! One lane of a session: sealed datagrams over one path, and whether they get through.

mod measured;
mod reports;
mod segments;
#[cfg(test)]
pub(crate) mod tests;
mod watched;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use hawser_endhost::ScionAddr;
use hawser_endhost::lanes::{Lane, LaneSender};
use hawser_seal::{Cipher, Opener, SECRET, Sealer};
use hawser_session::MessageSender;
use hawser_tun::TcpPacket;
use tokio::sync::SetOnce;
use tokio::sync::mpsc::UnboundedSender;

use self::measured::Measured;
use self::reports::Reports;
use self::watched::Watched;
use super::table::{SlotLane, SlotTable};
use crate::liveness::{Judgement, Liveness};
use crate::lock::lock;
use crate::protocol::datagram::{MIN_PAYLOAD, PREFIX};
use crate::protocol::segment::SAVED;
use crate::protocol::{DatagramKind, Message, SlotEpoch};
pub(crate) use crate::session::LaneKey;

/// The slots of a session with their lanes.
pub(crate) type LaneTable = SlotTable<SealedLane>;

/// What happens to a lane.
#[derive(Debug)]
pub(crate) enum LaneEvent {
    /// Its first datagram has arrived.
    Up,
    /// A slot was put on it by the other side.
    Bound,
    /// Nothing comes back over it, and there is no other lane that works.
    Stalled,
    /// Something came back over it after all.
    Recovered,
    /// The other side no longer has the streams of the process with this number.
    StreamsLost(u64),
    /// It cannot be used.
    Failed(String),
}

/// The keys of a lane's datagrams.
pub(crate) struct LaneKeys {
    pub cipher: Cipher,
    /// What this side seals with, and what the peer seals with.
    pub here: [u8; SECRET],
    pub there: [u8; SECRET],
}

/// What a lane begins with.
pub(crate) struct NewLane {
    pub key: LaneKey,
    pub keys: LaneKeys,
    /// The peer's address for datagrams.
    pub remote: ScionAddr,
    pub table: Arc<LaneTable>,
    pub sender: LaneSender,
    /// Messages of the connection over the same path.
    pub messages: MessageSender<Message>,
    pub events: UnboundedSender<(LaneKey, LaneEvent)>,
}

/// Counters of a lane, from the SCION/UDP payload on.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub sent_bytes: AtomicU64,
    pub sent_packets: AtomicU64,
    pub received_bytes: AtomicU64,
    pub received_packets: AtomicU64,
    /// Packets that this host had no room for.
    pub dropped: AtomicU64,
}

/// A lane of a session.
pub(crate) struct SealedLane {
    pub key: LaneKey,
    pub remote: ScionAddr,
    pub table: Arc<LaneTable>,
    pub liveness: Liveness,
    pub counters: Counters,
    began: Instant,
    overhead: usize,
    outgoing: Mutex<Outgoing>,
    opener: Mutex<Opener>,
    /// `None` until the port of the peer, or its first datagram, is known.
    lane: OnceLock<Lane>,
    measured: Measured,
    /// Packets and segments are bounded; of other messages there are a few for each lane of the session.
    messages: MessageSender<Message>,
    reports: Reports,
    /// Set once it is closed: whether a last message is still sent over the connection.
    closed: SetOnce<bool>,
}

/// Datagrams that are sealed and wait to be sent in one call.
struct Outgoing {
    sealer: Sealer,
    sender: LaneSender,
    batch: Vec<u8>,
    /// Bytes of each datagram in the batch.
    stride: usize,
    /// Whether the last one is shorter, so that none may follow.
    is_full: bool,
}

impl SlotLane for SealedLane {
    fn key(&self) -> LaneKey {
        self.key
    }

    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }

    #[inline]
    fn is_up(&self) -> bool {
        Self::is_up(self)
    }

    fn is_doubtful(&self) -> bool {
        Self::is_doubtful(self)
    }

    fn rtt(&self) -> Option<Duration> {
        Self::rtt(self)
    }
}

impl SealedLane {
    /// A lane without a path. The times of [`Liveness`] count from when it `began`.
    pub(crate) fn new(new: NewLane, began: Instant) -> Self {
        let NewLane { keys, .. } = new;
        Self {
            key: new.key,
            remote: new.remote,
            table: new.table,
            liveness: Liveness::default(),
            counters: Counters::default(),
            began,
            overhead: keys.cipher.overhead(),
            outgoing: Mutex::new(Outgoing {
                sealer: Sealer::new(keys.cipher, &keys.here),
                sender: new.sender,
                batch: Vec::new(),
                stride: 0,
                is_full: false,
            }),
            opener: Mutex::new(Opener::new(keys.cipher, &keys.there)),
            lane: OnceLock::new(),
            measured: Measured::new(),
            messages: new.messages,
            reports: Reports::new(new.key, new.events),
            closed: SetOnce::new(),
        }
    }

    /// The time as [`Liveness`] counts it.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn opener(&self) -> MutexGuard<'_, Opener> {
        lock(&self.opener)
    }

    pub(crate) fn lane(&self) -> Option<&Lane> {
        self.lane.get()
    }

    /// Sets the path; the first one counts.
    pub(crate) fn set_path(self: &Arc<Self>, path: Lane) {
        path.attach(Arc::new(Watched(Arc::downgrade(self))));
        let _ = self.lane.set(path);
    }

    /// The largest datagram, in bytes.
    pub(crate) fn datagram(&self) -> usize {
        self.measured.datagram()
    }

    pub(crate) fn set_datagram(&self, bytes: usize) {
        self.measured.set_datagram(bytes);
    }

    /// The round-trip time, if it was measured.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.measured.rtt()
    }

    pub(crate) fn set_rtt(&self, rtt: Duration) {
        self.measured.set_rtt(rtt);
    }

    /// Whether datagrams get through.
    pub(crate) fn is_up(&self) -> bool {
        self.measured.is_up()
    }

    /// Records that a datagram of `bytes` was received and opened.
    #[inline]
    pub(crate) fn on_received(&self, bytes: usize, now: Duration) {
        self.liveness.received(now);
        let counters = &self.counters;
        counters
            .received_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
        counters.received_packets.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that datagrams get through.
    pub(crate) fn set_up(&self) {
        if self.measured.set_up() {
            self.report(LaneEvent::Up);
        }
    }

    /// Sends a message over the connection beside the lane. If the connection has ended, so does the
    /// lane.
    pub(crate) fn send(&self, message: Message) {
        self.messages.send(&message);
    }

    /// Ends the lane and its connection.
    pub(crate) fn close(&self) {
        // Closed once.
        let _ = self.closed.set(false);
    }

    /// The same, after the other side has received `last`, or had time to. What waits is not sent.
    pub(crate) fn close_with(&self, last: Message) {
        if self.closed.set(true).is_ok() {
            self.messages.close_with(&last);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get().is_some()
    }

    /// Waits until the lane is closed.
    pub(crate) async fn closed(&self) {
        self.closed.wait().await;
    }

    /// Whether the lane was closed with a last message.
    pub(crate) fn has_last_message(&self) -> bool {
        self.closed.get() == Some(&true)
    }

    /// Reports to the session, unless it has ended, or has not taken such a report yet: datagrams of
    /// the other side may cause them as fast as they arrive.
    pub(crate) fn report(&self, event: LaneEvent) {
        self.reports.send(event);
    }

    /// The session looks at which slots it has.
    pub(crate) fn on_bound_handled(&self) {
        self.reports.on_bound_handled();
    }

    /// Whether an answer is overdue.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.liveness.is_doubtful(self.rtt(), self.now())
    }

    /// Whether the lane delivers.
    pub(crate) fn judge(&self) -> Judgement {
        self.liveness.judge(self.rtt(), self.now())
    }

    /// Queues a TCP packet, cut into segments that the path takes, to be sent by
    /// [`flush`](Self::flush). Until datagrams get through, it is sent over the connection.
    pub(crate) fn push_tcp(&self, bound: SlotEpoch, packet: &TcpPacket<'_>) {
        if !self.is_up() {
            for segment in packet.segments(usize::from(MIN_PAYLOAD) - self.overhead - PREFIX) {
                let segment = [segment.header(), segment.payload()].concat();
                self.try_send(&Message::Segment { bound, segment }, MAX_WAITING_SEGMENTS);
            }
            return;
        }
        let prefix = bound.encode();
        let mut outgoing = lock(&self.outgoing);
        let room = self.largest_packet();
        segments::cut(packet, self.table.role, room, |kind, header, payload| {
            let size = self.overhead + PREFIX + header.len() + payload.len();
            outgoing.make_room(self, size);
            let Outgoing { sealer, batch, .. } = &mut *outgoing;
            sealer.seal(batch, kind.seal(), false, |out| {
                out.extend_from_slice(&prefix);
                out.extend_from_slice(header);
                out.extend_from_slice(payload);
            });
        });
    }

    /// Bytes of the largest packet that fits a datagram.
    pub(crate) fn largest_packet(&self) -> usize {
        self.datagram() - self.overhead - PREFIX
    }

    /// Queues an IP packet that is not TCP, to be sent by [`flush`](Self::flush). Until datagrams get
    /// through, or if none has room for it, it is sent over the connection, unless much waits there
    /// already.
    pub(crate) fn push_packet(&self, packet: &[u8]) {
        if !self.is_up() || packet.len() > self.largest_packet() {
            let packet = packet.to_vec();
            self.try_send(&Message::Packet { packet }, MAX_WAITING_PACKETS);
            return;
        }
        let Some(bound) = self.table.bound_of(self.key) else {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let mut outgoing = lock(&self.outgoing);
        outgoing.make_room(self, self.overhead + PREFIX + packet.len());
        let Outgoing { sealer, batch, .. } = &mut *outgoing;
        sealer.seal(batch, DatagramKind::Packet.seal(), false, |out| {
            out.extend_from_slice(&bound.encode());
            out.extend_from_slice(packet);
        });
    }

    /// Sends a packet or a segment over the connection, unless `max` bytes wait there already: then it is
    /// lost, as on any path.
    fn try_send(&self, message: &Message, max: usize) {
        if !self.messages.try_send(message, max) {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The MTU with which the kernel's segments of data fill a datagram, in bytes: the largest one
    /// with a compact header, as the kernel counts it, with the headers that are not carried. At least
    /// what IPv6 has (RFC 8200, 5): what is larger than the path takes is cut.
    pub(crate) fn mtu(&self) -> u32 {
        (self.largest_packet() + SAVED + IPV6_HEADER).max(IPV6_MTU) as u32
    }

    /// Sends what is queued.
    pub(crate) fn flush(&self) {
        lock(&self.outgoing).flush(self);
    }

    /// Sends a probe of `size` bytes (at least what it takes), or the answer to one.
    pub(crate) fn probe(&self, bound: SlotEpoch, size: usize, ask: bool) {
        let mut outgoing = lock(&self.outgoing);
        let size = size.max(self.overhead + PREFIX);
        outgoing.make_room(self, size);
        let Outgoing { sealer, batch, .. } = &mut *outgoing;
        let zeros = size - self.overhead - PREFIX;
        sealer.seal(batch, DatagramKind::Probe.seal(), ask, |out| {
            out.extend_from_slice(&bound.encode());
            out.resize(out.len() + zeros, 0);
        });
        outgoing.flush(self);
    }
}

impl Outgoing {
    /// Makes room in the batch for a datagram of `size` bytes, sending what is there if they differ.
    #[inline]
    fn make_room(&mut self, lane: &SealedLane, size: usize) {
        let full = self.is_full || size > self.stride || self.batch.len() + size > MAX_BATCH;
        if !self.batch.is_empty() && full {
            self.flush(lane);
        }
        if self.batch.is_empty() {
            self.stride = size;
        }
        self.is_full = size < self.stride;
    }

    fn flush(&mut self, lane: &SealedLane) {
        if self.batch.is_empty() {
            return;
        }
        self.is_full = false;
        let Some(path) = lane.lane() else {
            self.batch.clear();
            return;
        };
        lane.liveness.sent(lane.now());
        let stride = self.stride.max(1);
        let mut rest = 0;
        while rest < self.batch.len() {
            match (self.sender).try_send(path.flow(), &self.batch[rest..], self.stride, 0) {
                Ok(sent) => rest += sent,
                Err(error) => {
                    // A full socket buffer: TCP sends it again, as after any loss.
                    let left = (self.batch.len() - rest).div_ceil(stride) as u64;
                    lane.counters.dropped.fetch_add(left, Ordering::Relaxed);
                    if error.kind() != io::ErrorKind::WouldBlock {
                        lane.report(LaneEvent::Failed(error.to_string()));
                    }
                    break;
                }
            }
        }
        let counters = &lane.counters;
        counters
            .sent_bytes
            .fetch_add(rest as u64, Ordering::Relaxed);
        let packets = rest.div_ceil(stride) as u64;
        counters.sent_packets.fetch_add(packets, Ordering::Relaxed);
        self.batch.clear();
    }
}

/// Bytes of messages that wait for the connection while packets, and while segments of TCP, are still
/// added: what comes faster is lost.
const MAX_WAITING_PACKETS: usize = 128 << 10;
const MAX_WAITING_SEGMENTS: usize = 1 << 20;

/// Bytes of an IPv6 header, and of the smallest MTU with which a device has IPv6.
const IPV6_HEADER: usize = 40;
const IPV6_MTU: usize = 1280;

/// Bytes that are sent in one call: what the kernel cuts at once.
const MAX_BATCH: usize = 64 << 10;

//! The subflows of one session.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::ScionAddr;
use hawser_endhost::lanes::{Doubt, Evidence, Lane, LaneEnd, LaneSender, LaneUser, Probing};
use hawser_seal::SubflowId;
use tokio::sync::mpsc::UnboundedSender;

use super::{DataEvent, NewSubflow, SubflowKey};
use crate::algorithm::Start;
use crate::protocol::{Opener, Sealer};

/// Time between probes of a sink, over a path that nothing has arrived over yet.
const PROBE_INTERVAL: Duration = Duration::from_millis(200);
/// Probes of the announced size, after which smaller ones are tried.
const MAX_LARGE_PROBES: u32 = 3;
/// Longest wait until what is in flight over a subflow that drains is acknowledged: some round trips on
/// Earth.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// A datagram that is sent over every path, in bytes: the packets of the connection beside it are as
/// large (RFC 9000, 14).
pub(super) const SMALL: usize = 1200;

/// One subflow.
pub(super) struct Subflow {
    pub opener: Opener,
    pub sealer: Sealer,
    /// The peer's address.
    pub remote: ScionAddr,
    /// `None` until the first packet of a peer that dialed.
    pub lane: Option<Lane>,
    /// The largest datagram, in bytes.
    pub datagram: usize,
    pub rtt: Option<Duration>,
    pub start: Start,
    /// Whether a packet has arrived: the path works in both directions.
    pub is_up: bool,
    /// Whether the session knows that nothing is acknowledged any more.
    pub is_stalled: bool,
    /// When it is drained at the latest, if it drains.
    drains_until: Option<Instant>,
    /// The number of the last batch that it sent within a limit, of all batches of the session.
    pub turn: u64,
    output: Output,
    probes: Probes,
    pub traffic: Traffic,
}

/// Sealed packets, until the socket has taken them.
struct Output {
    sender: LaneSender,
    packets: Vec<u8>,
    /// Bytes of each packet; the last may be shorter.
    size: usize,
    /// Bytes of `packets` that are sent.
    sent: usize,
}

/// Probes that a sink has sent.
#[derive(Default)]
struct Probes {
    last: Option<Instant>,
    count: u32,
}

impl Probes {
    /// When the next one is due.
    fn next(&self, now: Instant) -> Instant {
        self.last.map_or(now, |last| last + PROBE_INTERVAL)
    }
}

/// Bytes that a subflow has carried.
#[derive(Default)]
pub(super) struct Traffic {
    /// Bytes of content, each counted once: acknowledged at the source, arrived at the sink.
    pub delivered: u64,
    /// Bytes of packets, from the SCION/UDP payload on.
    pub sent: u64,
    pub received: u64,
}

impl Subflow {
    pub(super) fn new(added: NewSubflow, sender: LaneSender) -> Self {
        let NewSubflow {
            keys,
            remote,
            lane,
            datagram,
            rtt,
            start,
        } = added;
        Self {
            opener: Opener::new(keys.cipher, &keys.there),
            sealer: Sealer::new(keys.cipher, &keys.here),
            remote,
            lane,
            datagram: datagram.max(SMALL),
            rtt,
            start,
            is_up: false,
            is_stalled: false,
            drains_until: None,
            turn: 0,
            output: Output {
                sender,
                packets: Vec::new(),
                size: 0,
                sent: 0,
            },
            probes: Probes::default(),
            traffic: Traffic::default(),
        }
    }

    /// The id in packets that arrive.
    pub(super) fn id(&self) -> SubflowId {
        self.opener.subflow_id()
    }

    /// Is [drained](Subflows::report_drained) after a while, at the latest.
    pub(super) fn drain(&mut self, now: Instant) {
        self.drains_until = Some(now + DRAIN_TIMEOUT);
    }

    /// Packets received and dropped so far.
    pub(super) fn rejected(&self) -> u64 {
        self.opener.rejections().total()
    }

    /// Whether packets wait for room in the socket.
    pub(super) fn is_blocked(&self) -> bool {
        self.output.sent < self.output.packets.len()
    }

    /// Seals packets of `size` bytes each (the last may be shorter) and sends them. Must not be called
    /// while the subflow [is blocked](Self::is_blocked).
    pub(super) fn send(
        &mut self,
        size: usize,
        seal: impl FnOnce(&mut Sealer, &mut Vec<u8>),
    ) -> io::Result<()> {
        let output = &mut self.output;
        output.packets.clear();
        seal(&mut self.sealer, &mut output.packets);
        (output.size, output.sent) = (size, 0);
        self.traffic.sent += output.packets.len() as u64;
        self.flush()
    }

    /// Sends what waits, as far as there is room.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Output {
            sender,
            packets,
            size,
            sent,
        } = &mut self.output;
        let Some(lane) = &self.lane else {
            *sent = packets.len();
            return Ok(());
        };
        while *sent < packets.len() {
            match sender.try_send(lane.flow(), &packets[*sent..], *size, 0) {
                Ok(bytes) => *sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The subflows of one session, and whom to report to.
pub(super) struct Subflows {
    all: BTreeMap<SubflowKey, Subflow>,
    events: UnboundedSender<DataEvent>,
}

impl Subflows {
    pub(super) fn new(events: UnboundedSender<DataEvent>) -> Self {
        Self {
            all: BTreeMap::new(),
            events,
        }
    }

    pub(super) fn insert(&mut self, key: SubflowKey, subflow: Subflow) {
        if let Some(lane) = &subflow.lane {
            let events = self.events.clone();
            lane.attach(Arc::new(Watched { key, events }));
        }
        self.all.insert(key, subflow);
    }

    pub(super) fn remove(&mut self, key: SubflowKey) -> Option<Subflow> {
        self.all.remove(&key)
    }

    pub(super) fn get(&self, key: SubflowKey) -> Option<&Subflow> {
        self.all.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: SubflowKey) -> Option<&mut Subflow> {
        self.all.get_mut(&key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SubflowKey, &Subflow)> {
        self.all.iter().map(|(key, one)| (*key, one))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (SubflowKey, &mut Subflow)> {
        self.all.iter_mut().map(|(key, one)| (*key, one))
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = SubflowId> {
        self.all.values().map(Subflow::id)
    }

    pub(super) fn are_blocked(&self) -> bool {
        self.all.values().any(Subflow::is_blocked)
    }

    /// Reports to the session, unless it has ended.
    pub(super) fn report(&self, event: DataEvent) {
        let _ = self.events.send(event);
    }

    /// Reports to the session what `inspect` finds at each subflow.
    pub(super) fn report_each(
        &mut self,
        mut inspect: impl FnMut(SubflowKey, &mut Subflow, &mut dyn FnMut(DataEvent)),
    ) {
        let events = &self.events;
        for (key, one) in &mut self.all {
            inspect(*key, one, &mut |event| {
                let _ = events.send(event);
            });
        }
    }

    /// Reports the subflows that are drained: nothing `is_awaited` over them any more, or they had their
    /// time. Returns when to look again.
    pub(super) fn report_drained(
        &mut self,
        now: Instant,
        is_awaited: impl Fn(SubflowKey) -> bool,
    ) -> Option<Instant> {
        let mut due = None;
        for (key, one) in &mut self.all {
            let Some(until) = one.drains_until else {
                continue;
            };
            if now < until && (one.is_blocked() || is_awaited(*key)) {
                due = [due, Some(until)].into_iter().flatten().min();
                continue;
            }
            one.drains_until = None;
            let _ = self.events.send(DataEvent::Drained(*key));
        }
        due
    }

    /// Sends a sink's probes over paths that it dialed and that nothing has arrived over: the source
    /// learns from them over which path to send. Returns when the next one is due.
    pub(super) fn probe(&mut self, now: Instant) -> Option<Instant> {
        let mut due: Option<Instant> = None;
        for (key, one) in &mut self.all {
            if one.is_up || one.lane.is_none() {
                continue;
            }
            let next = one.probes.next(now);
            if next <= now && !one.is_blocked() {
                one.probes.last = Some(now);
                one.probes.count += 1;
                if one.probes.count > MAX_LARGE_PROBES {
                    // The path may take less than its ASes announce.
                    one.datagram = one.datagram.min(SMALL);
                }
                let size = one.datagram;
                let sent = one.send(size, |sealer, out| {
                    sealer.seal_probe(out, size);
                });
                if let Err(error) = sent {
                    let _ = self.events.send(DataEvent::Failed(*key, error.to_string()));
                }
            }
            let next = one.probes.next(now);
            due = Some(due.map_or(next, |due| due.min(next)));
        }
        due
    }
}

/// The user of a lane. The QUIC connection over the same path decides whether it works.
struct Watched {
    key: SubflowKey,
    events: UnboundedSender<DataEvent>,
}

impl LaneUser for Watched {
    fn probe<'a>(&'a self, _doubt: &'a Doubt) -> Probing<'a> {
        Box::pin(async { Evidence::Unknown })
    }

    fn on_end(&self, end: &LaneEnd) {
        let _ = (self.events).send(DataEvent::Failed(self.key, end.to_string()));
    }
}

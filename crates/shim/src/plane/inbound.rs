//! From lanes to the TUN queue.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hawser_endhost::lanes::{LaneDatagram, LaneReceiver, Lanes};
use hawser_kernel::pace::{NAP, Pace, Spin};
use hawser_seal::{SubflowId, subflow_id};
use hawser_session::Sightings;
use hawser_tun::{MergedPacket, Merger};

use super::rest::Rest;
use super::shared::{Shared, read};
use crate::plane::lane::{LaneEvent, SealedLane};
use crate::protocol::segment::Header;
use crate::protocol::{DatagramKind, Role, SlotEpoch};

/// Receives before what was merged is handed over.
const MAX_RECEIVES: usize = 2;

/// Carries packets until the plane is stopped, and does the `rest` that little traffic needs, if it is this
/// thread's.
///
/// # Errors
/// When the socket fails.
pub(super) fn run(
    shared: &Shared,
    lanes: &Lanes,
    receiver: LaneReceiver,
    rest: Option<Rest>,
) -> io::Result<()> {
    // Naps are shorter than what the kernel adds to sleep unless told otherwise (50 us).
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1000));
    let inbound = Inbound {
        shared,
        lanes,
        receiver,
        rest,
        last: None,
        scratch: Vec::new(),
        merger: Merger::new(),
    };
    inbound.work()
}

struct Inbound<'a> {
    shared: &'a Shared,
    lanes: &'a Lanes,
    receiver: LaneReceiver,
    rest: Option<Rest>,
    /// The lane of the previous packet: packets of one lane mostly arrive in a row.
    last: Option<(SubflowId, Arc<SealedLane>)>,
    scratch: Vec<u8>,
    merger: Merger,
}

/// A probe that asks for an answer.
struct Question {
    lane: Arc<SealedLane>,
    bound: SlotEpoch,
}

/// What is to be done once all packets of a receive are read.
#[derive(Default)]
struct After {
    sightings: Sightings<Arc<SealedLane>>,
    questions: Vec<Question>,
}

impl Inbound<'_> {
    fn work(mut self) -> io::Result<()> {
        let mut pace = Pace::default();
        let mut waited = Duration::MAX;
        let mut spin = Spin::new(self.shared.busy_poll.clone());
        // Since when it looks again and again.
        let mut spins_since = None;
        loop {
            let packets = self.receive()?;
            if packets > 0 || spins_since.is_none() {
                pace.note(packets, waited);
            }
            let mut has_worked = packets > 0;
            if let Some(rest) = &mut self.rest {
                has_worked |= rest.work(self.shared, pace.naps())?;
            }
            let began = Instant::now();
            if has_worked {
                spin.note(began);
            }
            if packets > 0 {
                spins_since = None;
            }
            if !pace.naps() && spin.spins(began) && !self.shared.is_stopped() {
                // A removed lane must not be kept.
                self.last = None;
                thread::yield_now();
                waited = spins_since.get_or_insert(began).elapsed();
                continue;
            }
            spins_since = None;
            if pace.naps() {
                thread::sleep(NAP);
            } else {
                let socket = self.lanes.socket();
                // The rest has the latter, too.
                let rest = self.rest.as_ref().map(Rest::as_fd);
                let also = rest.unwrap_or(self.shared.stop.as_fd());
                socket.wait(also, false, None)?;
                // A removed lane must not be kept.
                self.last = None;
                if self.shared.is_stopped() {
                    return Ok(());
                }
            }
            waited = began.elapsed();
        }
    }

    /// Takes in what has arrived. Returns how many packets.
    fn receive(&mut self) -> io::Result<usize> {
        let mut packets = 0;
        for _ in 0..MAX_RECEIVES {
            match self.receiver.try_receive() {
                Ok(()) => packets += self.take(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let shared = self.shared;
        self.merger.flush(|packet| shared.hand_over(packet));
        Ok(packets)
    }

    /// Takes in the packets of one receive.
    fn take(&mut self) -> usize {
        let mut packets = 0;
        let mut after = After::default();
        let now = self.shared.began.elapsed();
        let mut last = self.last.take();
        for datagram in self.receiver.batch() {
            packets += 1;
            let Some(id) = subflow_id(datagram.payload) else {
                continue;
            };
            if last.as_ref().is_none_or(|(known, _)| *known != id) {
                let found = read(&self.shared.by_id).get(&id).map(Arc::clone);
                let Some(lane) = found else { continue };
                last = Some((id, lane));
            }
            if let Some((_, lane)) = &last {
                let (scratch, merger) = (&mut self.scratch, &mut self.merger);
                let carried = open(lane, &datagram, now, scratch, &mut after);
                let addresses = |bound: SlotEpoch| lane.table.addresses(bound.slot);
                let complete = |packet: MergedPacket<'_>| self.shared.hand_over(packet);
                let pushed = match carried {
                    Some(Carried::Segment(bound, segment)) => {
                        let (from, to) = addresses(bound);
                        merger.push(from, to, bound.ecn, segment, complete)
                    }
                    Some(Carried::Compact(bound, header, data)) => {
                        let (from, to) = addresses(bound);
                        merger.push_parts(from, to, bound.ecn, header.bytes(), data, complete)
                    }
                    Some(Carried::Packet(packet)) => {
                        self.shared.packets.receive(&lane.table, packet);
                        Ok(())
                    }
                    None => Ok(()),
                };
                if let Err(error) = pushed {
                    tracing::debug!(%error, "a segment was dropped");
                }
            }
        }
        self.last = last;
        self.follow_up(after);
        packets
    }

    fn follow_up(&self, after: After) {
        for first in after.sightings.apply(self.lanes) {
            let lane = &first.subflow;
            if lane.is_up() {
                continue;
            }
            if lane.lane().is_none() {
                let Some(path) = first.accept(self.lanes, lane.remote) else {
                    // Its peer sends another probe.
                    continue;
                };
                lane.set_path(path);
            }
            lane.set_up();
        }
        for Question { lane, bound } in after.questions {
            lane.probe(bound, 0, false);
        }
    }
}

/// What a datagram carries.
enum Carried<'a> {
    /// A TCP segment of a slot.
    Segment(SlotEpoch, &'a [u8]),
    /// One with a compact header: its header, and its data.
    Compact(SlotEpoch, Header, &'a [u8]),
    /// A whole packet.
    Packet(&'a [u8]),
}

/// Opens a datagram of `lane`. Returns what it carries, if that is for programs.
#[inline]
fn open<'a>(
    lane: &Arc<SealedLane>,
    datagram: &LaneDatagram<'_>,
    now: Duration,
    scratch: &'a mut Vec<u8>,
    after: &mut After,
) -> Option<Carried<'a>> {
    // What does not open is counted.
    let opened = lane.opener().open(datagram.payload, scratch).ok()?;
    lane.on_received(datagram.payload.len(), now);
    let (is_up, path) = (lane.is_up(), lane.lane());
    (after.sightings).opened(datagram, is_up, path, || Arc::clone(lane));
    let kind = DatagramKind::of(opened.kind)?;
    let (bound, rest) = SlotEpoch::decode(opened.payload)?;
    let table = &lane.table;
    if table.role == Role::Server && table.learn(bound, lane) {
        lane.report(LaneEvent::Bound);
    }
    match kind {
        DatagramKind::Segment => Some(Carried::Segment(bound, rest)),
        DatagramKind::Compact => {
            let (header, data) = Header::decode(rest, table.role.other())?;
            Some(Carried::Compact(bound, header, data))
        }
        DatagramKind::Packet => Some(Carried::Packet(rest)),
        DatagramKind::Probe => {
            if table.role == Role::Server {
                // The side that dialed shows how large a datagram the path takes.
                lane.set_datagram(lane.datagram().max(datagram.payload.len()));
            }
            if opened.ask {
                let lane = Arc::clone(lane);
                after.questions.push(Question { lane, bound });
            }
            None
        }
    }
}

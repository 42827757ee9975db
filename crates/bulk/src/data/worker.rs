//! The thread's loop: commands, packets in, packets out, timers.

mod obey;

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use std::{io, thread};

use hawser_endhost::lanes::{Candidate, FlowId, LaneReceiver, Lanes};
use hawser_kernel::pace::{NAP, Pace};
use hawser_seal::{SubflowId, subflow_id};

use super::coupled::Coupled;
use super::incoming::{Incoming, Packet};
use super::outgoing::Outgoing;
use super::subflow::Subflows;
use super::{Command, DataEvent, SessionKey, SubflowKey, Waker};
use crate::protocol::Payload;

/// Receives before anything is sent. More would only fill the caches.
const ROUNDS: usize = 4;
/// Interval of measurements.
const MEASURED: Duration = Duration::from_millis(100);

/// The thread that works the data socket.
pub(super) struct Worker {
    lanes: Lanes,
    receiver: LaneReceiver,
    commands: Receiver<Command>,
    waker: Arc<Waker>,
    sessions: HashMap<SessionKey, Session>,
    /// The session of each subflow, by the id in packets that arrive.
    ids: HashMap<SubflowId, (SessionKey, SubflowKey)>,
    coupled: Coupled,
    scratch: Vec<u8>,
    measured: Instant,
}

/// The flow of a packet that opened, the first one of its subflow.
struct NewFlow {
    session: SessionKey,
    subflow: SubflowKey,
    flow: FlowId,
    candidate: Option<Arc<Candidate>>,
}

/// A session, as the thread sees it.
struct Session {
    subflows: Subflows,
    part: Part,
}

impl Session {
    /// Reports measurements of the subflows.
    fn measure(&self) {
        let all = match &self.part {
            Part::Source(outgoing) => outgoing.measure(&self.subflows),
            Part::Sink(incoming) => incoming.measure(&self.subflows),
        };
        self.subflows
            .report(DataEvent::Measured(all, Instant::now()));
    }
}

enum Part {
    Source(Outgoing),
    Sink(Incoming),
}

impl Worker {
    pub(super) fn new(
        lanes: Lanes,
        receiver: LaneReceiver,
        commands: Receiver<Command>,
        waker: Arc<Waker>,
    ) -> Self {
        Self {
            lanes,
            receiver,
            commands,
            waker,
            sessions: HashMap::new(),
            ids: HashMap::new(),
            coupled: Coupled::new(),
            scratch: Vec::new(),
            measured: Instant::now(),
        }
    }

    /// Works until the command to stop.
    pub(super) fn run(mut self) {
        // Naps are shorter than what the kernel adds to sleep unless told otherwise (50 us).
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1000));
        if let Err(error) = self.work() {
            tracing::error!(%error, "cannot receive");
            self.end_all(&error.to_string());
        }
    }

    fn work(&mut self) -> io::Result<()> {
        let mut pace = Pace::default();
        let mut waited = Duration::MAX;
        loop {
            if !self.obey() {
                return Ok(());
            }
            let packets = self.receive()?;
            let deadline = self.send();
            pace.note(packets, waited);
            let began = Instant::now();
            self.rest(pace.naps(), deadline, began)?;
            waited = began.elapsed();
        }
    }

    /// Naps while packets flow; waits where none do.
    fn rest(&self, naps: bool, deadline: Option<Instant>, now: Instant) -> io::Result<()> {
        let until = |deadline: Instant| deadline.saturating_duration_since(now);
        let timeout = deadline.map(until);
        if timeout == Some(Duration::ZERO) {
            return Ok(());
        }
        if naps {
            thread::sleep(timeout.map_or(NAP, |timeout| timeout.min(NAP)));
            return Ok(());
        }
        self.waker.waiting.store(true, Ordering::SeqCst);
        let blocked = self.sessions.values().any(|one| one.subflows.are_blocked());
        let socket = self.lanes.socket();
        // A command given before `waiting` was set has written nothing to the waker.
        let waited = match self.waker.pending.load(Ordering::SeqCst) {
            true => Ok(()),
            false => socket.wait(self.waker.fd.as_fd(), blocked, timeout),
        };
        self.waker.waiting.store(false, Ordering::SeqCst);
        let mut count = [0; 8];
        // Nothing to read when something else ended the wait.
        let _ = rustix::io::read(&self.waker.fd, &mut count);
        waited
    }

    /// Carries out commands; `false` when the thread is to end.
    fn obey(&mut self) -> bool {
        self.waker.pending.store(false, Ordering::SeqCst);
        loop {
            match self.commands.try_recv() {
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return false,
                Ok(command) => self.carry_out(command),
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    /// Takes in what has arrived. Returns how many packets.
    fn receive(&mut self) -> io::Result<usize> {
        let mut packets = 0;
        for _ in 0..ROUNDS {
            match self.receiver.try_receive() {
                Ok(()) => packets += self.take(Instant::now()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(packets)
    }

    /// Takes in the packets of one receive.
    fn take(&mut self, now: Instant) -> usize {
        let mut packets = 0;
        // Lanes cannot be accepted, or take other paths, while the packets are read.
        let mut new_flows: Vec<NewFlow> = Vec::new();
        let mut candidates: Vec<Arc<Candidate>> = Vec::new();
        for datagram in self.receiver.batch() {
            packets += 1;
            let place = subflow_id(datagram.payload).and_then(|id| self.ids.get(&id));
            let Some(&(session, key)) = place else {
                continue;
            };
            let Some(one) = self.sessions.get_mut(&session) else {
                continue;
            };
            let Session { subflows, part } = one;
            let Some(subflow) = subflows.get_mut(key) else {
                continue;
            };
            let opened = subflow.opener.open(datagram.payload, &mut self.scratch);
            // What does not open is counted.
            let Ok(opened) = opened else {
                continue;
            };
            subflow.received += datagram.payload.len() as u64;
            if !subflow.is_up {
                new_flows.push(NewFlow {
                    session,
                    subflow: key,
                    flow: datagram.flow,
                    candidate: datagram.candidate,
                });
            } else if let Some(candidate) = datagram.candidate
                && subflow.is_over(candidate.flow())
            {
                candidates.push(candidate);
            }
            let marked = datagram.ecn == 0b11;
            let (number, ask) = (opened.number, opened.ask);
            if let Payload::Probe { size } = &opened.payload {
                // A peer that dialed shows how large a packet the path takes.
                subflow.datagram = subflow.datagram.max(*size);
            }
            match (part, opened.payload) {
                (Part::Source(outgoing), Payload::Ack(ack)) => {
                    if let Err(error) = outgoing.on_ack(key, &ack, now) {
                        subflows.report(DataEvent::Broken(error.to_string()));
                    }
                }
                (Part::Sink(incoming), Payload::Data { position, content }) => {
                    let packet = Packet {
                        number,
                        ask,
                        marked,
                    };
                    let taken = incoming.on_data(key, packet, (position, content), now);
                    if let Err(error) = taken {
                        subflows.report(DataEvent::Broken(error.to_string()));
                    }
                }
                (Part::Sink(incoming), Payload::Probe { .. }) => {
                    incoming.on_probe(key, number, marked, now);
                }
                // Content does not flow that way; a probe to the source shows only that the path works.
                _ => {}
            }
        }
        for candidate in candidates {
            self.lanes.adopt(&candidate);
        }
        for new in new_flows {
            let (session, key) = (new.session, new.subflow);
            let Some(one) = self.sessions.get_mut(&session) else {
                continue;
            };
            let Some(subflow) = one.subflows.get_mut(key) else {
                continue;
            };
            if subflow.is_up {
                continue;
            }
            if subflow.lane.is_none() {
                let lane = self.lanes.accept(new.flow, new.candidate.as_deref());
                // Addresses are not authenticated: somebody may have sent a copy from another one.
                subflow.lane = lane.filter(|lane| lane.remote() == subflow.remote);
            }
            if subflow.lane.is_none() {
                // Its peer sends another probe.
                continue;
            }
            subflow.is_up = true;
            match &mut one.part {
                Part::Source(outgoing) => {
                    outgoing.add(key, subflow, now);
                    let local = self.lanes.socket().local_addr().isd_as;
                    self.coupled
                        .add((session, key), subflow.lane.as_ref(), local);
                }
                Part::Sink(incoming) => incoming.add(key, now),
            }
            one.subflows.report(DataEvent::Up(key));
        }
        packets
    }

    /// Sends what may be sent now. Returns when to look again.
    fn send(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let mut deadline: Option<Instant> = None;
        let mut earlier = |at: Option<Instant>| {
            deadline = [deadline, at].into_iter().flatten().min();
        };
        for one in self.sessions.values_mut() {
            let Session { subflows, part } = one;
            earlier(subflows.probe(now));
            earlier(match part {
                Part::Source(outgoing) => outgoing.send(subflows, now),
                Part::Sink(incoming) => incoming.send(subflows, now),
            });
        }
        let sources = (self.sessions.iter_mut()).filter_map(|(key, one)| match &mut one.part {
            Part::Source(outgoing) => Some((*key, outgoing)),
            Part::Sink(_) => None,
        });
        self.coupled.observe(now, sources);
        if now.saturating_duration_since(self.measured) >= MEASURED {
            self.measured = now;
            self.sessions.values().for_each(Session::measure);
        }
        let measured = self.measured + MEASURED;
        let idle = self.sessions.is_empty();
        [deadline, (!idle).then_some(measured)]
            .into_iter()
            .flatten()
            .min()
    }

    fn end_all(&mut self, reason: &str) {
        for (_, one) in self.sessions.drain() {
            one.subflows.report(DataEvent::Ended(reason.to_owned()));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if thread::panicking() {
            self.end_all("the thread panicked");
        }
    }
}

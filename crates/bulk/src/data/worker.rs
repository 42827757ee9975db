//! The thread's loop: commands, packets in, packets out, timers.

mod arrivals;
mod obey;

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use std::{io, thread};

use hawser_endhost::lanes::{LaneReceiver, Lanes};
use hawser_kernel::pace::{NAP, Pace};
use hawser_seal::SubflowId;
use tokio::sync::mpsc::UnboundedSender;

use super::coupled::Coupled;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::subflow::Subflows;
use super::{Command, DataEvent, Measurements, SessionKey, SubflowKey, Waker};

/// Receives before anything is sent. More would only fill the caches.
const MAX_RECEIVES: usize = 4;
/// Interval of measurements.
const MEASURE_INTERVAL: Duration = Duration::from_millis(100);

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

/// A session, as the thread sees it.
struct Session {
    subflows: Subflows,
    part: Part,
    /// The peer has broken the protocol: nothing of it is taken any more.
    is_broken: bool,
}

impl Session {
    fn new(events: UnboundedSender<DataEvent>, part: Part) -> Self {
        Self {
            subflows: Subflows::new(events),
            part,
            is_broken: false,
        }
    }

    /// Measurements of the subflows.
    fn measurements(&self) -> Measurements {
        let all = match &self.part {
            Part::Source(outgoing) => outgoing.measure(&self.subflows),
            Part::Sink(incoming) => incoming.measure(&self.subflows),
        };
        (all, Instant::now())
    }

    /// Reports measurements of the subflows.
    fn measure(&self) {
        let (all, at) = self.measurements();
        self.subflows.report(DataEvent::Measured(all, at));
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

    /// Runs until it is told to end, and returns `true`. Returns `false` if it ends before that.
    pub(super) fn run(mut self) -> bool {
        // Naps are shorter than what the kernel adds to sleep unless told otherwise (50 us).
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1000));
        let ended = self.work();
        if let Err(error) = &ended {
            tracing::error!(%error, "cannot receive");
            self.end_all(&error.to_string());
        }
        ended.is_ok()
    }

    fn work(&mut self) -> io::Result<()> {
        let mut pace = Pace::default();
        let mut waited = Duration::MAX;
        loop {
            if !self.obey() {
                return Ok(());
            }
            let Some(packets) = self.receive()? else {
                return Ok(());
            };
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

    /// Takes in what has arrived. Returns how many packets; `None` when the thread is to end.
    fn receive(&mut self) -> io::Result<Option<usize>> {
        let mut packets = 0;
        for _ in 0..MAX_RECEIVES {
            match self.receiver.try_receive() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            // A subflow is added before its peer is informed: the command to add it may have come
            // since the last look, with packets of it here already.
            if self.waker.pending.load(Ordering::SeqCst) && !self.obey() {
                return Ok(None);
            }
            packets += self.take(Instant::now());
        }
        Ok(Some(packets))
    }

    /// Sends what may be sent now. Returns when to look again.
    fn send(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let mut deadline: Option<Instant> = None;
        let mut earlier = |at: Option<Instant>| {
            deadline = [deadline, at].into_iter().flatten().min();
        };
        for one in self.sessions.values_mut() {
            let Session { subflows, part, .. } = one;
            match part {
                Part::Source(outgoing) => {
                    earlier(outgoing.send(subflows, now));
                    earlier(subflows.report_drained(now, |key| outgoing.has_in_flight(key)));
                }
                Part::Sink(incoming) => {
                    earlier(subflows.probe(now));
                    earlier(incoming.send(subflows, now));
                    // Its source drains as well, and the sink does not learn when it has.
                    earlier(subflows.report_drained(now, |_| true));
                }
            }
        }
        let sources = (self.sessions.iter_mut()).filter_map(|(key, one)| match &mut one.part {
            Part::Source(outgoing) => Some((*key, (outgoing, &one.subflows))),
            Part::Sink(_) => None,
        });
        self.coupled.observe(now, sources);
        if now.saturating_duration_since(self.measured) >= MEASURE_INTERVAL {
            self.measured = now;
            self.sessions.values().for_each(Session::measure);
        }
        let measured = self.measured + MEASURE_INTERVAL;
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

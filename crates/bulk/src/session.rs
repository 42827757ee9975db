//! One session: its subflows, its messages, and its part, source or sink.
//!
//! A source *lists* what it sends, if that is to be found out first, and names all files. A sink
//! takes the names, then *prepares*: a blocking task opens the files and hashes what is there. It
//! names these ranges and is `Ready`. Content *flows*: the source reads, hashes and sends ranges,
//! the sink verifies, writes and confirms them. Once none is missing, the sink *completes* the
//! files in another blocking task and sends its root. The source, once it has hashed everything
//! too, answers with its own; each compares them.
//!
//! A session ends early with an error of its part, its peer or the data thread, after
//! [`SESSION_TIMEOUT`] without a connection, or by its [`Notice`], which it looks at every
//! [`TICK`]. At the end of [`Session::run`] it sends the reason, takes the last measurements, has
//! the data thread forget it and closes its control streams, in little more than two seconds. Of one
//! that is dropped earlier the data thread forgets everything, too, and the peer sees its connections
//! end.
//!
//! One task drives it. It takes one event at a time, of its part's threads, the control streams,
//! the data thread, new connections or the tick, then follows the orders of the path manager.
//! Content in memory is bounded by its share ([`memory`](crate::memory)), messages under way by
//! what may be sent and not seen. It has no lock of its own; those it shares with threads are held
//! for one operation, and never across an await.

mod at_data;
mod joining;
mod listing;
mod messages;
mod orders;
mod part;
mod presence;
mod ranges;
mod sink;
mod skips;
mod source;
mod subflows;
mod values;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::ScionAddr;
use hawser_endhost::patience::wait;
use hawser_manager::{Failure, SubflowId};
use hawser_session::{MessageSender, message_queue};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

use self::at_data::AtData;
use self::joining::Joining;
pub(crate) use self::listing::List;
use self::listing::Needs;
use self::messages::Messages;
use self::part::{Part, PartEvent};
use self::presence::Presence;
pub use self::sink::Destination;
use self::sink::SinkPart;
pub(crate) use self::sink::landing_options;
pub(crate) use self::source::manifest;
use self::subflows::{OpenSubflow, Subflows};
use crate::content::tree::ChainingValue;
use crate::content::{LandingOptions, Source};
use crate::control::{ControlError, Received};
use crate::data::{Command, DataEvent, Measured, NewSubflow, SessionKey, SubflowKey};
use crate::dialer::{Dialed, Dialer};
use crate::error::TransferError;
use crate::gate::Gate;
use crate::joined::Joined;
use crate::limit::Limit;
use crate::memory::{Holder, Membership};
use crate::node::Node;
use crate::notice::Notice;
use crate::protocol::{ErrorCode, Message, SessionMessage};
use crate::report::{FailedFile, PathProgress, Progress, Summary, TransferEvent};

/// Most subflows of a session at once.
const MAX_SUBFLOWS: usize = 64;
/// How long a session is kept without a connection.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval at which a session looks whether it must end, and adapts its memory.
const TICK: Duration = Duration::from_millis(50);
/// Longest wait for the last measurements.
const MEASURE_TIMEOUT: Duration = Duration::from_millis(200);
/// How long the end of a session waits for its last messages to arrive.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What an event leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Running,
    /// Everything is verified, with this root.
    Done(ChainingValue),
}

/// What this host does in a session.
pub(crate) enum Role {
    Source(Arc<Source>),
    /// The source of what is listed first.
    Shared(List),
    /// Where the content goes, and how it is written; the path is that of the destination.
    Sink(Destination, LandingOptions),
}

/// One session, on either side.
pub(crate) struct Session {
    key: SessionKey,
    peer: ScionAddr,
    data: AtData,
    part: Part,
    memory: Membership,
    subflows: Subflows,
    messages: Messages,
    joining: Joining,
    data_events: UnboundedReceiver<DataEvent>,
    events: UnboundedSender<TransferEvent>,
    began: Instant,
    presence: Presence,
    /// What ends it from outside.
    notice: Arc<Notice>,
}

/// Where the connections of a session come from.
pub(crate) enum Connections {
    /// This side dials; the first one is there.
    Dialed(Box<(Dialer, Dialed)>),
    /// The other side does. One for each connection that its server admits.
    Accepted(UnboundedReceiver<Joined>),
}

/// What a session begins with.
pub(crate) struct Begin {
    pub node: Node,
    pub key: SessionKey,
    pub peer: ScionAddr,
    pub role: Role,
    /// Bytes of content that the sink takes before the first acknowledgement.
    pub credit: u64,
    /// Limits the rate at which content is sent, or received.
    pub limit: Option<Limit>,
    /// Its share of the host's memory.
    pub memory: Membership,
    pub connections: Connections,
    /// What ends the session from outside.
    pub notice: Arc<Notice>,
    pub events: UnboundedSender<TransferEvent>,
}

/// What a session did, whether it has failed or not.
pub(crate) struct Ended {
    /// The hash of the content.
    pub result: Result<ChainingValue, TransferError>,
    pub progress: Progress,
    pub elapsed: Duration,
    pub paths: Vec<PathProgress>,
    /// The files that failed, and how many stayed as they were at the sink.
    pub failed: (Vec<FailedFile>, u64),
    /// Files that have not all attributes at the sink that were sent.
    pub stripped: u64,
}

impl Ended {
    /// The summary of a session that did not fail.
    pub(crate) fn summary(self) -> Result<Summary, TransferError> {
        Ok(Summary {
            root: self.result?,
            progress: self.progress,
            elapsed: self.elapsed,
            paths: self.paths,
            failed: self.failed.0,
            kept: self.failed.1,
            stripped: self.stripped,
        })
    }
}

impl Session {
    pub(crate) fn new(begin: Begin) -> Self {
        let (key, memory) = (begin.key, begin.memory);
        let data = begin.node.data().commands();
        // Of the data thread: a few for each subflow, of which there is a limit, and ten a second.
        let (sender, data_events) = unbounded_channel();
        let mut messages = Messages::new();
        let source = |events| {
            let gate = Arc::new(Gate::new(0));
            memory.hold(key, Holder::Source(Arc::clone(&gate)));
            data.give(Command::Send {
                session: key,
                credit: begin.credit,
                gate: Arc::clone(&gate),
                limit: begin.limit.clone(),
                events,
            });
            Needs {
                session: key,
                data: data.clone(),
                gate,
                events: begin.events.clone(),
            }
        };
        let part = match begin.role {
            Role::Sink(destination, options) => {
                let promised = Arc::default();
                let credit = (begin.credit, Arc::clone(&promised));
                let goal = (destination, options);
                let listed = memory.listed(begin.peer);
                let (part, prepared) =
                    SinkPart::new(key, data.clone(), goal, credit, listed, sender);
                memory.hold(key, Holder::Sink(data.clone(), promised));
                Part::sink(part, prepared, begin.limit.clone())
            }
            Role::Source(content) => {
                messages.push(manifest(&content));
                let mut part = source(sender).content(content);
                let mut skipped = Vec::new();
                part.announce(&mut skipped);
                messages.push(skipped);
                Part::source(part)
            }
            Role::Shared(list) => Part::listing(list, source(sender)),
        };
        let (joining, first) = match begin.connections {
            Connections::Dialed(dialed) => {
                let (dialer, first) = *dialed;
                (Joining::Dialing(Box::new(dialer)), Some(first))
            }
            Connections::Accepted(accepted) => (Joining::Accepting(accepted), None),
        };
        let now = Instant::now();
        let mut session = Self {
            key: begin.key,
            peer: begin.peer,
            data: AtData::new(data, key),
            part,
            memory,
            subflows: Subflows::default(),
            messages,
            joining,
            data_events,
            events: begin.events,
            began: now,
            presence: Presence::new(now),
            notice: begin.notice,
        };
        if let Some(first) = first {
            session.join(first.joined, Some(first.subflow));
        }
        session
    }

    /// Runs the session to its end.
    pub(crate) async fn run(mut self) -> Ended {
        let result = self.work().await;
        if let Err(error) = &result
            && let Some((code, text)) = error.for_peer()
        {
            self.push_all(vec![SessionMessage::fail(code, &text)]);
        }
        self.measure().await;
        drop(self.data);
        if let Err(TransferError::Peer { code, .. }) = &result
            && *code == ErrorCode::NO_SESSION
        {
            // The connections are those to a process that is gone, whether that showed or not.
            self.subflows.all_failed();
        }
        let progress = self.part.progress();
        let paths = self.subflows.paths();
        let failed = self.part.take_failed();
        let stripped = self.part.stripped();
        let controls = self.subflows.into_controls();
        let last = controls.map(MessageSender::finish);
        let _ = wait(CLOSE_TIMEOUT, join_all(last)).await;
        Ended {
            result,
            progress,
            elapsed: self.began.elapsed(),
            paths,
            failed,
            stripped,
        }
    }

    /// Takes the last measurements of all subflows, and reports the last progress.
    async fn measure(&mut self) {
        // An answer of its own: among the events others may follow it, or come before it.
        let (answer, measured) = oneshot::channel();
        self.data.give(Command::Measure(self.key, answer));
        let measured = tokio::time::timeout(MEASURE_TIMEOUT, measured).await;
        if let Ok(Ok((all, at))) = measured {
            self.on_measured(all, at);
        }
    }

    /// Takes measurements that were made at `at`, and reports the progress.
    fn on_measured(&mut self, all: Vec<(SubflowKey, Measured)>, at: Instant) {
        self.subflows.measured(all);
        let event = TransferEvent::Progress(self.part.progress(), self.subflows.paths(), at);
        // The caller may have dropped its end: then nothing is reported.
        let _ = self.events.send(event);
    }

    async fn work(&mut self) -> Result<ChainingValue, TransferError> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let mut outcome = Outcome::Running;
            tokio::select! {
                event = self.part.next() => outcome = self.on_part(event)?,
                Some(received) = self.messages.next() => outcome = self.on_received(received)?,
                event = self.data_events.recv() => self.on_data(event.unwrap_or_else(ended))?,
                joined = self.joining.next() => {
                    if let Some((joined, ordered)) = joined {
                        self.join(joined, ordered);
                    }
                }
                _ = tick.tick() => self.tick()?,
            }
            if let Outcome::Done(root) = outcome {
                return Ok(root);
            }
            self.follow_orders()?;
        }
    }

    /// Queues messages of the session, and sends what may be sent.
    fn push_all(&mut self, messages: Vec<SessionMessage>) {
        self.messages.push(messages);
        self.messages.flush(&self.subflows);
    }

    fn on_part(&mut self, event: PartEvent) -> Result<Outcome, TransferError> {
        let mut out = Vec::new();
        let outcome = self.part.on_event(event, &mut out)?;
        self.push_all(out);
        Ok(outcome)
    }

    fn on_received(&mut self, received: Received) -> Result<Outcome, TransferError> {
        let Received { subflow, message } = received;
        let message = match message {
            Ok(message) => message,
            // The side that dials has closed the subflow, and takes what is in flight.
            Err(ControlError::Ended) if !self.joining.is_dialing() && !self.part.is_sink() => {
                self.drain(subflow);
                return Ok(Outcome::Running);
            }
            Err(error) => {
                self.leave(subflow, error.to_string());
                return Ok(Outcome::Running);
            }
        };
        match message {
            Message::AckInterval(micros) => {
                let interval = Duration::from_micros(micros);
                self.data
                    .give(Command::AckInterval(self.key, subflow, interval));
            }
            Message::Seen(number) => {
                self.messages.on_seen(number)?;
                self.messages.flush(&self.subflows);
            }
            Message::Ordered { number, message } => {
                self.messages.take(number, message)?;
                let mut outcome = Outcome::Running;
                while let Some(message) = self.messages.pop() {
                    let mut out = Vec::new();
                    let done = self.part.on_message(message, &mut out);
                    self.messages.push(out);
                    outcome = done?;
                    if outcome != Outcome::Running {
                        break;
                    }
                }
                self.messages.flush(&self.subflows);
                return Ok(outcome);
            }
            Message::Refuse { code, text } => return Err(TransferError::Peer { code, text }),
            _ => return Err(TransferError::Protocol("a message came at the wrong time")),
        }
        Ok(Outcome::Running)
    }

    fn on_data(&mut self, event: DataEvent) -> Result<(), TransferError> {
        let now = Instant::now();
        match event {
            DataEvent::Up(subflow) => {
                let Some(one) = self.subflows.get_mut(subflow) else {
                    return Ok(());
                };
                one.up = true;
                let rtt = Some(one.connection.stats().rtt);
                self.inform(subflow, |paths, id| paths.connected(id, rtt, now));
            }
            DataEvent::Stalled(subflow) => {
                if let Some(one) = self.subflows.get_mut(subflow) {
                    one.stalled = true;
                }
                self.inform(subflow, |paths, id| paths.stalled(id, now));
            }
            DataEvent::Recovered(subflow) => {
                if let Some(one) = self.subflows.get_mut(subflow) {
                    one.stalled = false;
                }
                self.inform(subflow, |paths, id| paths.recovered(id));
            }
            DataEvent::Drained(subflow) => self.remove(subflow),
            DataEvent::Failed(subflow, error) => self.leave(subflow, error),
            DataEvent::AckInterval(subflow, interval) => {
                let micros = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
                if let Some(one) = self.subflows.get(subflow) {
                    one.control.send(&Message::AckInterval(micros));
                }
            }
            DataEvent::Measured(all, at) => self.on_measured(all, at),
            DataEvent::Unwanted(range, left_out) => self.part.on_unwanted(range, left_out),
            DataEvent::Unreadable(error) => return Err(error.into()),
            DataEvent::Broken(how) => return Err(TransferError::Datagrams(how)),
            DataEvent::Ended(reason) => return Err(TransferError::Data(reason)),
        }
        Ok(())
    }

    /// Takes a connection into the session, which the path manager has `ordered` if this side dialed it.
    fn join(&mut self, joined: Joined, ordered: Option<SubflowId>) {
        let subflow = joined.subflow;
        let connection = joined.control.connection().clone();
        let added = NewSubflow {
            keys: joined.keys,
            remote: joined.remote,
            lane: joined.lane,
            datagram: joined.datagram,
            rtt: joined.rtt,
            start: joined.start,
        };
        // Before the answer: packets follow it.
        self.data
            .give(Command::Add(self.key, subflow, Box::new(added)));
        let (control, queue) = message_queue();
        let (stream, inbox) = (joined.control, self.messages.sender());
        // It ends with the connection, or once the queue is closed.
        tokio::spawn(async move {
            let received = |message| Received { subflow, message };
            let wrap = |message| received(Ok(message));
            if let Err(error) = stream.run(queue, inbox.clone(), wrap).await {
                // The session may have ended.
                let _ = inbox.send(received(Err(error))).await;
            }
        });
        if self.subflows.len() >= MAX_SUBFLOWS {
            let text = format!("the session has {MAX_SUBFLOWS} subflows already");
            control.send(&Message::refuse(ErrorCode::TOO_MANY, &text));
            if let (Some(paths), Some(id)) = (self.joining.paths(), ordered) {
                paths.lost(id, Failure::Closed, text, Instant::now());
            }
            return self.data.give(Command::Remove(self.key, subflow));
        }
        if let Some(answer) = &joined.answer {
            control.send(answer);
        }
        self.messages.sent(subflow, joined.sent);
        self.presence.on_connected();
        let one = OpenSubflow {
            ordered,
            path: connection.path(),
            fingerprint: connection.fingerprint(),
            connection,
            control,
            measured: Measured::default(),
            up: false,
            stalled: false,
            drains: false,
        };
        self.subflows.insert(subflow, one);
        self.messages.flush(&self.subflows);
    }

    /// Ends a subflow whose path or connection failed.
    fn leave(&mut self, subflow: SubflowKey, error: String) {
        // A source that is done closes its connections, and this may be seen before its last message.
        if !self.part.is_complete() {
            self.subflows.failed(subflow);
        }
        let (reason, now) = (error.clone(), Instant::now());
        self.inform(subflow, |paths, id| {
            paths.lost(id, Failure::Closed, reason, now)
        });
        self.remove(subflow);
        self.presence.on_error(error);
    }

    /// Sends nothing new over a subflow, and ends it once what is in flight has arrived.
    fn drain(&mut self, subflow: SubflowKey) {
        let Some(one) = self.subflows.get_mut(subflow) else {
            return;
        };
        one.drains = true;
        self.data.give(Command::Drain(self.key, subflow));
        if self.part.is_sink() {
            // From this the source learns that it is to drain it.
            one.control.close();
            self.reroute(subflow);
        } else if !self.joining.is_dialing() {
            // The sink has done that.
            self.reroute(subflow);
        }
    }

    /// Sends what the control stream of a subflow has not delivered over another one.
    fn reroute(&mut self, subflow: SubflowKey) {
        self.messages.reroute(subflow);
        self.messages.flush(&self.subflows);
    }

    fn remove(&mut self, subflow: SubflowKey) {
        if !self.subflows.remove(subflow) {
            return;
        }
        self.data.give(Command::Remove(self.key, subflow));
        if self.subflows.is_empty() {
            self.presence.on_alone(Instant::now());
        }
        self.reroute(subflow);
    }

    fn tick(&mut self) -> Result<(), TransferError> {
        self.memory.adapt();
        let now = Instant::now();
        if self.presence.is_over(now) {
            let trouble = self.joining.paths().and_then(|paths| paths.trouble());
            let reason = trouble.or_else(|| self.presence.take_error());
            return Err(TransferError::Unreachable {
                peer: self.peer,
                after: SESSION_TIMEOUT,
                reason: reason.unwrap_or_else(|| "no path is connected".to_owned()),
            });
        }
        self.presence.observe(self.subflows.bytes_received(), now);
        if self.notice.is_revoked() {
            return Err(TransferError::Revoked);
        }
        if self.notice.is_replaced() && self.presence.is_silent(now) {
            return Err(TransferError::Replaced);
        }
        Ok(())
    }
}

/// The thread that sends and receives ended before it knew the session.
fn ended() -> DataEvent {
    DataEvent::Ended("the thread that does has ended".to_owned())
}

async fn join_all(all: impl Iterator<Item = impl Future<Output = ()>>) {
    for one in all.collect::<Vec<_>>() {
        one.await;
    }
}

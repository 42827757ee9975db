//! All connections that are relayed, and those that are about to be.
//!
//! The life of one. A program's connection *begins* ([`Beginning`]) when it is accepted. Once the carrier
//! has named its session it is *expected* ([`Expected`]): from then on it learns of the end of the session.
//! When the connection to the other holder is opened it is *relayed* ([`Relayed`]): reports, totals and
//! ends find its entry here. One that falls back to plain TCP is replaced by another in the same entry.
//! Dropping [`Relayed`] removes the entry, and adds its last counters to the totals of the session. Another
//! host's connection is expected and relayed as soon as its server is connected. One over IP is only
//! counted ([`Direct`]), until the program has sent all.
//!
//! The task of a connection drives it, in `outgoing` or `incoming`. Ends come from the carrier's messages,
//! from the release of the holder and from the thread of `subflows`; a watch channel takes them to the
//! task. There are as many entries as the budget of connections allows, [`FAILURES`] failures, and totals
//! for each session until it ends.
//!
//! The state has one lock, the socket of each [`Relayed`] another; neither is taken under the other. Under
//! the first, channels are written, the list of what is served is read, and system calls are made that
//! return at once: reading counters and tokens of sockets, a poll without a wait, the close of a socket.
//! Nothing is awaited under either.

mod connection;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hawser_kernel::socket;
use hawser_mptcp::{Info, InfoError, Token};
use thiserror::Error;
use tokio::sync::{mpsc, watch};

pub(super) use self::connection::{Expected, New, Relayed};
use super::report::{Carried, ConnectionEvent, carried, millis};
use crate::choice::CarrierKind;
use crate::protocol::Role;
use crate::relay::{self, Watched};
use crate::report::{
    ConnectionReport, FailureReport, HolderReport, SessionTotals, Totals, Traffic, now_ms,
};

/// Most failures that are remembered.
const FAILURES: usize = 20;

/// A session: the other host's address, and this host's side.
pub(super) type Session = (Ipv6Addr, Role);

/// All connections that are relayed. Cloning shares it.
#[derive(Clone)]
pub(super) struct Relays(Arc<Mutex<RelaysState>>);

struct RelaysState {
    began: Instant,
    next: u64,
    all: BTreeMap<u64, Entry>,
    /// Connections whose session is known, and that are not begun.
    expected: BTreeMap<u64, (Session, watch::Sender<Option<End>>)>,
    ended: u64,
    setups_failed: u64,
    failures: VecDeque<FailureReport>,
    totals: BTreeMap<Session, Totals>,
    /// Why no connection gets further subflows at present, if so.
    problem: Option<String>,
    /// Programs' connections of which it is not known yet where they go, or that are not begun.
    beginning: usize,
    /// Programs' connections over IP that have not sent all yet.
    direct: usize,
    /// Tasks that have a connection of a program or server.
    busy: watch::Sender<usize>,
    /// Two events for each connection, read by a task that prints.
    observer: Option<mpsc::UnboundedSender<ConnectionEvent>>,
}

struct Entry {
    session: Session,
    source: SocketAddr,
    destination: SocketAddr,
    peer: Arc<Watched>,
    began: Instant,
    end: watch::Sender<Option<End>>,
    seen: Seen,
    /// The token of `peer`, once it was looked up.
    token: Option<Token>,
    /// Whether this side has ended its direction, or is about to.
    finished: Arc<AtomicBool>,
    /// Whether all that the program here has sent was written to `peer`.
    written: Arc<AtomicBool>,
}

/// What of a connection is in the totals of its session.
#[derive(Default)]
struct Seen {
    sent: u64,
    received: u64,
    reinjected: u64,
    /// By the number of the subflow.
    retransmits: BTreeMap<u32, u32>,
}

/// What has ended, of what a connection needs, and why.
#[derive(Debug, Clone, Error)]
pub(super) enum End {
    /// The session, or the right to it: what has arrived here may still be delivered.
    #[error("the session has ended: {0}")]
    Session(String),
    /// The shim, or the right to the connection: nothing is delivered any more.
    #[error("the session has ended: {0}")]
    AtOnce(String),
    /// The connection, at the other host.
    #[error("the other host no longer knows the connection")]
    Unknown,
    /// All subflows of a connection that gets no others.
    #[error("all of its paths failed after one side had ended its direction")]
    Cut,
}

/// A connection of a program that begins, until this is dropped.
pub(super) struct Beginning(Relays);

/// A connection of a program over IP, until this is dropped.
pub(super) struct Direct(Relays);

/// A task that has a connection of a program or server, until this is dropped.
pub(super) struct Busy(Relays);

/// When a connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// Before it was set up.
    SetUp,
    /// Later.
    Broken,
}

impl Default for Relays {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(RelaysState {
            began: Instant::now(),
            next: 0,
            all: BTreeMap::new(),
            expected: BTreeMap::new(),
            ended: 0,
            setups_failed: 0,
            failures: VecDeque::new(),
            totals: BTreeMap::new(),
            problem: None,
            beginning: 0,
            direct: 0,
            busy: watch::Sender::new(0),
            observer: None,
        })))
    }
}

impl Relays {
    fn state(&self) -> MutexGuard<'_, RelaysState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expects a connection of a session.
    pub(super) fn expect(&self, session: Session) -> Expected {
        let (end, ended) = watch::channel(None);
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.expected.insert(number, (session, end));
        drop(state);
        Expected {
            number,
            session,
            relays: self.clone(),
            ended,
        }
    }

    /// Counts a program's connection until it is added, or has failed.
    pub(super) fn begin(&self) -> Beginning {
        self.state().beginning += 1;
        Beginning(self.clone())
    }

    /// Counts a program's connection over IP.
    pub(super) fn add_direct(&self, destination: SocketAddr) -> Direct {
        let mut state = self.state();
        state.notify(|| ConnectionEvent::Began {
            destination,
            peer: None,
        });
        state.direct += 1;
        Direct(self.clone())
    }

    /// Whether bytes of programs here are still to be delivered.
    pub(super) fn are_undelivered(&self) -> bool {
        let state = self.state();
        let is_unsent = state.beginning > 0 || state.direct > 0;
        is_unsent || state.all.values().any(Entry::is_undelivered)
    }

    /// Reports what happens to programs' connections from now on.
    pub(super) fn observe(&self) -> mpsc::UnboundedReceiver<ConnectionEvent> {
        // A few for each connection of the command that is explained, taken at once.
        let (observer, events) = mpsc::unbounded_channel();
        self.state().observer = Some(observer);
        events
    }

    /// One destination of each session that programs of this host use.
    pub(super) fn destinations(&self) -> Vec<SocketAddr> {
        let state = self.state();
        let clients = state
            .all
            .values()
            .filter(|entry| entry.session.1 == Role::Client);
        let sessions: BTreeMap<Ipv6Addr, SocketAddr> = clients
            .map(|entry| (entry.session.0, entry.destination))
            .collect();
        sessions.into_values().collect()
    }

    /// The other hosts to which programs of this one have connections.
    pub(super) fn peers(&self) -> Vec<Ipv6Addr> {
        let state = self.state();
        let sessions = state.all.values().map(|entry| entry.session);
        let clients = sessions.filter(|(_, role)| *role == Role::Client);
        let peers: BTreeSet<Ipv6Addr> = clients.map(|(peer, _)| peer).collect();
        peers.into_iter().collect()
    }

    /// The hosts that programs of this one are connected to.
    pub(super) fn hosts(&self) -> Vec<IpAddr> {
        let state = self.state();
        let clients = state
            .all
            .values()
            .filter(|entry| entry.session.1 == Role::Client);
        let hosts: BTreeSet<IpAddr> = clients.map(|entry| entry.destination.ip()).collect();
        hosts.into_iter().collect()
    }

    /// Ends the connections of a session, and forgets what they have carried; `at_once`, though there
    /// is still something to be delivered here.
    pub(super) fn end(&self, session: Session, reason: &str, at_once: bool) {
        let mut state = self.state();
        state.totals.remove(&session);
        let end = match at_once {
            true => End::AtOnce(reason.to_owned()),
            false => End::Session(reason.to_owned()),
        };
        for (_, ended) in state.ends().filter(|(of, _)| *of == session) {
            ended.send_replace(Some(end.clone()));
        }
    }

    /// Ends the connections of other hosts' programs to what `is_served` no longer.
    pub(super) fn end_unserved(&self, is_served: impl Fn(SocketAddr) -> bool) {
        let state = self.state();
        let servers = state
            .all
            .values()
            .filter(|entry| entry.session.1 == Role::Server && !is_served(entry.destination));
        for entry in servers {
            let reason = format!("{} is no longer served here", entry.destination);
            entry.end.send_replace(Some(End::AtOnce(reason)));
        }
    }

    /// Ends the connection with this token, which the other host no longer knows.
    pub(super) fn end_unknown(&self, token: Token) {
        if let Some(entry) = self.state().find(token) {
            entry.end.send_replace(Some(End::Unknown));
        }
    }

    /// Whether one side of the connection with this token has ended its direction: then the kernel gives
    /// it no further subflow, nor reports the end of one.
    pub(super) fn is_half_closed(&self, token: Token) -> bool {
        let mut state = self.state();
        let found = state.find(token);
        found.is_some_and(|entry| is_half_closed(&entry.peer, &entry.finished))
    }

    /// What the kernel reports of the connection with this token.
    pub(super) fn info(&self, token: Token) -> Option<Info> {
        let socket = Arc::clone(&self.state().find(token)?.peer);
        Info::read(&*socket).ok()
    }

    /// The connections to other holders, each with its session.
    pub(super) fn sockets(&self) -> Vec<(Session, Arc<Watched>)> {
        let state = self.state();
        let all = state.all.values();
        all.map(|entry| (entry.session, Arc::clone(&entry.peer)))
            .collect()
    }

    /// Sets why no connection gets further subflows, or that they do again.
    pub(super) fn set_problem(&self, problem: Option<String>) {
        self.state().problem = problem;
    }

    /// Ends all connections.
    pub(super) fn end_all(&self, reason: &str) {
        for (_, end) in self.state().ends() {
            end.send_replace(Some(End::AtOnce(reason.to_owned())));
        }
    }

    /// To be dropped after the connection of a program or server.
    pub(super) fn busy(&self) -> Busy {
        self.state().busy.send_modify(|tasks| *tasks += 1);
        Busy(self.clone())
    }

    /// Waits until no task has a connection.
    pub(super) async fn idle(&self) {
        let mut busy = self.state().busy.subscribe();
        // The sender is here.
        let _ = busy.wait_for(|tasks| *tasks == 0).await;
    }

    /// Remembers a connection that failed.
    pub(super) fn failed(&self, when: Failed, text: String) {
        let mut state = self.state();
        state.notify(|| ConnectionEvent::Failed(text.clone()));
        state.setups_failed += u64::from(when == Failed::SetUp);
        let at_ms = now_ms();
        state.failures.push_back(FailureReport { at_ms, text });
        if state.failures.len() > FAILURES {
            state.failures.pop_front();
        }
    }

    /// Counts a connection that the carrier had.
    pub(super) fn stream_ended(&self, was_set_up: bool, failure: Option<String>) {
        self.state().ended += u64::from(was_set_up);
        if let Some(failure) = failure {
            let when = match was_set_up {
                true => Failed::Broken,
                false => Failed::SetUp,
            };
            self.failed(when, failure);
        }
    }

    pub(super) fn report(&self, attached: bool) -> HolderReport {
        let mut guard = self.state();
        let state = &mut *guard;
        let mut connections = Vec::new();
        for (number, entry) in &mut state.all {
            let (carried, error) = match entry.count(&mut state.totals) {
                Ok(carried) => (carried, None),
                Err(error) => (Carried::default(), Some(error.to_string())),
            };
            connections.push(ConnectionReport {
                id: *number,
                peer: None,
                address: entry.session.0,
                role: entry.session.1,
                carrier: CarrierKind::Mptcp,
                source: entry.source,
                destination: entry.destination,
                age_ms: millis(entry.began.elapsed()),
                traffic: Traffic::of(carried.sent, carried.received),
                reinjected_bytes: carried.reinjected,
                subflows: carried.subflows,
                error,
            });
        }
        let sessions = state.totals.iter();
        let sessions = sessions.map(|(&(address, role), totals)| SessionTotals {
            address,
            role,
            totals: totals.clone(),
        });
        HolderReport {
            uptime_ms: millis(state.began.elapsed()),
            attached,
            connections,
            connections_ended: state.ended,
            setups_failed: state.setups_failed,
            failures: state.failures.iter().cloned().collect(),
            sessions: sessions.collect(),
            problem: state.problem.clone(),
        }
    }
}

/// Whether one side of a connection has ended its direction, the one here if it has `finished`.
fn is_half_closed(peer: &Watched, finished: &AtomicBool) -> bool {
    finished.load(Ordering::Acquire) || relay::has_ended(peer)
}

impl RelaysState {
    /// The connection with this token.
    fn find(&mut self, token: Token) -> Option<&Entry> {
        for entry in self.all.values_mut().filter(|entry| entry.token.is_none()) {
            entry.token = hawser_mptcp::token(&*entry.peer).ok();
        }
        self.all.values().find(|entry| entry.token == Some(token))
    }

    /// The sessions of all connections, and what learns of their ends.
    fn ends(&self) -> impl Iterator<Item = (Session, &watch::Sender<Option<End>>)> {
        let begun = self.all.values().map(|entry| (entry.session, &entry.end));
        let expected = self.expected.values();
        begun.chain(expected.map(|(session, end)| (*session, end)))
    }

    fn notify(&self, event: impl FnOnce() -> ConnectionEvent) {
        if let Some(observer) = &self.observer {
            // Nobody may listen any more.
            let _ = observer.send(event());
        }
    }
}

impl Entry {
    /// Whether bytes of a program here are not acknowledged by the other holder.
    fn is_undelivered(&self) -> bool {
        let is_written = self.written.load(Ordering::Relaxed);
        // A connection that has failed delivers nothing more.
        let has_unacknowledged = || socket::unacknowledged(&*self.peer).is_ok_and(|left| left > 0);
        self.session.1 == Role::Client && (!is_written || has_unacknowledged())
    }

    /// Reads what the connection carries, and adds to the totals what is new of it.
    fn count(&mut self, totals: &mut BTreeMap<Session, Totals>) -> Result<Carried, InfoError> {
        let carried = carried(&*self.peer)?;
        // None once the session has ended.
        if let Some(totals) = totals.get_mut(&self.session) {
            self.seen.add(&carried, totals);
        }
        Ok(carried)
    }
}

impl Seen {
    fn add(&mut self, carried: &Carried, totals: &mut Totals) {
        for (seen, now, total) in [
            (&mut self.sent, carried.sent, &mut totals.sent_bytes),
            (
                &mut self.received,
                carried.received,
                &mut totals.received_bytes,
            ),
            (
                &mut self.reinjected,
                carried.reinjected,
                &mut totals.reinjected_bytes,
            ),
        ] {
            *total += now.saturating_sub(*seen);
            *seen = now;
        }
        for subflow in &carried.subflows {
            let Some(slot) = subflow.slot else { continue };
            let now = subflow.retransmits;
            let before = self.retransmits.insert(subflow.id, now).unwrap_or(0);
            let new = u64::from(now.saturating_sub(before));
            *totals.retransmits.entry(slot).or_default() += new;
        }
    }
}

impl End {
    /// Why a connection cannot begin.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Session(reason) | Self::AtOnce(reason) => reason.clone(),
            Self::Unknown | Self::Cut => self.to_string(),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.state().busy.send_modify(|tasks| *tasks -= 1);
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        self.0.state().beginning -= 1;
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        self.0.state().direct -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{SubflowReport, SubflowState, Traffic};

    fn carried(sent: u64, retransmits: &[(u32, u32)]) -> Carried {
        let subflows = retransmits.iter().map(|&(id, retransmits)| SubflowReport {
            id,
            slot: Some(2),
            path: None,
            state: SubflowState::Open,
            rtt_ms: 1.0,
            congestion_window_bytes: 1,
            traffic: Traffic::default(),
            retransmits,
        });
        Carried {
            sent,
            received: 1,
            reinjected: 0,
            subflows: subflows.collect(),
        }
    }

    #[test]
    fn totals_survive_subflows_and_connections() {
        let (mut first, mut second) = (Seen::default(), Seen::default());
        let mut totals = Totals::default();
        first.add(&carried(100, &[(0, 3)]), &mut totals);
        first.add(&carried(150, &[(0, 4)]), &mut totals);
        // Its subflow has ended; another one takes the slot.
        first.add(&carried(150, &[(1, 2)]), &mut totals);
        second.add(&carried(7, &[(0, 1)]), &mut totals);
        assert_eq!((totals.sent_bytes, totals.received_bytes), (157, 2));
        assert_eq!(totals.retransmits, [(2, 7)].into());
    }

    #[test]
    fn failures_are_counted_and_the_latest_kept() {
        let relays = Relays::default();
        for number in 0..30 {
            relays.failed(Failed::SetUp, number.to_string());
        }
        relays.failed(Failed::Broken, "broken".into());
        let report = relays.report(false);
        assert_eq!((report.setups_failed, report.failures.len()), (30, 20));
        assert_eq!(report.failures[19].text, "broken");
    }
}

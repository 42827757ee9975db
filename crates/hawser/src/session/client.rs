//! The side of a session that connects: one task, which owns the path manager and obeys its orders.

mod dial;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::Path;
use hawser_manager::{
    Action, Carried, Cause, Failure, Order, PathOptions, PathSet, SubflowId, denied,
};
use hawser_path::{Fingerprint, Reason, Select};
use hawser_session::Dialer;
use hawser_streams::Side;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

pub(crate) use self::dial::{DialError, Server};
use super::path::{Greeted, PathEnd, PathNews, run as run_path};
use super::{End, Session};
use crate::MAX_PATHS;
use crate::addr::addr;
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::event::{PathChange, PathEvent, PathReason};
use crate::path::PathStatus;
use crate::policy::Policy;
use crate::selector::{Choice, PathSelector, choices};
use crate::wire::code;

/// News of paths that may wait for the task.
const MAX_NEWS: usize = 16;
/// Longest wait for the first path.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// What a guest wants of the paths.
pub(crate) struct Wanted {
    pub policy: Option<Policy>,
    pub paths: usize,
    pub selector: Option<Arc<dyn PathSelector>>,
}

/// Receives the connection once the first path is connected, or the error.
pub(crate) type First = oneshot::Sender<Result<Connection, ConnectError>>;

pub(crate) struct Client {
    dialer: Dialer<Server>,
    wanted: Wanted,
    /// What the network offers, and what of it the dialer sees.
    offered: watch::Receiver<Arc<Vec<Path>>>,
    passed: watch::Sender<Arc<Vec<Path>>>,
    /// `None` until the first path is connected.
    session: Option<Session>,
    policy: Option<watch::Receiver<Option<Policy>>>,
    first: Option<First>,
    /// Why the latest dial before that failed; an error of keys counts more than others.
    error: Option<ConnectError>,
    connected: BTreeMap<SubflowId, Fingerprint>,
    failing: BTreeSet<Fingerprint>,
    tasks: JoinSet<(SubflowId, Option<PathEnd>)>,
    news: (mpsc::Sender<PathNews>, mpsc::Receiver<PathNews>),
}

/// What the task waits for.
enum Next {
    Dialed(Option<(SubflowId, Result<Greeted, DialError>)>),
    Ended(SubflowId, Option<PathEnd>),
    News(PathNews),
    Offered,
    Policy,
    /// The session has ended, or nobody waits for it.
    Over,
    TimedOut,
}

impl Client {
    pub(crate) fn new(
        server: Server,
        offered: watch::Receiver<Arc<Vec<Path>>>,
        wanted: Wanted,
        first: First,
    ) -> Self {
        let options = PathOptions {
            // A selector ranks the paths, so that overlaps are its choice.
            select: match wanted.selector {
                Some(_) => Select::shortest(),
                None => Select::disjoint(),
            },
            // What a selector takes is bounded by `choices`: the paths that work, and those that fail and
            // are tried beside them.
            subflows: match wanted.selector {
                Some(_) => MAX_PATHS,
                None => wanted.paths,
            },
            policy: wanted.policy.as_ref().map(|policy| policy.0.clone()),
            // Each block goes over the path that delivers it first, so paths need not be weighed.
            sensing: false,
            ..PathOptions::default()
        };
        let passed = watch::Sender::new(Arc::default());
        let dialer = Dialer::new(server, PathSet::new(options), passed.subscribe());
        Self {
            dialer,
            wanted,
            offered,
            passed,
            session: None,
            policy: None,
            first: Some(first),
            error: None,
            connected: BTreeMap::new(),
            failing: BTreeSet::new(),
            tasks: JoinSet::new(),
            news: mpsc::channel(MAX_NEWS),
        }
    }

    /// Runs until the session has ended.
    pub(crate) async fn run(mut self) {
        self.offer();
        let began = Instant::now();
        loop {
            match self.next(began).await {
                Next::Dialed(Some((subflow, Ok(path)))) => self.on_connected(subflow, path),
                Next::Dialed(Some((subflow, Err(error)))) => self.on_failed(subflow, error),
                Next::Dialed(None) => {}
                Next::Ended(subflow, end) => self.on_ended(subflow, end),
                Next::News(PathNews::Silent(subflow)) => {
                    self.dialer.paths.stalled(subflow, Instant::now());
                    self.set_failing(self.connected.get(&subflow).copied(), true);
                }
                Next::News(PathNews::Recovered(subflow)) => {
                    self.dialer.paths.recovered(subflow);
                    self.set_failing(self.connected.get(&subflow).copied(), false);
                }
                Next::Offered => self.offer(),
                Next::Policy => self.on_policy(),
                Next::Over => break,
                Next::TimedOut => return self.fail(),
            }
            for order in self.dialer.orders(|_| Carried::default(), Instant::now()) {
                self.obey(&order);
            }
            if self.session.is_none() && !self.dialer.is_dialing() {
                return self.fail();
            }
        }
        self.dialer.cancel();
        while self.tasks.join_next().await.is_some() {}
    }

    async fn next(&mut self, began: Instant) -> Next {
        let over = async {
            match (&self.session, &mut self.first) {
                (Some(session), _) => drop(session.ended().await),
                (None, Some(first)) => first.closed().await,
                (None, None) => {}
            }
        };
        let policy = async {
            if let Some(policy) = &mut self.policy
                && policy.changed().await.is_ok()
            {
                return;
            }
            std::future::pending().await
        };
        let is_first = self.session.is_none();
        tokio::select! {
            () = over => Next::Over,
            dialed = self.dialer.next() => Next::Dialed(dialed),
            Some(Ok((subflow, end))) = self.tasks.join_next() => Next::Ended(subflow, end),
            Some(news) = self.news.1.recv() => Next::News(news),
            Ok(()) = self.offered.changed() => Next::Offered,
            () = policy => Next::Policy,
            () = tokio::time::sleep_until((began + CONNECT_TIMEOUT).into()), if is_first => {
                Next::TimedOut
            }
        }
    }

    /// Says why there is no connection.
    fn fail(&mut self) {
        let addr = addr(self.dialer.remote.addr);
        let error = self.error.take();
        let error = error.unwrap_or_else(|| match self.dialer.paths.trouble() {
            Some(reason) => ConnectError::NoPathAllowed { addr, reason },
            None => ConnectError::TimedOut { addr },
        });
        if let Some(first) = self.first.take() {
            // Nobody may wait for it any more.
            let _ = first.send(Err(error));
        }
    }

    /// Passes on what the network offers, as the selector judges it.
    fn offer(&mut self) {
        let offered = Arc::clone(&self.offered.borrow_and_update());
        if let Some(selector) = &self.wanted.selector {
            let policy = self.wanted.policy.as_ref().map(|policy| &policy.0);
            let denied = denied(policy, &offered);
            let allowed = offered
                .iter()
                .filter(|path| !denied.contains_key(&path.fingerprint()));
            let own = |path: &Path| crate::path::Path::new(path.clone(), PathStatus::Usable);
            let allowed: Vec<_> = allowed.map(own).collect();
            let names: Vec<_> = allowed.iter().map(|path| path.fingerprint()).collect();
            let selected = selector.select(&allowed);
            let choices = choices(&selected, &names, &self.failing, self.wanted.paths);
            let left_out = |path: &Fingerprint| choices.get(path) == Some(&Choice::Denied);
            let close = self.connected.iter().filter(|(_, path)| left_out(path));
            let close: Vec<_> = close.map(|(subflow, _)| *subflow).collect();
            self.dialer.remote.choices = choices;
            for subflow in close {
                self.dialer.paths.closed(subflow);
                let text = "the selector leaves it out";
                self.close(subflow, PathReason::Selector, text);
            }
        }
        self.passed.send_replace(offered);
    }

    fn on_policy(&mut self) {
        let policy = self.policy.as_mut();
        let Some(policy) = policy.map(|policy| policy.borrow_and_update().clone()) else {
            return;
        };
        self.dialer
            .paths
            .set_policy(policy.as_ref().map(|policy| policy.0.clone()));
        self.wanted.policy = policy;
        self.offer();
    }

    /// Notes whether a path works; the selection may change with it.
    fn set_failing(&mut self, path: Option<Fingerprint>, fails: bool) {
        let Some(path) = path else {
            return;
        };
        let changed = match fails {
            true => self.failing.insert(path),
            false => self.failing.remove(&path),
        };
        if changed && self.wanted.selector.is_some() {
            self.offer();
        }
    }

    fn on_connected(&mut self, subflow: SubflowId, path: Greeted) {
        let (fingerprint, rtt) = (path.quic.fingerprint(), path.quic.stats().rtt);
        if self.dialer.remote.choices.get(&fingerprint) == Some(&Choice::Denied) {
            path.quic.close(code::PATH, "not needed");
            return self.dialer.paths.closed(subflow);
        }
        self.dialer
            .paths
            .connected(subflow, Some(rtt), Instant::now());
        self.connected.insert(subflow, fingerprint);
        let session = match &self.session {
            Some(session) => session.clone(),
            None => {
                let (peer, key) = (self.dialer.remote.addr, path.quic.peer_key());
                let session = Session::new(Side::Opens, peer, key, self.wanted.policy.clone());
                self.policy = Some(session.policy().subscribe());
                self.session.insert(session).clone()
            }
        };
        let news = self.news.0.clone();
        let task = run_path(session.clone(), path, Some(subflow), Some(news));
        self.tasks.spawn(async move { (subflow, task.await) });
        if let Some(first) = self.first.take() {
            // If nobody waits any more, the connection is dropped, which ends the session.
            let _ = first.send(Ok(Connection::new(session)));
        }
        self.set_failing(Some(fingerprint), false);
    }

    fn on_failed(&mut self, subflow: SubflowId, error: DialError) {
        let DialError {
            path,
            reason,
            failure,
            error,
            is_final,
        } = error;
        let text = error.to_string();
        if let Some(session) = &self.session {
            session.report(PathEvent::new(
                path,
                PathChange::Failed,
                reason,
                text.clone(),
            ));
            if is_final {
                session.end(End::Refused(text.clone()));
            }
        }
        if !self.error.as_ref().is_some_and(ConnectError::is_of_keys) {
            self.error = Some(error);
        }
        self.dialer
            .paths
            .lost(subflow, failure, text, Instant::now());
        self.set_failing(Some(path), true);
    }

    fn on_ended(&mut self, subflow: SubflowId, end: Option<PathEnd>) {
        // Those that were closed here are not among them.
        let Some(path) = self.connected.remove(&subflow) else {
            return;
        };
        let Some(end) = end else {
            return self.dialer.paths.closed(subflow);
        };
        if let Some(session) = &self.session {
            let text = end.text.clone();
            session.report(PathEvent::new(path, end.change, end.reason, text));
        }
        (self.dialer.paths).lost(subflow, Failure::Closed, end.text, Instant::now());
        self.set_failing(Some(path), true);
    }

    /// Obeys an order about a subflow that is connected.
    fn obey(&mut self, order: &Order) {
        let (subflow, path) = (order.subflow, order.path);
        let (reason, text) = (self.reason(path, &order.cause), order.cause.to_string());
        let Some(session) = self.session.clone() else {
            return;
        };
        match order.action {
            // The dialer's.
            Action::Dial => {}
            Action::Hold => {
                session.set_held(subflow, true);
                session.report(PathEvent::new(path, PathChange::Held, reason, text));
            }
            Action::Resume => {
                session.set_held(subflow, false);
                session.report(PathEvent::new(path, PathChange::Resumed, reason, text));
            }
            // What is under way over it goes over the others.
            Action::Close { .. } => self.close(subflow, reason, &text),
        }
    }

    /// Closes a path by choice.
    fn close(&mut self, subflow: SubflowId, reason: PathReason, text: &str) {
        let (Some(path), Some(session)) = (self.connected.remove(&subflow), &self.session) else {
            return;
        };
        if let Some((_, quic)) = session.find(subflow) {
            quic.close(code::PATH, text);
        }
        session.report(PathEvent::new(path, PathChange::Removed, reason, text));
    }

    /// The cause of an order about a path, as users see it.
    fn reason(&self, path: Fingerprint, cause: &Cause) -> PathReason {
        match cause {
            Cause::Decided(Reason::Policy { .. }) => PathReason::Policy,
            Cause::Decided(_) if self.dialer.remote.choices.contains_key(&path) => {
                PathReason::Selector
            }
            Cause::NotOffered => PathReason::NotOffered,
            Cause::Silent(_) | Cause::Stalled => PathReason::Silent,
            Cause::Recovered => PathReason::Recovered,
            _ => PathReason::Replaced,
        }
    }
}

impl Drop for Client {
    /// Ends the session, also when this task panicked, as a selector may.
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.end(End::Refused("the task of the connection has failed".into()));
        }
    }
}

//! What `hawser run` says: which connections failed, and why; with `--explain`, where all go.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use hawser_shim::carrier::{PathReport, Reporter, SessionReport};
use hawser_shim::holder::{ConnectionEvent, Holder, HolderReport};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::format;
use crate::out::errln;

/// Interval at which decisions about paths are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The task that explains.
pub(super) struct Explanation {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Explanation {
    /// Begins to say which connections fail; with `all`, everything else.
    pub(super) fn begin(holder: &Holder, reporter: Reporter, all: bool) -> Self {
        let (end, ends) = oneshot::channel();
        let holder = holder.clone();
        let task = match all {
            true => tokio::spawn(explain(holder, reporter, ends)),
            false => tokio::spawn(report_failures(holder, ends)),
        };
        Self { end, task }
    }

    /// Says what was carried.
    pub(super) async fn end(self) {
        let _ = self.end.send(());
        // A panic of the task was reported.
        let _ = self.task.await;
    }
}

async fn report_failures(holder: Holder, mut ends: oneshot::Receiver<()>) {
    let mut events = holder.observe();
    let report = |event| {
        if let ConnectionEvent::Failed(what) = event {
            errln!("hawser: a connection failed: {what}");
        }
    };
    loop {
        tokio::select! {
            Some(event) = events.recv() => report(event),
            _ = &mut ends => break,
        }
    }
    while let Ok(event) = events.try_recv() {
        report(event);
    }
}

async fn explain(holder: Holder, reporter: Reporter, mut ends: oneshot::Receiver<()>) {
    let mut events = holder.observe();
    let mut known = Known::default();
    let mut tick = tokio::time::interval(POLL_INTERVAL);
    loop {
        tokio::select! {
            Some(event) = events.recv() => known.on_event(event, &reporter).await,
            _ = tick.tick() => known.on_sessions(&reporter.report().await.sessions),
            _ = &mut ends => break,
        }
    }
    while let Ok(event) = events.try_recv() {
        known.on_event(event, &reporter).await;
    }
    let sessions = reporter.report().await.sessions;
    known.on_sessions(&sessions);
    sum_up(&holder.report(), &sessions);
}

/// What was said.
#[derive(Default)]
struct Known {
    destinations: BTreeSet<SocketAddr>,
    /// The latest decisions, by host and path.
    decisions: BTreeMap<(String, String), String>,
}

impl Known {
    async fn on_event(&mut self, event: ConnectionEvent, reporter: &Reporter) {
        match event {
            ConnectionEvent::Began { destination, peer } => {
                if !self.destinations.insert(destination) {
                    return;
                }
                let Some(peer) = peer else {
                    errln!("hawser: {destination} is not mapped: over IP");
                    return;
                };
                let sessions = reporter.report().await.sessions;
                let session = sessions.iter().find(|one| one.address == Some(peer));
                let host = session.map_or("a host that has gone", |session| &session.peer);
                errln!("hawser: {destination} over SCION to {host}");
                self.on_sessions(&sessions);
            }
            ConnectionEvent::Failed(what) => errln!("hawser: a connection failed: {what}"),
            _ => {}
        }
    }

    /// Says which decisions are new.
    fn on_sessions(&mut self, sessions: &[SessionReport]) {
        for session in sessions {
            for decision in &session.decisions {
                let key = (session.peer.clone(), decision.fingerprint.clone());
                let text = format!("{}: {}", decision.verdict, decision.reason);
                if self.decisions.get(&key) == Some(&text) {
                    continue;
                }
                let path = &decision.fingerprint;
                errln!("hawser: {}: path {path} {text}", session.peer);
                self.decisions.insert(key, text);
            }
        }
    }
}

/// Says what was carried.
fn sum_up(report: &HolderReport, sessions: &[SessionReport]) {
    for session in sessions {
        let mut all = report.sessions.iter();
        let totals =
            all.find(|one| Some(one.address) == session.address && one.role == session.role);
        let connections = totals.map_or(0, |one| one.totals.connections);
        let retransmits: u64 = totals.map_or(0, |one| one.totals.retransmits.values().sum());
        let (peer, failovers) = (&session.peer, session.failovers.count);
        errln!(
            "hawser: {peer}: {connections} connections, {retransmits} segments sent again, \
             {failovers} failovers"
        );
        for path in session.lost.iter().chain(&session.paths) {
            errln!("hawser:   {}", line(path));
        }
    }
}

/// What a path has carried.
fn line(path: &PathReport) -> String {
    let fingerprint = path.fingerprint.as_deref().unwrap_or("unknown");
    let sent = format::bytes(path.traffic.sent_bytes);
    let received = format::bytes(path.traffic.received_bytes);
    let interfaces: Vec<String> = path.interfaces.iter().map(ToString::to_string).collect();
    let interfaces = interfaces.join(" ");
    format!("path {fingerprint}: {sent} sent, {received} received: {interfaces}")
}

//! The sessions that this host opens, and when they end.

use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Instant;

use hawser_endhost::patience::wait;
use hawser_manager::PathOptions;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use super::client::{ClientDriver, GOODBYE, Request};
use super::destinations::Target;
use super::node::Node;
use super::usage::Usage;
use crate::report::SessionReport;

/// The sessions that this host has opened, by the host at their other end.
pub(super) struct Clients {
    node: Node,
    all: HashMap<Target, Client>,
    /// Held by the session with a host as long as it lives: the next one has the same addresses.
    turns: HashMap<Target, Arc<Mutex<()>>>,
    tasks: JoinSet<()>,
}

/// A session that runs; it ends in order when this is dropped.
struct Client {
    /// Programs' connections and packets, as many as there may be of them, and what comes at intervals.
    requests: mpsc::UnboundedSender<Request>,
    usage: Arc<Usage>,
}

impl Clients {
    pub(super) fn new(node: Node) -> Self {
        Self {
            node,
            all: HashMap::new(),
            turns: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Sends a request to the session with `target`; to a new one with these `options` if there is
    /// none.
    ///
    /// # Errors
    /// As `options` says; a request that wants an answer has got it then.
    pub(super) fn request(
        &mut self,
        target: Target,
        request: Request,
        options: impl FnOnce(&Target) -> Result<PathOptions, String>,
    ) -> Result<(), String> {
        let unsent = match self.all.get(&target) {
            Some(client) => {
                client.usage.touch(Instant::now());
                client.requests.send(request).err().map(|unsent| unsent.0)
            }
            None => Some(request),
        };
        // The first one, or in place of one that has ended.
        let Some(request) = unsent else { return Ok(()) };
        let options = match options(&target) {
            Ok(options) => options,
            Err(error) => {
                if let Request::Connect(answer) = request {
                    answer.give(Err(error.clone()));
                }
                return Err(error);
            }
        };
        // One for each connection of a program that waits, which the holder bounds; else a few at intervals.
        let (requests, received) = mpsc::unbounded_channel();
        // The receiver is here.
        let _ = requests.send(request);
        let usage = Arc::new(Usage::new(Instant::now()));
        let session = ClientDriver::new(
            self.node.clone(),
            target.clone(),
            options,
            Arc::clone(&usage),
        );
        let turn = Arc::clone(self.turns.entry(target.clone()).or_default());
        self.tasks.spawn(async move {
            let _turn = turn.lock_owned().await;
            session.run(received).await;
        });
        self.all.insert(target, Client { requests, usage });
        Ok(())
    }

    /// Has the sessions follow the policies that `options` name now. A policy that cannot be read stays
    /// as it was.
    pub(super) fn follow(&self, options: impl Fn(&Target) -> Result<PathOptions, String>) {
        for (target, client) in &self.all {
            if let Ok(options) = options(target) {
                // Those that have ended are removed later.
                let _ = client.requests.send(Request::Policy(options.policy));
            }
        }
    }

    /// The holder has connections with these peers: ends the sessions that have been unused. Without
    /// such a report none ends, as nothing is known of its connections.
    pub(super) fn in_use(&mut self, peers: &[Ipv6Addr]) {
        let now = Instant::now();
        // Before the sessions learn of this report: each has learned of the one before.
        self.all.retain(|_, client| !client.usage.is_over(now));
        for client in self.all.values() {
            let _ = client.requests.send(Request::InUse(peers.to_vec()));
        }
    }

    /// A status report of each session; one that does not answer has ended.
    pub(super) fn report(&mut self) -> Vec<oneshot::Receiver<SessionReport>> {
        self.all.retain(|_, client| !client.requests.is_closed());
        let mut waiting = Vec::new();
        for client in self.all.values() {
            let (answer, answered) = oneshot::channel();
            if client.requests.send(Request::Report(answer)).is_ok() {
                waiting.push(answered);
            }
        }
        waiting
    }

    /// Waits until a session has ended; `false` if there is none.
    pub(super) async fn next_end(&mut self) -> bool {
        // A panic of a task was reported.
        self.tasks.join_next().await.is_some()
    }

    /// Ends all sessions in order.
    pub(super) async fn end(mut self) {
        self.all.clear();
        let ended = async { while self.next_end().await {} };
        // Those that have no path yet have nobody to take leave of.
        let _ = wait(GOODBYE, ended).await;
    }
}

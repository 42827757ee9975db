//! A transfer that this host begins.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hawser_endhost::ScionAddr;
use hawser_keys::{PeerKey, Trust};
use hawser_manager::{PathOptions, PathSet};
use hawser_seal::Cipher;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::algorithm::Algorithm;
use crate::content::Source;
use crate::dialer::{Dialer, Opening, Target};
use crate::error::TransferError;
use crate::limit::Limit;
use crate::node::Node;
use crate::protocol;
use crate::report::{PathProgress, Summary, TransferEvent};
use crate::session::{self, Begin, Destination, Ended, Role, Session};

/// Sessions in a row that end at the server before anything was verified: then it is of no use to
/// begin another.
const FRUITLESS: u32 = 5;

/// What is transferred.
#[derive(Debug, Clone)]
pub enum Request {
    /// Content is sent to the server.
    Send {
        /// The content.
        content: Arc<Source>,
        /// Where the server puts it, relative to its folder; empty for the folder itself.
        name: String,
    },
    /// Content is fetched from the server.
    Fetch {
        /// What is wanted, relative to the server's folder.
        name: String,
        /// Where it goes.
        destination: Destination,
    },
}

/// How a transfer is done.
#[derive(Debug, Clone)]
pub struct TransferOptions {
    /// Which paths are used.
    pub paths: PathOptions,
    /// How the rate of each path is controlled.
    pub algorithm: Algorithm,
    /// How the server shows that it is the right one.
    pub server: Trust,
    /// Limits the rate of content, sent or received; `None` for no limit.
    pub limit: Option<Limit>,
}

/// Transfers content to or from the server at `peer`; what happens goes to `events`.
///
/// A server that has lost the session, as one that was started again, is asked for another one,
/// which continues from what was verified.
///
/// # Errors
/// [`TransferError`] when no path works, the server refuses, or one of the sides cannot read or
/// write. What was verified stays, and is not sent again by the next attempt.
pub async fn transfer(
    node: &Node,
    peer: ScionAddr,
    request: Request,
    options: TransferOptions,
    events: UnboundedSender<TransferEvent>,
) -> Result<Summary, TransferError> {
    // Without any path it fails here, with the reason.
    node.host().paths(peer.isd_as).await?;
    let agreed = Arc::default();
    let mut earlier = Earlier::default();
    loop {
        let ended = attempt(node, peer, &request, &options, &agreed, &events).await?;
        match &ended.result {
            Err(TransferError::Peer { code, .. })
                if *code == protocol::ErrorCode::NO_SESSION && earlier.may_retry(&ended) =>
            {
                earlier.add(ended);
                // The caller may have dropped its end.
                let _ = events.send(TransferEvent::Restarted);
            }
            _ => return earlier.summary(ended),
        }
    }
}

/// One session of a transfer, to its end.
async fn attempt(
    node: &Node,
    peer: ScionAddr,
    request: &Request,
    options: &TransferOptions,
    agreed: &Arc<OnceLock<PeerKey>>,
    events: &UnboundedSender<TransferEvent>,
) -> Result<Ended, TransferError> {
    let memory = node.memory().join();
    let own_credit = memory.credit();
    let opening = match request {
        Request::Send { content, .. } => Opening::of(session::manifest(content)),
        Request::Fetch { .. } => Opening::default(),
    };
    let (role, wire_role, name, offered) = match request.clone() {
        Request::Send { content, name } => (Role::Source(content), protocol::Role::Source, name, 0),
        Request::Fetch { name, destination } => (
            Role::Sink(destination),
            protocol::Role::Sink,
            name,
            own_credit,
        ),
    };
    let target = Arc::new(Target {
        node: node.clone(),
        peer,
        trust: options.server.clone(),
        agreed: Arc::clone(agreed),
        role: wire_role,
        credit: offered,
        name,
        opening,
        cipher: Cipher::preferred(),
        algorithm: options.algorithm,
        session: tokio::sync::Mutex::new(None),
    });
    let (joined, new_subflows) = unbounded_channel();
    let mut dialer = Dialer::new(target, PathSet::new(options.paths.clone()), joined);
    let credit = first_credit(&mut dialer, peer, events).await?;
    let begin = Begin {
        node: node.clone(),
        key: node.session_key(),
        peer,
        credit: match role {
            Role::Sink(_) => own_credit,
            Role::Source(_) | Role::Shared(_) => credit,
        },
        role,
        limit: options.limit.clone(),
        memory,
        dialer: Some(dialer),
        joined: new_subflows,
        replaced: Arc::default(),
        events: events.clone(),
    };
    Ok(Session::new(begin).run().await)
}

/// What earlier sessions of the same transfer did.
#[derive(Default)]
struct Earlier {
    /// Bytes that were sent and verified.
    moved: u64,
    elapsed: Duration,
    paths: Vec<PathProgress>,
    /// Sessions in a row in which nothing was verified.
    fruitless: u32,
}

impl Earlier {
    fn may_retry(&self, ended: &Ended) -> bool {
        ended.progress.verified > ended.progress.existing || self.fruitless < FRUITLESS
    }

    fn add(&mut self, ended: Ended) {
        let moved = ended.progress.verified - ended.progress.existing;
        self.fruitless = match moved {
            0 => self.fruitless + 1,
            _ => 0,
        };
        self.moved += moved;
        self.elapsed += ended.elapsed;
        self.paths = self.with_paths(ended.paths);
        self.paths.iter_mut().for_each(|path| path.open = false);
    }

    /// What the paths did, together with what they did before.
    fn with_paths(&self, mut paths: Vec<PathProgress>) -> Vec<PathProgress> {
        for before in &self.paths {
            let same = |path: &&mut PathProgress| path.fingerprint == before.fingerprint;
            match paths.iter_mut().find(same) {
                Some(path) => {
                    path.delivered += before.delivered;
                    path.packets += before.packets;
                    path.lost += before.lost;
                    path.rejected += before.rejected;
                    path.failures += before.failures;
                }
                None => paths.push(before.clone()),
            }
        }
        paths
    }

    /// The summary of the whole transfer, if its last session has not failed.
    fn summary(&self, mut ended: Ended) -> Result<Summary, TransferError> {
        ended.paths = self.with_paths(ended.paths);
        ended.elapsed += self.elapsed;
        // What an earlier session sent was there at the beginning of the last one.
        let progress = &mut ended.progress;
        progress.existing = progress.existing.saturating_sub(self.moved);
        ended.summary()
    }
}

/// Dials until the server has accepted the session. Returns its credit.
async fn first_credit(
    dialer: &mut Dialer,
    peer: ScionAddr,
    events: &UnboundedSender<TransferEvent>,
) -> Result<u64, TransferError> {
    let first = async {
        loop {
            dialer.next().await;
            dialer.orders(events)?;
            if let Some(credit) = dialer.credit {
                return Ok(credit);
            }
            if !dialer.is_usable() {
                let reason = dialer.trouble();
                let reason = reason.unwrap_or_else(|| "none is offered".to_owned());
                return Err(TransferError::NoPath { peer, reason });
            }
        }
    };
    match tokio::time::timeout(crate::session::KEPT, first).await {
        Ok(first) => first,
        Err(_) => Err(TransferError::Unreachable {
            peer,
            after: crate::session::KEPT,
            reason: dialer
                .trouble()
                .unwrap_or_else(|| "no path is connected".to_owned()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Progress;

    fn ended(existing: u64, verified: u64) -> Ended {
        Ended {
            result: Ok([0; 32]),
            progress: Progress {
                total: 100,
                verified,
                existing,
                files: 1,
            },
            elapsed: Duration::from_secs(1),
            paths: vec![PathProgress {
                fingerprint: hawser_path::Fingerprint::from([7; 32]),
                path: None,
                delivered: verified - existing,
                rtt: None,
                rate: 0.0,
                packets: 1,
                lost: 0,
                rejected: 2,
                failures: 1,
                stalled: false,
                open: true,
            }],
        }
    }

    #[test]
    fn what_earlier_sessions_sent_counts_as_sent() {
        let mut earlier = Earlier::default();
        earlier.add(ended(10, 30));
        earlier.add(ended(30, 60));
        let summary = earlier.summary(ended(60, 100)).unwrap();
        assert_eq!(
            (summary.progress.existing, summary.progress.verified),
            (10, 100)
        );
        assert_eq!(summary.elapsed, Duration::from_secs(3));
        assert_eq!((summary.paths.len(), summary.paths[0].delivered), (1, 90));
        assert_eq!(
            (summary.paths[0].rejected, summary.paths[0].failures),
            (6, 3)
        );
    }

    #[test]
    fn a_server_that_verifies_nothing_is_left_after_some_sessions() {
        let mut earlier = Earlier::default();
        let mut sessions = 0;
        while earlier.may_retry(&ended(20, 20)) {
            earlier.add(ended(20, 20));
            sessions += 1;
        }
        assert_eq!(sessions, FRUITLESS);
        assert!(earlier.may_retry(&ended(20, 21)));
    }
}

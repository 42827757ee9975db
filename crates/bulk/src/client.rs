//! A transfer that this host begins.

mod attempt;
mod retry;
mod trust;

use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::ScionAddr;
use hawser_keys::Trust;
use hawser_manager::PathOptions;
use tokio::sync::mpsc::UnboundedSender;

use self::attempt::Attempt;
use self::retry::Retry;
use crate::algorithm::Algorithm;
use crate::content::Source;
use crate::error::TransferError;
use crate::limit::Limit;
use crate::node::Node;
use crate::protocol;
use crate::report::{PathProgress, Summary, TransferEvent};
use crate::session::{Destination, Ended, KEPT};

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
    /// How long a server that was reached before is tried again once it cannot be reached; zero for
    /// never. A session without a connection is kept for 30 s whatever this says.
    pub retry: Duration,
}

/// Transfers content to or from the server at `peer`; what happens goes to `events`.
///
/// A server that has lost the session, as one that was started again, is asked for another one,
/// which continues from what was verified. So is one that could not be reached for a while, for as
/// long as [`TransferOptions::retry`] says.
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
    let mut earlier = Earlier::default();
    let mut retry = Retry::new(options.retry);
    let mut attempt = Attempt {
        node,
        peer,
        request: &request,
        options: &options,
        agreed: Arc::default(),
        instance: node.instance(),
        patience: KEPT,
        events: &events,
    };
    let report = |event| {
        // The caller may have dropped its end.
        let _ = events.send(event);
    };
    loop {
        let began = Instant::now();
        let (result, since) = match attempt.run(&mut retry).await {
            Err(error) => (Err(error), began),
            Ok(ended) => {
                let now = Instant::now();
                // Without a connection a session is kept for a while.
                let since = now.checked_sub(KEPT).unwrap_or(now);
                match &ended.result {
                    Err(TransferError::Peer { code, .. })
                        if *code == protocol::ErrorCode::NO_SESSION
                            && earlier.may_retry(&ended) =>
                    {
                        earlier.add(ended);
                        attempt.instance = fastrand::u64(..);
                        report(TransferEvent::Restarted);
                        continue;
                    }
                    _ => (Ok(ended), since),
                }
            }
        };
        let error = match &result {
            Err(error) => Some(error),
            Ok(ended) => ended.result.as_ref().err(),
        };
        let reason = error
            .filter(|error| is_outage(error))
            .map(ToString::to_string);
        let now = Instant::now();
        let again = reason.and_then(|reason| Some((reason, retry.failed(since, now)?)));
        let Some((reason, again)) = again else {
            let summary = result.and_then(|ended| earlier.summary(ended));
            return summary.map_err(|error| lost_for(error, retry.lost_for(now)));
        };
        if let Ok(ended) = result {
            earlier.add(ended);
        }
        if again.is_first {
            let left = again.left;
            report(TransferEvent::Waiting { reason, left });
        }
        tokio::time::sleep(again.pause).await;
        attempt.instance = fastrand::u64(..);
        attempt.patience = again.left.min(KEPT);
    }
}

/// Whether the server may be reached again without any change to either side.
fn is_outage(error: &TransferError) -> bool {
    matches!(
        error,
        TransferError::Unreachable { .. } | TransferError::NoPath { .. } | TransferError::Paths(_)
    )
}

/// Has an error say for how long the server could not be reached in all.
fn lost_for(error: TransferError, lost: Duration) -> TransferError {
    match error {
        TransferError::Unreachable {
            peer,
            after,
            reason,
        } => TransferError::Unreachable {
            peer,
            after: after.max(lost),
            reason,
        },
        error => error,
    }
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

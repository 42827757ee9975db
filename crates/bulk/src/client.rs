//! A transfer that this host begins.
//!
//! It runs in the task of its caller, in *passes*: one over all files, then up to [`MAX_RESENDS`]
//! because of those that changed while they were read. A pass takes as many sessions as it needs,
//! one after another. For each, an `Attempt` looks the paths up and dials them until the server has
//! accepted a connection, then runs the session to its end, and looks meanwhile whether the
//! server's key is still trusted.
//!
//! What follows depends on that end. Done: the pass is over. The server does not know the session
//! any more: another one at once, unless [`FRUITLESS`] in a row have verified nothing. An outage,
//! of a server that was reached before: another one after a pause of at most 4 s, until
//! [`TransferOptions::retry`] is over; likewise a server that was never reached, for
//! [`TransferOptions::wait`]. Any other error ends the transfer. Only sums ([`Earlier`])
//! and the key that knew the code go from one session to the next: what was verified is on the
//! sink's disk.
//!
//! Dials are tasks of their own and share a `Target` with two locks. `session`, of tokio, is held
//! by the first dial until the server has accepted the session: the others wait for it, as long as
//! for an answer, and then join. `shown`, the keys that were trusted, is held for one operation,
//! before `session` is taken.

mod attempt;
mod retry;
mod trust;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::ScionAddr;
use hawser_keys::Trust;
use hawser_manager::PathOptions;
use hawser_session::SharedPolicy;
use tokio::sync::mpsc::UnboundedSender;

use self::attempt::Attempt;
use self::retry::Retry;
use crate::algorithm::Algorithm;
use crate::content::{ScanError, Source};
use crate::error::TransferError;
use crate::limit::Limit;
use crate::node::Node;
use crate::protocol::{self, Wants};
use crate::report::{PathProgress, Progress, Summary, TransferEvent};
use crate::session::{Destination, Ended, SESSION_TIMEOUT};

/// How long a server that is waited for is dialed before that begins anew: the pauses between the
/// packets of one dial grow.
const WAIT_TIMEOUT: Duration = Duration::from_secs(4);

/// How often files are sent again that changed while they were read.
pub const MAX_RESENDS: u32 = 2;

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
    /// Which paths may be used, where that can change while the transfer runs: in place of the policy in
    /// `paths`.
    pub policy: Option<SharedPolicy>,
    /// How the rate of each path is controlled.
    pub algorithm: Algorithm,
    /// How the server shows that it is the right one.
    pub server: Trust,
    /// Limits the rate of content, sent or received; `None` for no limit.
    pub limit: Option<Limit>,
    /// How long a server that was never reached is waited for; zero for not at all. Only one that does
    /// not answer is: any other failure ends the transfer.
    pub wait: Duration,
    /// How long a server that was reached before is tried again once it cannot be reached; zero for
    /// never. A session without a connection is kept for 30 s whatever this says.
    pub retry: Duration,
    /// What happens to files that cannot be transferred, or exist. The patterns are for what is
    /// fetched: what is sent was listed without.
    pub wants: Wants,
}

/// Transfers content to or from the server at `peer`; what happens goes to `events`.
///
/// A server that has lost the session, as one that was started again, is asked for another one,
/// which continues from what was verified. So is one that could not be reached for a while, for as
/// long as [`TransferOptions::retry`] says. Files that change while they are read are sent again at
/// the end, as they are then, up to twice.
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
    let pass = async |request: &Request| pass(node, peer, request, &options, &events).await;
    let mut summary = pass(&request).await?;
    let mut request = request;
    for _ in 0..MAX_RESENDS {
        let again: Vec<usize> = summary.failed.iter().filter_map(|one| one.again).collect();
        if again.is_empty() {
            break;
        }
        if let Request::Send { content, .. } = &mut request {
            let before = Arc::clone(content);
            // The disk may be slow.
            let listed = tokio::task::spawn_blocking(move || before.again(&again)).await;
            let listed = listed.map_err(|error| TransferError::Thread(io::Error::other(error)))?;
            match listed.map_err(ScanError::Manifest)? {
                Some(now) => *content = Arc::new(now),
                None => break,
            }
        }
        let whole = matches!(request, Request::Fetch { .. });
        summary = after(summary, pass(&request).await?, whole);
    }
    Ok(summary)
}

/// What a transfer did, after another pass over the files that had failed, or, with `whole`, over all
/// files.
fn after(before: Summary, mut pass: Summary, whole: bool) -> Summary {
    let moved = pass.progress.verified - pass.progress.existing;
    let progress = match whole {
        true => Progress {
            existing: pass
                .progress
                .existing
                .saturating_sub(before.progress.verified - before.progress.existing),
            ..pass.progress
        },
        false => Progress {
            verified: before.progress.verified + moved,
            ..before.progress
        },
    };
    if !whole {
        let lasting = before.failed.into_iter().filter(|one| one.again.is_none());
        pass.failed.splice(0..0, lasting);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&before.root);
        hasher.update(&pass.root);
        pass.root = hasher.finalize().into();
    }
    Summary {
        progress,
        elapsed: before.elapsed + pass.elapsed,
        paths: with_paths(pass.paths, &before.paths),
        kept: before.kept.max(pass.kept),
        stripped: before.stripped.max(pass.stripped),
        ..pass
    }
}

/// Transfers what is requested once, in as many sessions as it takes.
async fn pass(
    node: &Node,
    peer: ScionAddr,
    request: &Request,
    options: &TransferOptions,
    events: &UnboundedSender<TransferEvent>,
) -> Result<Summary, TransferError> {
    let mut earlier = Earlier::default();
    let mut retry = Retry::new(options.wait, options.retry);
    let mut attempt = Attempt {
        node,
        peer,
        request,
        options,
        agreement: Arc::default(),
        instance: node.instance(),
        patience: match options.wait.is_zero() {
            true => SESSION_TIMEOUT,
            false => WAIT_TIMEOUT.min(options.wait),
        },
        events,
    };
    let report = |event| {
        // The caller may have dropped its end.
        let _ = events.send(event);
    };
    loop {
        if node.has_failed() {
            return Err(TransferError::Panicked("the socket for content"));
        }
        let began = Instant::now();
        let (result, since) = match attempt.run(&mut retry).await {
            Err(error) => (Err(error), began),
            Ok(ended) => {
                let now = Instant::now();
                // Without a connection a session is kept for a while.
                let since = now.checked_sub(SESSION_TIMEOUT).unwrap_or(now);
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
            .filter(|error| match retry.was_reached() {
                true => is_outage(error),
                false => matches!(error, TransferError::Unreachable { .. }),
            })
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
            report(match retry.was_reached() {
                true => TransferEvent::Waiting { reason, left },
                false => TransferEvent::Absent { reason, left },
            });
        }
        tokio::time::sleep(again.pause).await;
        attempt.instance = fastrand::u64(..);
        attempt.patience = again.left.min(match retry.was_reached() {
            true => SESSION_TIMEOUT,
            false => WAIT_TIMEOUT,
        });
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
        self.paths = with_paths(ended.paths, &self.paths);
        self.paths.iter_mut().for_each(|path| path.open = false);
    }

    /// The summary of the whole transfer, if its last session has not failed.
    fn summary(&self, mut ended: Ended) -> Result<Summary, TransferError> {
        ended.paths = with_paths(ended.paths, &self.paths);
        ended.elapsed += self.elapsed;
        // What an earlier session sent was there at the beginning of the last one.
        let progress = &mut ended.progress;
        progress.existing = progress.existing.saturating_sub(self.moved);
        ended.summary()
    }
}

/// What the paths did, together with what they did before.
fn with_paths(mut paths: Vec<PathProgress>, earlier: &[PathProgress]) -> Vec<PathProgress> {
    for before in earlier {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(existing: u64, verified: u64) -> Ended {
        Ended {
            result: Ok([0; 32]),
            progress: Progress {
                total: 100,
                verified,
                existing,
                files: 1,
                skipped: 0,
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
            failed: (Vec::new(), 0),
            stripped: 0,
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

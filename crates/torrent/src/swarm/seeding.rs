//! Seeding after the last piece of a download, over the same connections.

use std::time::{Duration, Instant};

use hawser_choker::Goal;
use hawser_store::Stamps;
use tokio_util::sync::CancellationToken;

use super::event::Event;
use super::state::Swarm;
use super::subflow::Peer;
use crate::close::CloseCode;
use crate::error::DownloadError;
use crate::limits::{SeedEnd, SeedLimits, Seeding};
use crate::progress::Phase;
use crate::transport::Transport;

/// Longest wait for blocks under way when seeding reaches a limit: without it the peer would lack
/// the last blocks.
const FAREWELL: Duration = Duration::from_secs(10);

/// The text of a close when neither side can fetch anything from the other.
const BOTH_COMPLETE: &str = "both sides have everything";

/// The text of a close when seeding reaches a limit.
const LIMIT: &str = "seeding has reached its limit";

impl<T: Transport> Swarm<T> {
    /// Seeds, once everything is verified, until a limit is reached or `stop` is cancelled. At a
    /// limit it waits up to 10 s for blocks under way to arrive. `stamps` are the states of the
    /// files that were verified.
    ///
    /// # Errors
    /// When the disk fails or the endpoint is closed.
    pub async fn seed(
        &mut self,
        limits: SeedLimits,
        stamps: Stamps,
        stop: &CancellationToken,
    ) -> Result<SeedEnd, DownloadError> {
        let now = Instant::now();
        self.ending.give_up_after = None;
        self.uploads.choker.set_goal(Goal::Seeding);
        self.seeding = Some(Seeding {
            limits,
            since: now,
            end: None,
        });
        // A peer without outstanding requests is not silent.
        for conn in self.conns.open.values_mut() {
            conn.set_asked(0, now);
        }
        self.watch_content(stamps);
        self.report(now, Some(Phase::Seeding));
        let serve = async {
            self.work().await?;
            self.take_leave().await;
            Ok::<_, DownloadError>(())
        };
        tokio::select! {
            served = serve => served?,
            () = stop.cancelled() => {}
        }
        let end = self.seeding.as_ref().and_then(|seeding| seeding.end);
        Ok(end.unwrap_or(SeedEnd::Stopped))
    }

    /// Whether everything wanted is verified, so that nothing more is fetched.
    pub(super) fn is_complete(&self) -> bool {
        self.fetching.is_complete()
    }

    /// Time spent seeding since the last piece; `None` before it.
    pub fn seeded_for(&self) -> Option<Duration> {
        Some(self.seeding.as_ref()?.elapsed(Instant::now()))
    }

    /// Closes connections to peers that are complete as well. Listed ones are not dialed again, found ones after
    /// a backoff: others may have their addresses by then.
    pub(super) fn part_from_complete(&mut self, now: Instant) {
        if !self.is_complete() {
            return;
        }
        for id in self.conns.ids() {
            if !self.fetching.picker.has_all(id) {
                continue;
            }
            let mut found = None;
            if let Some((remote, dialed)) = self.remote_of(id) {
                remote.set_complete(true);
                found = remote.is_found().then_some(dialed.to);
            }
            self.drop_conn(id, CloseCode::Plain, BOTH_COMPLETE);
            if let Some(Peer::Remote(found)) = found {
                self.dismiss(found, now);
            }
        }
    }

    /// Ends seeding if a limit is reached.
    pub(super) fn check_limits(&mut self, now: Instant) {
        let uploaded = self.uploaded();
        let total = self.tally.total_bytes;
        if let Some(seeding) = &mut self.seeding {
            let elapsed = seeding.elapsed(now);
            seeding.end = seeding.limits.reached(uploaded, total, elapsed);
        }
    }

    /// Chokes all peers, and waits until each has received what was sent or [`FAREWELL`] is over.
    async fn take_leave(&mut self) {
        self.dialing.dials.cancel_all();
        for conn in self.conns.open.values_mut() {
            conn.finish();
        }
        let leave = async {
            while !self.conns.open.is_empty() {
                match self.inbox.recv().await {
                    Some(Event::Gone(id, _)) => self.drop_conn(id, CloseCode::Plain, LIMIT),
                    Some(Event::Incoming(connection)) => connection.close(CloseCode::Plain, LIMIT),
                    Some(_) => {}
                    None => return,
                }
            }
        };
        if tokio::time::timeout(FAREWELL, leave).await.is_err() {
            tracing::debug!(
                left = self.conns.open.len(),
                "peers did not take all that was sent"
            );
        }
    }
}

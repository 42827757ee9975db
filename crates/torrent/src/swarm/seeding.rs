//! After the last piece of a download: others go on being served, over the same connections.

use std::time::{Duration, Instant};

use hawser_store::Stamps;
use tokio_util::sync::CancellationToken;

use super::event::Event;
use super::state::Swarm;
use crate::close::CloseCode;
use crate::error::DownloadError;
use crate::limits::{SeedEnd, SeedLimits, Seeding};
use crate::progress::Phase;
use crate::transport::Transport;

/// Longest wait for what is under way when seeding reaches a limit: without it the peer would be
/// left with the last blocks missing.
const FAREWELL: Duration = Duration::from_secs(10);

/// Why peers part that can fetch nothing from each other.
const BOTH_COMPLETE: &str = "both sides have everything";

/// Why peers are left at a limit.
const LIMIT: &str = "seeding has reached its limit";

impl<T: Transport> Swarm<T> {
    /// Serves others, once everything is verified, until a limit is reached or `stop` is cancelled. At a
    /// limit it waits a while for what is under way to arrive. `stamps` are the states of the files
    /// that were verified.
    ///
    /// # Errors
    /// When nothing more can be done.
    pub async fn seed(
        &mut self,
        limits: SeedLimits,
        stamps: Stamps,
        stop: &CancellationToken,
    ) -> Result<SeedEnd, DownloadError> {
        let now = Instant::now();
        self.give_up_after = None;
        self.seeding = Some(Seeding {
            limits,
            since: now,
            end: None,
        });
        // A peer that is asked for nothing is not silent.
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

    /// Whether everything is verified, so that nothing is fetched any more.
    pub(super) fn is_complete(&self) -> bool {
        self.picker.verified().is_full()
    }

    /// How long others have been served since the last piece.
    pub fn seeded_for(&self) -> Option<Duration> {
        Some(self.seeding.as_ref()?.elapsed(Instant::now()))
    }

    /// Ends connections to peers that have everything, as we do; they are not dialed again.
    pub(super) fn part_from_complete(&mut self) {
        if !self.is_complete() {
            return;
        }
        for id in self.conns.ids() {
            if !self.picker.has_all(id) {
                continue;
            }
            if let Some((remote, _)) = self.remote_of(id) {
                remote.set_complete(true);
            }
            self.drop_conn(id, CloseCode::Plain, BOTH_COMPLETE);
        }
    }

    /// Notes when a limit of seeding is reached.
    pub(super) fn check_limits(&mut self, now: Instant) {
        let uploaded = self.uploaded();
        let total = self.tally.total_bytes;
        if let Some(seeding) = &mut self.seeding {
            let elapsed = seeding.elapsed(now);
            seeding.end = seeding.limits.reached(uploaded, total, elapsed);
        }
    }

    /// Lets nobody ask for more, and waits until everybody has what was sent, or [`FAREWELL`] is
    /// over.
    async fn take_leave(&mut self) {
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

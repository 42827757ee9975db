//! The effect of an SCMP error on a connection: its path becomes doubtful, and traffic decides.
//!
//! An established connection does not end because of an error alone: it sends pings, and ends only
//! if nothing that it sends afterwards is acknowledged. Before a connection is established nothing
//! shows that its path works, and an error ends it at once.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use hawser_endhost::lanes::{Doubt, Evidence, LaneEnd, LaneUser, Probing};

use crate::close::CloseReason;
use crate::driver::Connection;
use crate::progress::Progress;

/// Pings sent over a doubtful path, one each round trip. Several, because working paths lose
/// packets, too.
const PINGS: usize = 3;
/// Shortest wait for the answer to a ping: a peer may delay acknowledgements by 25 ms (RFC 9000,
/// 18.2), and scheduling on a busy host takes time.
const MIN_PING_TIMEOUT: Duration = Duration::from_millis(75);

/// The user of a lane: the QUIC connection over it.
#[derive(Debug)]
pub(crate) struct Watched {
    connection: Weak<Connection>,
    progress: Progress,
    reason: OnceLock<CloseReason>,
}

impl Watched {
    /// An established connection whose acknowledgements `progress` records.
    pub(crate) fn new(connection: Weak<Connection>, progress: Progress) -> Self {
        Self {
            connection,
            progress,
            reason: OnceLock::new(),
        }
    }

    /// Closes the connection; the first reason counts.
    pub(crate) fn close(&self, reason: CloseReason) {
        if self.reason.set(reason.clone()).is_ok()
            && let Some(connection) = self.connection.upgrade()
        {
            // Inform the peer, in case only the other direction is broken.
            let (code, text) = reason.for_peer();
            connection.close(code, &text);
        }
    }

    /// Why this side closed the connection, if it has.
    pub(crate) fn reason(&self) -> Option<&CloseReason> {
        self.reason.get()
    }

    /// The connection, while it is open.
    fn open(&self) -> Option<Arc<Connection>> {
        let connection = self.connection.upgrade()?;
        connection.error().is_none().then_some(connection)
    }

    /// The verdict; `None` when the connection ends.
    async fn wait(&self, since: Instant, only_large: bool) -> Option<Evidence> {
        let lost = || Some(self.open()?.stats().0.lost_packets);
        let lost_before = lost()?;
        for _ in 0..PINGS {
            let round = {
                let connection = self.open()?;
                connection.ping();
                connection.stats().1.rtt.max(MIN_PING_TIMEOUT)
            };
            tokio::time::sleep(round).await;
            if self.progress.is_after(since) {
                return Some(Evidence::Alive(since));
            }
        }
        // Pings are small: only lost packets show that larger ones do not get through.
        Some(match only_large && lost()? == lost_before {
            true => Evidence::Unknown,
            false => Evidence::Dead,
        })
    }
}

impl LaneUser for Watched {
    fn probe<'a>(&'a self, doubt: &'a Doubt) -> Probing<'a> {
        Box::pin(async move {
            let (since, most) = (Instant::now(), doubt.max_payload);
            self.progress.count_larger_than(most.unwrap_or(0) as u64);
            let verdict = self.wait(since, most.is_some()).await;
            self.progress.count_larger_than(0);
            verdict.unwrap_or(Evidence::Unknown)
        })
    }

    fn on_end(&self, end: &LaneEnd) {
        self.close(end.clone().into());
    }
}

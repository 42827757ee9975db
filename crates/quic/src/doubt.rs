//! What an SCMP error is worth: a doubt, which traffic decides.
//!
//! However true its quote, an error is not authenticated, and a path may work again when it arrives.
//! So it ends no connection that is set up, it makes its path doubtful: the connection sends pings,
//! and ends only if none of what it sends from then on is acknowledged. Before a connection is set up
//! nothing speaks for its path, and an error ends it at once. TCP does the same with ICMP errors (RFC
//! 5927, section 5.2).

use std::time::{Duration, Instant};

use hawser_endhost::Outage;
use noq::{PathId, WeakConnectionHandle};

use crate::connection::CloseReason;
use crate::progress::Progress;

/// Pings sent over a doubtful path, each after waiting a round trip for the one before. Several,
/// because packets are lost on paths that work, too.
const PINGS: usize = 3;
/// Shortest wait for a ping: a peer may take 25 ms to acknowledge (RFC 9000, 18.2), and hosts are
/// busy.
const SHORTEST: Duration = Duration::from_millis(75);

/// What speaks against a path.
#[derive(Debug)]
pub(crate) struct Doubt {
    /// Why the connection ends if it is true.
    pub(crate) reason: CloseReason,
    /// What is down then, unless that is known already.
    pub(crate) outage: Option<Outage>,
    /// The largest QUIC packet that gets through, if only larger ones are said not to.
    pub(crate) mtu: Option<u64>,
}

/// What traffic says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A packet sent after this time is acknowledged.
    Alive(Instant),
    /// What is sent is not acknowledged.
    Dead,
    /// Nothing can be told.
    Unknown,
}

/// Finds out whether what `doubt` says of a connection's path is true.
pub(crate) async fn decide(
    connection: &WeakConnectionHandle,
    progress: &Progress,
    doubt: &Doubt,
) -> Verdict {
    let since = Instant::now();
    progress.count_larger_than(doubt.mtu.unwrap_or(0));
    let verdict = wait(connection, progress, since, doubt.mtu.is_some()).await;
    progress.count_larger_than(0);
    verdict.unwrap_or(Verdict::Unknown)
}

/// The verdict; `None` when the connection ends.
async fn wait(
    connection: &WeakConnectionHandle,
    progress: &Progress,
    since: Instant,
    only_large: bool,
) -> Option<Verdict> {
    let lost = || Some(connection.upgrade()?.stats().lost_packets);
    let lost_before = lost()?;
    for _ in 0..PINGS {
        let round = {
            let connection = connection.upgrade()?;
            connection.path(PathId::ZERO)?.ping().ok()?;
            connection.rtt(PathId::ZERO)?.max(SHORTEST)
        };
        tokio::time::sleep(round).await;
        if progress.is_after(since) {
            return Some(Verdict::Alive(since));
        }
    }
    // Pings are small: without a large packet that is lost nothing speaks against the path.
    Some(match only_large && lost()? == lost_before {
        true => Verdict::Unknown,
        false => Verdict::Dead,
    })
}

//! What an SCMP error does to a connection: it makes its path doubtful, and traffic decides.
//!
//! Even an error with a true quote is not authenticated, and when it arrives the path may work
//! again. So it does not end an established connection: the connection sends pings, and ends only
//! if nothing it sends from then on is acknowledged. Before a connection is established nothing
//! speaks for its path, and an error ends it at once. TCP treats ICMP errors the same way (RFC
//! 5927, section 5.2).

use std::time::{Duration, Instant};

use hawser_endhost::Outage;
use noq::{PathId, WeakConnectionHandle};

use crate::connection::CloseReason;
use crate::progress::Progress;

/// Pings sent over a doubtful path, one each round trip. Several, because working paths lose
/// packets, too.
const PINGS: usize = 3;
/// Shortest wait for the answer to a ping: a peer may delay acknowledgements by 25 ms (RFC 9000,
/// 18.2), and scheduling on a busy host takes time.
const SHORTEST: Duration = Duration::from_millis(75);

/// What speaks against a path.
#[derive(Debug)]
pub(crate) struct Doubt {
    /// Why the connection ends if it is true.
    pub(crate) reason: CloseReason,
    /// The outage to report to the host if it is true, unless it comes from there.
    pub(crate) outage: Option<Outage>,
    /// For "packet too big": the largest QUIC packet that is said to get through, in bytes.
    pub(crate) mtu: Option<u64>,
}

/// Whether a doubt is true, as traffic shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A packet sent after this time is acknowledged.
    Alive(Instant),
    /// Nothing sent since is acknowledged.
    Dead,
    /// Traffic does not show it, or the connection has ended.
    Unknown,
}

/// Finds out by pings whether `doubt` is true of the path of `connection`.
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
    // Pings are small: only lost packets show that larger ones do not get through.
    Some(match only_large && lost()? == lost_before {
        true => Verdict::Unknown,
        false => Verdict::Dead,
    })
}

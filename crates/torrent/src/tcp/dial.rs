//! Dialing IP peers: over TCP at once, and over uTP as well if TCP is not connected soon.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

use super::half::Half;
use crate::failed::why;
use crate::utp::UtpDialer;

/// How long TCP is ahead of uTP: a peer that takes TCP is rarely further away, and one behind a firewall that
/// drops it loses no more than this.
const UTP_DELAY: Duration = Duration::from_millis(400);

/// Connects to a peer over TCP or uTP, whichever is connected first; `utp` is `None` to use TCP alone, and
/// `tcp` says whether that is used.
///
/// # Errors
/// The reasons if neither is.
pub(super) async fn connect(
    peer: SocketAddr,
    tcp: bool,
    utp: Option<&UtpDialer>,
) -> Result<Half, String> {
    let over_tcp = async {
        let stream = TcpStream::connect(peer).await.map_err(|e| why(&e))?;
        if stream.local_addr().is_ok_and(|local| local == peer) {
            // The system chose the very port that is dialed for this end: where nothing listens, a
            // connection then opens to itself (RFC 9293, simultaneous open).
            return Err("nothing listens there".into());
        }
        Ok(Half::tcp(stream))
    };
    let Some(utp) = utp else {
        return over_tcp.await;
    };
    let over_utp = async {
        let stream = utp.connect(peer).await;
        let stream = stream.map_err(|e| format!("over uTP: {}", why(&e)))?;
        Ok(Half::utp(stream))
    };
    match tcp {
        true => race(over_tcp, UTP_DELAY, over_utp).await,
        false => over_utp.await,
    }
}

/// The result of `first`, or of `second`, which begins `delay` later, or at once if `first` fails: of the one
/// that succeeds first. If both fail, the reasons of both.
async fn race<T>(
    first: impl Future<Output = Result<T, String>>,
    delay: Duration,
    second: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let both = |one: String, other: String| format!("{one}; {other}");
    tokio::select! {
        done = &mut first => return match done {
            Ok(done) => Ok(done),
            Err(one) => second.await.map_err(|other| both(one, other)),
        },
        () = sleep(delay) => {}
    }
    tokio::select! {
        done = &mut first => match done {
            Ok(done) => Ok(done),
            Err(one) => second.await.map_err(|other| both(one, other)),
        },
        done = &mut second => match done {
            Ok(done) => Ok(done),
            Err(other) => first.await.map_err(|one| both(one, other)),
        },
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// Ends after some milliseconds.
    async fn after(ms: u64, result: Result<u8, &str>) -> Result<u8, String> {
        sleep(Duration::from_millis(ms)).await;
        result.map_err(str::to_owned)
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_success_counts_and_failures_lose_no_time() {
        let delay = Duration::from_millis(400);
        let (yes, no) = (Ok, Err::<u8, &str>);
        for (first, second, result, ms) in [
            ((100, yes(1)), (0, yes(2)), Ok(1), 100),
            ((900, yes(1)), (100, yes(2)), Ok(2), 500),
            ((450, yes(1)), (100, yes(2)), Ok(1), 450),
            ((10, no("a")), (50, yes(2)), Ok(2), 60),
            ((450, no("a")), (300, yes(2)), Ok(2), 700),
            ((900, yes(1)), (100, no("b")), Ok(1), 900),
            ((10, no("a")), (50, no("b")), Err("a; b".to_owned()), 60),
            ((900, no("a")), (50, no("b")), Err("a; b".to_owned()), 900),
        ] {
            let begun = Instant::now();
            let raced = race(after(first.0, first.1), delay, after(second.0, second.1)).await;
            assert_eq!(raced, result);
            assert_eq!(begun.elapsed().as_millis(), ms);
        }
    }
}

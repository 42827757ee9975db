//! Copies a connection in both directions, or lends it to the carrier while little comes.
//!
//! The holder copies until there were [`CALM_READS`] reads in a row of less than [`LITTLE`] bytes, in both
//! directions together. Then the futures that copy are dropped, and the connection is lent if nothing is
//! left to be written. When the loan has ended, what the carrier has read and not written is taken from the
//! pipes, and the holder copies again. The end of a direction is passed on by the holder only.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use hawser_mptcp::{BUFFER_LIMIT, Info};
use tokio::sync::Notify;

use super::carrier::Carriers;
use super::lender::Loan;
use super::relays::Relayed;
use crate::lending::LITTLE;
use crate::lending::channel::Pipe;
use crate::relay::{self, Watched};

/// Reads in a row after which a connection is lent.
const CALM_READS: u32 = 16;
/// Interval at which the kernel is asked whether a lent connection has something to read that it has not
/// reported ([`hawser_mptcp::has_received`]): while something arrives, and at last on one at rest.
const CHECK_INTERVAL: Range<Duration> = Duration::from_millis(100)..Duration::from_secs(10);
/// How long that may take to be read by the carrier.
const READ_TIMEOUT: Duration = Duration::from_millis(20);

/// A connection that is copied. Its state outlives the futures of its methods: one that is dropped loses
/// no bytes.
pub(super) struct Exchange<'a> {
    /// The connection to the program or server.
    local: &'a Watched,
    /// The connection to the other holder.
    peer: &'a Watched,
    relayed: &'a Relayed,
    carriers: &'a Carriers,
    /// From `local` to `peer`.
    out: Direction,
    /// From `peer` to `local`.
    into: Direction,
    /// Until it has ended, nothing is read or written here.
    loan: Option<Loan>,
}

#[derive(Default)]
struct Direction {
    /// What was read and is to be written.
    rest: BytesMut,
    /// Whether its end was passed on.
    is_over: bool,
}

/// Notices that little comes.
#[derive(Default)]
struct Calm {
    reads: AtomicU32,
    reached: Notify,
}

impl Calm {
    fn on_read(&self, bytes: usize) {
        // One task reads in both directions.
        let reads = match bytes < LITTLE {
            true => self.reads.load(Ordering::Relaxed).saturating_add(1),
            false => 0,
        };
        self.reads.store(reads, Ordering::Relaxed);
        if reads == CALM_READS {
            self.reached.notify_one();
        }
    }
}

impl<'a> Exchange<'a> {
    /// Between a program or server and the other holder.
    pub(super) fn new(
        local: &'a Watched,
        peer: &'a Watched,
        relayed: &'a Relayed,
        carriers: &'a Carriers,
    ) -> Self {
        Self {
            local,
            peer,
            relayed,
            carriers,
            out: Direction::default(),
            into: Direction::default(),
            loan: None,
        }
    }

    /// Copies until both directions have ended.
    ///
    /// # Errors
    /// When one of the connections breaks.
    pub(super) async fn run(&mut self) -> io::Result<()> {
        loop {
            self.end_loan(false).await?;
            let calm = Calm::default();
            let (out, into) = (&mut self.out, &mut self.into);
            let both = async {
                tokio::try_join!(
                    send(self.local, self.peer, self.relayed, out, &calm),
                    receive(self.peer, self.local, into, &calm),
                )
            };
            tokio::select! {
                biased;
                done = both => return done.map(drop),
                () = calm.reached.notified() => self.lend(),
            }
        }
    }

    /// Copies what comes from the other holder until that direction has ended.
    ///
    /// # Errors
    /// When one of the connections breaks.
    pub(super) async fn run_into(&mut self) -> io::Result<()> {
        self.end_loan(true).await?;
        let calm = Calm::default();
        receive(self.peer, self.local, &mut self.into, &calm).await
    }

    /// Lends the connection, if it can be.
    fn lend(&mut self) {
        let is_open = |direction: &Direction| !direction.is_over && direction.rest.is_empty();
        if !is_open(&self.out) || !is_open(&self.into) {
            return;
        }
        let Some(lender) = self.carriers.lender() else {
            return;
        };
        self.local.unwatch();
        self.peer.unwatch();
        self.loan = lender.lend(self.local, self.peer);
    }

    /// Waits until the connection is not lent any more; with `recall`, it is wanted back.
    async fn end_loan(&mut self, recall: bool) -> io::Result<()> {
        let Some(loan) = &mut self.loan else {
            return Ok(());
        };
        if recall {
            loan.recall();
        }
        let mut looked = Ok(());
        tokio::select! {
            ended = loan.ended() => ended?,
            unreported = unreported(self.peer) => {
                looked = unreported;
                loan.recall();
                loan.ended().await?;
            }
        }
        // The kernel reports an error once: what reads next would find the end of the stream in its place.
        looked?;
        take(&loan.out, &mut self.out.rest)?;
        take(&loan.into, &mut self.into.rest)?;
        self.loan = None;
        Ok(())
    }
}

/// Copies what the program or server sends, and then the end.
async fn send(
    local: &Watched,
    peer: &Watched,
    relayed: &Relayed,
    direction: &mut Direction,
    calm: &Calm,
) -> io::Result<()> {
    if direction.is_over {
        return Ok(());
    }
    let on_read = |bytes| calm.on_read(bytes);
    relay::copy_bytes(local, peer, &mut direction.rest, on_read).await?;
    relayed.finish(peer).await?;
    relayed.set_written();
    direction.is_over = true;
    Ok(())
}

/// Copies what comes from the other holder, and then the end.
async fn receive(
    peer: &Watched,
    local: &Watched,
    direction: &mut Direction,
    calm: &Calm,
) -> io::Result<()> {
    if direction.is_over {
        return Ok(());
    }
    let on_read = |bytes| calm.on_read(bytes);
    relay::copy_bytes(peer, local, &mut direction.rest, on_read).await?;
    relay::finish(local)?;
    direction.is_over = true;
    Ok(())
}

/// Waits until there is something to read at `peer` that the kernel reports to nobody.
async fn unreported(peer: &Watched) -> io::Result<()> {
    let mut pause = CHECK_INTERVAL.start;
    let has_received = || hawser_mptcp::has_received(peer, BUFFER_LIMIT as usize);
    // Of a connection that is broken nothing is known, and the next look says so.
    let received = || Info::read(peer).ok().map(|info| info.bytes_received);
    let mut before = received();
    loop {
        tokio::time::sleep(pause).await;
        if has_received()? {
            tokio::time::sleep(READ_TIMEOUT).await;
            if has_received()? {
                return Ok(());
            }
        }
        let now = received();
        // Where something arrives, something may be stuck.
        pause = match now == before {
            true => (pause * 2).min(CHECK_INTERVAL.end),
            false => CHECK_INTERVAL.start,
        };
        before = now;
    }
}

/// Takes what is in a pipe.
fn take(pipe: &Pipe, rest: &mut BytesMut) -> io::Result<()> {
    let mut chunk = [0; 4096];
    loop {
        match rustix::io::read(&pipe.read, &mut chunk) {
            // This process has the other end, too: it is never at an end.
            Ok(bytes) => rest.extend_from_slice(&chunk[..bytes]),
            Err(rustix::io::Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;

//! The holder's end of a channel over which it lends connections.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::net::Shutdown;
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::sync::oneshot;

use crate::lending::channel::{self, Pipe};
use crate::lending::{Ledger, Lend, LoanId, Message};
use crate::relay::Watched;

/// Lends connections to one carrier. Cloning shares it.
#[derive(Clone)]
pub(super) struct Lender(Arc<Inner>);

struct Inner {
    /// Of messages, whose order is kept (`SOCK_SEQPACKET`).
    end: UnixDatagram,
    began: Instant,
    /// Each loan with what learns of its end.
    ledger: Mutex<Ledger<oneshot::Sender<u16>>>,
}

/// A connection that is lent. Dropping it recalls the loan; it has not ended then.
pub(super) struct Loan {
    lender: Lender,
    id: LoanId,
    pub(super) out: Pipe,
    pub(super) into: Pipe,
    ended: oneshot::Receiver<u16>,
}

impl Lender {
    /// Lends up to `limit` connections at once. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn new(end: OwnedFd, limit: usize) -> io::Result<Self> {
        let lender = Self(Arc::new(Inner {
            end: UnixDatagram::from_std(end.into())?,
            began: Instant::now(),
            ledger: Mutex::new(Ledger::new(limit)),
        }));
        let receiver = lender.clone();
        tokio::spawn(async move {
            if let Err(error) = receiver.receive().await {
                tracing::warn!("the carrier copies no connections any more: {error}");
                receiver.shut();
                receiver.closed().await;
            }
            // The carrier's thread has stopped. What learns of it may be gone.
            for ended in receiver.ledger().on_close() {
                let _ = ended.send(0);
            }
        });
        Ok(lender)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger<oneshot::Sender<u16>>> {
        (self.0.ledger.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives until the carrier has closed its end.
    async fn receive(&self) -> io::Result<()> {
        loop {
            let received = || channel::receive(&self.0.end);
            match self.0.end.async_io(Interest::READABLE, received).await? {
                Some((Message::Return(id, error), _)) => {
                    let ended = self.ledger().on_return(id).map_err(io::Error::other)?;
                    // The connection may have ended meanwhile.
                    let _ = ended.send(error);
                }
                Some(_) => return Err(io::ErrorKind::InvalidData.into()),
                None => return Ok(()),
            }
        }
    }

    /// Waits until the carrier has closed its end, whatever it sends.
    async fn closed(&self) {
        let receive = || match channel::receive(&self.0.end) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(true),
            received => received.map(|message| message.is_some()),
        };
        while let Ok(true) = self.0.end.async_io(Interest::READABLE, receive).await {}
    }

    /// Has the carrier stop, return nothing, and close its end.
    fn shut(&self) {
        // It fails only when the carrier has closed it.
        let _ = rustix::net::shutdown(&self.0.end, Shutdown::Write);
    }

    /// Lends a connection between `local`, a program or server, and `peer`, the other holder, which this
    /// process neither reads nor writes until the loan [has ended](Loan::ended). `None` if it cannot be
    /// lent at present.
    pub(super) fn lend(&self, local: &Watched, peer: &Watched) -> Option<Loan> {
        let pipes = Pipe::new().and_then(|out| Ok((out, Pipe::new()?)));
        // There are no more descriptors: the holder copies, as before.
        let (out, into) = pipes.ok()?;
        let (sender, ended) = oneshot::channel();
        let lend = self.ledger().lend(self.0.began.elapsed(), sender);
        let id = match lend {
            Lend::Granted(id) => id,
            Lend::Full(oldest) => {
                if let Some(oldest) = oldest {
                    self.send_recall(oldest);
                }
                return None;
            }
            Lend::Closed => return None,
        };
        let files = [
            local.as_fd(),
            peer.as_fd(),
            out.read.as_fd(),
            out.write.as_fd(),
            into.read.as_fd(),
            into.write.as_fd(),
        ];
        if let Err(error) = channel::send(&self.0.end, Message::Lend(id), &files) {
            tracing::debug!(%error, "a connection is not lent");
            self.ledger().cancel(id);
            return None;
        }
        Some(Loan {
            lender: self.clone(),
            id,
            out,
            into,
            ended,
        })
    }

    fn send_recall(&self, id: LoanId) {
        let sent = channel::send(&self.0.end, Message::Recall(id), &[]);
        // It has not taken earlier messages, of which there are few, or is gone: either way all loans end.
        if let Err(error) = sent {
            tracing::debug!(%error, "a loan is not recalled");
            self.shut();
        }
    }
}

impl Loan {
    /// Wants the connection back.
    pub(super) fn recall(&self) {
        let is_lent = self.lender.ledger().recall(self.id);
        if is_lent {
            self.lender.send_recall(self.id);
        }
    }

    /// Waits until the carrier copies no longer.
    ///
    /// # Errors
    /// That with which one of the sockets broke.
    pub(super) async fn ended(&mut self) -> io::Result<()> {
        // The sender is in the ledger until then, and is never dropped unused.
        match (&mut self.ended).await {
            Ok(error @ 1..) => Err(io::Error::from_raw_os_error(error.into())),
            _ => Ok(()),
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.recall();
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn socket() -> Watched {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap());
        Watched::from_tokio(stream.await.unwrap()).unwrap()
    }

    /// The next message at the carrier's end.
    async fn next(carrier: &UnixDatagram) -> Option<Message> {
        let receive = || channel::receive(carrier);
        let received = carrier.async_io(Interest::READABLE, receive).await.unwrap();
        received.map(|(message, _)| message)
    }

    async fn lent(carrier: &UnixDatagram) -> LoanId {
        match next(carrier).await {
            Some(Message::Lend(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn loans_end_when_they_are_returned_and_with_the_carrier() {
        let (ours, theirs) = channel::pair().unwrap();
        let lender = Lender::new(ours, 4).unwrap();
        let carrier = UnixDatagram::from_std(theirs.into()).unwrap();
        let (local, peer) = (socket().await, socket().await);
        let [mut first, mut second] = [(); 2].map(|()| lender.lend(&local, &peer).unwrap());
        let (id, _) = (lent(&carrier).await, lent(&carrier).await);
        first.recall();
        first.recall();
        assert_eq!(next(&carrier).await, Some(Message::Recall(id)));
        channel::send(&carrier, Message::Return(id, 0), &[]).unwrap();
        first.ended().await.unwrap();
        drop(carrier);
        second.ended().await.unwrap();
        assert!(lender.lend(&local, &peer).is_none());
    }

    #[tokio::test]
    async fn a_loan_that_is_no_longer_wanted_is_recalled() {
        let (ours, theirs) = channel::pair().unwrap();
        let lender = Lender::new(ours, 4).unwrap();
        let carrier = UnixDatagram::from_std(theirs.into()).unwrap();
        let (local, peer) = (socket().await, socket().await);
        drop(lender.lend(&local, &peer).unwrap());
        let id = lent(&carrier).await;
        assert_eq!(next(&carrier).await, Some(Message::Recall(id)));
    }

    #[tokio::test]
    async fn a_carrier_that_breaks_the_rules_is_shut_and_copies_until_it_has_closed() {
        let (ours, theirs) = channel::pair().unwrap();
        let lender = Lender::new(ours, 4).unwrap();
        let carrier = UnixDatagram::from_std(theirs.into()).unwrap();
        let (local, peer) = (socket().await, socket().await);
        let mut loan = lender.lend(&local, &peer).unwrap();
        lent(&carrier).await;
        channel::send(&carrier, Message::Return(LoanId(99), 0), &[]).unwrap();
        assert_eq!(next(&carrier).await, None);
        // It still has what was lent.
        assert!(loan.ended.try_recv().is_err());
        drop(carrier);
        loan.ended().await.unwrap();
    }
}

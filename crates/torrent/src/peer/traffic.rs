//! Data passed between a connection and the owner of the torrent, and the requests of a peer that
//! are not answered yet.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hawser_store::Reservation;
use tokio::sync::Notify;

use super::waiting::{MAX_WAITING, Waiting};
use crate::bitfield::Bitfield;
use crate::merkle::Hash;
use crate::wire::{Exchange, ExtendedHandshake, HashRequest, Multipath, Request, WireError};

/// State that the task of a connection shares with the owner of the torrent.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Bytes read from the stream.
    pub received: AtomicU64,
    /// Bytes of blocks written to it.
    pub uploaded: AtomicU64,
    /// Whether nothing is read at present, as what was read waits for the disk or the owner.
    pub backlogged: AtomicBool,
    /// Bytes of the owner's messages, without Have, that the stream has not taken yet.
    pub unsent: AtomicUsize,
    /// Requests of the peer.
    pub uploads: Uploads,
}

/// A message of a peer that the owner of the torrent acts on.
#[derive(Debug)]
pub(crate) enum Input {
    Block {
        request: Request,
        data: Bytes,
    },
    Have(u32),
    Bitfield(Bitfield),
    Choke,
    Unchoke,
    Interested,
    NotInterested,
    Extended(ExtendedHandshake),
    Multipath(Multipath),
    Exchange(Exchange),
    /// The port of the peer's node of the DHT (BEP 5).
    Port(u16),
    /// Hashes of version 2 are wanted (BEP 52).
    HashRequest(HashRequest),
    /// Hashes of version 2 that were requested.
    Hashes(HashRequest, Vec<Hash>),
    /// Hashes of version 2 are not sent.
    HashReject(HashRequest),
    /// A piece of the info dictionary is asked for (BEP 9).
    MetadataRequest(u32),
}

/// The messages from one read of the stream.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub inputs: Vec<Input>,
    /// Held until the blocks among them are on disk; `None` without blocks.
    pub room: Option<Reservation>,
}

/// Output of the owner to a peer, except blocks.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// Encoded messages, and how many of their bytes [`Traffic::unsent`] counts.
    Messages(Vec<u8>, usize),
    /// The end of the stream, after all earlier output.
    End,
}

/// Requests of a peer, in the order received. It is choked at first; requests are then dropped.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    /// `None` while choked.
    queue: Mutex<Option<Waiting>>,
    more: Notify,
}

impl Uploads {
    /// Accepts requests.
    pub fn unchoke(&self) {
        self.lock().get_or_insert_default();
    }

    /// Drops all requests, waiting and future ones (BEP 3).
    pub fn choke(&self) {
        *self.lock() = None;
    }

    /// Queues a request and ends the wait of [`Uploads::more`].
    ///
    /// # Errors
    /// If [`MAX_WAITING`] requests wait already.
    pub fn push(&self, request: Request) -> Result<(), WireError> {
        let mut queue = self.lock();
        let Some(queue) = queue.as_mut() else {
            return Ok(());
        };
        if !queue.push(request) {
            return Err(WireError::TooManyRequests(MAX_WAITING));
        }
        self.more.notify_one();
        Ok(())
    }

    /// Drops a request that is still waiting.
    pub fn cancel(&self, request: Request) {
        let mut queue = self.lock();
        if let Some(queue) = queue.as_mut() {
            queue.cancel(request);
        }
    }

    /// Waits until there may be requests to take.
    pub async fn more(&self) {
        self.more.notified().await;
    }

    /// Whether there are requests to take.
    pub fn has_some(&self) -> bool {
        let queue = self.lock();
        queue.as_ref().is_some_and(|queue| queue.len() > 0)
    }

    /// Takes the next requests, together for at most `bytes` bytes, but at least one if any waits.
    pub fn take(&self, bytes: u32) -> Vec<Request> {
        let mut queue = self.lock();
        let mut taken = Vec::new();
        let Some(queue) = queue.as_mut() else {
            return taken;
        };
        let mut sum = 0;
        while let Some(request) = queue.front() {
            sum += request.length;
            if sum > bytes && !taken.is_empty() {
                break;
            }
            taken.push(request);
            queue.pop_front();
        }
        taken
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(begin: u32) -> Request {
        Request {
            piece: 0,
            begin,
            length: 10,
        }
    }

    #[test]
    fn requests_leave_in_order_without_those_cancelled() {
        let uploads = Uploads::default();
        uploads.unchoke();
        for begin in 0..5 {
            uploads.push(request(begin)).unwrap();
        }
        uploads.cancel(request(1));
        uploads.cancel(request(9));
        assert_eq!(uploads.take(25), [request(0), request(2)]);
        assert_eq!(uploads.take(1), [request(3)]);
        assert_eq!(uploads.take(100), [request(4)]);
        assert_eq!(uploads.take(100), []);
    }

    #[test]
    fn requests_while_choked_are_dropped() {
        let uploads = Uploads::default();
        uploads.push(request(0)).unwrap();
        uploads.unchoke();
        assert_eq!(uploads.take(100), []);
        uploads.push(request(1)).unwrap();
        uploads.choke();
        uploads.unchoke();
        assert_eq!(uploads.take(100), []);
        uploads.push(request(2)).unwrap();
        assert_eq!(uploads.take(100), [request(2)]);
    }

    #[test]
    fn the_queue_is_bounded() {
        let uploads = Uploads::default();
        uploads.unchoke();
        (0..MAX_WAITING as u32).for_each(|begin| uploads.push(request(begin)).unwrap());
        assert_eq!(
            uploads.push(request(0)),
            Err(WireError::TooManyRequests(MAX_WAITING))
        );
    }
}

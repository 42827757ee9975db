//! A node of the DHT over SCION.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hawser_address::{PeerAddr, ScionAddr};
use tokio::sync::Semaphore;

use super::DhtSocket;
use crate::datagrams::Datagrams;
use crate::scion::ScionDatagrams;

/// Most datagrams that wait for a path to their node, or for the socket.
const MAX_UNSENT: usize = 64;
/// Longest wait for a path. A query that is sent later is answered too late.
const PATH_TIMEOUT: Duration = Duration::from_secs(2);

/// The socket of a node. The look-up of a path to one node does not keep datagrams to others waiting.
#[derive(Debug)]
pub(super) struct ScionSocket {
    datagrams: Arc<ScionDatagrams>,
    room: Arc<Semaphore>,
}

impl ScionSocket {
    pub fn new(datagrams: ScionDatagrams) -> Self {
        Self {
            datagrams: Arc::new(datagrams),
            room: Arc::new(Semaphore::new(MAX_UNSENT)),
        }
    }
}

impl DhtSocket<ScionAddr> for ScionSocket {
    async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, ScionAddr)> {
        let (from, payload) = self.datagrams.receive().await?;
        let from = from.scion().ok_or(io::ErrorKind::Unsupported)?;
        let length = payload.len().min(buffer.len());
        buffer[..length].copy_from_slice(&payload[..length]);
        Ok((length, from))
    }

    async fn send(&self, bytes: &[u8], to: ScionAddr) -> io::Result<()> {
        let room = Arc::clone(&self.room).try_acquire_owned();
        let room = room.map_err(|_| io::ErrorKind::WouldBlock)?;
        let (datagrams, bytes) = (Arc::clone(&self.datagrams), bytes.to_vec());
        tokio::spawn(async move {
            let sent = datagrams.send(PeerAddr::Scion(to), &bytes);
            let sent = tokio::time::timeout(PATH_TIMEOUT, sent).await;
            if let Ok(Err(error)) = sent {
                tracing::debug!(%to, %error, "a datagram of the DHT was not sent");
            }
            drop(room);
        });
        Ok(())
    }
}

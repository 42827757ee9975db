//! Local discovery (BEP 14): peers on the own network find each other by multicast.

mod announcer;
mod message;
mod socket;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use hawser_address::PeerAddr;
use hawser_kernel::netlink::NetlinkError;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::announcer::LocalAnnouncer;
use self::message::{Announcement, MAX_MESSAGE};
use self::socket::{GROUP_V4, GROUP_V6, GroupSocket};

/// Why there is no local discovery.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The addresses of this host cannot be read.
    #[error("the addresses of this host cannot be read: {0}")]
    Addresses(#[from] NetlinkError),
    /// No interface takes part.
    #[error("no interface of this host takes part in local discovery{}", reason(.0.as_ref()))]
    NoInterface(Option<io::Error>),
}

fn reason(error: Option<&io::Error>) -> String {
    error.map_or(String::new(), |error| format!(": {error}"))
}

/// What is looked for on the own network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalSearch {
    /// The torrent.
    pub info_hash: [u8; 20],
    /// The TCP port at which peers connect, which is announced; `None` to look for others alone.
    pub port: Option<u16>,
    /// The address of the only interface to be used; `None` for all.
    pub ip: Option<IpAddr>,
}

/// One torrent on the own network. It ends when it is dropped.
#[derive(Debug)]
pub struct LocalDiscovery {
    task: JoinHandle<()>,
}

impl Drop for LocalDiscovery {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl LocalDiscovery {
    /// Announces a torrent every five minutes, if a port is given, and looks for peers of it. They go to
    /// `sink`; while that is full, further ones are dropped until they announce themselves again. Must be
    /// called inside a tokio runtime.
    ///
    /// # Errors
    /// If no interface can be used.
    pub fn spawn(
        search: LocalSearch,
        sink: mpsc::Sender<Vec<PeerAddr>>,
    ) -> Result<Self, LocalError> {
        let interfaces = hawser_kernel::interface::addresses()?;
        let wanted = interfaces
            .into_iter()
            .filter(|(_, ip)| match search.ip {
                Some(only) => *ip == only,
                None => !ip.is_loopback(),
            })
            .collect::<Vec<_>>();
        let mut failed = None;
        let mut open = |group| match GroupSocket::open(group, &wanted) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::debug!(%group, %error, "no local discovery");
                failed = Some(error);
                None
            }
        };
        let sockets = [open(GROUP_V4), open(GROUP_V6)];
        if sockets.iter().all(Option::is_none) {
            return Err(LocalError::NoInterface(failed));
        }
        let cookie = format!("{:016x}", fastrand::Rng::new().u64(..));
        let mut announcer = LocalAnnouncer::new(cookie);
        announcer.add(search.info_hash, search.port.is_some(), Instant::now());
        let driver = Driver {
            sockets,
            announcer,
            port: search.port,
            sink,
        };
        let task = tokio::spawn(driver.run());
        Ok(Self { task })
    }
}

struct Driver {
    /// Over IPv4 and over IPv6.
    sockets: [Option<GroupSocket>; 2],
    announcer: LocalAnnouncer,
    port: Option<u16>,
    sink: mpsc::Sender<Vec<PeerAddr>>,
}

impl Driver {
    async fn run(mut self) {
        // One more byte shows that a message is too long.
        let mut buffers = [[0; MAX_MESSAGE + 1]; 2];
        loop {
            self.announce().await;
            let due = self.announcer.next_due();
            let expired = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            let [v4, v6] = &mut buffers;
            let (length, from) = tokio::select! {
                received = receive(self.sockets[0].as_ref(), v4) => received,
                received = receive(self.sockets[1].as_ref(), v6) => received,
                () = expired => continue,
            };
            let buffer = match from {
                SocketAddr::V4(_) => &buffers[0],
                SocketAddr::V6(_) => &buffers[1],
            };
            self.take(&buffer[..length], from);
        }
    }

    async fn announce(&mut self) {
        let info_hashes = self.announcer.advance(Instant::now());
        let Some(port) = self.port.filter(|_| !info_hashes.is_empty()) else {
            return;
        };
        let announcement = self.announcer.announcement(port, info_hashes);
        for socket in self.sockets.iter().flatten() {
            let message = announcement.write(&socket.group().to_string());
            socket.send(message.as_bytes()).await;
        }
    }

    fn take(&self, message: &[u8], from: SocketAddr) {
        match Announcement::read(message) {
            Ok(announcement) if self.announcer.is_peer(&announcement) => {
                let mut peer = from;
                peer.set_port(announcement.port);
                let _ = self.sink.try_send(vec![PeerAddr::Ip(peer)]);
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%from, %error, "not an announcement of local discovery"),
        }
    }
}

async fn receive(socket: Option<&GroupSocket>, buffer: &mut [u8]) -> (usize, SocketAddr) {
    match socket {
        Some(socket) => socket.receive(buffer).await,
        None => std::future::pending().await,
    }
}

//! Local discovery (BEP 14): peers on the own network find each other by multicast.

mod announcer;
mod message;
mod socket;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hawser_address::PeerAddr;
use hawser_kernel::netlink::NetlinkError;
use thiserror::Error;
use tokio::sync::{Notify, mpsc};
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

/// Where this host takes part in local discovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalOptions {
    /// The TCP port at which peers connect, which is announced; `None` to look for others alone.
    pub port: Option<u16>,
    /// The address of the only interface to be used; `None` for all but the loopback.
    pub ip: Option<IpAddr>,
}

/// The own network, on which torrents are announced and looked for. Clones are handles of the same, and its
/// sockets are closed when the last handle and the last [`LocalSearch`] are dropped.
#[derive(Debug, Clone)]
pub struct LocalDiscovery {
    running: Arc<Running>,
}

/// The search for one torrent on the own network. It ends when it is dropped.
#[derive(Debug)]
pub struct LocalSearch {
    running: Arc<Running>,
    info_hash: [u8; 20],
    number: u64,
}

#[derive(Debug)]
struct Running {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug)]
struct Shared {
    torrents: Mutex<Torrents>,
    /// Wakes the task when a torrent may be due earlier than it waits for.
    changed: Notify,
}

#[derive(Debug)]
struct Torrents {
    announcer: LocalAnnouncer,
    /// Where peers of each torrent go. The number is that of its search.
    sinks: BTreeMap<[u8; 20], (u64, mpsc::Sender<Vec<PeerAddr>>)>,
    searches: u64,
}

impl Shared {
    /// Held for short operations in memory alone.
    fn lock(&self) -> MutexGuard<'_, Torrents> {
        self.torrents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LocalDiscovery {
    /// Joins the groups of local discovery (BEP 14). Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If no interface can be used.
    pub fn open(options: LocalOptions) -> Result<Self, LocalError> {
        let interfaces = hawser_kernel::interface::addresses()?;
        let wanted = interfaces
            .into_iter()
            .filter(|(_, ip)| match options.ip {
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
        let shared = Arc::new(Shared {
            torrents: Mutex::new(Torrents {
                announcer: LocalAnnouncer::new(cookie),
                sinks: BTreeMap::new(),
                searches: 0,
            }),
            changed: Notify::new(),
        });
        let driver = Driver {
            sockets,
            shared: Arc::clone(&shared),
            port: options.port,
        };
        let task = tokio::spawn(driver.run());
        let running = Arc::new(Running { shared, task });
        Ok(Self { running })
    }

    /// Looks for peers of a torrent, and announces it every five minutes if it `announces` and there is a
    /// port. Peers go to `sink`; while that is full, further ones are dropped until they announce themselves
    /// again. An earlier search for the same torrent finds nothing more.
    pub fn search(
        &self,
        info_hash: [u8; 20],
        announces: bool,
        sink: mpsc::Sender<Vec<PeerAddr>>,
    ) -> LocalSearch {
        let number = {
            let mut torrents = self.running.shared.lock();
            torrents.searches += 1;
            let number = torrents.searches;
            torrents.sinks.insert(info_hash, (number, sink));
            let now = Instant::now();
            torrents.announcer.add(info_hash, announces, now);
            number
        };
        self.running.shared.changed.notify_one();
        LocalSearch {
            running: Arc::clone(&self.running),
            info_hash,
            number,
        }
    }
}

impl LocalSearch {
    /// Announces the torrent from now on.
    pub fn announce(&self) {
        let shared = &self.running.shared;
        let mut torrents = shared.lock();
        if torrents.is_latest(self) {
            let now = Instant::now();
            torrents.announcer.add(self.info_hash, true, now);
            shared.changed.notify_one();
        }
    }
}

impl Drop for LocalSearch {
    fn drop(&mut self) {
        let mut torrents = self.running.shared.lock();
        if torrents.is_latest(self) {
            torrents.sinks.remove(&self.info_hash);
            torrents.announcer.remove(self.info_hash);
        }
    }
}

impl Torrents {
    /// Whether no later search looks for the same torrent.
    fn is_latest(&self, search: &LocalSearch) -> bool {
        let latest = self.sinks.get(&search.info_hash);
        latest.is_some_and(|(number, _)| *number == search.number)
    }
}

struct Driver {
    /// Over IPv4 and over IPv6.
    sockets: [Option<GroupSocket>; 2],
    shared: Arc<Shared>,
    port: Option<u16>,
}

impl Driver {
    async fn run(self) {
        // One more byte shows that a message is too long.
        let mut buffers = [[0; MAX_MESSAGE + 1]; 2];
        loop {
            let due = match self.port {
                Some(port) => self.announce(port).await,
                None => None,
            };
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
                () = self.shared.changed.notified() => continue,
            };
            let buffer = match from {
                SocketAddr::V4(_) => &buffers[0],
                SocketAddr::V6(_) => &buffers[1],
            };
            self.take(&buffer[..length], from);
        }
    }

    /// Announces what is due, and returns when something is due again.
    async fn announce(&self, port: u16) -> Option<Instant> {
        let (announcement, due) = {
            let mut torrents = self.shared.lock();
            let info_hashes = torrents.announcer.advance(Instant::now());
            let due = torrents.announcer.next_due();
            let any = !info_hashes.is_empty();
            let announcement = any.then(|| torrents.announcer.announcement(port, info_hashes));
            (announcement, due)
        };
        if let Some(announcement) = announcement {
            for socket in self.sockets.iter().flatten() {
                let message = announcement.write(&socket.group().to_string());
                socket.send(message.as_bytes()).await;
            }
        }
        due
    }

    fn take(&self, message: &[u8], from: SocketAddr) {
        let announcement = match Announcement::read(message) {
            Ok(announcement) => announcement,
            Err(error) => {
                tracing::debug!(%from, %error, "not an announcement of local discovery");
                return;
            }
        };
        let mut peer = from;
        peer.set_port(announcement.port);
        let torrents = self.shared.lock();
        for info_hash in torrents.announcer.announced(&announcement) {
            if let Some((_, sink)) = torrents.sinks.get(&info_hash) {
                let _ = sink.try_send(vec![PeerAddr::Ip(peer)]);
            }
        }
    }
}

async fn receive(socket: Option<&GroupSocket>, buffer: &mut [u8]) -> (usize, SocketAddr) {
    match socket {
        Some(socket) => socket.receive(buffer).await,
        None => std::future::pending().await,
    }
}

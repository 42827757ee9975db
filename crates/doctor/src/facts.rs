//! What was seen of a host.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use hawser_bootstrap::JoinError;
use hawser_endhost::{BootstrapError, IsdAsn, SourceError};
use hawser_kernel::bind::Refused;

/// What a host is used for, beside transfers as an ordinary user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// SCION networks on this machine: `hawser lab`, `demo`, `bench`.
    Lab,
    /// TCP programs over SCION: `hawser shim`, `run`.
    Shim,
    /// Limits of links: `hawser limit`, `coordinator`.
    Limit,
}

/// Everything that was seen.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The time by this host's clock, in seconds since the Unix epoch.
    pub now: u64,
    /// What the host is used for: a missing right is a problem only then.
    pub purposes: Vec<Purpose>,
    /// The network that the host is in.
    pub joined: Joined,
    /// The AS that `topology.json` names, if there is one beside a daemon, and the file.
    pub configured_as: Option<(PathBuf, IsdAsn)>,
    /// The border routers of the AS.
    pub routers: Vec<Router>,
    /// Chains of packet filters that drop what no rule of theirs accepts.
    pub dropping_chains: Vec<String>,
    /// What became of binding sockets.
    pub sockets: Sockets,
    /// The paths that are offered, to the core ASes of the ISD or to the destination.
    pub offer: Option<Offer>,
    /// What was seen of the destination.
    pub destination: Option<Destination>,
    /// Certificates and TRCs.
    pub trust: Vec<Trust>,
    /// This host's key and the files of keys.
    pub keys: Keys,
    /// Folders that are written to.
    pub folders: Vec<Folder>,
    /// What this user may do; `None` if it was not looked at.
    pub rights: Option<Rights>,
    /// Checks that did not end in time, and how long they were given.
    pub late: Vec<(&'static str, Duration)>,
}

/// Whether the host is in a network.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum Joined {
    /// Nothing was asked.
    #[default]
    NotTried,
    /// It is.
    Yes(Network),
    /// It is not.
    No(BootstrapError),
    /// The bootstrap server that was named gave nothing that can be used.
    NotFetched(NotFetched),
    /// The daemon or control service did not answer within this time.
    TimedOut(Duration),
}

/// Why nothing was fetched from a bootstrap server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFetched {
    /// Which kind of failure it was.
    pub kind: Fetch,
    /// What is wrong.
    pub problem: String,
}

/// What fails when something is fetched from a bootstrap server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetch {
    /// No program answers there.
    Unreachable,
    /// Not all answers came in time.
    Timeout,
    /// An answer is not that of a bootstrap server, or cannot be used.
    Invalid,
    /// A TRC is not the one that is trusted, nor an update of it; the folder with what is trusted.
    Untrusted(PathBuf),
    /// What was fetched before is damaged, or cannot be replaced.
    Folder,
}

impl NotFetched {
    /// The server at `url` did not give everything within `limit`.
    pub fn late(url: &str, limit: Duration) -> Self {
        Self {
            kind: Fetch::Timeout,
            problem: format!("the bootstrap server at {url} did not answer within {limit:?}"),
        }
    }
}

impl From<JoinError> for NotFetched {
    fn from(error: JoinError) -> Self {
        let (kind, problem) = match error {
            JoinError::Unreachable { url, reason } => (
                Fetch::Unreachable,
                format!("no bootstrap server answers at {url}: {reason}"),
            ),
            JoinError::Status {
                url,
                status,
                reason,
            } => (Fetch::Invalid, format!("{url} answered {status}: {reason}")),
            JoinError::Trust {
                url,
                folder,
                reason,
            } => (
                Fetch::Untrusted(folder),
                format!("{url} is not trusted: {reason}"),
            ),
            JoinError::Kept { source } => (Fetch::Folder, source.to_string()),
            JoinError::Folder { source } => (Fetch::Folder, source.to_string()),
            // Of another form, or too large.
            error => (Fetch::Invalid, error.to_string()),
        };
        Self { kind, problem }
    }
}

/// The network of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Where paths come from, for people.
    pub source: String,
    /// The AS.
    pub isd_as: IsdAsn,
    /// The largest SCION packet inside the AS, in bytes.
    pub mtu: u16,
    /// The UDP ports that routers deliver to; 0 to 0 if all packets go to a dispatcher.
    pub ports: RangeInclusive<u16>,
}

/// A border router, as seen from this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Router {
    /// Its internal address.
    pub address: SocketAddr,
    /// Its interfaces.
    pub interfaces: Vec<u16>,
    /// The largest IP packet of the route to it, in bytes; `None` without a route.
    pub mtu: Option<u32>,
    /// Whether it answers.
    pub answer: RouterAnswer,
}

/// Whether a border router answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouterAnswer {
    /// It answered after this time.
    Answered(Duration),
    /// A path leads through it, and it did not answer within this time.
    Silent(Duration),
    /// It could not be asked, as without a path through it; nothing reported it unreachable.
    NotAsked,
    /// There is no route to it, or its host does not answer: the system's error.
    NoRoute(String),
    /// Its host reports that no program listens at its port.
    Refused,
}

/// What became of binding sockets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sockets {
    /// The address that was configured for this host.
    pub configured: Option<IpAddr>,
    /// A socket for any port; `None` if that was not tried.
    pub any: Option<Result<SocketAddr, Refusal>>,
    /// A socket at the address that a command is to listen at.
    pub listen: Option<Listen>,
    /// Whether something receives at the port of the dispatcher (UDP 30041).
    pub dispatcher: bool,
}

/// A socket at a given address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The address.
    pub address: SocketAddr,
    /// Why it could not be bound; `None` if it could.
    pub refusal: Option<Refusal>,
}

/// Why a socket cannot be bound.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// All dispatched ports are taken.
    NoFreePort,
    /// The port is not one that routers deliver to.
    Outside,
    /// The host has no address towards a router, for the reason given.
    NoAddress(String),
    /// The system does not bind it.
    System(Refused),
    /// Another error.
    Other(String),
}

/// Paths as their source offers them, expired ones included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The AS they lead to; without an AS number, all core ASes of the ISD.
    pub to: IsdAsn,
    /// Whether paths must exist: a core AS that is alone in its ISD has none to others.
    pub needed: bool,
    /// For each path, when its youngest segment was made and when the path expires, in seconds since
    /// the Unix epoch; or why there was no answer.
    pub paths: Result<Vec<(u64, u64)>, SourceError>,
}

/// What was seen of a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Its AS.
    pub isd_as: IsdAsn,
    /// Over how many of its paths a probe was answered, and over how many one was sent.
    pub alive: (usize, usize),
    /// The host, if one was named: whether it answers, and whether a key of it is known.
    pub host: Option<(IpAddr, Echo, Known)>,
}

/// Whether a host answers an echo request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Echo {
    /// It could not be asked, because no path works.
    NotAsked,
    /// It does.
    Answered,
    /// It does not, for the reason given.
    Failed(String),
}

/// Whether a key of a host is known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Known {
    /// One is.
    Yes,
    /// None is in this file.
    No(PathBuf),
    /// The file cannot be used, which is a finding of its own.
    Unreadable,
}

/// A file of certificates or TRCs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// The file.
    pub path: PathBuf,
    /// What is in it, or why it cannot be used.
    pub item: Result<TrustItem, String>,
}

/// A certificate or TRC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustItem {
    /// Its name: `the TRC ISD1-B1-S1`, `the certificate of 1-ff00:0:110`.
    pub name: String,
    /// Whether it is a TRC.
    pub is_trc: bool,
    /// The first Unix second at which it is valid.
    pub not_before: u64,
    /// The last Unix second at which it is valid.
    pub not_after: u64,
}

/// This host's key, and the files of keys of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// This host's key.
    pub own: Option<KeyState>,
    /// `known_hosts` and `allowed_keys`: those that exist and cannot be used.
    pub unusable: Vec<LineFile>,
}

/// The state of this host's key, which is made at first use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyState {
    /// There is none yet.
    Missing,
    /// It is usable.
    Usable,
    /// Others can read the file, whose mode this is.
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It cannot be read, or is no key.
    Unusable {
        /// The file, if there is a place for it.
        path: Option<PathBuf>,
        /// Why.
        reason: String,
    },
}

/// A file with one key a line that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineFile {
    /// The file.
    pub path: PathBuf,
    /// Why, with its line.
    pub reason: String,
}

/// A folder that is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The folder.
    pub path: PathBuf,
    /// What is written there, for people.
    pub what: &'static str,
    /// Whether this user must be able to write there.
    pub needed: bool,
    /// Free space for this user, in bytes.
    pub free: u64,
    /// Files that can still be made; `None` if the file system has no such bound.
    pub files: Option<u64>,
    /// Whether this user may write there.
    pub writable: bool,
    /// Whether the file system is read-only.
    pub read_only: bool,
}

/// What this user may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// Whether devices, routes and packet filters may be changed (CAP_NET_ADMIN).
    pub net_admin: bool,
    /// Whether network namespaces may be created without a user namespace.
    pub namespaces: bool,
    /// Why user namespaces may not be created; `None` if they may.
    pub no_user_namespaces: Option<String>,
    /// `/dev/net/tun`.
    pub tun: Tun,
    /// Why the kernel's nf_tables cannot be used; `None` if they can, or if this user may not try.
    pub no_nf_tables: Option<String>,
    /// Why MPTCP cannot be used; `None` if it can.
    pub no_mptcp: Option<String>,
}

/// The device from which TUN devices are made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tun {
    /// It can be opened.
    Usable,
    /// It does not exist.
    Missing,
    /// It cannot be opened, for this reason.
    Refused(String),
}

impl Facts {
    /// The network, if the host is in one.
    pub(crate) fn network(&self) -> Option<&Network> {
        match &self.joined {
            Joined::Yes(network) => Some(network),
            _ => None,
        }
    }
}

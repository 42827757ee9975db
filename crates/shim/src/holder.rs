//! The holder: what the connections of programs consist of on this host.
//!
//! It has a network namespace of its own with one TUN device and the kernel's MPTCP sockets, the
//! nf_tables table and the routes by which programs' connections are captured, and relays each of
//! them. Everything of it in the kernel vanishes with its process, but for one policy rule.

mod capture;
mod carrier;
mod device;
mod enclosed;
mod incoming;
mod network;
mod outgoing;
mod relay;
mod relays;
mod report;
mod serve;
mod service;
mod subflows;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use hawser_capture::{RedirectError, RoutesError};
use hawser_kernel::socket;
use hawser_keys::PeerKey;
use hawser_mptcp::{PathManagerError, SettingsError};
use hawser_tun::{Queue, TunError};
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use self::capture::Capture;
pub use self::capture::{CaptureOptions, Captured};
use self::carrier::Carriers;
pub use self::device::remove_leftovers;
use self::network::Network;
pub use self::report::{
    ConnectionEvent, ConnectionReport, FailureReport, HolderReport, SessionTotals, SubflowReport,
    SubflowState,
};
pub use self::serve::{ProxyHeader, Served, ServedPort, ServedPortError};
pub(crate) use self::serve::{find, is_own};
pub use self::service::{AttachError, ServiceError, attach, down, report, run_service};
use self::subflows::Subflows;
use crate::address::Block;
use crate::carrier::Attachment;
use crate::link::Link;

/// The mark (`SO_MARK`) of the holder's own connections, which are not captured: "hwsr".
pub(crate) const MARK: u32 = 0x6877_7372;

/// Interval at which it is looked whether all is delivered.
const LOOKED: Duration = Duration::from_millis(10);

/// Why the holder cannot work.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HolderError {
    /// The kernel does not have what is needed of MPTCP.
    #[error(transparent)]
    Mptcp(#[from] SettingsError),
    /// The path manager of MPTCP cannot be worked.
    #[error(transparent)]
    PathManager(#[from] PathManagerError),
    /// There is no TUN device.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// Connections cannot be captured.
    #[error(transparent)]
    Capture(#[from] RedirectError),
    /// Captured prefixes cannot be routed.
    #[error(transparent)]
    Routes(#[from] RoutesError),
    /// Network namespaces cannot be used.
    #[error("cannot set up the shim's network namespace: {0}; it needs root")]
    Namespace(#[source] io::Error),
    /// The system refuses something else.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A carrier with another key works with this holder.
    #[error(
        "the shim runs with the key {holds}, not {wanted}: take it down first (`hawser shim down`)"
    )]
    OtherKey {
        /// The key that the holder's addresses are made of.
        holds: PeerKey,
        /// The key of the carrier.
        wanted: PeerKey,
    },
    /// The holder is about to end.
    #[error("the shim is being taken down")]
    Ending,
    /// Another carrier works with this holder.
    #[error("the shim is up already")]
    Attached,
}

/// Has what `socket` sends not be captured.
///
/// # Errors
/// As the system says. Without the right to mark packets nothing is captured either.
pub(crate) fn mark(socket: impl AsFd) -> io::Result<()> {
    match socket::set_mark(socket, MARK) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}

impl HolderError {
    fn system(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}

/// The holder. Cloning shares it; its connections end with the last clone.
#[derive(Clone)]
pub struct Holder(Arc<Inner>);

struct Inner {
    network: Network,
    key: PeerKey,
    tag: u64,
    carriers: Carriers,
}

impl Holder {
    /// Sets up the namespace and the captures for the host with `key`. Must be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`HolderError`]; nothing is left in the kernel then.
    pub fn create(key: PeerKey, options: &CaptureOptions) -> Result<Self, HolderError> {
        let tag = fastrand::u64(..);
        let own = Block::of(&key, tag);
        let network = Network::create(own)?;
        let (capture, captured) = Capture::open(options)?;
        let subflows = Subflows::start(&network)?;
        let served = network.listen()?;
        let carriers = Carriers::new(capture, subflows, network.clone());
        outgoing::run(captured, &network, &carriers);
        tokio::spawn(incoming::run(served, carriers.clone()));
        Ok(Self(Arc::new(Inner {
            network,
            key,
            tag,
            carriers,
        })))
    }

    /// Lets a carrier of this process, with `key`, work with the holder.
    ///
    /// # Errors
    /// [`HolderError::OtherKey`], [`HolderError::Attached`], and as the system says.
    pub fn attach(&self, key: PeerKey) -> Result<Attachment, HolderError> {
        self.check(key)?;
        let pair = UnixStream::pair();
        let (ours, theirs) = pair.map_err(HolderError::system("connect to the holder"))?;
        let (queue, captured) = self.queues()?;
        self.0.carriers.attach(Link::new(ours))?;
        Ok(Attachment {
            queue,
            captured,
            own: self.own(),
            tag: self.0.tag,
            link: Link::new(theirs),
        })
    }

    /// Whether a carrier with `key` may work with the holder now.
    fn check(&self, key: PeerKey) -> Result<(), HolderError> {
        let holds = self.0.key;
        if key != holds {
            return Err(HolderError::OtherKey { holds, wanted: key });
        }
        match self.0.carriers.is_attached() {
            true => Err(HolderError::Attached),
            false => Ok(()),
        }
    }

    fn own(&self) -> Block {
        self.0.network.own()
    }

    /// The queues for a carrier: of the namespace's device, and of that for captured packets.
    fn queues(&self) -> Result<(Queue, Queue), HolderError> {
        Ok((self.0.network.queue()?, self.0.carriers.captured()?))
    }

    /// Ends the carrier and all captures: the connections of programs that begin from now on are not
    /// captured.
    pub fn release(&self) {
        self.0.carriers.release();
    }

    /// Waits until a carrier has had connections to what is mapped captured, for the first time.
    ///
    /// # Errors
    /// [`HolderError`] when they cannot be captured.
    pub async fn captured(&self) -> Result<(), Arc<HolderError>> {
        self.0.carriers.first_capture().await
    }

    /// Reports what happens to programs' connections from now on. A later call ends this.
    pub fn observe(&self) -> mpsc::UnboundedReceiver<ConnectionEvent> {
        self.0.carriers.relays().observe()
    }

    /// Waits until all that programs have sent is delivered, if they have ended. Those that have not
    /// hold it up.
    pub async fn delivered(&self) {
        while self.0.carriers.relays().are_undelivered() {
            tokio::time::sleep(LOOKED).await;
        }
    }

    /// What there is to see.
    pub fn report(&self) -> HolderReport {
        self.0.carriers.report()
    }
}

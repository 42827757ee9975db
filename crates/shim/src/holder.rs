//! The holder: what the connections of programs consist of on this host.
//!
//! It has a network namespace of its own with one TUN device and the kernel's MPTCP sockets, the
//! nf_tables table and the routes by which programs' connections are captured, and relays each of
//! them. Everything of it in the kernel vanishes with its process, but for policy rules without effect
//! and, if that is wanted, what keeps captured destinations from being reached by other routes.

mod capture;
mod captures;
mod carrier;
mod device;
mod enclosed;
mod fail;
mod incoming;
mod intake;
mod network;
mod opening;
mod outgoing;
mod relays;
mod report;
mod service;
mod subflows;

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hawser_capture::{RedirectError, RoutesError};
use hawser_kernel::bind::Refused;
use hawser_keys::PeerKey;
use hawser_mptcp::{PathManagerError, SettingsError};
use hawser_tun::{Queue, TunError};
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use self::capture::Capture;
pub use self::capture::{CaptureOptions, Captured};
use self::captures::Captures;
use self::carrier::Carriers;
pub use self::device::remove_leftovers;
pub use self::fail::{FailMode, is_guarded, remove_guard};
use self::network::Network;
use self::relays::Relays;
pub use self::report::ConnectionEvent;
pub use self::service::{
    AttachError, AttachOptions, DownError, ServiceError, attach, down, report, run_service,
};
use self::subflows::Subflows;
use crate::address::Block;
use crate::attachment::Attachment;
use crate::choice::CarrierKind;
use crate::handover::{self, HandoverReceiver, HandoverSender};
use crate::link::Link;
pub use crate::report::{
    ConnectionReport, FailureReport, HolderReport, SessionTotals, SubflowReport, SubflowState,
};

/// How long a program's connection waits for a carrier and a path, and then for the other holder: as long
/// as TCP tries to connect over IP (Linux: 127 s). Time in which this process did not run is not counted.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);

/// Interval at which it is looked whether all is delivered.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

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
    /// The port at which captured connections are to arrive cannot be listened at.
    #[error(
        "cannot listen for captured connections: {}: choose another `--redirect-port`, or none",
        Refused::tcp((Ipv6Addr::UNSPECIFIED, *.port).into(), source).reason()
    )]
    RedirectPort {
        /// The port.
        port: u16,
        /// The system's error.
        source: io::Error,
    },
    /// The holder has connections arrive at another port.
    #[error(
        "the shim that runs has captured connections arrive at {holds}, not at port {wanted}: take it \
         down first (`hawser shim down`)",
        holds = port_name(*.holds)
    )]
    OtherPort {
        /// The holder's port; 0 for any.
        holds: u16,
        /// The carrier's.
        wanted: u16,
    },
    /// MPTCP is wanted, and cannot be used.
    #[error("{0}; without MPTCP, use --carrier quic")]
    NoMptcp(#[source] Box<Self>),
    /// The holder is about to end.
    #[error("the shim is being taken down")]
    Ending,
    /// Another carrier works with this holder.
    #[error("the shim is up already (`hawser shim status` shows it): take it down first")]
    Attached,
}

fn port_name(port: u16) -> String {
    match port {
        0 => "any port".to_owned(),
        port => format!("port {port}"),
    }
}

impl HolderError {
    fn system(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}

/// The kernel's MPTCP, or why it is not used.
#[derive(Clone)]
enum Mptcp {
    Used(Network, Subflows),
    Unused(String),
}

impl Mptcp {
    /// Sets up the namespace. With QUIC as the carrier of this host's programs, other hosts may still
    /// connect by MPTCP if the kernel has it.
    fn set_up(own: Block, carrier: CarrierKind, relays: &Relays) -> Result<Self, HolderError> {
        let network = Network::create(own);
        let used = network.and_then(|network| {
            let subflows = Subflows::start(&network, relays.clone())?;
            Ok(Self::Used(network, subflows))
        });
        match (used, carrier) {
            (Ok(used), _) => Ok(used),
            (Err(error), CarrierKind::Quic) => Ok(Self::Unused(error.to_string())),
            // Captured packets need a TUN device as well.
            (Err(error @ HolderError::Tun(_)), _) => Err(error),
            (Err(error), _) => Err(HolderError::NoMptcp(Box::new(error))),
        }
    }

    fn network(&self) -> Option<&Network> {
        match self {
            Self::Used(network, _) => Some(network),
            Self::Unused(_) => None,
        }
    }

    fn subflows(&self) -> Option<&Subflows> {
        match self {
            Self::Used(_, subflows) => Some(subflows),
            Self::Unused(_) => None,
        }
    }
}

/// The holder. Cloning shares it; its connections end with the last clone.
#[derive(Clone)]
pub struct Holder(Arc<Inner>);

struct Inner {
    own: Block,
    mptcp: Mptcp,
    key: PeerKey,
    tag: u64,
    carriers: Carriers,
}

impl Holder {
    /// Sets up the captures for the host with `key`, and the namespace for MPTCP. Without MPTCP in the
    /// kernel there is none, unless `carrier` is MPTCP. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`HolderError`]; nothing is left in the kernel then.
    pub fn create(
        key: PeerKey,
        options: &CaptureOptions,
        carrier: CarrierKind,
    ) -> Result<Self, HolderError> {
        let tag = fastrand::u64(..);
        let own = Block::of(&key, tag);
        let relays = Relays::default();
        let mptcp = Mptcp::set_up(own, carrier, &relays)?;
        let (capture, captured) = Capture::open(options)?;
        let is_enclosed = matches!(options.captured, Captured::Enclosed(_));
        let captures = Captures::new(Some(capture), options.port);
        let carriers = Carriers::new(captures, mptcp.clone(), is_enclosed, relays);
        if let Some(network) = mptcp.network() {
            let served = network.listen()?;
            tokio::spawn(incoming::run(served, carriers.clone()));
        }
        outgoing::run(captured, &carriers);
        Ok(Self(Arc::new(Inner {
            own,
            mptcp,
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
        let Queues {
            mptcp,
            captured,
            handover: (sender, receiver),
        } = self.queues()?;
        let failed = HolderError::system("hand sockets over to the carrier");
        let sender = HandoverSender::new(sender).map_err(&failed)?;
        self.0.carriers.attach(Link::new(ours), sender)?;
        Ok(Attachment {
            queue: mptcp,
            captured,
            handed: HandoverReceiver::new(receiver).map_err(&failed)?,
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
        self.0.own
    }

    /// The queues for a carrier.
    fn queues(&self) -> Result<Queues, HolderError> {
        let mptcp = match &self.0.mptcp {
            Mptcp::Used(network, _) => Ok(network.queue()?),
            Mptcp::Unused(reason) => Err(reason.clone()),
        };
        let handover = handover::pair();
        Ok(Queues {
            mptcp,
            captured: self.0.carriers.captures().queue()?,
            handover: handover.map_err(HolderError::system("hand sockets over to the carrier"))?,
        })
    }

    /// Ends the carrier, all connections and all captures: the connections of programs that begin from
    /// now on are not captured.
    pub async fn release(&self) {
        self.0.carriers.release().await;
    }

    /// Waits until a carrier has had connections to what is mapped captured, for the first time.
    ///
    /// # Errors
    /// [`HolderError`] when they cannot be captured.
    pub async fn captured(&self) -> Result<(), Arc<HolderError>> {
        self.0.carriers.captures().first().await
    }

    /// Reports what happens to programs' connections from now on. A later call ends this.
    pub fn observe(&self) -> mpsc::UnboundedReceiver<ConnectionEvent> {
        self.0.carriers.relays().observe()
    }

    /// Waits until all that programs have sent is delivered, if they have ended. Those that have not
    /// hold it up.
    pub async fn delivered(&self) {
        loop {
            // Also at first: a connection may not have been accepted yet that has just begun.
            tokio::time::sleep(POLL_INTERVAL).await;
            if !self.0.carriers.relays().are_undelivered() {
                return;
            }
        }
    }

    /// The status report.
    pub fn report(&self) -> HolderReport {
        self.0.carriers.report()
    }
}

/// What a carrier gets.
struct Queues {
    /// Of the namespace's device, or why there is none.
    mptcp: Result<Queue, String>,
    /// Of the device for captured packets.
    captured: Queue,
    /// Both ends for programs' sockets.
    handover: (OwnedFd, OwnedFd),
}

//! Why a holder cannot work.

use std::io;
use std::net::Ipv6Addr;

use hawser_capture::{RedirectError, RoutesError};
use hawser_kernel::bind::Refused;
use hawser_keys::PeerKey;
use hawser_mptcp::{PathManagerError, SettingsError};
use hawser_tun::TunError;
use thiserror::Error;

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
    pub(super) fn system(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}

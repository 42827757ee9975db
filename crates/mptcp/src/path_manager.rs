//! The path manager in user space: a program creates and destroys the subflows of the connections of
//! its network namespace. Sources: `linux/mptcp_pm.h`; RFC 8684, sections 3.2 to 3.4.

pub(crate) mod event;

use std::fmt::{self, Display};
use std::io;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

use crate::genl::{self, ATTRIBUTES, Attributes, Genl};

/// The generic netlink family, and its group of events.
const FAMILY: &str = "mptcp_pm";
const EVENTS: &str = "mptcp_pm_events";

// `enum` of commands in `linux/mptcp_pm.h`.
const SET_FLAGS: u8 = 7;
const ANNOUNCE: u8 = 8;
const REMOVE: u8 = 9;
const SUBFLOW_CREATE: u8 = 10;
const SUBFLOW_DESTROY: u8 = 11;

// `MPTCP_PM_ATTR_*`.
const ADDRESS: u16 = 1;
const TOKEN: u16 = 4;
const LOCAL_ID: u16 = 5;
const REMOTE_ADDRESS: u16 = 6;

// `MPTCP_PM_ADDR_ATTR_*` and `MPTCP_PM_ADDR_FLAG_*`.
const ADDRESS_FAMILY: u16 = 1;
const ADDRESS_ID: u16 = 2;
const ADDRESS_V4: u16 = 3;
const ADDRESS_V6: u16 = 4;
const ADDRESS_PORT: u16 = 5;
const ADDRESS_FLAGS: u16 = 6;
const FLAG_SIGNAL: u32 = 1;
const FLAG_SUBFLOW: u32 = 2;
const FLAG_BACKUP: u32 = 4;

/// What the kernel identifies a connection by, in one network namespace: a hash of this end's key
/// (RFC 8684, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

impl Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Why the path manager did not do what was requested.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PathManagerError {
    /// The netlink socket failed.
    #[error("cannot talk to the kernel's MPTCP path manager over netlink: {0}")]
    Socket(#[source] io::Error),
    /// The kernel has none.
    #[error("the kernel has no MPTCP path manager: use one with CONFIG_MPTCP, Linux 6.6 or later")]
    Unsupported,
    /// The connection is closed, was made before [`Settings`](crate::Settings) were applied, or is
    /// in another network namespace.
    #[error("cannot {action}: no connection under this path manager has the token {token}")]
    NoConnection {
        /// What was requested.
        action: &'static str,
        /// The token.
        token: Token,
    },
    /// The connection has no such subflow.
    #[error("cannot {action}: connection {token} has no subflow from {local} to {remote}")]
    NoSubflow {
        /// What was requested.
        action: &'static str,
        /// The connection.
        token: Token,
        /// This end of the subflow.
        local: SocketAddr,
        /// The other end.
        remote: SocketAddr,
    },
    /// This process may not control connections.
    #[error(
        "cannot {action}: controlling MPTCP subflows needs root, or CAP_NET_ADMIN in the network namespace"
    )]
    NotPermitted {
        /// What was requested.
        action: &'static str,
    },
    /// The kernel refused for another reason.
    #[error("the kernel refused to {action} of connection {token}: {}{source}", prefix(.reason))]
    Refused {
        /// What was requested.
        action: &'static str,
        /// The connection.
        token: Token,
        /// The kernel's explanation, empty if it has none.
        reason: String,
        /// The error number.
        source: io::Error,
    },
    /// A message of the kernel is not as `linux/mptcp_pm.h` describes it.
    #[error("cannot read a message of the kernel's MPTCP path manager: {0}")]
    Invalid(String),
}

fn prefix(reason: &str) -> String {
    match reason {
        "" => String::new(),
        reason => format!("{reason}: "),
    }
}

impl From<genl::Error> for PathManagerError {
    fn from(error: genl::Error) -> Self {
        match error {
            genl::Error::Socket(error) => Self::Socket(error),
            genl::Error::Refused(refusal) if refusal.errno == libc::ENOENT => Self::Unsupported,
            genl::Error::Refused(refusal) => {
                Self::Socket(io::Error::from_raw_os_error(refusal.errno))
            }
            genl::Error::Invalid(reason) => Self::Invalid(reason),
        }
    }
}

/// Commands for the subflows of all MPTCP connections of the network namespace in which it was
/// opened, made after [`Settings`](crate::Settings) were applied there. Needs `CAP_NET_ADMIN`.
///
/// A call returns when the kernel has carried out the command, which does not wait for the network:
/// [`Events`](crate::Events) report the outcome.
#[derive(Debug)]
pub struct PathManager(Genl);

impl PathManager {
    /// Opens a path manager for the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`PathManagerError::Unsupported`], [`PathManagerError::Socket`].
    pub fn open() -> Result<Self, PathManagerError> {
        Ok(Self(Genl::open(FAMILY)?))
    }

    /// Announces an address of this end to the other one (ADD_ADDR), under `id` (1 to 255). Port 0
    /// stands for the port of the connection.
    ///
    /// # Errors
    /// [`PathManagerError`]: among others when `id` or the address belongs to another.
    pub fn announce(
        &mut self,
        token: Token,
        id: u8,
        address: SocketAddr,
    ) -> Result<(), PathManagerError> {
        let mut request = for_connection(token);
        request.push_nested(ADDRESS, &local(id, address, FLAG_SIGNAL));
        self.command(ANNOUNCE, "announce an address", token, &request)
    }

    /// Takes an address back (REMOVE_ADDR); subflows over it are closed at both ends. `id` 0 is the
    /// address of the first subflow.
    ///
    /// # Errors
    /// [`PathManagerError`]: among others when no address has that `id`.
    pub fn remove(&mut self, token: Token, id: u8) -> Result<(), PathManagerError> {
        let mut request = for_connection(token);
        request.push(LOCAL_ID, &[id]);
        self.command(REMOVE, "remove an address", token, &request)
    }

    /// Creates a subflow from an address of this end, under `id` (1 to 255), which the other end
    /// then knows it by. Port 0 of `from` lets the kernel choose one.
    ///
    /// It arrives where the other end listens: at the address and port that this end has connected
    /// to, so that the accepting end cannot create subflows unless the other one listens as well.
    /// Repeated calls add subflows between the same addresses, as many as are wanted: the kernel
    /// sets no limit in this mode, and does not try again when a subflow fails.
    ///
    /// # Errors
    /// [`PathManagerError`]: among others when `id` belongs to another address of the connection,
    /// or the connection is not established, has fallen back to TCP, or an end has closed its direction.
    pub fn create_subflow(
        &mut self,
        token: Token,
        id: u8,
        from: SocketAddr,
        to: SocketAddr,
        backup: bool,
    ) -> Result<(), PathManagerError> {
        let flags = FLAG_SUBFLOW | if backup { FLAG_BACKUP } else { 0 };
        let mut request = for_connection(token);
        request.push_nested(ADDRESS, &local(id, from, flags));
        request.push_nested(REMOTE_ADDRESS, &remote(to));
        self.command(SUBFLOW_CREATE, "create a subflow", token, &request)
    }

    /// Destroys a subflow: it is closed at once here, and all data of the connection that is not
    /// acknowledged goes over the others, from now on, without waiting for a retransmission timeout
    /// (200 ms and more).
    ///
    /// On a dead path both ends must do it: the other one does not learn of it, keeps the subflow
    /// established, and waits for timeouts of its own when it sends over it. On a path that works,
    /// one end is enough.
    ///
    /// The first subflow is like all others. A connection whose last one is destroyed stays, and its
    /// data waits, until [`Self::create_subflow`] gives it a new one or the time of
    /// [`Settings::with_close_timeout`](crate::Settings::with_close_timeout) is over at either end,
    /// after which reads fail with `ENOTCONN` and writes with `EPIPE`. Not so once one end has closed its
    /// direction: Linux 6.18 gives such a connection no new subflow, and what is still to be delivered
    /// is lost with the last one.
    ///
    /// # Errors
    /// [`PathManagerError`]: among others [`PathManagerError::NoSubflow`].
    pub fn destroy_subflow(
        &mut self,
        token: Token,
        from: SocketAddr,
        to: SocketAddr,
    ) -> Result<(), PathManagerError> {
        let mut request = for_connection(token);
        request.push_nested(ADDRESS, &remote(from));
        request.push_nested(REMOTE_ADDRESS, &remote(to));
        let action = "destroy a subflow";
        let result = self.command(SUBFLOW_DESTROY, action, token, &request);
        name_subflow(result, from, to)
    }

    /// Makes a subflow a backup one, or a regular one again, and requests the same of the other end
    /// (MP_PRIO). Backup subflows carry data only while no regular one can.
    ///
    /// # Errors
    /// [`PathManagerError`]: among others when there is no such subflow.
    pub fn set_backup(
        &mut self,
        token: Token,
        from: SocketAddr,
        to: SocketAddr,
        backup: bool,
    ) -> Result<(), PathManagerError> {
        let flags = if backup { FLAG_BACKUP } else { 0 };
        let mut request = for_connection(token);
        request.push_nested(ADDRESS, &local(0, from, flags));
        request.push_nested(REMOTE_ADDRESS, &remote(to));
        let action = "change the priority of a subflow";
        let result = self.command(SET_FLAGS, action, token, &request);
        name_subflow(result, from, to)
    }

    fn command(
        &mut self,
        command: u8,
        action: &'static str,
        token: Token,
        request: &Attributes,
    ) -> Result<(), PathManagerError> {
        let refusal = match self.0.request(command, request) {
            Ok(_) => return Ok(()),
            Err(genl::Error::Refused(refusal)) => refusal,
            Err(error) => return Err(error.into()),
        };
        // The token is the first attribute; the kernel marks it when it does not accept it.
        if refusal.offset == Some(ATTRIBUTES as u32) {
            return Err(PathManagerError::NoConnection { action, token });
        }
        if refusal.errno == libc::EPERM {
            return Err(PathManagerError::NotPermitted { action });
        }
        Err(PathManagerError::Refused {
            action,
            token,
            reason: refusal.message.unwrap_or_default(),
            source: io::Error::from_raw_os_error(refusal.errno),
        })
    }
}

/// Names the subflow that the kernel did not find.
fn name_subflow(
    result: Result<(), PathManagerError>,
    local: SocketAddr,
    remote: SocketAddr,
) -> Result<(), PathManagerError> {
    result.map_err(|error| match error {
        PathManagerError::Refused {
            action,
            token,
            source,
            ..
        } if source.raw_os_error() == Some(libc::ESRCH) => PathManagerError::NoSubflow {
            action,
            token,
            local,
            remote,
        },
        other => other,
    })
}

fn for_connection(token: Token) -> Attributes {
    let mut request = Attributes::default();
    request.push(TOKEN, &token.0.to_ne_bytes());
    request
}

fn local(id: u8, address: SocketAddr, flags: u32) -> Attributes {
    let mut attributes = remote(address);
    attributes.push(ADDRESS_ID, &[id]);
    attributes.push(ADDRESS_FLAGS, &flags.to_ne_bytes());
    attributes
}

fn remote(address: SocketAddr) -> Attributes {
    let mut attributes = Attributes::default();
    let family = match address.ip() {
        IpAddr::V4(ip) => {
            attributes.push(ADDRESS_V4, &ip.octets());
            libc::AF_INET
        }
        IpAddr::V6(ip) => {
            attributes.push(ADDRESS_V6, &ip.octets());
            libc::AF_INET6
        }
    };
    attributes.push(ADDRESS_FAMILY, &(family as u16).to_ne_bytes());
    // The port of commands is in the host's byte order, that of events in the network's.
    if address.port() != 0 {
        attributes.push(ADDRESS_PORT, &address.port().to_ne_bytes());
    }
    attributes
}

//! What happens to the connections and subflows of a network namespace.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hawser_kernel::socket;
use rustix::fd::{AsFd, BorrowedFd};

use super::{EVENTS, FAMILY, PathManagerError, Token};
use crate::genl::{self, Genl, Message, attributes, value};

/// Bytes of events that the kernel keeps until they are read: several thousand events, as when all
/// subflows of many connections end at once.
const BUFFER: usize = 4 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A connection exists, but cannot have further subflows yet.
    Created(Connection),
    /// A connection can have further subflows from now on. The server's end is established with the
    /// first data of the client, the client's with the acknowledgement of that.
    Established(Connection),
    /// A connection has ended at this end, by close(2) or an error.
    Closed {
        /// The connection.
        token: Token,
    },
    /// A further subflow is established. The first one of a connection is reported by
    /// [`Event::Established`] only.
    SubflowEstablished(SubflowEvent),
    /// A subflow has ended, or could not be established.
    SubflowClosed {
        /// The subflow.
        subflow: SubflowEvent,
        /// Why (errno(3)); `None` if it was closed without an error.
        errno: Option<i32>,
        /// The reset by the other end that closed it, if one did.
        reset: Option<Reset>,
    },
    /// The other end has announced an address (ADD_ADDR).
    Announced {
        /// The connection.
        token: Token,
        /// The number of the address at the other end.
        id: u8,
        /// The address; without a port of its own, the port of the connection, or 0.
        address: SocketAddr,
    },
    /// The other end has taken an address back (REMOVE_ADDR).
    Removed {
        /// The connection.
        token: Token,
        /// The number of the address at the other end.
        id: u8,
    },
    /// The other end has made a subflow a backup one or a regular one (MP_PRIO).
    SubflowPriority(SubflowEvent),
    /// A listening socket exists.
    ListenerCreated {
        /// Its address.
        address: SocketAddr,
    },
    /// A listening socket is closed.
    ListenerClosed {
        /// Its address.
        address: SocketAddr,
    },
    /// The kernel has dropped events because they were not read in time. What was derived from
    /// events must be read anew: [`Info`](crate::Info) has the subflows of each socket.
    Overflow,
}

/// A connection, by its first subflow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// Its token at this end.
    pub token: Token,
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the other end.
    pub remote: SocketAddr,
    /// Whether this end has accepted it.
    pub server_side: bool,
    /// Whether the other end refuses further subflows to the address of the first
    /// (`net.mptcp.allow_join_initial_addr_port` is 0 there).
    pub join_denied: bool,
}

/// The numbers of a subflow's addresses. Each end numbers its own addresses, and 0 is that of the
/// first subflow: numbers of different ends are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ids {
    /// The number of this end's address.
    pub local: u8,
    /// The number of the other end's address.
    pub remote: u8,
}

/// A subflow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubflowEvent {
    /// The token of the connection at this end.
    pub token: Token,
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the other end.
    pub remote: SocketAddr,
    /// The numbers of the addresses.
    pub ids: Ids,
    /// Whether it carries data only while no regular subflow can.
    pub backup: bool,
}

/// Why the other end has reset a subflow (MP_TCPRST, RFC 8684, section 3.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reset {
    /// 0 unspecified, 1 MPTCP-specific, 2 lack of resources, 3 administratively prohibited, 4 too
    /// much outstanding data, 5 unacceptable performance, 6 interference by a middlebox.
    pub reason: u32,
    /// Whether the other end expects that the subflow can be created again later.
    pub transient: bool,
}

/// The events of all MPTCP connections of the network namespace in which it was opened, whatever
/// process has them. Needs `CAP_NET_ADMIN`.
///
/// Both ends must subscribe before further subflows are created: while no process does, the kernel
/// refuses those that arrive (`MPTcpExtMPJoinRejected`).
#[derive(Debug)]
pub struct Events {
    socket: Genl,
    /// Received, not returned yet.
    pending: VecDeque<Message>,
}

impl Events {
    /// Subscribes to the events of the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`PathManagerError::Unsupported`], [`PathManagerError::Socket`] (without `CAP_NET_ADMIN`).
    pub fn subscribe() -> Result<Self, PathManagerError> {
        let socket = Genl::open(FAMILY)?;
        socket::set_receive_buffer(&socket, BUFFER).map_err(PathManagerError::Socket)?;
        socket.join(EVENTS)?;
        let pending = VecDeque::new();
        Ok(Self { socket, pending })
    }

    /// The next event; `None` if there is none now: the descriptor becomes readable with the next
    /// one. Kinds that this version does not know are skipped.
    ///
    /// # Errors
    /// [`PathManagerError::Invalid`] for an event that cannot be read; the next call continues with
    /// the one after it. [`PathManagerError::Socket`].
    pub fn try_next_event(&mut self) -> Result<Option<Event>, PathManagerError> {
        loop {
            while let Some(message) = self.pending.pop_front() {
                if let Some(event) = parse(&message)? {
                    return Ok(Some(event));
                }
            }
            match self.socket.try_receive() {
                Ok(None) => return Ok(None),
                Ok(Some(messages)) => self.pending.extend(messages),
                Err(genl::Error::Socket(error)) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    return Ok(Some(Event::Overflow));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The descriptor is readable when there is an event.
impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The attributes of an event that are used.
#[derive(Debug, Default)]
struct Fields {
    token: Option<Token>,
    local_id: Option<u8>,
    remote_id: Option<u8>,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    backup: u8,
    errno: u8,
    flags: u16,
    reset_reason: Option<u32>,
    reset_flags: u32,
    server_side: u8,
}

// `MPTCP_PM_EV_FLAG_*`.
const DENY_JOIN_ID0: u16 = 1;
const SERVER_SIDE: u16 = 2;

impl Fields {
    /// Reads `enum mptcp_event_attr`.
    fn parse(bytes: &[u8]) -> Result<Self, genl::Error> {
        let mut fields = Self::default();
        for attribute in attributes(bytes) {
            let (kind, bytes) = attribute?;
            let byte = || value(bytes).map(u8::from_ne_bytes);
            let short = || value(bytes).map(u16::from_ne_bytes);
            let int = || value(bytes).map(u32::from_ne_bytes);
            let port = || value(bytes).map(u16::from_be_bytes);
            let v4 = || value::<4>(bytes).map(|ip| Ipv4Addr::from(ip).into());
            let v6 = || value::<16>(bytes).map(|ip| Ipv6Addr::from(ip).into());
            match kind {
                1 => fields.token = Some(Token(int()?)),
                3 => fields.local_id = Some(byte()?),
                4 => fields.remote_id = Some(byte()?),
                5 => fields.source = Some(v4()?),
                6 => fields.source = Some(v6()?),
                7 => fields.destination = Some(v4()?),
                8 => fields.destination = Some(v6()?),
                9 => fields.source_port = Some(port()?),
                10 => fields.destination_port = Some(port()?),
                11 => fields.backup = byte()?,
                12 => fields.errno = byte()?,
                13 => fields.flags = short()?,
                16 => fields.reset_reason = Some(int()?),
                17 => fields.reset_flags = int()?,
                18 => fields.server_side = byte()?,
                _ => {}
            }
        }
        Ok(fields)
    }

    fn token(&self) -> Result<Token, PathManagerError> {
        self.token.ok_or_else(|| missing("token"))
    }

    fn remote_id(&self) -> Result<u8, PathManagerError> {
        self.remote_id.ok_or_else(|| missing("remote address id"))
    }

    fn local(&self) -> Result<SocketAddr, PathManagerError> {
        let address = self.source.zip(self.source_port);
        address
            .map(Into::into)
            .ok_or_else(|| missing("local address"))
    }

    fn remote(&self) -> Result<SocketAddr, PathManagerError> {
        let address = self.destination.zip(self.destination_port);
        address
            .map(Into::into)
            .ok_or_else(|| missing("remote address"))
    }

    fn connection(&self) -> Result<Connection, PathManagerError> {
        Ok(Connection {
            token: self.token()?,
            local: self.local()?,
            remote: self.remote()?,
            // An attribute of its own until Linux 6.17, then a flag as well.
            server_side: self.server_side != 0 || self.flags & SERVER_SIDE != 0,
            join_denied: self.flags & DENY_JOIN_ID0 != 0,
        })
    }

    fn subflow(&self) -> Result<SubflowEvent, PathManagerError> {
        Ok(SubflowEvent {
            token: self.token()?,
            local: self.local()?,
            remote: self.remote()?,
            ids: Ids {
                local: self.local_id.ok_or_else(|| missing("local address id"))?,
                remote: self.remote_id()?,
            },
            backup: self.backup != 0,
        })
    }
}

fn missing(attribute: &str) -> PathManagerError {
    PathManagerError::Invalid(format!("an event without {attribute}"))
}

/// Reads a message of `enum mptcp_event_type`; `None` for other kinds.
fn parse(message: &Message) -> Result<Option<Event>, PathManagerError> {
    let fields = Fields::parse(&message.attributes)?;
    Ok(Some(match message.command {
        1 => Event::Created(fields.connection()?),
        2 => Event::Established(fields.connection()?),
        3 => Event::Closed {
            token: fields.token()?,
        },
        6 => Event::Announced {
            token: fields.token()?,
            id: fields.remote_id()?,
            address: match fields.destination {
                Some(ip) => (ip, fields.destination_port.unwrap_or(0)).into(),
                None => return Err(missing("remote address")),
            },
        },
        7 => Event::Removed {
            token: fields.token()?,
            id: fields.remote_id()?,
        },
        10 => Event::SubflowEstablished(fields.subflow()?),
        11 => Event::SubflowClosed {
            subflow: fields.subflow()?,
            errno: (fields.errno != 0).then_some(fields.errno.into()),
            reset: fields.reset_reason.map(|reason| Reset {
                reason,
                transient: fields.reset_flags & 1 != 0,
            }),
        },
        13 => Event::SubflowPriority(fields.subflow()?),
        15 => Event::ListenerCreated {
            address: fields.local()?,
        },
        16 => Event::ListenerClosed {
            address: fields.local()?,
        },
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::genl::Attributes;

    fn message(command: u8, attributes: &[(u16, &[u8])]) -> Message {
        let mut bytes = Attributes::default();
        for (kind, value) in attributes {
            bytes.push(*kind, value);
        }
        Message {
            command,
            attributes: bytes.into_bytes(),
        }
    }

    #[test]
    fn the_reason_of_a_closed_subflow_is_read() {
        let ip = Ipv6Addr::LOCALHOST.octets();
        let attributes: [(u16, &[u8]); 11] = [
            (1, &7u32.to_ne_bytes()),
            (2, &10u16.to_ne_bytes()),
            (3, &[1]),
            (4, &[2]),
            (6, &ip),
            (8, &ip),
            (9, &80u16.to_be_bytes()),
            (10, &81u16.to_be_bytes()),
            (12, &[104]),
            (16, &3u32.to_ne_bytes()),
            (17, &1u32.to_ne_bytes()),
        ];
        let event = parse(&message(11, &attributes)).unwrap().unwrap();
        let subflow = SubflowEvent {
            token: Token(7),
            local: "[::1]:80".parse().unwrap(),
            remote: "[::1]:81".parse().unwrap(),
            ids: Ids {
                local: 1,
                remote: 2,
            },
            backup: false,
        };
        let expected = Event::SubflowClosed {
            subflow,
            errno: Some(libc::ECONNRESET),
            reset: Some(Reset {
                reason: 3,
                transient: true,
            }),
        };
        assert_eq!(event, expected);
        // An attribute of the wrong size, and one too few.
        assert!(parse(&message(11, &[(1, &[7])])).is_err());
        assert!(parse(&message(11, &attributes[1..])).is_err());
    }

    #[test]
    fn unknown_events_are_skipped() {
        assert_eq!(parse(&message(99, &[(1, &[0; 4])])).unwrap(), None);
    }

    proptest! {
        #[test]
        fn parsing_any_attributes_never_panics(
            command in 0..20u8,
            attributes in prop::collection::vec(
                (0..24u16, prop::collection::vec(any::<u8>(), 0..20)),
                0..12,
            ),
            rest in prop::collection::vec(any::<u8>(), 0..8),
        ) {
            let attributes: Vec<_> = attributes.iter().map(|(k, v)| (*k, &v[..])).collect();
            let mut message = message(command, &attributes);
            message.attributes.extend(rest);
            let _ = parse(&message);
        }
    }
}

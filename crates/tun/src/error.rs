//! Why a device cannot be created, and why a packet or a segment is dropped.

use std::io;

use thiserror::Error;

/// Why a TUN device cannot be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TunError {
    /// The kernel has no TUN devices.
    #[error("there is no /dev/net/tun: load the kernel's module tun (`modprobe tun`)")]
    NoModule,
    /// This process may not open `/dev/net/tun`.
    #[error("this process may not open /dev/net/tun: run it as root")]
    NotOpened,
    /// This process may not create devices in its network namespace.
    #[error(
        "creating the TUN device {0} needs the capability CAP_NET_ADMIN: run as root, or in a network \
         namespace of an own user namespace"
    )]
    NotPermitted(String),
    /// Another device has the name.
    #[error("there is a network device {0} already (`ip link show {0}`): choose another name")]
    NameTaken(String),
    /// The kernel takes no such name.
    #[error(
        "{0:?} is not a name for a network device: it has 1 to 15 bytes without spaces, `/`, `:` and `%`"
    )]
    InvalidName(String),
    /// Not 1 to 256 queues.
    #[error("a TUN device has 1 to 256 queues, not {0}")]
    Queues(usize),
    /// The system refused a step.
    #[error("cannot {action} the TUN device {name}: {source}")]
    System {
        /// The device.
        name: String,
        /// What failed.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// Why bytes read from a TUN device are not a packet that can be carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Neither an IPv4 nor an IPv6 header, or a length in it that does not fit the packet.
    #[error("malformed IP header")]
    Ip,
    /// The checksum to complete is not inside the packet, behind its IP header.
    #[error("the checksum to complete is outside of the packet")]
    Checksum,
    /// A large packet that is neither TCP nor UDP, or whose vnet header does not fit it.
    #[error("a large packet that cannot be cut")]
    Offload,
}

/// Why a TCP segment was dropped instead of being merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidSegment {
    /// The header's length is less than the minimum, or more than the segment has.
    #[error("malformed TCP header")]
    Header,
    /// More than an IPv6 packet carries.
    #[error("a TCP segment of more than 65535 bytes")]
    TooLarge,
}

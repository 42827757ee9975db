//! TUN devices with offloads: large packets cut into segments, and segments merged again.
//!
//! The kernel hands a TUN device with offloads TCP packets of up to 64 KB, whose checksum it leaves to
//! the device, and takes such packets from it. So one system call moves many segments. [`Tun`] creates
//! a device; each of its [`Queue`]s reads and writes packets. A [`Packet`] read is TCP, which is cut
//! into segments of any size ([`TcpPacket::segments`]) and merged again at the other end of the path
//! ([`Merger`]), or anything else, which becomes IP packets complete in themselves
//! ([`Packet::datagrams`]). Only [`Tun`] and [`Queue`] call the system.
//!
//! Sources: Linux documentation, networking/tuntap; `linux/if_tun.h`, `linux/virtio_net.h`; the
//! kernel's GSO and GRO of TCP (`net/ipv4/tcp_offload.c`).

mod device;
mod error;
mod ip;
mod merge;
mod packet;
mod queue;
mod tcp;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod vnet;

pub use self::device::Tun;
pub use self::error::{InvalidSegment, Malformed, TunError};
pub use self::merge::{MergedPacket, Merger};
pub use self::packet::Packet;
pub use self::queue::{Queue, READ_BUFFER};
pub use self::tcp::{Segment, Segments, TcpPacket};

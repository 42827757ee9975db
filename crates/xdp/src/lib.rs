//! AF_XDP: the datagrams of one UDP port in and out of one network device, past the kernel's stack.
//!
//! A [`Port`] takes over the datagrams of a UDP socket that is already bound: a small eBPF program
//! at the device (`filter`) sends those to its address and port to AF_XDP sockets, one for each
//! receive queue (`queue`), and everything else to the kernel as before. What is sent gets its
//! Ethernet, IP and UDP headers here (`frame`), with the kernel's routes and neighbours (`hops`).
//! What AF_XDP cannot carry stays with the kernel's socket, which must be read too: datagrams by
//! other devices, to neighbours that are not known yet, and larger than a frame.
//!
//! A port begins with [`Port::open`]: the program is attached, then a socket is opened for each
//! queue, and the kernel gets the packets of a queue until its socket is in place. From then on it
//! only does what its user calls for; it has no thread and no timer. Its user waits for
//! [`Port::sockets`], and calls [`Port::receive`] soon while [`Port::is_sending`]. It ends when it
//! is dropped: the program is detached. Its memory is mapped at the beginning: chunks of 2 or 4 KiB
//! for 1024 to 4096 frames of each queue to be received, and for 2048 to be sent. What is known of
//! at most 1024 hosts is kept besides, for a second.
//!
//! One lock, `inner`, is held for each call that sends, receives or counts, with the system calls
//! in it. They do not wait, but for the look-up of a route and a neighbour by netlink, which waits
//! for the kernel's answer. The function given to [`Port::receive`] is called under it, and must
//! not use the port.
//!
//! Needs Linux 5.9, where a program at a device goes with the process that attached it. Sources:
//! Linux documentation, networking/af_xdp and bpf; `linux/if_xdp.h`, `linux/bpf.h`.

mod bpf;
mod device;
mod error;
mod filter;
mod frame;
mod hops;
mod port;
mod queue;
mod ring;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod umem;

pub use self::bpf::Hook;
pub use self::error::XdpError;
pub use self::port::{Outcome, Port, Status};

//! AF_XDP: the datagrams of one UDP port in and out of one network device, past the kernel's stack.
//!
//! A [`Port`] takes over the datagrams of a UDP socket that is already bound: a small eBPF program at
//! the device (`filter`) sends those to its address and port to AF_XDP sockets, one for each receive
//! queue (`queue`), and everything else to the kernel as before. What is sent gets its Ethernet, IP
//! and UDP headers here (`frame`), with the kernel's routes and neighbours (`hops`). What AF_XDP
//! cannot carry stays with the kernel's socket, which must be read too: datagrams by other devices,
//! to neighbours that are not known yet, and larger than a frame.
//!
//! Needs Linux 5.9, where a program at a device goes with the process that attached it. Sources: Linux
//! documentation, networking/af_xdp and bpf; `linux/if_xdp.h`, `linux/bpf.h`.

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

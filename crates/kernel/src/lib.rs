//! The system calls that several crates share: sockets that cannot be bound, in words; netlink round trips, interfaces, routes and policy rules,
//! network namespaces and the pairs of devices that join them, offloads and queues of devices, packet sockets, socket options and error queues that rustix does not have, RPC
//! over Unix sockets, the process's memory, whether this machine runs on a battery, the time of the week, where the C library looks names up; and when to sleep between them.
//!
//! All calls block. Without an explicit namespace they act on the network namespace of the calling
//! thread.

pub mod bind;
pub mod clock;
pub mod error_queue;
pub mod ethtool;
pub mod interface;
pub mod memory;
pub mod names;
pub mod namespace;
pub mod netlink;
pub mod offload;
pub mod pace;
pub mod packet_socket;
pub mod power;
pub mod route;
pub mod rpc;
pub mod socket;
pub mod veth;

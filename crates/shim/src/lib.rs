//! Unmodified TCP programs over several SCION paths: a shim between the kernel's MPTCP and SCION
//! (002, *Shila*).
//!
//! - [`map`]: which destinations of programs go over SCION, and where to.
//! - [`holder`]: what connections consist of on this host: a network namespace with one TUN device
//!   and the kernel's MPTCP sockets, and the rules that capture programs' connections.
//! - [`carrier`]: moves packets between the TUN device and SCION lanes.
//! - [`status`]: what there is to see of both.
//! - [`choice`]: which of the two a connection takes.
//!
//! Holder and carrier are two processes: when the carrier is killed, connections stand still until it
//! runs again. Those that are streams are in the carrier, and end with it.
//!
//! The life of a connection. The holder accepts a program's connection that it has captured, and asks the
//! carrier where it goes. The carrier opens a session with the other host if there is none, and answers
//! once a path is connected. By MPTCP, the holders of both hosts connect to each other and copy the bytes,
//! and the carriers move the packets; while little comes, a carrier copies for its holder (`lending`). As a stream, the program's socket is handed to the carrier, which
//! copies the bytes into frames. Over IP, the holder copies them alone. A connection ends when both
//! directions have, when one end breaks it, or when its session ends. The limit of open files bounds the
//! connections of each process; further ones are reset.
//!
//! Each of the two runs tasks on a tokio runtime, and threads of its own: the holder `shim-net` and
//! `shim-mptcp`, the carrier `shim-out`, `shim-in` for each socket, and `shim-packets`. They speak over
//! sockets ([`link`], [`handover`]) even when both are in one process, and share no lock. [`holder`],
//! [`carrier`] and `plane` say which locks there are.

pub mod address;
mod attachment;
mod budget;
pub mod carrier;
pub mod choice;
mod ended;
pub mod handover;
pub mod holder;
mod lending;
pub mod link;
mod liveness;
mod lock;
pub mod map;
mod mark;
mod packets;
mod plane;
pub mod protocol;
mod relay;
mod report;
mod served;
mod session;
pub mod status;

/// The UDP port of a shim, unless its host's entry in the map names another one. It is in the range
/// of ports that routers deliver to (31000 to 32767).
pub const DEFAULT_PORT: u16 = 31800;

/// The UDP port of a shim on plain IP, unless it is given another one. It is outside the range from
/// which SCION programs on the same host take theirs.
pub const PLAIN_IP_PORT: u16 = 30800;

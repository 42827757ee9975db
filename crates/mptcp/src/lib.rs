//! The kernel's MPTCP (RFC 8684) as a program uses it that controls the paths itself: sockets,
//! subflows created and destroyed by the path manager in user space, and what each subflow carries.
//!
//! Everything acts on the network namespace of the calling thread. [`check`] says whether the kernel
//! can do it, [`Settings`] prepares a namespace, [`listen`] and [`connect`] make sockets,
//! [`PathManager`] and [`Events`] control and watch the subflows of all connections of the
//! namespace, and [`Info`] reads what a connection and each of its subflows have carried.
//!
//! Needs Linux 6.6; sources: Linux documentation, networking/mptcp and networking/mptcp-sysctl;
//! `linux/mptcp.h`, `linux/mptcp_pm.h`.

mod check;
mod genl;
mod info;
mod path_manager;
mod room;
mod settings;
mod socket;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use self::check::{Unsupported, check};
pub use self::info::{Info, InfoError, Subflow, TcpState, token};
pub use self::path_manager::event::{Connection, Event, Events, Ids, Reset, SubflowEvent};
pub use self::path_manager::{PathManager, PathManagerError, Token};
pub use self::room::has_received;
pub use self::settings::{BUFFER_LIMIT, Settings, SettingsError, congestion_controls};
pub use self::socket::{Keepalive, SocketOptions, connect, listen};

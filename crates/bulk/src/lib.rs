//! Bulk transfer: a data set from one host to another over several SCION paths at once (003,
//! section 4, *Hercules*).
//!
//! - [`Node`]: this host, with its key and its sockets.
//! - [`transfer`]: sends content to a server, or fetches it.
//! - [`serve`]: receives what others send, and sends what they fetch.
//! - [`protocol`]: what is sent when, without I/O and without a clock.
//! - [`content`]: files as one run of bytes, verified range by range.

mod algorithm;
mod bitmap;
mod client;
pub mod content;
mod control;
mod data;
mod destination;
mod dialer;
mod error;
mod gate;
mod guard;
mod joined;
mod limit;
mod memory;
mod node;
mod notice;
pub mod protocol;
mod queues;
mod reader;
mod report;
mod server;
mod session;
#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "../../endhost/tests/hosts/toy.rs"]
mod toy;
mod verify;

pub use hawser_endhost::socket::{XdpError, XdpHook, XdpUse};
pub use hawser_manager::PathOptions;
pub use hawser_session::SharedPolicy;

pub use self::algorithm::Algorithm;
pub use self::client::{Request, TransferOptions, transfer};
pub use self::destination::{FolderError, check_shared};
pub use self::error::TransferError;
pub use self::limit::Limit;
pub use self::node::{Node, Sockets};
pub use self::report::{FailedFile, PathProgress, Progress, Summary, TransferEvent};
pub use self::server::{Clients, RefusalPlace, ServerEvent, ServerOptions, SessionNumber, serve};
pub use self::session::Destination;

//! Bulk transfer: a data set from one host to another over several SCION paths at once (003,
//! section 4, *Hercules*).
//!
//! - [`Node`]: this host, with its key and its sockets.
//! - [`transfer`]: sends content to a server, or fetches it.
//! - [`serve`]: receives what others send, and sends what they fetch.
//! - [`protocol`]: what is sent when, without I/O and without a clock.
//! - [`content`]: files as one run of bytes, verified range by range.
//!
//! A node has two sockets: one for QUIC connections, over which messages go, and one for datagrams
//! with content, which one thread (`data`) works for all sessions until the node is dropped. A
//! session is one task, which gives that thread commands and gets events. A source has a thread
//! that reads and hashes ranges ahead (`reader`), a sink two that verify and write them (`verify`).
//! A server runs sessions until its node is closed; a transfer begins another session where one
//! fails.
//!
//! A range of 1 MiB is read, sent, and freed once the sink has confirmed it; or it is received,
//! verified, written, and its buffer used again. The sessions share one budget of such memory
//! (`memory`), and no whole file is in memory. The lock of the shares comes before that of a
//! session's gate. Where files are written, a file's progress comes before the list of open files,
//! and that before the table of files; the progress of a file is the only one held while it is read
//! or written. All other locks of this crate are taken alone.

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
pub use self::client::{MAX_RESENDS, Request, TransferOptions, transfer};
pub use self::destination::{FolderError, check_shared};
pub use self::error::TransferError;
pub use self::limit::Limit;
pub use self::node::{Node, Sockets};
pub use self::report::{FailedFile, PathProgress, Progress, Summary, TransferEvent};
pub use self::server::{Clients, RefusalPlace, ServerEvent, ServerOptions, SessionNumber, serve};
pub use self::session::Destination;

//! The holder: what the connections of programs consist of on this host.
//!
//! It has a network namespace of its own with one TUN device and the kernel's MPTCP sockets, the
//! nf_tables table and the routes by which programs' connections are captured, and relays each of
//! them. Everything of it in the kernel vanishes with its process, but for policy rules without effect
//! and, if that is wanted, what keeps captured destinations from being reached by other routes.
//!
//! The life of a holder. *Without a carrier*, at first and after the end of each one, relayed connections
//! stand still and programs that connect wait for a carrier, up to two minutes; what is captured stays so.
//! *With a carrier*, one at a time, it learns what to capture, which slots of sessions are live and where
//! each connection goes, until the link to that closes. It is *released* by [`Holder::release`]: the
//! carrier is asked to end, then all connections are, with up to a second for each of the two, and last the
//! captures are removed.
//!
//! A task accepts at each listener, one relays each connection (`outgoing`, `incoming`), one handles what
//! the carrier says (`carrier`), and one tells it every 30 s which hosts are in use. Two threads run beside
//! them: `shim-net`, inside the namespace, makes sockets there, and `shim-mptcp` manages the subflows. The
//! limit of open files bounds the connections. Each keeps up to 16 KiB until the other holder answers, and
//! then up to 256 KiB in each direction, and up to 64 KiB more in a pipe after a loan (`exchange`).
//!
//! There is a lock for what carriers reported (`carrier`), one for the captures (`captures`), one for all
//! connections (`relays`), one for the socket of each, and one for the loans to a carrier (`lender`). None of
//! them is taken under another, and none is held across an await. Under that of the captures the kernel
//! changes rules and routes, which takes long; under the others no call waits.

mod capture;
mod captures;
mod carrier;
mod device;
mod enclosed;
mod error;
mod exchange;
mod fail;
mod incoming;
mod intake;
mod lender;
mod mptcp;
mod network;
mod opening;
mod outgoing;
mod parts;
mod relays;
mod report;
mod service;
mod subflows;

pub use self::capture::{CaptureOptions, Captured};
pub use self::device::remove_leftovers;
pub use self::error::HolderError;
pub use self::fail::{FailMode, is_guarded, remove_guard};
pub use self::parts::Holder;
pub use self::report::ConnectionEvent;
pub use self::service::{
    AttachError, AttachOptions, DownError, ServiceError, attach, down, report, run_service,
};
pub use crate::report::{
    ConnectionReport, FailureReport, HolderReport, SessionTotals, SubflowReport, SubflowState,
    Traffic,
};
pub use crate::served::{ProxyHeader, Served, ServedPort, ServedPortError};

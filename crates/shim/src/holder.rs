//! The holder: what the connections of programs consist of on this host.
//!
//! It has a network namespace of its own with one TUN device and the kernel's MPTCP sockets, the
//! nf_tables table and the routes by which programs' connections are captured, and relays each of
//! them. Everything of it in the kernel vanishes with its process, but for policy rules without effect
//! and, if that is wanted, what keeps captured destinations from being reached by other routes.

mod capture;
mod captures;
mod carrier;
mod device;
mod enclosed;
mod error;
mod fail;
mod incoming;
mod intake;
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
};
pub use crate::served::{ProxyHeader, Served, ServedPort, ServedPortError};

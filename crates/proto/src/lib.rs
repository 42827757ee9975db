//! The messages that SCION's hosts, daemons and control services exchange, as Protocol Buffers: those
//! that hawser uses, with the names and numbers of the protocols.
//!
//! - [`daemon`]: what hosts ask their daemon (`proto.daemon.v1`).
//! - [`control_plane`]: path segments, and the certificates that verify them
//!   (`proto.control_plane.v1`).
//! - [`crypto`]: signed messages (`proto.crypto.v1`).
//! - [`endhost`]: what programs on `scion-stack` ask (`scion.endhost.v1`).
//! - [`well_known`]: messages of Protocol Buffers itself (`google.protobuf`).
//!
//! Fields that a message has besides these are skipped when it is read. What is signed is a field of
//! bytes, which stay as they were received: a signed message is never encoded again.
//!
//! A field that is missing is zero, empty or `None`. Nothing else is checked here: a reader checks every
//! field that it uses.

pub mod control_plane;
pub mod crypto;
pub mod daemon;
pub mod endhost;
mod method;
pub mod well_known;

pub use prost::{DecodeError, Message};

pub use self::method::Method;

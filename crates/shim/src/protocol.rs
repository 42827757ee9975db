//! What two shims say to each other (`docs/shim-protocol.md`): no I/O, no clock.

pub mod datagram;
pub mod message;
pub mod preamble;
mod role;
pub mod segment;

#[cfg(test)]
mod fuzz;

pub use self::datagram::{DatagramKind, Epoch, SlotEpoch};
pub use self::message::{DecodeError, Framing, Message, Open, RefusalCode};
pub use self::preamble::{Preamble, PreambleError, Status};
pub use self::role::Role;

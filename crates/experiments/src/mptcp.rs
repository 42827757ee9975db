//! TCP programs over several paths: the evaluation of 002 (Shila), on links with limits.
//!
//! [`Mptcp`] lets an ordinary TCP program send through the shim over 1 to 8 paths, QUIC over the same
//! paths, and the program over plain IP, in turn. Its table has the goodput beside what headers leave and
//! what Shila reached, the bytes of each packet, and the time in which connections are set up.

mod carrier;
mod case;
mod figure;
mod headers;
mod rows;
mod run;
mod set_up;
#[cfg(test)]
mod testing;

pub use self::carrier::MptcpCarrier;
pub use self::case::{MptcpCase, MptcpRun};
pub use self::run::{Mptcp, Servers};

//! Every transfer over two good paths and a bad one: what the bad one costs or adds.
//!
//! [`BadPath`] runs a download, a bulk transfer, and a TCP program through the shim by both of its
//! carriers over three disjoint paths, of which one is lossy, far, flapping or slow in one direction.
//! Its table has the goodput by that over the two good paths alone, and the longest pause at
//! the receiver.

mod condition;
mod facts;
mod run;
mod transfer;

pub use self::condition::Condition;
pub use self::facts::Facts;
pub use self::run::{BadPath, Case};
pub use self::transfer::Transfer;

//! A link's delay, jitter and loss, as border routers make them for SCION packets, and labs for
//! plain IP.
//!
//! Pure: no I/O and no clock; every call is given the time.

mod emulator;

pub use self::emulator::{Emulator, max_batch};

//! How the cost of a byte grows: BitTorrent downloads that differ from one [`Case`] in one respect
//! ([`Axis`]), and the processor time per byte of all processes.

mod case;
mod run;
mod table;

pub use self::case::{Axis, Case};
pub use self::run::{Progress, Scale};
pub use self::table::{FLAT, Row, Table};

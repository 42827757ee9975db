//! Goodput over a far path, by tool and over time (003, Figs. 2 and 3).

mod figure;
mod run;
mod table;
mod tool;

pub use self::figure::draw;
pub use self::run::{Distance, DistanceProgress};
pub use self::table::{DistanceRow, DistanceTable};
pub use self::tool::Tool;

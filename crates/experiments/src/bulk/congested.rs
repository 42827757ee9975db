//! Two paths that share the sender's link, one of them congested for a third of the time (003,
//! Fig. 1).

mod case;
mod facts;
mod figure;
mod run;
mod table;

pub use self::case::{Case, Load, Sender};
pub use self::facts::{Facts, Phases};
pub use self::figure::draw;
pub use self::run::{Congested, CongestedProgress};
pub use self::table::{CongestedRow, CongestedTable, OverTime};

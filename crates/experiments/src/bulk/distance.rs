//! Goodput over a far path, by tool and over time (003, Figs. 2 and 3).

mod figure;
mod measured;
mod run;
mod tool;

pub use self::run::Distance;
pub use self::tool::Tool;

//! Two paths that share the sender's link, one of them congested for a third of the time (003,
//! Fig. 1).

mod case;
mod facts;
mod figure;
mod recorded;
mod run;

pub use self::case::Case;
pub use self::run::Congested;

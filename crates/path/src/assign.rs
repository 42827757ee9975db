//! Which paths an uploader gives to which of its downloaders.

mod assignment;
#[cfg(test)]
mod brute;
mod chain;
mod links;
#[cfg(test)]
mod properties;
mod sensing;
mod settle;
mod share;
mod stuck;
mod table;
#[cfg(test)]
mod tests;
mod unavoidable;
mod why;

pub use self::assignment::{Assignment, Change};
pub use self::sensing::SensingAssignment;

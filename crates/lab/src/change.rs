//! Changing a lab while it runs, by difference.
//!
//! [`Made`] is what exists of a lab; [`Target`] what is wanted of it. [`steps`] plans the way from the
//! one to the other: what is in both as it is wanted occurs in no step. Each [`Step`] names one thing;
//! the supervisor carries it out ([`crate::supervisor`]) and then takes it into its [`Made`]
//! ([`Made::take`]), so that a plan that was interrupted anywhere is made anew from what exists. A step
//! that failed half-way may be carried out again.
//!
//! None of this does I/O but [`keys`], which gives added ASes their keys and certificates.

mod check;
pub(crate) mod keys;
mod made;
mod planner;
mod step;

pub(crate) use self::check::check;
pub(crate) use self::made::{Made, MadeAs, Target};
pub(crate) use self::planner::steps;
pub use self::step::LabStep;
pub(crate) use self::step::Step;

#[cfg(test)]
mod tests;

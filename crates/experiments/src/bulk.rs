//! The experiments on bulk transfer of 003, section 4 (Hercules), from memory to memory.
//!
//! [`Distance`] sends over a far path by several tools, one after the other (Figs. 2 and 3).
//! [`Congested`] sends over two paths that share the sender's link, one of which is congested for a
//! while (Fig. 1).

pub(crate) mod chart;
pub(crate) mod check;
mod congested;
mod distance;

pub use self::congested::{Case, Congested};
pub use self::distance::{Distance, Tool};

//! Link limits: the evaluation of 004 (chapter 6), and what limits cost as links become many.
//!
//! [`LimitBench`] sets limits with hawser and with tc(8) as the thesis does (its Listing 5.2), in turn,
//! between two network namespaces, and sends UDP and TCP through them. It consists of four experiments:
//! goodput by the size of datagrams or by the rate that is offered, how far the rate of frames is from the
//! limits, the throughput of thousands of links with limits, and what one link sees of changes of another.

mod accuracy;
mod bed;
mod bench;
mod change;
mod count;
mod figure;
mod links;
mod load;
mod names;
mod point;
mod points;
mod run;
mod tool;

pub use self::bench::LimitBench;
pub use self::names::{IpVersion, LimitTool, Part};

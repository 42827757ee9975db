//! Link limits: the evaluation of 004 (chapter 6), and what limits cost as links become many.
//!
//! [`LimitBench`] sets limits with hawser and with tc(8) as the thesis does (its Listing 5.2), in turn,
//! between two network namespaces, and sends UDP and TCP through them. The [`LimitTable`] has the rates,
//! how far they are from the limits, and what thousands of links cost.

mod accuracy;
mod bed;
mod change;
mod count;
mod figure;
mod links;
mod load;
mod names;
mod points;
mod run;
mod table;
mod tool;

pub use self::figure::{LimitFigure, figures};
pub use self::names::{IpVersion, LimitTool, Part, Traffic, Way};
pub use self::run::{LimitBench, LimitProgress};
pub use self::table::{
    AccuracyRow, ChangeRow, LimitTable, LinksRow, PointRow, ProgramRow, SkippedTool,
};

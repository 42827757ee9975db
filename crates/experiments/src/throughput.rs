//! How fast bytes move from one host to another, by which means, at which cost in processor time:
//! SCION/UDP packets, QUIC and BitTorrent, beside what this machine does over plain IP.
//!
//! A [`Course`] is where they move: the border routers between the hosts, the MTU, with segmentation
//! offload or not. A [`Carrier`] is what moves them. A [`Table`] has a row for each carrier on each
//! course.

mod carrier;
mod course;
mod figure;
mod run;
mod table;

pub use self::carrier::Carrier;
pub use self::course::Course;
pub use self::figure::draw;
pub use self::run::{Matrix, Progress};
pub use self::table::{PerGigabyte, Row, Table};

//! How fast bytes move from one host to another, by which means, at which cost in processor time:
//! SCION/UDP packets, QUIC and BitTorrent, beside what this machine does over plain IP.
//!
//! A [`Course`] is where they move: the border routers between the hosts, the MTU, with segmentation
//! offload or not. A [`Carrier`] is what moves them. Its table has a row for each carrier on each
//! course.

mod carrier;
mod course;
mod figure;
mod per_gigabyte;
mod run;

pub use self::carrier::Carrier;
pub use self::course::Course;
pub use self::per_gigabyte::PerGigabyte;
pub use self::run::Matrix;

//! Packets of trackers over UDP (BEP 15, BEP 41), and over SCION/UDP.
//!
//! All numbers are big-endian. A client connects first, and gets a number that it sends with later
//! requests for a minute, so that a tracker sends long answers only to addresses that are real.

mod answer;
mod form;
mod request;

pub use self::answer::{UdpAnswer, UdpAnswerError};
pub use self::form::{Form, MAX_PAYLOAD};
pub use self::request::{UdpAnnounce, UdpRequest, UdpRequestError};

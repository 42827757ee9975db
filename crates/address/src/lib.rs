//! Addresses: an [`IsdAsn`] names an AS, a [`ScionAddr`] a program on a host of one, a [`PeerAddr`] a
//! peer of BitTorrent, by SCION or by plain IP.
//!
//! Source of numbers and their text: scionproto's wiki, "ISD and AS numbering", and its package
//! `addr`, whose parser and printer these equal.

mod addr;
mod asn;
mod compact;
mod error;
#[cfg(test)]
mod fuzz;
mod isd;
mod isd_asn;
mod peer;
mod source;

pub use self::addr::{AddrError, ScionAddr};
pub use self::asn::Asn;
pub use self::compact::{compact_ip, ip_from_compact};
pub use self::error::IdentifierError;
pub use self::isd::Isd;
pub use self::isd_asn::IsdAsn;
pub use self::peer::{PeerAddr, PeerAddrError};
pub use self::source::PeerSource;

/// Whether `text` consists of digits of `radix`; `from_str_radix` alone would accept a sign.
fn is_digits(text: &str, radix: u32) -> bool {
    text.chars().all(|digit| digit.is_digit(radix))
}

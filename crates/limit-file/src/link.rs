//! Links and their rates, as files say them.

use std::net::IpAddr;
use std::time::Duration;

use hawser_limit::Limit;

/// What a file of links says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkFile {
    /// Its links, in its order.
    pub links: Vec<Link>,
    /// The limit of all other traffic on the links' devices, in bit/s; `None` for no limit.
    pub default: Option<u64>,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The entry, as messages name it: `entry "1"`, `link 3`.
    pub entry: String,
    /// Where its packets come from and go to.
    pub place: Place,
    /// The device; `None` for the one that has the route to the far end.
    pub device: Option<String>,
    /// How fast it may be.
    pub rates: Rates,
    /// Longest wait of a packet; `None` for the usual one.
    pub queue: Option<Duration>,
}

/// What a link is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The far end's address, and its UDP port if other links have that address.
    Address(IpAddr, Option<u16>),
    /// An interface of the AS: address and port are in its topology.
    Interface(u16),
}

/// Rates in bit/s, `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Of what this host sends.
    pub egress: Option<u64>,
    /// Of what this host receives.
    pub ingress: Option<u64>,
}

impl Rates {
    /// The same rate in both directions.
    #[must_use]
    pub fn both(rate: u64) -> Self {
        Self {
            egress: Some(rate),
            ingress: Some(rate),
        }
    }
}

/// Checks that a rate in bit/s can be set.
pub(crate) fn check_rate(rate: u64) -> Result<u64, String> {
    match rate == 0 || (Limit::MIN_RATE..=Limit::MAX_RATE).contains(&rate) {
        true => Ok(rate),
        false => Err("choose 8 kbit/s to 100 Gbit/s, or 0 to let nothing pass".to_owned()),
    }
}

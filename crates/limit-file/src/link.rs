//! Links and their rates, as files say them.

use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use hawser_limit::Limit;

use crate::error::LinkFileError;
use crate::{json, named};

/// Largest file of links, in bytes: some 100,000 links.
pub const LARGEST_FILE: u64 = 16 << 20;

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

impl LinkFile {
    /// Reads a file of at most [`LARGEST_FILE`] bytes. Its name says which form it has: `.toml`, `.yaml` or
    /// `.yml`, all others are JSON.
    ///
    /// # Errors
    /// When it cannot be read, or is not valid.
    pub fn read(path: &Path) -> Result<Self, LinkFileError> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| {
            file.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
            match text.len() as u64 > LARGEST_FILE {
                false => Ok(()),
                true => Err(io::Error::other(format!(
                    "it has more than {LARGEST_FILE} bytes"
                ))),
            }
        });
        read.map_err(|source| LinkFileError::Read {
            path: path.to_owned(),
            source,
        })?;
        let extension = path.extension().and_then(|extension| extension.to_str());
        let parsed = match extension {
            Some("toml") => Self::parse_toml(&text),
            Some("yaml" | "yml") => Self::parse_yaml(&text),
            _ => Self::parse_json(&text),
        };
        parsed.map_err(|reason| LinkFileError::Invalid {
            path: path.to_owned(),
            reason,
        })
    }

    /// Reads `link_info.json`.
    ///
    /// # Errors
    /// What is wrong, with the entry that it is in.
    pub fn parse_json(text: &str) -> Result<Self, String> {
        json::parse(text)
    }

    /// Reads TOML.
    ///
    /// # Errors
    /// What is wrong, with the link that it is in.
    pub fn parse_toml(text: &str) -> Result<Self, String> {
        named::parse_toml(text)
    }

    /// Reads YAML.
    ///
    /// # Errors
    /// What is wrong, with the link that it is in.
    pub fn parse_yaml(text: &str) -> Result<Self, String> {
        named::parse_yaml(text)
    }
}

/// Checks that a rate in bit/s can be set.
pub(crate) fn check_rate(rate: u64) -> Result<u64, String> {
    match rate == 0 || (Limit::MIN_RATE..=Limit::MAX_RATE).contains(&rate) {
        true => Ok(rate),
        false => Err("choose 8 kbit/s to 100 Gbit/s, or 0 to let nothing pass".to_owned()),
    }
}

//! How peers are reached, as users have set it while the daemon ran.

use std::fmt::Display;
use std::str::FromStr;

use hawser_torrent::{EncryptionPolicy, IpTransports};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::addresses::PeerAddresses;

/// What users have set of how peers are reached, or a change of it. What is `None` is as the program sets it; of
/// a change, it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSettings {
    /// Which connections with IP peers are encrypted.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write",
        deserialize_with = "read"
    )]
    pub encryption: Option<EncryptionPolicy>,
    /// Over what IP peers are reached, and connect.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "write",
        deserialize_with = "read"
    )]
    pub transports: Option<IpTransports>,
    /// Whether the DHT is searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dht: Option<bool>,
    /// Whether peers are looked for on the own network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<bool>,
    /// Whether peers name others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<bool>,
}

impl NetworkSettings {
    /// Makes the change.
    pub fn apply(self, settings: &mut Self) {
        settings.encryption = self.encryption.or(settings.encryption);
        settings.transports = self.transports.or(settings.transports);
        settings.dht = self.dht.or(settings.dht);
        settings.local = self.local.or(settings.local);
        settings.exchange = self.exchange.or(settings.exchange);
    }

    /// The addresses of peers, with the ways to find them that are on, where the daemon has started with these.
    pub(crate) fn ways_on(&self, at_start: &PeerAddresses) -> PeerAddresses {
        PeerAddresses {
            dht: self.dht.unwrap_or(at_start.dht),
            local: self.local.unwrap_or(at_start.local),
            exchange: self.exchange.unwrap_or(at_start.exchange),
            ..*at_start
        }
    }
}

/// Writes a value as its text.
fn write<T: Display, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(T::to_string).serialize(to)
}

/// Reads a value from its text.
fn read<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let text: Option<String> = Option::deserialize(from)?;
    let value = text.map(|text| text.parse()).transpose();
    value.map_err(serde::de::Error::custom)
}

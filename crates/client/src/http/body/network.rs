//! How peers are reached.

use hawser_torrent::Network;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::addresses::PeerAddresses;
use crate::network::NetworkSettings;

/// How peers are reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkState {
    /// Which connections with IP peers are encrypted: `disable`, `allow`, `prefer` or `require`; not given while
    /// nobody has chosen: peers that connect may encrypt, and those dialed are first spoken to plainly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
    /// Over what IP peers are reached, and connect: `tcp`, `utp` or `tcp,utp`.
    pub transport: String,
    /// Whether the DHT is searched.
    pub dht: bool,
    /// Whether peers are looked for on the own network.
    pub local: bool,
    /// Whether peers name others.
    pub pex: bool,
}

impl NetworkState {
    /// With these sockets, and these ways to find peers, that are on.
    pub(crate) fn of(network: &Network, on: &PeerAddresses) -> Self {
        Self {
            dht: on.dht,
            local: on.local,
            pex: on.exchange,
            encryption: network.encryption().map(|policy| policy.to_string()),
            transport: network.transports().to_string(),
        }
    }
}

/// A change of how peers are reached, which holds at once for connections that begin from then on. What is not
/// given stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkChange {
    /// Which connections with IP peers are encrypted: `disable`, `allow`, `prefer` or `require`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
    /// Over what IP peers are reached, and connect: `tcp`, `utp` or `tcp,utp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Whether the DHT is searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dht: Option<bool>,
    /// Whether peers are looked for on the own network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<bool>,
    /// Whether peers name others: off holds at once, on for connections that begin from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pex: Option<bool>,
}

impl NetworkChange {
    /// Reads the change.
    ///
    /// # Errors
    /// What is wrong with a value.
    pub(crate) fn read(&self) -> Result<NetworkSettings, String> {
        let encryption = self.encryption.as_ref().map(|text| text.parse());
        let transports = self.transport.as_ref().map(|text| text.parse());
        Ok(NetworkSettings {
            encryption: encryption.transpose().map_err(text)?,
            transports: transports.transpose().map_err(text)?,
            dht: self.dht,
            local: self.local,
            exchange: self.pex,
        })
    }
}

/// The text of an error.
fn text(error: impl ToString) -> String {
    error.to_string()
}

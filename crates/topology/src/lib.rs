//! What a SCION network, and one AS of it, look like on disk.
//!
//! A [`Network`] is a whole network: its ASes, its links and what each link is to behave like. It
//! is read from a `.topo` file (scionproto's format with the link keys `rate`, `delay`, `jitter`,
//! `loss` and `queue` added) and kept as JSON beside the ASes' folders. An [`AsDir`] is the folder
//! of one AS: `topology.json` and `keys/` in scionproto's layout, and the state of its links.

mod as_dir;
mod as_topology;
mod network;
mod quantity;
mod ready;
mod topo;

pub use sciparse::identifier::isd_asn::IsdAsn;

pub use self::as_dir::{AsDir, AsDirError, LinkState};
pub use self::as_topology::{AsTopology, Bfd, BorderRouter, Interface, LinkTo};
pub use self::network::{As, End, Link, LinkKind, Network, Shape, Side, Underlay};
pub use self::quantity::{
    QuantityError, format_duration, format_loss, format_rate, parse_duration, parse_loss,
    parse_rate,
};
pub use self::topo::TopologyError;

/// ISD-AS numbers as text in JSON, the way every SCION file writes them.
mod isd_as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::IsdAsn;

    pub fn serialize<S: Serializer>(isd_as: &IsdAsn, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(isd_as)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<IsdAsn, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// The same where there may be none.
mod isd_as_text_option {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::IsdAsn;

    pub fn serialize<S: Serializer>(isd_as: &Option<IsdAsn>, to: S) -> Result<S::Ok, S::Error> {
        isd_as.map(|isd_as| isd_as.to_string()).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<IsdAsn>, D::Error> {
        Option::<String>::deserialize(from)?
            .map(|text| text.parse().map_err(D::Error::custom))
            .transpose()
    }
}

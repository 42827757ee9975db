//! The keys of a `.topo` file.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::network::LinkKind;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TopoFile {
    #[serde(rename = "ASes")]
    pub ases: Ordered<TopoAs>,
    #[serde(default)]
    pub links: Vec<TopoLink>,
    #[serde(default)]
    pub defaults: Defaults,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    pub mtu: Option<u16>,
    pub dispatched_ports: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TopoAs {
    #[serde(default)]
    pub core: bool,
    #[serde(default)]
    pub voting: bool,
    #[serde(default)]
    pub authoritative: bool,
    #[serde(default)]
    pub issuing: bool,
    pub cert_issuer: Option<String>,
    pub mtu: Option<u16>,
    pub underlay: Option<String>,
    pub dispatched_ports: Option<String>,
    pub note: Option<String>,
    // scionproto starts one control service for any value.
    #[serde(default, rename = "control_servers")]
    _control_servers: Option<u32>,
    // Whether scionproto's containers run a dispatcher.
    #[serde(default, rename = "test_dispatcher")]
    _test_dispatcher: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TopoLink {
    pub a: String,
    pub b: String,
    #[serde(rename = "linkAtoB", deserialize_with = "kind")]
    pub kind: LinkKind,
    pub mtu: Option<u16>,
    pub underlay: Option<String>,
    pub rate: Option<String>,
    pub delay: Option<String>,
    pub jitter: Option<String>,
    pub loss: Option<String>,
    pub queue: Option<String>,
    // scionproto does not limit the link to this value; `rate` sets a limit.
    #[serde(default, rename = "bw")]
    _bw: Option<u64>,
}

/// Reads a link kind in upper or lower case, as scionproto does.
fn kind<'de, D: Deserializer<'de>>(from: D) -> Result<LinkKind, D::Error> {
    let text = String::deserialize(from)?;
    match text.to_ascii_uppercase().as_str() {
        "CORE" => Ok(LinkKind::Core),
        "CHILD" => Ok(LinkKind::Child),
        "PEER" => Ok(LinkKind::Peer),
        _ => Err(D::Error::custom(format!(
            "linkAtoB {text:?} is not a kind of link: write CORE, CHILD or PEER"
        ))),
    }
}

/// A mapping that keeps the order of the file, by which the ASes are numbered.
pub(super) struct Ordered<T>(pub Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
            type Value = Ordered<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a mapping")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        from.deserialize_map(Visitor(std::marker::PhantomData))
    }
}

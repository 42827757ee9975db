//! The `.topo` format: scionproto's YAML with what a link behaves like added.

use crate::network::{As, DEFAULT_MTU, End, Link, LinkKind, Network, Shape};
use crate::{IsdAsn, QuantityError, parse_duration, parse_loss, parse_rate};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
};

/// Why a topology was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The file cannot be read or written.
    #[error("cannot use topology file {path}: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system or the JSON reader said.
        reason: String,
    },
    /// Not YAML, a key missing, of the wrong type, or unknown.
    #[error("topology is not valid: {0}")]
    Format(String),
    /// A key of `ASes` is no ISD-AS.
    #[error("topology: {0:?} is not an ISD-AS: write for example 1-ff00:0:110")]
    IsdAs(String),
    /// An end of a link is no interface.
    #[error("topology: {0:?} is not an interface: write for example 1-ff00:0:110#1")]
    End(String),
    /// A link names an AS that `ASes` does not list.
    #[error(
        "topology: link {link} names the AS {isd_as}, which is not under ASes: add it there or mend the link"
    )]
    UnknownAs {
        /// The link, as `a - b`.
        link: String,
        /// The AS it names.
        isd_as: IsdAsn,
    },
    /// Two links use the same interface.
    #[error("topology: interface {0} is used by two links: give one of them another number")]
    InterfaceTwice(String),
    /// Both ends of a link are in one AS.
    #[error("topology: link {0} joins an AS to itself")]
    SelfLink(String),
    /// A core link touches an AS that is not core.
    #[error(
        "topology: link {link} is CORE, but {isd_as} is not a core AS: set `core: true` or make it a CHILD link"
    )]
    NotCore {
        /// The link, as `a - b`.
        link: String,
        /// The AS that is not core.
        isd_as: IsdAsn,
    },
    /// A child link leads to a core AS.
    #[error(
        "topology: link {link} makes the core AS {isd_as} a child: core ASes are joined by CORE links"
    )]
    CoreChild {
        /// The link, as `a - b`.
        link: String,
        /// The core AS.
        isd_as: IsdAsn,
    },
    /// An MTU too small for a SCION packet with a path.
    #[error("topology: mtu {mtu} of {thing} is too small: at least {MIN_MTU} bytes are needed")]
    Mtu {
        /// What has the MTU.
        thing: String,
        /// The MTU.
        mtu: u16,
    },
    /// A rate, time or loss that is none.
    #[error("topology: link {link}: {source}")]
    Quantity {
        /// The link, as `a - b`.
        link: String,
        /// What is wrong with it.
        source: QuantityError,
    },
    /// No AS at all.
    #[error("topology: it lists no ASes")]
    Empty,
}

/// Smallest accepted MTU in bytes: scionproto's routers and QUIC's 1200-byte
/// datagrams both stop working below the IPv6 minimum.
const MIN_MTU: u16 = 1280;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopoFile {
    #[serde(rename = "ASes")]
    ases: Ordered<TopoAs>,
    #[serde(default)]
    links: Vec<TopoLink>,
    // scionproto's per-file defaults; the fields we use are read from the ASes.
    #[serde(default)]
    defaults: Option<Defaults>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    #[serde(default)]
    mtu: Option<u16>,
    #[serde(default, rename = "underlay")]
    _underlay: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopoAs {
    #[serde(default)]
    core: bool,
    mtu: Option<u16>,
    note: Option<String>,
    // Of scionproto's certificates and underlays; they change nothing here.
    #[serde(default, rename = "voting")]
    _voting: bool,
    #[serde(default, rename = "authoritative")]
    _authoritative: bool,
    #[serde(default, rename = "issuing")]
    _issuing: bool,
    #[serde(default, rename = "cert_issuer")]
    _cert_issuer: Option<String>,
    #[serde(default, rename = "underlay")]
    _underlay: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopoLink {
    a: String,
    b: String,
    #[serde(rename = "linkAtoB")]
    kind: LinkKind,
    mtu: Option<u16>,
    rate: Option<String>,
    delay: Option<String>,
    jitter: Option<String>,
    loss: Option<String>,
    queue: Option<String>,
    #[serde(default, rename = "underlay")]
    _underlay: Option<String>,
}

/// A mapping whose order is kept: it numbers the ASes.
struct Ordered<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
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

/// Reads a topology.
pub fn parse(text: &str) -> Result<Network, TopologyError> {
    let file: TopoFile = serde_saphyr::from_str(text)
        .map_err(|e| TopologyError::Format(one_line(&e.to_string())))?;
    let default_mtu = file.defaults.and_then(|d| d.mtu).unwrap_or(DEFAULT_MTU);

    let mut ases = Vec::with_capacity(file.ases.0.len());
    for (name, as_) in file.ases.0 {
        let isd_as: IsdAsn = name
            .parse()
            .map_err(|_| TopologyError::IsdAs(name.clone()))?;
        if isd_as.is_wildcard() {
            return Err(TopologyError::IsdAs(name));
        }
        if ases.iter().any(|a: &As| a.isd_as == isd_as) {
            return Err(TopologyError::Format(format!(
                "AS {isd_as} is listed twice"
            )));
        }
        ases.push(As {
            isd_as,
            core: as_.core,
            mtu: check_mtu(as_.mtu.unwrap_or(default_mtu), || format!("AS {isd_as}"))?,
            note: as_.note,
        });
    }
    if ases.is_empty() {
        return Err(TopologyError::Empty);
    }

    let mut used = HashSet::new();
    let mut links = Vec::with_capacity(file.links.len());
    for link in file.links {
        let link = read_link(link, &ases)?;
        for end in [&link.a, &link.b] {
            if !used.insert((end.isd_as, end.id)) {
                return Err(TopologyError::InterfaceTwice(format!(
                    "{}#{}",
                    end.isd_as, end.id
                )));
            }
        }
        links.push(link);
    }
    Ok(Network { ases, links })
}

fn read_link(from: TopoLink, ases: &[As]) -> Result<Link, TopologyError> {
    let name = format!("{} - {}", from.a, from.b);
    let (a, b) = (read_end(&from.a)?, read_end(&from.b)?);
    let core: BTreeMap<_, _> = ases.iter().map(|x| (x.isd_as, x.core)).collect();
    for end in [&a, &b] {
        let Some(&core) = core.get(&end.isd_as) else {
            return Err(TopologyError::UnknownAs {
                link: name,
                isd_as: end.isd_as,
            });
        };
        if from.kind == LinkKind::Core && !core {
            return Err(TopologyError::NotCore {
                link: name,
                isd_as: end.isd_as,
            });
        }
    }
    if a.isd_as == b.isd_as {
        return Err(TopologyError::SelfLink(name));
    }
    if from.kind == LinkKind::Child && core[&b.isd_as] {
        return Err(TopologyError::CoreChild {
            link: name,
            isd_as: b.isd_as,
        });
    }

    let wrong = |source| TopologyError::Quantity {
        link: name.clone(),
        source,
    };
    let time = |text: Option<String>| text.map(|t| parse_duration(&t)).transpose();
    let mut shape = Shape {
        rate: from
            .rate
            .map(|t| parse_rate(&t))
            .transpose()
            .map_err(wrong)?,
        delay: time(from.delay).map_err(wrong)?.unwrap_or_default(),
        jitter: time(from.jitter).map_err(wrong)?.unwrap_or_default(),
        loss: from
            .loss
            .map(|t| parse_loss(&t))
            .transpose()
            .map_err(wrong)?
            .unwrap_or_default(),
        ..Shape::default()
    };
    if let Some(queue) = time(from.queue).map_err(wrong)? {
        shape.queue = queue;
    }
    Ok(Link {
        mtu: check_mtu(from.mtu.unwrap_or(DEFAULT_MTU), || format!("link {name}"))?,
        a,
        b,
        kind: from.kind,
        shape,
    })
}

/// Reads `1-ff00:0:110#1`, or `1-ff00:0:110-A#1` where the AS has several
/// border routers.
fn read_end(text: &str) -> Result<End, TopologyError> {
    let wrong = || TopologyError::End(text.to_owned());
    let (left, id) = text.split_once('#').ok_or_else(wrong)?;
    let id: u16 = id.parse().map_err(|_| wrong())?;
    if id == 0 {
        return Err(wrong());
    }
    let (isd_as, router) = match left.match_indices('-').nth(1) {
        Some((at, _)) => (&left[..at], &left[at + 1..]),
        None => (left, ""),
    };
    let isd_as: IsdAsn = isd_as.parse().map_err(|_| wrong())?;
    if isd_as.is_wildcard() {
        return Err(wrong());
    }
    Ok(End {
        isd_as,
        router: router.to_owned(),
        id,
    })
}

fn check_mtu(mtu: u16, thing: impl FnOnce() -> String) -> Result<u16, TopologyError> {
    if mtu < MIN_MTU {
        return Err(TopologyError::Mtu {
            thing: thing(),
            mtu,
        });
    }
    Ok(mtu)
}

/// The first line of a reader's message: the rest is a drawing of the place.
fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;

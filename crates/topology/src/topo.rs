//! The `.topo` format: scionproto's YAML with what a link behaves like added.

mod end;
mod file;
mod write;

use std::path::PathBuf;

use self::end::{Numbers, RawEnd};
use self::file::{TopoAs, TopoFile, TopoLink};
pub use self::write::write;
use crate::network::{
    As, DEFAULT_DISPATCHED_PORTS, DEFAULT_MTU, End, Link, LinkKind, Network, Shape, Underlay,
};
use crate::{IsdAsn, QuantityError, parse_duration, parse_loss, parse_rate};

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
    /// More links end in an AS than there are interface numbers.
    #[error("topology: {0} has no interface number left for its next link")]
    NoNumberLeft(IsdAsn),
    /// An AS that is to issue a certificate is not there, or in another ISD.
    #[error(
        "topology: {isd_as} names the certificate issuer {issuer}, which is not an AS of its ISD: name one that is"
    )]
    Issuer {
        /// The AS.
        isd_as: IsdAsn,
        /// Its issuer.
        issuer: IsdAsn,
    },
    /// An underlay that is none.
    #[error("topology: the underlay {underlay:?} of {thing} is none: write UDP/IPv4 or UDP/IPv6")]
    Underlay {
        /// What has the underlay.
        thing: String,
        /// What was written.
        underlay: String,
    },
    /// A range of ports that is none.
    #[error(
        "topology: the dispatched_ports {ports:?} of {thing} are none: write all, a range such as 31000-32767, or - for no port"
    )]
    Ports {
        /// What has the ports.
        thing: String,
        /// What was written.
        ports: String,
    },
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

/// Smallest accepted MTU in bytes: scionproto's routers and QUIC's 1200-byte datagrams both stop
/// working below the IPv6 minimum.
const MIN_MTU: u16 = 1280;

/// Reads a topology.
pub fn parse(text: &str) -> Result<Network, TopologyError> {
    let file: TopoFile = serde_saphyr::from_str(text)
        .map_err(|e| TopologyError::Format(one_line(&e.to_string())))?;
    let defaults = Defaults {
        mtu: file.defaults.mtu.unwrap_or(DEFAULT_MTU),
        ports: match &file.defaults.dispatched_ports {
            Some(ports) => read_ports(ports, || "defaults".to_owned())?,
            None => DEFAULT_DISPATCHED_PORTS,
        },
    };

    let mut ases = Vec::with_capacity(file.ases.0.len());
    for (name, as_) in file.ases.0 {
        let as_ = read_as(&name, as_, &defaults)?;
        if ases.iter().any(|a: &As| a.isd_as == as_.isd_as) {
            return Err(TopologyError::Format(format!(
                "AS {} is listed twice",
                as_.isd_as
            )));
        }
        ases.push(as_);
    }
    if ases.is_empty() {
        return Err(TopologyError::Empty);
    }
    for as_ in &ases {
        let Some(issuer) = as_.cert_issuer else {
            continue;
        };
        let same_isd = issuer.isd() == as_.isd_as.isd();
        if !same_isd || !ases.iter().any(|a| a.isd_as == issuer) {
            return Err(TopologyError::Issuer {
                isd_as: as_.isd_as,
                issuer,
            });
        }
    }

    let mut numbers = Numbers::default();
    let mut ends = Vec::with_capacity(file.links.len());
    for link in &file.links {
        let both = [RawEnd::parse(&link.a)?, RawEnd::parse(&link.b)?];
        for end in &both {
            numbers.reserve(end)?;
        }
        ends.push(both);
    }
    let mut links = Vec::with_capacity(file.links.len());
    for (link, [a, b]) in file.links.into_iter().zip(ends) {
        let (a, b) = (numbers.number(a)?, numbers.number(b)?);
        links.push(read_link(link, a, b, &ases, &defaults)?);
    }
    Ok(Network { ases, links })
}

/// What holds for ASes and links that say nothing of it.
struct Defaults {
    mtu: u16,
    ports: (u16, u16),
}

fn read_as(name: &str, from: TopoAs, defaults: &Defaults) -> Result<As, TopologyError> {
    let isd_as = read_isd_as(name)?;
    let thing = || format!("AS {isd_as}");
    Ok(As {
        isd_as,
        core: from.core,
        voting: from.voting,
        authoritative: from.authoritative,
        issuing: from.issuing,
        cert_issuer: from
            .cert_issuer
            .map(|issuer| read_isd_as(&issuer))
            .transpose()?,
        underlay: read_underlay(from.underlay, thing)?,
        dispatched_ports: match from.dispatched_ports {
            Some(ports) => read_ports(&ports, thing)?,
            None => defaults.ports,
        },
        mtu: check_mtu(from.mtu.unwrap_or(defaults.mtu), thing)?,
        note: from.note,
    })
}

fn read_link(
    from: TopoLink,
    a: End,
    b: End,
    ases: &[As],
    defaults: &Defaults,
) -> Result<Link, TopologyError> {
    let name = format!("{} - {}", from.a, from.b);
    for end in [&a, &b] {
        let Some(as_) = ases.iter().find(|as_| as_.isd_as == end.isd_as) else {
            return Err(TopologyError::UnknownAs {
                link: name,
                isd_as: end.isd_as,
            });
        };
        if from.kind == LinkKind::Core && !as_.core {
            return Err(TopologyError::NotCore {
                link: name,
                isd_as: end.isd_as,
            });
        }
        if from.kind == LinkKind::Child && as_.core && end.isd_as == b.isd_as {
            return Err(TopologyError::CoreChild {
                link: name,
                isd_as: end.isd_as,
            });
        }
    }
    if a.isd_as == b.isd_as {
        return Err(TopologyError::SelfLink(name));
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
    let thing = || format!("link {name}");
    Ok(Link {
        underlay: read_underlay(from.underlay, thing)?,
        mtu: check_mtu(from.mtu.unwrap_or(defaults.mtu), thing)?,
        a,
        b,
        kind: from.kind,
        shape,
    })
}

fn read_isd_as(text: &str) -> Result<IsdAsn, TopologyError> {
    let wrong = || TopologyError::IsdAs(text.to_owned());
    let isd_as: IsdAsn = text.parse().map_err(|_| wrong())?;
    match isd_as.is_wildcard() {
        true => Err(wrong()),
        false => Ok(isd_as),
    }
}

fn read_underlay(
    text: Option<String>,
    thing: impl FnOnce() -> String,
) -> Result<Underlay, TopologyError> {
    let Some(text) = text else {
        return Ok(Underlay::default());
    };
    text.parse().map_err(|()| TopologyError::Underlay {
        thing: thing(),
        underlay: text,
    })
}

/// Reads what scionproto takes in `topology.json`.
fn read_ports(text: &str, thing: impl FnOnce() -> String) -> Result<(u16, u16), TopologyError> {
    match text {
        "" | "-" => return Ok((0, 0)),
        "all" | "ALL" => return Ok((1, u16::MAX)),
        _ => {}
    }
    let range = text.split_once('-').and_then(|(first, last)| {
        let range: (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        (range.0 > 0 && range.0 <= range.1).then_some(range)
    });
    range.ok_or_else(|| TopologyError::Ports {
        thing: thing(),
        ports: text.to_owned(),
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

//! The `.topo` format: scionproto's YAML, with the rate, delay, jitter, loss and queue of links
//! added.

mod end;
mod file;
mod write;

use self::end::{Numbers, RawEnd};
use self::file::{TopoAs, TopoFile, TopoLink};
pub use self::write::write;
use crate::error::{MIN_MTU, TopologyError};
use crate::network::{
    As, DEFAULT_DISPATCHED_PORTS, DEFAULT_MTU, End, Link, LinkKind, Network, Shape, Underlay,
};
use crate::quantity::{parse_duration, parse_loss, parse_rate};
use crate::{IsdAsn, ports};

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

/// The values of ASes and links that set none.
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

fn read_ports(text: &str, thing: impl FnOnce() -> String) -> Result<(u16, u16), TopologyError> {
    ports::parse(text).ok_or_else(|| TopologyError::Ports {
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

/// The first line of the reader's message; the others show the place in the file.
fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;

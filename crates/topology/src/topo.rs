//! The `.topo` format: scionproto's YAML, with the rate, delay, jitter, loss and queue of links
//! added.

mod end;
mod file;
mod write;

use self::end::{Numbers, RawEnd};
use self::file::{TopoAs, TopoFile, TopoLink};
pub use self::write::write;
use crate::network::{
    As, DEFAULT_DISPATCHED_PORTS, DEFAULT_MTU, End, Link, LinkKind, Network, Shape, Underlay,
};
use crate::quantity::{QuantityError, parse_duration, parse_loss, parse_rate};
use crate::{IsdAsn, ports};

/// Smallest accepted MTU in bytes, the IPv6 minimum: scionproto's routers and QUIC's 1200-byte
/// datagrams need it.
const MIN_MTU: u16 = 1280;

/// Reads a topology. Errors name the wrong part and the remedy.
pub fn parse(text: &str) -> Result<Network, String> {
    // Keeps the first line of the parser's message; the others show the place in the file.
    let file: TopoFile = serde_saphyr::from_str(text)
        .map_err(|e| e.to_string().lines().next().unwrap_or_default().to_owned())?;
    let defaults = Defaults {
        mtu: file.defaults.mtu.unwrap_or(DEFAULT_MTU),
        ports: read_ports(file.defaults.dispatched_ports, DEFAULT_DISPATCHED_PORTS)
            .map_err(|e| format!("defaults: {e}"))?,
    };

    let mut ases = Vec::with_capacity(file.ases.0.len());
    for (name, as_) in file.ases.0 {
        let isd_as = read_isd_as(&name)?;
        if ases.iter().any(|a: &As| a.isd_as == isd_as) {
            return Err(format!("AS {isd_as} is listed twice"));
        }
        ases.push(read_as(isd_as, as_, &defaults).map_err(|e| format!("AS {isd_as}: {e}"))?);
    }
    if ases.is_empty() {
        return Err("it lists no ASes".to_owned());
    }
    for as_ in &ases {
        let is_issuer = |issuer: IsdAsn| {
            issuer.isd() == as_.isd_as.isd() && ases.iter().any(|a| a.isd_as == issuer)
        };
        if let Some(issuer) = as_.cert_issuer.filter(|issuer| !is_issuer(*issuer)) {
            return Err(format!(
                "{} names the certificate issuer {issuer}, which is not an AS of its ISD: name one that is",
                as_.isd_as
            ));
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
        let name = format!("link {} - {}", link.a, link.b);
        let (a, b) = (numbers.number(a)?, numbers.number(b)?);
        links.push(read_link(link, a, b, &ases, &defaults).map_err(|e| format!("{name}: {e}"))?);
    }
    Ok(Network { ases, links })
}

/// Default values for ASes and links.
struct Defaults {
    mtu: u16,
    ports: (u16, u16),
}

fn read_as(isd_as: IsdAsn, from: TopoAs, defaults: &Defaults) -> Result<As, String> {
    let issuer = from.cert_issuer.as_deref().map(read_isd_as);
    Ok(As {
        isd_as,
        core: from.core,
        voting: from.voting,
        authoritative: from.authoritative,
        issuing: from.issuing,
        cert_issuer: issuer.transpose()?,
        underlay: read_underlay(from.underlay)?,
        dispatched_ports: read_ports(from.dispatched_ports, defaults.ports)?,
        mtu: check_mtu(from.mtu.unwrap_or(defaults.mtu))?,
        note: from.note,
    })
}

fn read_link(
    from: TopoLink,
    a: End,
    b: End,
    ases: &[As],
    defaults: &Defaults,
) -> Result<Link, String> {
    let default = Shape::default();
    let shape = Shape {
        rate: read(from.rate, parse_rate)?,
        delay: read(from.delay, parse_duration)?.unwrap_or(default.delay),
        jitter: read(from.jitter, parse_duration)?.unwrap_or(default.jitter),
        loss: read(from.loss, parse_loss)?.unwrap_or(default.loss),
        queue: read(from.queue, parse_duration)?.unwrap_or(default.queue),
    };
    let link = Link {
        underlay: read_underlay(from.underlay)?,
        mtu: check_mtu(from.mtu.unwrap_or(defaults.mtu))?,
        a,
        b,
        kind: from.kind,
        shape,
    };
    check_link(&link, ases)?;
    Ok(link)
}

/// Checks that the ASes of a link exist, and that its kind fits them.
pub(crate) fn check_link(link: &Link, ases: &[As]) -> Result<(), String> {
    let (a, b) = (&link.a, &link.b);
    for end in [a, b] {
        let isd_as = end.isd_as;
        let Some(as_) = ases.iter().find(|as_| as_.isd_as == isd_as) else {
            return Err(format!(
                "the AS {isd_as} is not under ASes: add it there or correct the link"
            ));
        };
        if link.kind == LinkKind::Core && !as_.core {
            return Err(format!(
                "it is CORE, but {isd_as} is not a core AS: set `core: true` or make it a CHILD link"
            ));
        }
        if link.kind == LinkKind::Child && as_.core && isd_as == b.isd_as {
            return Err(format!(
                "it makes the core AS {isd_as} a child: core ASes are joined by CORE links"
            ));
        }
    }
    if a.isd_as == b.isd_as {
        return Err("it joins an AS to itself".to_owned());
    }
    Ok(())
}

/// A further end of a link of a network, as in a file; without a number it gets the lowest that is free.
pub(crate) fn new_end(network: &Network, text: &str) -> Result<End, String> {
    let end = RawEnd::parse(text)?;
    let mut numbers = Numbers::default();
    let known = network.links.iter().flat_map(|link| [&link.a, &link.b]);
    for known in known.filter(|known| known.isd_as == end.isd_as) {
        numbers.reserve(&RawEnd {
            isd_as: known.isd_as,
            router: known.router.clone(),
            id: Some(known.id),
        })?;
    }
    numbers.reserve(&end)?;
    numbers.number(end)
}

fn read<T>(
    text: Option<String>,
    parse: fn(&str) -> Result<T, QuantityError>,
) -> Result<Option<T>, String> {
    let value = text.map(|text| parse(&text)).transpose();
    value.map_err(|error| error.to_string())
}

fn read_isd_as(text: &str) -> Result<IsdAsn, String> {
    let isd_as = text
        .parse()
        .ok()
        .filter(|isd_as: &IsdAsn| !isd_as.is_wildcard());
    isd_as.ok_or_else(|| format!("{text:?} is not an ISD-AS: write for example 1-ff00:0:110"))
}

fn read_underlay(text: Option<String>) -> Result<Underlay, String> {
    text.map_or(Ok(Underlay::default()), |text| text.parse())
}

fn read_ports(text: Option<String>, default: (u16, u16)) -> Result<(u16, u16), String> {
    text.map_or(Ok(default), |text| ports::parse(&text))
}

pub(crate) fn check_mtu(mtu: u16) -> Result<u16, String> {
    match mtu < MIN_MTU {
        true => Err(format!(
            "mtu {mtu} is too small: at least {MIN_MTU} bytes are needed"
        )),
        false => Ok(mtu),
    }
}

#[cfg(test)]
mod tests;

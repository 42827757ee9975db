//! Underlay addresses in the formats of `topology.json`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

/// Reads an address and port: IPv4, IPv6 in brackets with or without a zone, or a host name, which
/// this resolves.
pub(super) fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(unmapped(address));
    }
    if let Some(address) = zoned(text) {
        return Ok(address);
    }
    if !text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c))
    {
        return Err(format!("{text:?} is not an address with a port"));
    }
    let found = text
        .to_socket_addrs()
        .map_err(|error| format!("{text:?} is not an address with a port: {error}"))?
        .next()
        .ok_or_else(|| format!("{text:?} has no address"))?;
    Ok(unmapped(found))
}

/// Like [`parse`], but also accepts `:port`, the unspecified address of the family of `remote` with
/// that port, and the empty text, the same address with port 0.
pub(super) fn parse_local(text: &str, remote: SocketAddr) -> Result<SocketAddr, String> {
    match text.strip_prefix(':') {
        None if text.is_empty() => Ok(any(remote, 0)),
        None => parse(text),
        Some(port) => {
            let port = port
                .parse()
                .map_err(|_| format!("{text:?} is not a port"))?;
            Ok(any(remote, port))
        }
    }
}

/// The unspecified address of the family of `like`.
fn any(like: SocketAddr, port: u16) -> SocketAddr {
    let ip = match like {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(ip, port)
}

fn unmapped(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Reads `[address%zone]:port`. If this machine does not have the device of the zone, the zone is
/// left out; binding the address then fails with an error.
fn zoned(text: &str) -> Option<SocketAddr> {
    let (inside, port) = text.strip_prefix('[')?.rsplit_once("]:")?;
    let (ip, zone) = inside.split_once('%')?;
    let (ip, port) = (ip.parse::<Ipv6Addr>().ok()?, port.parse().ok()?);
    Some(SocketAddrV6::new(ip, port, 0, device(zone).unwrap_or(0)).into())
}

/// The index of a network device.
fn device(name: &str) -> Option<u32> {
    if name.contains('/') {
        return None;
    }
    let number = std::fs::read_to_string(format!("/sys/class/net/{name}/ifindex")).ok()?;
    number.trim().parse().ok()
}

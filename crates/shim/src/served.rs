//! What other hosts may connect to.

mod proxy;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::proxy::ProxyHeader;

/// What other hosts may connect to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Served {
    /// Whether all ports of this host are served.
    pub all: bool,
    /// The ports that are served.
    pub ports: Vec<ServedPort>,
    /// Other hosts behind this one that are served, at all ports.
    pub networks: Vec<IpNet>,
    /// The header by which servers learn the address of a program.
    pub proxy_header: Option<ProxyHeader>,
}

/// A port that is served: `443`, or `443=10.0.0.7:8443` for a server elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedPort {
    /// The port that programs connect to.
    pub port: u16,
    /// The server, if it is not at that port of this host.
    pub server: Option<SocketAddr>,
}

/// A text that names no port to serve.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a port to serve: write for example 443, or 443=127.0.0.1:8443")]
pub struct ServedPortError(String);

impl FromStr for ServedPort {
    type Err = ServedPortError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ServedPortError(text.to_owned());
        let (port, server) = match text.split_once('=') {
            Some((port, server)) => (port, Some(server.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        match port.parse() {
            Ok(port @ 1..) => Ok(Self { port, server }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for ServedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.server {
            Some(server) => write!(f, "{}={server}", self.port),
            None => self.port.fmt(f),
        }
    }
}

/// The server for connections to `destination`, and the header that it wants; `None` if that is not
/// served.
pub(crate) fn find(
    served: &Served,
    destination: SocketAddr,
) -> Option<(SocketAddr, Option<ProxyHeader>)> {
    let (ip, port) = (destination.ip(), destination.port());
    let header = served.proxy_header;
    if served.networks.iter().any(|network| network.contains(&ip)) {
        return Some((destination, header));
    }
    let listed = served.ports.iter().find(|one| one.port == port);
    if let Some(server) = listed.and_then(|one| one.server) {
        return Some((server, header));
    }
    // A server of this host may listen at one of its addresses only.
    let ip = match is_own(ip) {
        true => ip,
        false => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    (served.all || listed.is_some()).then_some((SocketAddr::new(ip, port), header))
}

/// Whether `ip` is an address of this host.
pub(crate) fn is_own(ip: IpAddr) -> bool {
    let addresses = hawser_kernel::interface::addresses();
    addresses.is_ok_and(|all| all.iter().any(|(_, own)| *own == ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn ports_are_read_as_they_are_written() {
        for text in ["443", "443=10.0.0.7:8443", "22=[fd00::1]:22"] {
            assert_eq!(text.parse::<ServedPort>().unwrap().to_string(), text);
        }
        for text in ["", "0", "65536", "443=8443", "443=", "ssh"] {
            let error = text.parse::<ServedPort>().unwrap_err().to_string();
            assert!(error.contains("write for example 443"), "{error}");
        }
    }

    #[test]
    fn only_what_is_listed_is_served() {
        let served = Served {
            ports: vec!["22".parse().unwrap(), "443=10.0.0.7:8443".parse().unwrap()],
            networks: vec!["10.2.0.0/16".parse().unwrap()],
            ..Served::default()
        };
        let find = |to: &str| find(&served, address(to)).map(|(server, _)| server.to_string());
        assert_eq!(find("192.0.2.1:22").unwrap(), "127.0.0.1:22");
        assert_eq!(find("192.0.2.1:443").unwrap(), "10.0.0.7:8443");
        assert_eq!(find("10.2.3.4:80").unwrap(), "10.2.3.4:80");
        assert_eq!(find("192.0.2.1:80"), None);
        let all = Served {
            all: true,
            ..served.clone()
        };
        assert!(super::find(&all, address("192.0.2.1:80")).is_some());
    }
}

//! Nodes of the DHT, as users and `.torrent` files name them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use hawser_address::PeerAddr;

/// Longest name of a host (RFC 1035), in bytes.
const MAX_HOST: usize = 253;

/// A node of the DHT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DhtNode {
    /// At an address.
    Addr(PeerAddr),
    /// At all addresses of a host, with a port.
    Name(String, u16),
}

impl DhtNode {
    /// The node at a host, an address of any kind or a name, as `.torrent` files name it; `None` if the host
    /// is neither.
    pub fn at(host: &str, port: u16) -> Option<Self> {
        if port == 0 {
            return None;
        }
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Some(Self::Addr(SocketAddr::new(ip, port).into()));
        }
        if host.contains(',') {
            return format!("{host}:{port}").parse().ok().map(Self::Addr);
        }
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        // A name of digits and dots alone would be an address.
        let is_name = host.bytes().all(is_of_name)
            && host.bytes().any(|byte| byte.is_ascii_alphabetic())
            && host.len() <= MAX_HOST;
        is_name.then(|| Self::Name(host.to_owned(), port))
    }
}

impl FromStr for DhtNode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "write HOST:PORT, for example router.example.org:6881 or 10.0.0.1:6881, or a SCION \
             address such as 1-ff00:0:110,10.0.0.1:31000"
                .to_owned()
        };
        if let Ok(addr) = text.parse::<PeerAddr>() {
            let port = match addr {
                PeerAddr::Ip(addr) => addr.port(),
                PeerAddr::Scion(addr) => addr.host.port(),
            };
            return match port {
                0 => Err(wrong()),
                _ => Ok(Self::Addr(addr)),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let node = Self::at(host, port).filter(|node| matches!(node, Self::Name(..)));
        node.ok_or_else(wrong)
    }
}

impl fmt::Display for DhtNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(addr) => addr.fmt(f),
            Self::Name(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use hawser_fuzz::fuzz;

    use super::*;

    #[test]
    fn nodes_are_addresses_or_names_with_a_port() {
        for right in [
            "router.example.org:6881",
            "localhost:1",
            "10.0.0.1:6881",
            "[::1]:65535",
            "1-ff00:0:110,10.0.0.1:31000",
            "1-ff00:0:110,[fd00::1]:31000",
        ] {
            let node: DhtNode = right.parse().unwrap();
            assert_eq!(node.to_string(), right);
        }
        for wrong in [
            "",
            "host",
            "host:0",
            "host:65536",
            "10.0.0.1",
            "10.0.0.1:0",
            "10.0.0:1",
            "::1:1",
            "1-ff00:0:110:1",
            "1-ff00:0:110,10.0.0.1:0",
            "a b:1",
        ] {
            let error = wrong.parse::<DhtNode>().unwrap_err();
            assert!(error.contains("HOST:PORT"), "{wrong}: {error}");
        }
    }

    #[test]
    fn nodes_of_torrents_are_read() {
        let at = |host| DhtNode::at(host, 7).map(|node| node.to_string());
        for (host, node) in [
            ("router.example.org", "router.example.org:7"),
            ("10.0.0.1", "10.0.0.1:7"),
            ("::1", "[::1]:7"),
            ("1-ff00:0:110,10.0.0.1", "1-ff00:0:110,10.0.0.1:7"),
        ] {
            assert_eq!(at(host).as_deref(), Some(node));
        }
        for wrong in ["", "a:b", "10.0.0", "1-ff00:0:110,", "a b"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
        assert_eq!(DhtNode::at("host", 0), None);
    }

    #[test]
    fn any_text_is_a_node_or_not() {
        let valid = ["a.example:6881", "[::1]:1", "1-ff00:0:110,10.0.0.1:31000"];
        fuzz(&valid.map(|text| text.as_bytes().to_vec()), |input| {
            let text = String::from_utf8_lossy(input);
            if let Ok(node) = text.parse::<DhtNode>() {
                assert_eq!(node.to_string().parse(), Ok(node));
            }
            let _ = DhtNode::at(&text, 1);
        });
    }
}

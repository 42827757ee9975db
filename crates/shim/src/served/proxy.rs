//! The PROXY protocol (HAProxy, *The PROXY protocol*, versions 1 and 2): how a server learns the
//! address of a program whose connection was relayed.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::protocol::Preamble;

/// The signature of version 2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, command PROXY.
const COMMAND: u8 = 0x21;
/// TCP over IPv4 and IPv6.
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

/// A header before the program's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyHeader {
    /// Version 1, a line of text.
    V1,
    /// Version 2, binary.
    V2,
}

impl FromStr for ProxyHeader {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "v1" => Ok(Self::V1),
            "v2" => Ok(Self::V2),
            _ => Err("write v1 or v2, the version of the PROXY protocol".to_owned()),
        }
    }
}

impl ProxyHeader {
    /// The header for a connection.
    pub(crate) fn encode(self, ends: &Preamble) -> Vec<u8> {
        let (source, destination) = (ends.source, ends.destination);
        match self {
            Self::V1 => v1(source, destination).into_bytes(),
            Self::V2 => v2(source, destination),
        }
    }
}

fn v1(source: SocketAddr, destination: SocketAddr) -> String {
    let (from, to) = (source.ip(), destination.ip());
    let ports = format!("{} {}", source.port(), destination.port());
    match (from, to) {
        (IpAddr::V4(_), IpAddr::V4(_)) => format!("PROXY TCP4 {from} {to} {ports}\r\n"),
        (IpAddr::V6(_), IpAddr::V6(_)) => format!("PROXY TCP6 {from} {to} {ports}\r\n"),
        // Both have to be of one family (section 2.1).
        _ => "PROXY UNKNOWN\r\n".to_owned(),
    }
}

fn v2(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let octets = |ip: IpAddr, is_v6: bool| match ip {
        IpAddr::V4(ip) if is_v6 => ip.to_ipv6_mapped().octets().to_vec(),
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let is_v6 = source.is_ipv6() || destination.is_ipv6();
    let addresses = [octets(source.ip(), is_v6), octets(destination.ip(), is_v6)].concat();
    let ports = [
        source.port().to_be_bytes(),
        destination.port().to_be_bytes(),
    ]
    .concat();
    let length = (addresses.len() + ports.len()) as u16;
    let family = if is_v6 { TCP6 } else { TCP4 };
    let head = [&SIGNATURE[..], &[COMMAND, family], &length.to_be_bytes()].concat();
    [head, addresses, ports].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(source: &str, destination: &str) -> Preamble {
        Preamble {
            destination: destination.parse().unwrap(),
            source: source.parse().unwrap(),
        }
    }

    #[test]
    fn version_1_is_a_line() {
        let header = |source, destination| {
            String::from_utf8(ProxyHeader::V1.encode(&ends(source, destination))).unwrap()
        };
        assert_eq!(
            header("192.0.2.1:5000", "10.0.0.7:443"),
            "PROXY TCP4 192.0.2.1 10.0.0.7 5000 443\r\n"
        );
        assert_eq!(
            header("[fd00::1]:5000", "[fd00::2]:443"),
            "PROXY TCP6 fd00::1 fd00::2 5000 443\r\n"
        );
        assert_eq!(
            header("192.0.2.1:5000", "[fd00::2]:443"),
            "PROXY UNKNOWN\r\n"
        );
    }

    #[test]
    fn version_2_has_the_addresses_in_binary() {
        let header = ProxyHeader::V2.encode(&ends("192.0.2.1:256", "10.0.0.7:443"));
        let expected =
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\x0a\0\0\x07\x01\0\x01\xbb";
        assert_eq!(header, expected);
        let header = ProxyHeader::V2.encode(&ends("192.0.2.1:256", "[fd00::2]:443"));
        assert_eq!((header[13], header[15], header.len()), (TCP6, 36, 52));
    }
}

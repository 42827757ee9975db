//! SCION socket addresses as text.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

use crate::IsdAsn;

/// The address of a program in a SCION network: AS, IP address and UDP port.
///
/// Prints as `1-ff00:0:110,10.0.0.1:6881` (an IPv6 host in brackets). Parsing accepts that and
/// `1-ff00:0:110,[10.0.0.1]:6881`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScionAddr {
    /// The AS of the host.
    pub isd_as: IsdAsn,
    /// The host's IP address and UDP port inside its AS.
    pub host: SocketAddr,
}

impl ScionAddr {
    /// The address of `host` in the AS `isd_as`.
    pub fn new(isd_as: IsdAsn, host: SocketAddr) -> Self {
        Self { isd_as, host }
    }

    /// The addresses that one host can be assumed to have all of, to count what it takes: the AS and
    /// the IPv4 address, or the /64 of the IPv6 address. The port is 0.
    pub fn network(self) -> Self {
        let ip = match self.host.ip().to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) >> 64 << 64).into()),
            ip => ip,
        };
        Self::new(self.isd_as, SocketAddr::new(ip, 0))
    }

    /// Whether both addresses are of one host: the AS and the IP address are the same, also where one is
    /// an IPv4 address and the other that address mapped to IPv6.
    pub fn is_same_host(self, other: Self) -> bool {
        let host = |addr: Self| (addr.isd_as, addr.host.ip().to_canonical());
        host(self) == host(other)
    }
}

/// An error of parsing a SCION address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddrError {
    /// There is no comma between AS and host.
    #[error(
        "`{0}` is not a SCION address: write ISD-AS,HOST:PORT, as in 1-ff00:0:110,10.0.0.1:6881"
    )]
    Shape(String),
    /// The part before the comma is not an AS, or the part after it is not the IP address of one host
    /// with a port from 1 to 65535.
    #[error("`{part}` in `{text}` is not {expected}")]
    Part {
        /// The whole text.
        text: String,
        /// The part.
        part: String,
        /// What it should be, with an example.
        expected: &'static str,
    },
}

impl fmt::Display for ScionAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.isd_as, self.host)
    }
}

impl fmt::Debug for ScionAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ScionAddr {
    type Err = AddrError;

    fn from_str(text: &str) -> Result<Self, AddrError> {
        let (isd_as, host) = text
            .split_once(',')
            .ok_or_else(|| AddrError::Shape(text.into()))?;
        let invalid = |part: &str, expected| AddrError::Part {
            text: text.into(),
            part: part.into(),
            expected,
        };
        let parsed = isd_as.parse().ok();
        let isd_as = parsed
            .filter(|isd_as: &IsdAsn| !isd_as.is_wildcard())
            .ok_or_else(|| invalid(isd_as, "an ISD-AS: write it as in 1-ff00:0:110"))?;
        let host = parse_host(host).ok_or_else(|| {
            let expected = "HOST:PORT: write it as in 10.0.0.1:6881 or [fd00::1]:6881";
            invalid(host, expected)
        })?;
        Ok(Self { isd_as, host })
    }
}

/// Reads `10.0.0.1:1`, `[fd00::1]:1` and, as SCION programs write it, `[10.0.0.1]:1`. Refuses port
/// 0, and unspecified, multicast and broadcast addresses: they do not name one program.
fn parse_host(text: &str) -> Option<SocketAddr> {
    let addr = match text.parse::<SocketAddr>() {
        Ok(addr) => addr,
        Err(_) => {
            let (ip, port) = text.strip_prefix('[')?.split_once("]:")?;
            SocketAddr::new(ip.parse::<IpAddr>().ok()?, port.parse().ok()?)
        }
    };
    let ip = addr.ip();
    let one_host = !ip.is_unspecified() && !ip.is_multicast();
    (one_host && addr.port() != 0).then_some(addr)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_of_one_host_are_one_network() {
        let network = |text: &str| text.parse::<ScionAddr>().unwrap().network();
        let first = network("1-ff00:0:110,[fd00::1]:6881");
        assert_eq!(first.to_string(), "1-ff00:0:110,[fd00::]:0");
        assert_eq!(first, network("1-ff00:0:110,[fd00::ffff:7]:53"));
        assert_ne!(first, network("1-ff00:0:110,[fd00:0:0:1::1]:6881"));
        let ipv4 = network("1-ff00:0:110,10.0.0.1:6881");
        assert_eq!(ipv4, network("1-ff00:0:110,[::ffff:10.0.0.1]:53"));
        assert_ne!(ipv4, network("1-ff00:0:110,10.0.0.2:6881"));
        assert_ne!(ipv4, network("1-ff00:0:111,10.0.0.1:6881"));
    }

    #[test]
    fn accepts_the_forms_in_use() {
        let v4: ScionAddr = "1-ff00:0:110,10.0.0.1:6881".parse().unwrap();
        assert_eq!(v4, "1-ff00:0:110,[10.0.0.1]:6881".parse().unwrap());
        assert_eq!(v4.to_string(), "1-ff00:0:110,10.0.0.1:6881");
        let v6: ScionAddr = "1-ff00:0:110,[fd00::1]:6881".parse().unwrap();
        assert_eq!(v6.to_string(), "1-ff00:0:110,[fd00::1]:6881");
    }

    #[test]
    fn names_the_wrong_part() {
        for (text, part) in [
            ("10.0.0.1:6881", "write ISD-AS,HOST:PORT"),
            ("nonsense,10.0.0.1:6881", "`nonsense` in"),
            ("1-0,10.0.0.1:6881", "`1-0` in"),
            ("1-ff00:0:110,10.0.0.1", "`10.0.0.1` in"),
            ("1-ff00:0:110,10.0.0.1:0", "`10.0.0.1:0` in"),
            ("1-ff00:0:110,0.0.0.0:1", "`0.0.0.0:1` in"),
            ("1-ff00:0:110,[ff02::1]:1", "`[ff02::1]:1` in"),
            ("1-ff00:0:110,fd00::1:6881", "`fd00::1:6881` in"),
        ] {
            let error = text.parse::<ScionAddr>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn parsing_any_text_never_panics(text in "\\PC*") {
            let _ = text.parse::<ScionAddr>();
        }

        #[test]
        fn printed_addresses_are_parsed_unchanged(isd in 1u64..=0xffff, asn in 1u64..1 << 48, ip: IpAddr, port in 1u16..) {
            prop_assume!(!ip.is_unspecified() && !ip.is_multicast());
            let addr = ScionAddr::new(IsdAsn(isd << 48 | asn), SocketAddr::new(ip, port));
            prop_assert_eq!(addr.to_string().parse::<ScionAddr>(), Ok(addr));
        }
    }
}

//! Where destinations are on SCION: the right side of an entry.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use hawser_address::ScionAddr;
use hawser_topology::IsdAsn;
use thiserror::Error;

use crate::DEFAULT_PORT;

/// Where the connections to a destination go.
///
/// Prints as `1-ff00:0:4`, `1-ff00:0:4,10.0.0.1` or `1-ff00:0:4,10.0.0.1:31801` (an IPv6 host with
/// a port in brackets); parsing accepts these, and brackets around any host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// The host of this AS that has the same IP address as the program's destination.
    As(IsdAsn),
    /// One host, whatever the destination's IP address is.
    Host {
        /// The host's AS.
        isd_as: IsdAsn,
        /// The host's IP address in its AS.
        ip: IpAddr,
        /// The UDP port of its shim; `None` for [`DEFAULT_PORT`].
        port: Option<u16>,
    },
}

/// Why a text is no target.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// It does not begin with one AS.
    #[error(
        "`{0}` is not one AS, nor a host in one: write for example 1-ff00:0:4 or 1-ff00:0:4,10.0.0.1"
    )]
    As(String),
    /// What follows the AS is not one host.
    #[error(
        "`{0}` names no host after the AS: write for example 1-ff00:0:4,10.0.0.1, with a port 1-ff00:0:4,10.0.0.1:31801"
    )]
    Host(String),
}

impl Target {
    /// The AS.
    pub fn isd_as(&self) -> IsdAsn {
        match self {
            Self::As(isd_as) | Self::Host { isd_as, .. } => *isd_as,
        }
    }

    /// The address of the shim that serves the program's destination `ip`.
    pub fn address(&self, ip: IpAddr) -> ScionAddr {
        let (isd_as, ip, port) = match *self {
            Self::As(isd_as) => (isd_as, ip, None),
            Self::Host { isd_as, ip, port } => (isd_as, ip, port),
        };
        ScionAddr::new(isd_as, SocketAddr::new(ip, port.unwrap_or(DEFAULT_PORT)))
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (isd_as, host) = match text.split_once(',') {
            Some((isd_as, host)) => (isd_as, Some(host)),
            None => (text, None),
        };
        let isd_as = isd_as.parse().ok();
        let isd_as = isd_as
            .filter(|isd_as: &IsdAsn| !isd_as.is_wildcard())
            .ok_or_else(|| TargetError::As(text.to_owned()))?;
        let Some(host) = host else {
            return Ok(Self::As(isd_as));
        };
        let (ip, port) = parse_host(host).ok_or_else(|| TargetError::Host(text.to_owned()))?;
        Ok(Self::Host { isd_as, ip, port })
    }
}

/// Reads `IP`, `[IP]`, `IPv4:PORT` or `[IP]:PORT`, of one host.
fn parse_host(text: &str) -> Option<(IpAddr, Option<u16>)> {
    let (ip, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']')? {
            (ip, "") => (ip.parse().ok()?, None),
            (ip, rest) => (
                ip.parse().ok()?,
                Some(rest.strip_prefix(':')?.parse().ok()?),
            ),
        },
        None => match text.parse::<IpAddr>() {
            Ok(ip) => (ip, None),
            Err(_) => {
                let addr: SocketAddr = text.parse().ok()?;
                (addr.ip(), Some(addr.port()))
            }
        },
    };
    let one_host = !ip.is_unspecified() && !ip.is_multicast();
    (one_host && port != Some(0)).then_some((ip, port))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::As(isd_as) => write!(f, "{isd_as}"),
            Self::Host { isd_as, ip, port } => match port {
                None => write!(f, "{isd_as},{ip}"),
                Some(port) => write!(f, "{isd_as},{}", SocketAddr::new(ip, port)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn targets_are_read_and_printed() {
        for (text, printed, address) in [
            ("1-ff00:0:4", "1-ff00:0:4", "1-ff00:0:4,192.0.2.1:31800"),
            (
                "1-ff00:0:4,10.0.0.1",
                "1-ff00:0:4,10.0.0.1",
                "1-ff00:0:4,10.0.0.1:31800",
            ),
            (
                "1-ff00:0:4,[10.0.0.1]:31801",
                "1-ff00:0:4,10.0.0.1:31801",
                "1-ff00:0:4,10.0.0.1:31801",
            ),
            (
                "64-2:0:9,[fd00::1]",
                "64-2:0:9,fd00::1",
                "64-2:0:9,[fd00::1]:31800",
            ),
            (
                "64-2:0:9,[fd00::1]:1",
                "64-2:0:9,[fd00::1]:1",
                "64-2:0:9,[fd00::1]:1",
            ),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), printed);
            let ip = "192.0.2.1".parse().unwrap();
            assert_eq!(target.address(ip).to_string(), address);
        }
    }

    #[test]
    fn what_is_no_target_is_refused_with_an_example() {
        for (text, part) in [
            ("", "not one AS"),
            ("10.0.0.1", "not one AS"),
            ("1-0", "not one AS"),
            ("0-ff00:0:4,10.0.0.1", "not one AS"),
            ("1-ff00:0:4,", "no host"),
            ("1-ff00:0:4,db.example", "no host"),
            ("1-ff00:0:4,10.0.0.1:0", "no host"),
            ("1-ff00:0:4,0.0.0.0", "no host"),
            ("1-ff00:0:4,[ff02::1]", "no host"),
            ("1-ff00:0:4,10.0.0.0/8", "no host"),
        ] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*|1-ff00:0:4,\\[?[0-9a-f.:]{0,20}\\]?:?[0-9]{0,6}") {
            if let Ok(read) = text.parse::<Target>() {
                prop_assert_eq!(read.to_string().parse(), Ok(read));
            }
        }
    }
}

//! Addresses of peers.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

use crate::{AddrError, ScionAddr};

/// The address of a peer: SCION, or plain IP.
///
/// Prints as, and is parsed from, `1-ff00:0:110,10.0.0.1:6881`, `10.0.0.1:6881`, `[::1]:6881`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PeerAddr {
    /// A SCION peer: each path to it is a path-level peer.
    Scion(ScionAddr),
    /// An IP peer, reached over plain TCP on the one path that the network chooses.
    Ip(SocketAddr),
}

impl PeerAddr {
    /// Its address, if it is a SCION peer.
    pub fn scion(self) -> Option<ScionAddr> {
        match self {
            Self::Scion(addr) => Some(addr),
            Self::Ip(_) => None,
        }
    }

    /// Its address, if it is an IP peer.
    pub fn ip(self) -> Option<SocketAddr> {
        match self {
            Self::Scion(_) => None,
            Self::Ip(addr) => Some(addr),
        }
    }
}

impl From<ScionAddr> for PeerAddr {
    fn from(addr: ScionAddr) -> Self {
        Self::Scion(addr)
    }
}

impl From<SocketAddr> for PeerAddr {
    fn from(addr: SocketAddr) -> Self {
        Self::Ip(addr)
    }
}

impl fmt::Display for PeerAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scion(addr) => addr.fmt(f),
            Self::Ip(addr) => addr.fmt(f),
        }
    }
}

/// Why a text is not the address of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PeerAddrError {
    /// It has an AS, but is not a SCION address.
    #[error(transparent)]
    Scion(#[from] AddrError),
    /// It is an IP address without a port.
    #[error("`{0}` has no port: write {with}", with = with_port(.0, "6881"))]
    NoPort(String),
    /// It is not an IP address of one host with a port from 1 to 65535.
    #[error(
        "`{0}` is not a peer: write ISD-AS,IP:PORT for a SCION peer, as in 1-ff00:0:110,10.0.0.1:6881, \
         or IP:PORT for an IP peer"
    )]
    Ip(String),
}

fn with_port(ip: &str, port: &str) -> String {
    match ip.contains(':') {
        true => format!("[{}]:{port}", ip.trim_matches(['[', ']'])),
        false => format!("{ip}:{port}"),
    }
}

impl FromStr for PeerAddr {
    type Err = PeerAddrError;

    fn from_str(text: &str) -> Result<Self, PeerAddrError> {
        if text.contains(',') {
            return Ok(Self::Scion(text.parse()?));
        }
        let Ok(addr) = text.parse::<SocketAddr>() else {
            let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
            return Err(match bare.unwrap_or(text).parse::<IpAddr>() {
                Ok(_) => PeerAddrError::NoPort(text.into()),
                Err(_) => PeerAddrError::Ip(text.into()),
            });
        };
        // No peer can be reached there.
        if addr.port() == 0 || addr.ip().is_unspecified() || addr.ip().is_multicast() {
            return Err(PeerAddrError::Ip(text.into()));
        }
        Ok(Self::Ip(addr))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_kinds_print_as_they_are_written() {
        for text in [
            "1-ff00:0:110,10.0.0.1:6881",
            "1-ff00:0:110,[fd00::1]:6881",
            "10.0.0.1:6881",
            "[::1]:6881",
        ] {
            let addr: PeerAddr = text.parse().unwrap();
            assert_eq!(addr.to_string(), text);
            assert_eq!(addr.scion().is_some(), text.contains(','));
            assert_eq!(addr.ip().is_some(), !text.contains(','));
        }
    }

    #[test]
    fn errors_name_the_fault() {
        for (text, hint) in [
            ("10.0.0.1", "10.0.0.1:6881"),
            ("::1", "[::1]:6881"),
            ("[::1]", "[::1]:6881"),
            ("10.0.0.1:0", "`10.0.0.1:0` is not a peer"),
            ("0.0.0.0:6881", "`0.0.0.0:6881` is not a peer"),
            ("nonsense", "`nonsense` is not a peer"),
            ("1-ff00:0:110", "1-ff00:0:110,10.0.0.1:6881"),
            ("1-ff00:0:110,10.0.0.1", "HOST:PORT"),
        ] {
            let error = text.parse::<PeerAddr>().unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC*") {
            let _ = text.parse::<PeerAddr>();
        }

        #[test]
        fn prints_what_it_parses(ip: IpAddr, port in 1u16..) {
            prop_assume!(!ip.is_unspecified() && !ip.is_multicast());
            let addr = PeerAddr::Ip(SocketAddr::new(ip, port));
            prop_assert_eq!(addr.to_string().parse::<PeerAddr>(), Ok(addr));
        }
    }
}

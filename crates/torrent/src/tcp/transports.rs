//! Over what IP peers are reached.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Over what IP peers are reached, and can connect: at least one of TCP and uTP (BEP 29).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpTransports {
    /// TCP.
    pub(crate) tcp: bool,
    /// uTP.
    pub(crate) utp: bool,
}

impl IpTransports {
    /// TCP alone.
    pub const TCP: Self = Self {
        tcp: true,
        utp: false,
    };
    /// uTP alone.
    pub const UTP: Self = Self {
        tcp: false,
        utp: true,
    };
    /// Both: TCP is tried first.
    pub const BOTH: Self = Self {
        tcp: true,
        utp: true,
    };

    /// Whether TCP is one of them.
    pub fn has_tcp(self) -> bool {
        self.tcp
    }

    /// Whether uTP is one of them.
    pub fn has_utp(self) -> bool {
        self.utp
    }
}

/// Why a text names no transports.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is no transport for IP peers: write tcp, utp or tcp,utp")]
pub struct IpTransportsParseError(String);

impl FromStr for IpTransports {
    type Err = IpTransportsParseError;

    fn from_str(text: &str) -> Result<Self, IpTransportsParseError> {
        let (mut tcp, mut utp) = (false, false);
        for name in text.split(',') {
            match name.trim() {
                "tcp" => tcp = true,
                "utp" => utp = true,
                other => return Err(IpTransportsParseError(other.to_owned())),
            }
        }
        Ok(Self { tcp, utp })
    }
}

impl fmt::Display for IpTransports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.tcp, self.utp) {
            (true, true) => "tcp,utp",
            (_, true) => "utp",
            _ => "tcp",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_named() {
        for (text, transports) in [
            ("tcp", IpTransports::TCP),
            ("utp", IpTransports::UTP),
            ("tcp,utp", IpTransports::BOTH),
        ] {
            assert_eq!(text.parse(), Ok(transports));
            assert_eq!(transports.to_string(), text);
        }
        assert_eq!("utp, tcp".parse(), Ok(IpTransports::BOTH));
        for text in ["", "udp", "tcp,", "TCP"] {
            assert!(text.parse::<IpTransports>().is_err(), "{text}");
        }
    }
}

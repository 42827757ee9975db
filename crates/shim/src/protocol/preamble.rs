//! The first bytes of a relayed TCP connection, between the holders of two hosts.
//!
//! The side of the program sends where the program connected to and from where; the other side
//! answers with one byte before the server's own bytes. Neither waits for the other: a connection
//! through the shim takes no round trip more than without it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// The version of the preamble.
const VERSION: u8 = 1;

/// Bytes of the preamble: version, two addresses of 16 bytes each with its port.
pub const LENGTH: usize = 1 + 2 * (16 + 2);

/// Where a program connected to, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preamble {
    /// The destination that the program named.
    pub destination: SocketAddr,
    /// The program's own address.
    pub source: SocketAddr,
}

/// A preamble of another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a connection begins with version {0}, this is version {VERSION}")]
pub struct PreambleError(pub u8);

impl Preamble {
    /// Its bytes.
    pub fn encode(&self) -> [u8; LENGTH] {
        let mut out = [0; LENGTH];
        out[0] = VERSION;
        for (part, address) in out[1..]
            .chunks_exact_mut(18)
            .zip([self.destination, self.source])
        {
            let ip = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            part[..16].copy_from_slice(&ip.octets());
            part[16..].copy_from_slice(&address.port().to_be_bytes());
        }
        out
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`PreambleError`] when it is of another version.
    pub fn decode(bytes: &[u8; LENGTH]) -> Result<Self, PreambleError> {
        if bytes[0] != VERSION {
            return Err(PreambleError(bytes[0]));
        }
        let address = |part: &[u8]| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&part[..16]);
            let ip = Ipv6Addr::from(octets).to_canonical();
            SocketAddr::new(ip, u16::from_be_bytes([part[16], part[17]]))
        };
        Ok(Self {
            destination: address(&bytes[1..19]),
            source: address(&bytes[19..]),
        })
    }
}

/// How a connection to the server went: the first byte that comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Status {
    /// The server's bytes follow.
    #[error("connected")]
    Connected,
    /// The port, or the address, is not served.
    #[error("the other side does not serve this port: allow it there with --expose")]
    NotServed,
    /// The server refuses the connection.
    #[error("the server refuses the connection: nothing listens on the port")]
    Refused,
    /// The server does not answer.
    #[error("the server cannot be reached")]
    Unreachable,
    /// MPTCP let the connection fall back to plain TCP: nothing was served, open another one.
    #[error("the connection fell back from MPTCP to plain TCP")]
    FellBack,
    /// The session has ended, as one side does not trust the other.
    #[error("the key of one side is not, or no longer, trusted by the other")]
    Untrusted,
    /// A code that a later version may give a meaning to.
    #[error("the other side cannot connect (code {0})")]
    Other(u8),
}

impl Status {
    /// Its byte.
    pub fn to_u8(self) -> u8 {
        match self {
            Self::Connected => 0,
            Self::NotServed => 1,
            Self::Refused => 2,
            Self::Unreachable => 3,
            Self::FellBack => 4,
            Self::Untrusted => 5,
            Self::Other(code) => code,
        }
    }

    /// What a byte means.
    pub fn from_u8(byte: u8) -> Self {
        match byte {
            0 => Self::Connected,
            1 => Self::NotServed,
            2 => Self::Refused,
            3 => Self::Unreachable,
            4 => Self::FellBack,
            5 => Self::Untrusted,
            code => Self::Other(code),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn addresses_are_read_again(
            destination: (std::net::Ipv4Addr, u16), source: (Ipv6Addr, u16), code: u8,
        ) {
            let canonical = (source.0.to_canonical(), source.1);
            let preamble = Preamble {
                destination: (destination.0, destination.1).into(),
                source: canonical.into(),
            };
            prop_assert_eq!(Preamble::decode(&preamble.encode()), Ok(preamble));
            prop_assert_eq!(Status::from_u8(code).to_u8(), code);
        }

        #[test]
        fn any_bytes_are_a_preamble_or_an_error(bytes: [u8; LENGTH]) {
            prop_assert_eq!(Preamble::decode(&bytes).is_ok(), bytes[0] == VERSION);
        }
    }
}

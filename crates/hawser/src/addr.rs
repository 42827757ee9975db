//! ASes, interfaces and addresses of programs.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use hawser_endhost::{IsdAsn, ScionAddr};
use thiserror::Error;

/// The number of an AS with that of its isolation domain.
///
/// Prints as `1-ff00:0:110`, and is read from that.
///
/// ```
/// let isd_as: hawser::IsdAs = "1-ff00:0:110".parse()?;
/// assert_eq!(isd_as.to_u64(), 0x0001_ff00_0000_0110);
/// assert_eq!(isd_as.to_string(), "1-ff00:0:110");
/// # Ok::<(), hawser::IsdAsParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IsdAs(u64);

impl IsdAs {
    /// The AS with this number: the isolation domain in the upper 16 bits, the AS in the other 48.
    ///
    /// ```
    /// let isd_as = hawser::IsdAs::from_u64(0x0001_ff00_0000_0110);
    /// assert_eq!(isd_as, "1-ff00:0:110".parse()?);
    /// # Ok::<(), hawser::IsdAsParseError>(())
    /// ```
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// Its number, as [`from_u64`](Self::from_u64) takes it.
    ///
    /// ```
    /// assert_eq!(hawser::IsdAs::from_u64(7).to_u64(), 7);
    /// ```
    pub const fn to_u64(self) -> u64 {
        self.0
    }
}

/// The library's own form of an AS number; not an impl of `From`, which guests would see.
pub(crate) fn isd_as(inner: IsdAsn) -> IsdAs {
    IsdAs(inner.to_u64())
}

/// The form that the crates below use.
pub(crate) fn isd_asn(isd_as: IsdAs) -> IsdAsn {
    IsdAsn(isd_as.0)
}

impl fmt::Display for IsdAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&isd_asn(*self), f)
    }
}

impl fmt::Debug for IsdAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text is not an [`IsdAs`].
///
/// ```
/// let error = "ff00:0:110".parse::<hawser::IsdAs>().unwrap_err();
/// assert!(error.to_string().contains("`ff00:0:110`"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not an ISD-AS: write it as in 1-ff00:0:110")]
pub struct IsdAsParseError(String);

impl FromStr for IsdAs {
    type Err = IsdAsParseError;

    fn from_str(text: &str) -> Result<Self, IsdAsParseError> {
        let parsed = text.parse::<IsdAsn>();
        parsed.map(isd_as).map_err(|_| IsdAsParseError(text.into()))
    }
}

/// An interface of an AS: one end of a link to a neighbouring AS.
///
/// ```
/// let interface = hawser::Interface { isd_as: "1-ff00:0:110".parse()?, id: 2 };
/// assert_eq!(interface.to_string(), "1-ff00:0:110#2");
/// # Ok::<(), hawser::IsdAsParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interface {
    /// The AS.
    pub isd_as: IsdAs,
    /// The interface's number in the AS.
    pub id: u16,
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.isd_as, self.id)
    }
}

/// The address of a program in a SCION network: its AS, and its IP address and UDP port there.
///
/// Prints as `1-ff00:0:110,10.0.0.1:31000` (an IPv6 host in brackets). Read from that, and from
/// `1-ff00:0:110,[10.0.0.1]:31000`.
///
/// ```
/// let addr: hawser::Addr = "1-ff00:0:110,10.0.0.1:31000".parse()?;
/// assert_eq!(addr.host.port(), 31000);
/// # Ok::<(), hawser::AddrParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addr {
    /// The AS of the host.
    pub isd_as: IsdAs,
    /// The host's IP address and UDP port inside its AS.
    pub host: SocketAddr,
}

impl Addr {
    /// The address of `host` in the AS `isd_as`.
    ///
    /// ```
    /// let addr = hawser::Addr::new("1-ff00:0:110".parse()?, ([10, 0, 0, 1], 31000).into());
    /// assert_eq!(addr.to_string(), "1-ff00:0:110,10.0.0.1:31000");
    /// # Ok::<(), hawser::IsdAsParseError>(())
    /// ```
    pub fn new(isd_as: IsdAs, host: SocketAddr) -> Self {
        Self { isd_as, host }
    }
}

pub(crate) fn addr(inner: ScionAddr) -> Addr {
    Addr::new(isd_as(inner.isd_as), inner.host)
}

pub(crate) fn scion_addr(addr: Addr) -> ScionAddr {
    ScionAddr::new(isd_asn(addr.isd_as), addr.host)
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&scion_addr(*self), f)
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text is not an [`Addr`].
///
/// ```
/// let error = "10.0.0.1:31000".parse::<hawser::Addr>().unwrap_err();
/// assert!(error.to_string().contains("ISD-AS,HOST:PORT"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct AddrParseError(String);

impl FromStr for Addr {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        let parsed = text.parse::<ScionAddr>();
        parsed
            .map(addr)
            .map_err(|error| AddrParseError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ases_are_read_as_they_print(number: u64) {
            let isd_as = IsdAs::from_u64(number);
            prop_assert_eq!(isd_as.to_string().parse(), Ok(isd_as));
        }

        #[test]
        fn addresses_are_read_as_they_print(number: u64, ip: std::net::IpAddr, port in 1u16..) {
            prop_assume!(!ip.is_unspecified() && !ip.is_multicast());
            let addr = Addr::new(IsdAs::from_u64(number), (ip, port).into());
            if let Ok(read) = addr.to_string().parse::<Addr>() {
                prop_assert_eq!(read, addr);
            }
        }

        #[test]
        fn any_text_is_an_address_or_refused(text in "\\PC{0,40}|1-ff00:0:[0-9a-f]{1,4},[0-9.:\\[\\]]{0,20}") {
            if let Ok(addr) = text.parse::<Addr>() {
                prop_assert_eq!(addr.to_string().parse(), Ok(addr));
            }
            if let Ok(isd_as) = text.parse::<IsdAs>() {
                prop_assert_eq!(isd_as.to_string().parse(), Ok(isd_as));
            }
        }
    }
}

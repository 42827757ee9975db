//! What programs connect to: the left side of an entry.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use thiserror::Error;

/// Addresses that stand for no other host (RFC 6890): IPv4 and IPv6.
const SPECIAL: [(&str, &str); 9] = [
    ("0.0.0.0/8", "no host's"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("::/128", "no host's"),
    ("::1/128", "loopback"),
    ("fe80::/10", "link-local"),
    ("ff00::/8", "multicast"),
];

/// IPv4 addresses as IPv6 sockets see them (RFC 4291, section 2.5.5.2).
const V4_MAPPED: &str = "::ffff:0:0/96";

/// Longest name of a host, in bytes (RFC 1035, section 2.3.4).
const LONGEST_NAME: usize = 253;

/// Longest part of a name, in bytes.
const LONGEST_LABEL: usize = 63;

/// What programs connect to.
///
/// Prints as `10.1.0.0/16`, `10.1.0.1` for a prefix of one host, `db.example`, and with a TCP port
/// `10.1.0.1:443`, `[fd00::1]:443`, `10.1.0.0/16:22` or `db.example:5432`; parsing accepts these.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Destination {
    /// The hosts.
    pub hosts: Hosts,
    /// The TCP port; `None` for all.
    pub port: Option<u16>,
}

/// Hosts that programs connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hosts {
    /// All addresses of a prefix, whose host bits are 0.
    Prefix(IpNet),
    /// The addresses that a name has.
    Name(HostName),
}

/// The name of a host: lower case, without a dot at its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// Why a text is no destination.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DestinationError {
    /// It is neither a prefix nor a name.
    #[error(
        "`{0}` is neither an IP prefix nor a host name: write for example 10.1.0.0/16, 10.1.0.1 or db.example"
    )]
    Shape(String),
    /// Its port is not one.
    #[error("`{0}` has no port from 1 to 65535 after its last colon")]
    Port(String),
    /// An address in place of a prefix.
    #[error("`{net}` has bits set beyond its length: write {trunc}")]
    HostBits {
        /// What was written.
        net: IpNet,
        /// The prefix that the address is in.
        trunc: IpNet,
    },
    /// Addresses that cannot be those of another host.
    #[error(
        "`{shown}` has {kind} addresses ({special}), which never leave a host's network: leave them out",
        shown = Hosts::Prefix(*net)
    )]
    Special {
        /// The prefix.
        net: IpNet,
        /// Those of its addresses.
        special: &'static str,
        /// What they are.
        kind: &'static str,
    },
    /// IPv4 addresses written as IPv6.
    #[error("`{}` has IPv4 addresses in the form of IPv6: write them as IPv4", Hosts::Prefix(*.0))]
    Mapped(IpNet),
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let (hosts, port) = split_port(text)?;
        let prefix = hosts.parse::<IpNet>();
        let prefix = prefix.or_else(|_| hosts.parse::<IpAddr>().map(IpNet::from));
        let hosts = match prefix {
            Ok(net) => Hosts::Prefix(check_prefix(net)?),
            Err(_) => {
                let name = HostName::parse(hosts);
                Hosts::Name(name.ok_or_else(|| DestinationError::Shape(text.to_owned()))?)
            }
        };
        Ok(Self { hosts, port })
    }
}

/// Splits `HOSTS[:PORT]`; IPv6 with a port is in brackets.
fn split_port(text: &str) -> Result<(&str, Option<u16>), DestinationError> {
    let wrong = || DestinationError::Port(text.to_owned());
    let (hosts, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((hosts, "")) => return Ok((hosts, None)),
        Some((hosts, rest)) => (hosts, rest.strip_prefix(':').ok_or_else(wrong)?),
        None => match text.split_once(':') {
            Some((hosts, port)) if !port.contains(':') => (hosts, port),
            _ => return Ok((text, None)),
        },
    };
    let port = port.parse().ok().filter(|port| *port != 0);
    Ok((hosts, Some(port.ok_or_else(wrong)?)))
}

fn check_prefix(net: IpNet) -> Result<IpNet, DestinationError> {
    let trunc = net.trunc();
    if trunc != net {
        return Err(DestinationError::HostBits { net, trunc });
    }
    if let Some((special, kind)) = special(net) {
        return Err(DestinationError::Special { net, special, kind });
    }
    if overlap(net, V4_MAPPED) {
        return Err(DestinationError::Mapped(net));
    }
    Ok(net)
}

/// The special addresses in a prefix, and what they are.
pub(super) fn special(net: IpNet) -> Option<(&'static str, &'static str)> {
    SPECIAL.into_iter().find(|(range, _)| overlap(net, range))
}

fn overlap(net: IpNet, range: &str) -> bool {
    let range = range.parse::<IpNet>();
    range.is_ok_and(|range| net.contains(&range) || range.contains(&net))
}

impl HostName {
    /// Reads a name (RFC 1123, section 2.1); underscores are accepted, as resolvers do.
    fn parse(text: &str) -> Option<Self> {
        let name = text.strip_suffix('.').unwrap_or(text);
        let good = |label: &str| {
            let bytes = label.as_bytes();
            let within = bytes
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
            within
                && (1..=LONGEST_LABEL).contains(&bytes.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        // A mistyped IPv4 address is no name: resolvers read a last part of digits as an address.
        let last = name.rsplit('.').next().unwrap_or_default();
        let number = last.bytes().all(|b| b.is_ascii_digit());
        (name.len() <= LONGEST_NAME && !number && name.split('.').all(good))
            .then(|| Self(name.to_ascii_lowercase()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(net) if net.prefix_len() == net.max_prefix_len() => {
                fmt::Display::fmt(&net.addr(), f)
            }
            Self::Prefix(net) => fmt::Display::fmt(net, f),
            Self::Name(name) => fmt::Display::fmt(name, f),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.port, &self.hosts) {
            (None, hosts) => fmt::Display::fmt(hosts, f),
            (Some(port), hosts @ Hosts::Prefix(IpNet::V6(_))) => write!(f, "[{hosts}]:{port}"),
            (Some(port), hosts) => write!(f, "{hosts}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn destinations_are_read_and_printed() {
        for (text, printed) in [
            ("10.1.0.0/16", "10.1.0.0/16"),
            ("10.1.0.1/32", "10.1.0.1"),
            ("10.1.0.1", "10.1.0.1"),
            ("10.1.0.1:443", "10.1.0.1:443"),
            ("10.1.0.0/16:22", "10.1.0.0/16:22"),
            ("fd00::/8", "fd00::/8"),
            ("fd00::1", "fd00::1"),
            ("[fd00::1]", "fd00::1"),
            ("[fd00::1]:443", "[fd00::1]:443"),
            ("[fd00::/8]:22", "[fd00::/8]:22"),
            ("DB.Example.", "db.example"),
            ("db_1.example:5432", "db_1.example:5432"),
            ("files", "files"),
        ] {
            let read: Destination = text.parse().unwrap();
            assert_eq!(read.to_string(), printed);
        }
    }

    #[test]
    fn what_is_no_destination_is_refused_with_the_remedy() {
        for (text, part) in [
            ("", "neither"),
            ("10.0.0.300", "neither"),
            ("10.0.0.0/33", "neither"),
            ("a b", "neither"),
            ("-a.example", "neither"),
            ("a..example", "neither"),
            ("10.0.0.1:0", "no port"),
            ("db.example:https", "no port"),
            ("[fd00::1]443", "no port"),
            ("10.0.0.1/8", "write 10.0.0.0/8"),
            ("fd00::1/64", "write fd00::/64"),
            ("127.0.0.1", "loopback addresses (127.0.0.0/8)"),
            ("0.0.0.0/0", "leave them out"),
            ("64.0.0.0/2", "loopback"),
            ("169.254.1.0/24", "link-local"),
            ("224.0.0.0/24", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("::", "no host's"),
            ("::1", "loopback"),
            ("fe80::1", "link-local"),
            ("ff02::/16", "multicast"),
            ("::ffff:10.0.0.1", "write them as IPv4"),
        ] {
            let error = text.parse::<Destination>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*|\\[?[0-9a-f.:/]{0,20}\\]?:?[0-9]{0,6}") {
            if let Ok(read) = text.parse::<Destination>() {
                prop_assert_eq!(read.to_string().parse(), Ok(read));
            }
        }
    }
}

//! The URL of a tracker, taken apart.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use hawser_address::ScionAddr;
use thiserror::Error;

/// Longest URL read, in bytes.
const MAX_URL: usize = 2048;

/// How a tracker is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
    /// `udp`
    Udp,
}

/// The host of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, to be looked up.
    Name(String),
    /// An IP address.
    Ip(IpAddr),
    /// A host in a SCION network, with the port: only for UDP.
    Scion(ScionAddr),
}

/// The URL of a tracker: `SCHEME://HOST[:PORT][/PATH][?QUERY]`.
///
/// The host is a name, an IPv4 address, or an IPv6 address in brackets. A tracker over SCION/UDP is
/// `udp://[1-ff00:0:110,10.0.0.1]:6969`: AS and IP address in brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrackerUrl {
    /// How it is asked.
    pub scheme: Scheme,
    /// Its host.
    pub host: Host,
    /// Its port; 80 and 443 where HTTP and HTTPS name none.
    pub port: u16,
    /// Path and query, empty or with `/` or `?` in front, as they are in the URL.
    pub path: String,
}

/// Why a text is not the URL of a tracker.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlError {
    /// Its scheme is missing, or one that is not supported, such as `ws` and `wss` of WebTorrent.
    #[error("not supported: `{0}` does not begin with http, https or udp")]
    Scheme(String),
    /// Its host or port is missing or invalid.
    #[error("`{0}` has no valid host and port")]
    Host(String),
    /// It has characters that no URL has, or is too long.
    #[error("`{0}` is not a URL: it is too long, or has characters to be escaped")]
    Characters(String),
}

impl TrackerUrl {
    /// Host and port as they are in the URL.
    pub fn authority(&self) -> String {
        match &self.host {
            Host::Name(name) => format!("{name}:{}", self.port),
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).to_string(),
            Host::Scion(addr) => format!("[{},{}]:{}", addr.isd_as, addr.host.ip(), self.port),
        }
    }
}

impl fmt::Display for TrackerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Udp => "udp",
        };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

impl FromStr for TrackerUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let named = || text.chars().take(MAX_URL).collect::<String>();
        if text.len() > MAX_URL || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Characters(named()));
        }
        let (scheme, after) = text.split_once("://").unwrap_or_default();
        let (scheme, default) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (Scheme::Http, Some(80)),
            "https" => (Scheme::Https, Some(443)),
            "udp" => (Scheme::Udp, None),
            _ => return Err(UrlError::Scheme(named())),
        };
        let after = after.split('#').next().unwrap_or_default();
        let end = after.find(['/', '?']).unwrap_or(after.len());
        let (authority, path) = after.split_at(end);
        let (host, port) = split(authority)
            .and_then(|(host, port)| {
                let port = port.map_or(Ok(default), |port| port.parse().map(Some));
                Some((host, port.ok()??))
            })
            .filter(|(_, port)| *port != 0)
            .ok_or_else(|| UrlError::Host(named()))?;
        let host = parse_host(host, port).filter(|host| match host {
            Host::Scion(_) => scheme == Scheme::Udp,
            _ => true,
        });
        Ok(Self {
            scheme,
            host: host.ok_or_else(|| UrlError::Host(named()))?,
            port,
            path: path.to_owned(),
        })
    }
}

/// Host, with its brackets, and port. Names of users are refused.
fn split(authority: &str) -> Option<(&str, Option<&str>)> {
    let after_host = match authority.strip_prefix('[') {
        Some(inside) => inside.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(after_host);
    match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some((host, Some(digits).filter(|digits| !digits.is_empty())))
        }
        None if port.is_empty() => Some((host, None)),
        _ => None,
    }
}

fn parse_host(host: &str, port: u16) -> Option<Host> {
    if let Some(inside) = host.strip_prefix('[') {
        let inside = inside.strip_suffix(']')?;
        if let Some((isd_as, ip)) = inside.split_once(',') {
            let addr = SocketAddr::new(ip.parse().ok()?, port);
            return format!("{isd_as},{addr}").parse().ok().map(Host::Scion);
        }
        return inside
            .parse::<Ipv6Addr>()
            .ok()
            .map(|ip| Host::Ip(ip.into()));
    }
    if let Ok(ip) = host.parse() {
        return Some(Host::Ip(IpAddr::V4(ip)));
    }
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let valid = !host.is_empty() && host.len() <= 253 && host.bytes().all(is_name);
    valid.then(|| Host::Name(host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_of_all_kinds_are_read() {
        for (text, canonical) in [
            ("http://t.example/announce", "http://t.example:80/announce"),
            ("HTTPS://T.Example/A?k=1&b", "https://t.example:443/A?k=1&b"),
            ("http://10.0.0.1:/a#b", "http://10.0.0.1:80/a"),
            ("http://[fd00::1]/a", "http://[fd00::1]:80/a"),
            ("udp://t.example:6969", "udp://t.example:6969"),
            ("udp://t.example:6969?a=b", "udp://t.example:6969?a=b"),
            ("udp://[1-ff00:0:110,10.0.0.1]:6969/announce", ""),
            ("udp://[1-ff00:0:110,fd00::1]:6969", ""),
        ] {
            let url: TrackerUrl = text.parse().expect("a tracker");
            let canonical = if canonical.is_empty() {
                text
            } else {
                canonical
            };
            assert_eq!(url.to_string(), canonical);
        }
        let scion: TrackerUrl = "udp://[1-ff00:0:110,10.0.0.1]:6969"
            .parse()
            .expect("a tracker");
        let addr = "1-ff00:0:110,10.0.0.1:6969".parse().expect("an address");
        assert_eq!(scion.host, Host::Scion(addr));
    }

    #[test]
    fn other_urls_are_refused() {
        for text in [
            "wss://t.example/",
            "dht://a",
            "t.example:80",
            "",
            "udp:/a:1",
        ] {
            assert!(
                matches!(text.parse::<TrackerUrl>(), Err(UrlError::Scheme(_))),
                "{text}"
            );
        }
        for text in [
            "udp://t.example",
            "udp://t.example:0",
            "http://:80/",
            "http://user@t.example/",
            "http://t.example:x/",
            "http://t.example:65536/",
            "http://[fd00::1/",
            "http://[10.0.0.1]/",
            "http://[1-ff00:0:110,10.0.0.1]:80/",
            "udp://[1-ff00:0:110,0.0.0.0]:80/",
            "udp://[0-0,10.0.0.1]:80/",
            "http://",
        ] {
            assert!(
                matches!(text.parse::<TrackerUrl>(), Err(UrlError::Host(_))),
                "{text}"
            );
        }
        for text in ["http://a/b c", "http://a/\r\nX: y", "http://ä/"] {
            let error = text.parse::<TrackerUrl>();
            assert!(matches!(error, Err(UrlError::Characters(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(http|udp)://\\PC{0,40}") {
            if let Ok(url) = text.parse::<TrackerUrl>() {
                prop_assert_eq!(url.to_string().parse::<TrackerUrl>(), Ok(url));
            }
        }
    }
}

//! URLs of HTTP and HTTPS, taken apart.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

/// Longest URL read, in bytes.
const MAX_URL: usize = 8192;

/// Longest name of a host (RFC 1035), in bytes.
const MAX_HOST: usize = 253;

/// The host of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name, to be looked up; in lower case.
    Name(String),
    /// An IP address.
    Ip(IpAddr),
}

/// A URL of HTTP or HTTPS: `SCHEME://HOST[:PORT][/PATH][?QUERY]` (RFC 3986). What follows a `#` is left
/// out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HttpUrl {
    /// Whether it is of HTTPS.
    pub is_secure: bool,
    /// Its host.
    pub host: Host,
    /// Its port; 80 and 443 where HTTP and HTTPS name none.
    pub port: u16,
    /// Path and query, with `/` in front.
    pub path: String,
}

/// Why a text is not a URL that can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HttpUrlError {
    /// Its scheme is missing, or another one.
    #[error("`{0}` begins with neither http:// nor https://")]
    Scheme(String),
    /// Its host or port is missing or invalid.
    #[error("`{0}` has no valid host and port")]
    Host(String),
    /// It has characters that no URL has, or is too long.
    #[error("`{0}` is not a URL: it is too long, or has characters to be escaped")]
    Characters(String),
}

impl HttpUrl {
    /// Host and port, as in `a.example:80` or `[fd00::1]:443`.
    pub fn authority(&self) -> String {
        match &self.host {
            Host::Name(name) => format!("{name}:{}", self.port),
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).to_string(),
        }
    }

    /// The value of the header `Host`: the port is named only if it is not the usual one.
    pub(crate) fn host_header(&self) -> String {
        let authority = self.authority();
        let usual = if self.is_secure { ":443" } else { ":80" };
        let bare = authority.strip_suffix(usual);
        bare.unwrap_or(&authority).to_owned()
    }

    /// Whether what `first` lets in may be sent here as well: to the same host and port, or to HTTPS on that host.
    pub(crate) fn is_trusted_by(&self, first: &Self) -> bool {
        let is_upgrade = self.is_secure && !first.is_secure;
        let is_same = self.port == first.port && self.is_secure == first.is_secure;
        self.host == first.host && (is_same || is_upgrade)
    }

    /// Where a redirect from here leads: to an absolute URL, or to a path on the same host.
    ///
    /// # Errors
    /// Why it is not followed.
    pub(crate) fn redirect(&self, to: &str) -> Result<Self, &'static str> {
        let on_host = |path: String| Self {
            path,
            ..self.clone()
        };
        let is_path = !to.is_empty() && !to.starts_with("//") && !to.contains("://");
        let url = match to {
            _ if !is_path => to.to_owned(),
            _ if to.starts_with('/') => on_host(to.to_owned()).to_string(),
            _ => {
                let path = self.path.split('?').next().unwrap_or_default();
                let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
                on_host(format!("{folder}{to}")).to_string()
            }
        };
        match url.parse::<Self>() {
            // What lets a client in may be in the URL.
            Ok(to) if !to.is_secure && self.is_secure => Err("it leaves HTTPS"),
            Ok(to) => Ok(to),
            Err(_) => Err("it is not a URL of HTTP"),
        }
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

impl FromStr for HttpUrl {
    type Err = HttpUrlError;

    fn from_str(text: &str) -> Result<Self, HttpUrlError> {
        let named = || text.chars().take(200).collect::<String>();
        if text.len() > MAX_URL || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(HttpUrlError::Characters(named()));
        }
        let (scheme, after) = text.split_once("://").unwrap_or_default();
        let (is_secure, usual) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return Err(HttpUrlError::Scheme(named())),
        };
        let after = after.split('#').next().unwrap_or_default();
        let end = after.find(['/', '?']).unwrap_or(after.len());
        let (authority, path) = after.split_at(end);
        let read = read_authority(authority, usual);
        let (host, port) = read.ok_or_else(|| HttpUrlError::Host(named()))?;
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        };
        Ok(Self {
            is_secure,
            host,
            port,
            path,
        })
    }
}

/// Host and port; names of users are refused.
fn read_authority(authority: &str, usual: u16) -> Option<(Host, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(inside) => {
            let (inside, port) = inside.split_once(']')?;
            (Host::Ip(inside.parse::<Ipv6Addr>().ok()?.into()), port)
        }
        None => {
            let end = authority.find(':').unwrap_or(authority.len());
            let (host, port) = authority.split_at(end);
            (read_host(host)?, port)
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => usual,
        None => return None,
        Some("") => usual,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok()?,
        Some(_) => return None,
    };
    (port != 0).then_some((host, port))
}

fn read_host(host: &str) -> Option<Host> {
    if let Ok(ip) = host.parse() {
        return Some(Host::Ip(IpAddr::V4(ip)));
    }
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let valid = !host.is_empty() && host.len() <= MAX_HOST && host.bytes().all(is_name);
    valid.then(|| Host::Name(host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_are_read_and_others_are_refused() {
        for (text, canonical) in [
            ("http://w.example/a/b", "http://w.example:80/a/b"),
            ("HTTPS://W.Example/A?k=1#b", "https://w.example:443/A?k=1"),
            ("http://10.0.0.1:?q", "http://10.0.0.1:80/?q"),
            ("http://[fd00::1]", "http://[fd00::1]:80/"),
        ] {
            let url: HttpUrl = text.parse().expect("a URL");
            assert_eq!(url.to_string(), canonical);
        }
        for text in ["ftp://a/", "a.example:80", "", "http:/a"] {
            let error = text.parse::<HttpUrl>();
            assert!(matches!(error, Err(HttpUrlError::Scheme(_))), "{text}");
        }
        for text in [
            "http://",
            "http://u@a/",
            "http://a:x/",
            "http://[fd00::1/",
            "http://a:0",
        ] {
            let error = text.parse::<HttpUrl>();
            assert!(matches!(error, Err(HttpUrlError::Host(_))), "{text}");
        }
        for text in ["http://a/b c", "http://a/\r\nX: y", "http://ä/"] {
            let error = text.parse::<HttpUrl>();
            assert!(matches!(error, Err(HttpUrlError::Characters(_))), "{text}");
        }
    }

    #[test]
    fn redirects_lead_to_absolute_urls_and_paths_and_never_out_of_https() {
        let from: HttpUrl = "https://a.example/x/y?z".parse().expect("a URL");
        let to = |to: &str| from.redirect(to).map(|url| url.to_string());
        assert_eq!(to("/b"), Ok("https://a.example:443/b".into()));
        assert_eq!(to("b?c"), Ok("https://a.example:443/x/b?c".into()));
        assert_eq!(
            to("https://b.example/"),
            Ok("https://b.example:443/".into())
        );
        assert_eq!(to("http://a.example/"), Err("it leaves HTTPS"));
        for refused in ["", "//b.example/c", "ftp://b.example/", "/a b"] {
            assert_eq!(to(refused), Err("it is not a URL of HTTP"), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "https?://\\PC{0,40}", to in "\\PC{0,40}") {
            if let Ok(url) = text.parse::<HttpUrl>() {
                prop_assert_eq!(url.to_string().parse::<HttpUrl>(), Ok(url.clone()));
                if let Ok(to) = url.redirect(&to) {
                    prop_assert!(to.is_secure || !url.is_secure);
                }
            }
        }
    }
}

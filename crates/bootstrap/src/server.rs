//! The address of a bootstrap server.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use hyper::Uri;

/// The port of bootstrap servers, unless a URL names another.
pub const PORT: u16 = 8041;

/// A bootstrap server: `http://HOST`, with a port or [`PORT`], and perhaps a path before its routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// A name or an IP address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The path before the routes: empty, or with a slash at its beginning only.
    path: String,
}

impl Server {
    /// The host and port, as in URLs.
    pub(crate) fn authority(&self) -> String {
        match self.host.parse() {
            Ok(IpAddr::V6(ip)) => format!("[{ip}]:{}", self.port),
            _ => format!("{}:{}", self.host, self.port),
        }
    }

    /// The path of the route `route`.
    pub(crate) fn path(&self, route: &str) -> String {
        format!("{}{route}", self.path)
    }

    /// The URL of the route `route`, for messages.
    pub(crate) fn url(&self, route: &str) -> String {
        format!("http://{}{}", self.authority(), self.path(route))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url(""))
    }
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "write for example http://192.0.2.1:8041";
        let uri: Uri = text
            .parse()
            .map_err(|error| format!("it is not a URL ({error}): {example}"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(format!("bootstrap servers answer plain HTTP: {example}"));
            }
            _ => return Err(format!("it does not begin with http://: {example}")),
        }
        if uri.query().is_some() || uri.authority().is_some_and(|at| at.as_str().contains('@')) {
            return Err(format!(
                "it has more than a host, a port and a path: {example}"
            ));
        }
        let host = uri.host().unwrap_or_default();
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let named = match inner {
            // As it is written, there are several for one address.
            Some(inner) => inner.parse().ok().map(|ip: Ipv6Addr| ip.to_string()),
            None => (!host.is_empty() && !host.contains(':')).then(|| host.to_owned()),
        };
        let named = named.ok_or_else(|| format!("it has no host: {example}"))?;
        // A port that is not a number is not read, and would be another one silently.
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let port = match authority.strip_prefix(host).unwrap_or_default() {
            "" => PORT,
            rest => match rest.strip_prefix(':').map(str::parse) {
                Some(Ok(port)) if port != 0 => port,
                _ => return Err(format!("its port is not between 1 and 65535: {example}")),
            },
        };
        Ok(Self {
            host: named,
            port,
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

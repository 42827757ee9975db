//! What everything that answers requests shares.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use axum::http::HeaderMap;
use hawser_coordinator::{Configurations, Coordinator, UserId};
use hawser_http::{Attempts, Peer, Sessions};
use thiserror::Error;

use crate::links_body::LinksBody;
use crate::live::{self, Live};

/// How pages are served.
#[derive(Debug, Clone, Default)]
pub struct AppOptions {
    /// The address under which a proxy on this machine serves the pages; `None` without one. With it,
    /// addresses of clients are read from `X-Forwarded-For` of requests from a loopback address.
    pub proxy: Option<Origin>,
    /// What the page is headed.
    pub title: String,
    /// Whether private keys may be sent to other hosts without TLS.
    pub may_send_keys_unencrypted: bool,
}

/// Scheme, host and port of a web page, as browsers send it: `https://limits.example.org`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// Why a text is not an origin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not an address of pages: write for example https://limits.example.org, without a path"
)]
pub struct OriginError(String);

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let host = text.strip_prefix("https://");
        let host = host.or_else(|| text.strip_prefix("http://"));
        let is_host = |host: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
            !host.is_empty() && host.bytes().all(known)
        };
        match host.filter(|host| is_host(host)) {
            Some(_) => Ok(Self(text.to_ascii_lowercase())),
            None => Err(OriginError(text.to_owned())),
        }
    }
}

/// What everything that answers requests shares. A handle.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    coordinator: Coordinator,
    configurations: Option<Configurations>,
    options: AppOptions,
    sessions: Sessions<UserId>,
    attempts: Attempts,
    live: Live,
    links: LinksBody,
    started: Instant,
    /// Tells answers of this process from those of others.
    instance: u64,
}

impl App {
    /// Serves the state of a coordinator.
    #[must_use]
    pub fn new(coordinator: Coordinator, options: AppOptions) -> Self {
        Self::build(coordinator, None, options)
    }

    /// The same for a coordinator that also configures the ASes.
    #[must_use]
    pub fn with_configurations(configurations: Configurations, options: AppOptions) -> Self {
        let coordinator = configurations.coordinator().clone();
        Self::build(coordinator, Some(configurations), options)
    }

    fn build(
        coordinator: Coordinator,
        configurations: Option<Configurations>,
        options: AppOptions,
    ) -> Self {
        Self(Arc::new(Inner {
            coordinator,
            configurations,
            options,
            sessions: Sessions::default(),
            attempts: Attempts::default(),
            live: Live::default(),
            links: LinksBody::default(),
            started: Instant::now(),
            instance: live::now(),
        }))
    }

    /// The state.
    #[must_use]
    pub fn coordinator(&self) -> &Coordinator {
        &self.0.coordinator
    }

    /// What makes the configurations of ASes; `None` where only limits are set.
    pub(crate) fn configurations(&self) -> Option<&Configurations> {
        self.0.configurations.as_ref()
    }

    pub(crate) fn title(&self) -> &str {
        &self.0.options.title
    }

    pub(crate) fn sessions(&self) -> &Sessions<UserId> {
        &self.0.sessions
    }

    pub(crate) fn attempts(&self) -> &Attempts {
        &self.0.attempts
    }

    pub(crate) fn live(&self) -> &Live {
        &self.0.live
    }

    pub(crate) fn links(&self) -> &LinksBody {
        &self.0.links
    }

    pub(crate) fn instance(&self) -> u64 {
        self.0.instance
    }

    /// Time since the start, for what ends after some time.
    pub(crate) fn now(&self) -> std::time::Duration {
        self.0.started.elapsed()
    }

    /// The address that a request comes from.
    pub(crate) fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        let forwarded = || {
            // What the proxy itself saw is the last one: those before are the client's word.
            let all = headers.get_all("x-forwarded-for").iter().next_back()?;
            all.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
        };
        // Others than the proxy could name any address.
        let is_proxy = self.0.options.proxy.is_some() && peer.ip().to_canonical().is_loopback();
        let proxied = is_proxy.then(forwarded).flatten();
        proxied.unwrap_or_else(|| peer.ip())
    }

    /// Whether browsers reach these pages by TLS.
    pub(crate) fn is_secure(&self, tls: bool) -> bool {
        let proxy = self.0.options.proxy.as_ref();
        tls || proxy.is_some_and(|origin| origin.0.starts_with("https://"))
    }

    /// Whether private keys may be sent to `peer`; `None` is one of which nothing is known.
    pub(crate) fn may_send_keys(&self, peer: Option<&Peer>) -> bool {
        let options = &self.0.options;
        let is_safe = |peer: &Peer| {
            let is_local = peer.address.ip().to_canonical().is_loopback();
            is_local && options.proxy.is_none() || self.is_secure(peer.tls)
        };
        options.may_send_keys_unencrypted || peer.is_some_and(is_safe)
    }

    /// Whether a page of this origin is one of ours.
    pub(crate) fn is_own(&self, origin: &str, host: Option<&str>, tls: bool) -> bool {
        if let Some(proxy) = &self.0.options.proxy {
            return origin.eq_ignore_ascii_case(&proxy.0);
        }
        let scheme = if tls { "https" } else { "http" };
        host.is_some_and(|host| origin.eq_ignore_ascii_case(&format!("{scheme}://{host}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_addresses_are_believed_from_a_proxy_on_this_machine_only() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = Coordinator::open(folder.path()).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", "192.0.2.1".parse().unwrap());
        let proxy: Option<Origin> = Some("https://limits.example.org".parse().unwrap());
        for (proxy, peer, expected) in [
            (proxy.clone(), "127.0.0.1:1", "192.0.2.1"),
            (proxy.clone(), "[::1]:1", "192.0.2.1"),
            (proxy.clone(), "[::ffff:127.0.0.1]:1", "192.0.2.1"),
            (proxy, "198.51.100.1:1", "198.51.100.1"),
            (None, "127.0.0.1:1", "127.0.0.1"),
        ] {
            let options = AppOptions {
                proxy,
                title: String::new(),
                ..AppOptions::default()
            };
            let app = App::new(coordinator.clone(), options);
            let client = app.client(peer.parse().unwrap(), &headers);
            assert_eq!(client.to_string(), expected, "{peer}");
        }
    }

    #[test]
    fn origins_have_no_path() {
        for right in ["https://limits.example.org", "http://[::1]:8030"] {
            assert_eq!(right.parse::<Origin>().unwrap().0, right);
        }
        for wrong in [
            "",
            "limits.example.org",
            "https://",
            "https://a/b",
            "ftp://a",
            "https://a b",
        ] {
            assert!(wrong.parse::<Origin>().is_err(), "{wrong:?}");
        }
    }
}

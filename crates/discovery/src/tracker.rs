//! A client of trackers.

mod http;
#[cfg(test)]
mod tests;
mod udp;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_tracker::message::http::{
    announce_url, read_answer, read_scrape, scrape_query, scrape_url,
};
use hawser_tracker::message::udp::{UdpAnnounce, UdpAnswer, UdpRequest};
use hawser_tracker::message::{AnnounceRequest, Answer, Retry, Scraped};
use hawser_tracker::{Host, Scheme, TrackerUrl};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::http::Fetcher;
use self::udp::Exchange;
use crate::datagrams::{Datagrams, bind_udp};
use crate::error::AnnounceError;

/// Most announces at once, over all torrents; others wait.
const MAX_CONCURRENT: usize = 64;
/// How long the answer over one address family waits for the one over the other.
const OTHER_FAMILY_TIMEOUT: Duration = Duration::from_secs(2);

/// How trackers are asked.
#[derive(Clone)]
pub struct ClientOptions {
    /// Longest time for an announce over HTTP, redirects included.
    pub timeout: Duration,
    /// How long the first packet over UDP waits for its answer; each further one twice as long (BEP 15).
    pub udp_timeout: Duration,
    /// How often an announce over UDP is sent.
    pub udp_attempts: u32,
    /// Certificates in DER form that are trusted beside those of the system.
    pub roots: Vec<Vec<u8>>,
    /// A socket in a SCION network, for trackers there.
    pub scion: Option<Arc<dyn Datagrams>>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            udp_timeout: Duration::from_secs(15),
            // 45 seconds: the next tracker waits for that.
            udp_attempts: 2,
            roots: Vec::new(),
            scion: None,
        }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("timeout", &self.timeout)
            .field("udp_timeout", &self.udp_timeout)
            .finish_non_exhaustive()
    }
}

/// A client of trackers. Copies share sockets and bounds.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    http: Fetcher,
    ipv4: Option<Exchange>,
    ipv6: Option<Exchange>,
    scion: Option<Exchange>,
    permits: Semaphore,
}

impl Client {
    /// A client; its sockets for UDP are bound. To be called inside a tokio runtime.
    ///
    /// # Errors
    /// When there is no socket for UDP, neither of IPv4 nor of IPv6.
    pub fn new(options: ClientOptions) -> io::Result<Self> {
        let exchange = |socket| Exchange::new(socket, options.udp_timeout, options.udp_attempts);
        let bind =
            |addr: SocketAddr| -> io::Result<Exchange> { Ok(exchange(Arc::new(bind_udp(addr)?))) };
        let ipv4 = bind((Ipv4Addr::UNSPECIFIED, 0).into());
        let ipv6 = bind((Ipv6Addr::UNSPECIFIED, 0).into());
        let (ipv4, ipv6) = match (ipv4, ipv6) {
            (Err(error), Err(_)) => return Err(error),
            (ipv4, ipv6) => (ipv4.ok(), ipv6.ok()),
        };
        let inner = Inner {
            scion: options.scion.clone().map(exchange),
            http: Fetcher::new(options.timeout, options.roots),
            ipv4,
            ipv6,
            permits: Semaphore::new(MAX_CONCURRENT),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Announces to the tracker at `url`. Over UDP, a host of both IPv4 and IPv6 is asked over both, and
    /// the answer has the peers of both. Takes bounded time, but for the wait while too many announces
    /// are under way. Cancel safe: a request that is dropped may have arrived.
    ///
    /// # Errors
    /// [`AnnounceError`] if there is no answer.
    pub async fn announce(
        &self,
        url: &str,
        request: &AnnounceRequest,
    ) -> Result<Answer, AnnounceError> {
        let parsed: TrackerUrl = url.parse()?;
        let _permit = self.inner.permits.acquire().await;
        if parsed.scheme != Scheme::Udp {
            let body = self.inner.http.fetch(&announce_url(url, request)).await?;
            return Ok(read_answer(&body)?);
        }
        let announce = UdpAnnounce {
            request: request.clone(),
            gives_ip: matches!(parsed.host, Host::Scion(_)) && request.port != 0,
            url_data: url_data(&parsed.path),
        };
        let ask = |connection, transaction| UdpRequest::Announce {
            connection,
            transaction,
            announce: announce.clone(),
        };
        match self.ask(&parsed, &ask).await? {
            UdpAnswer::Announce(answer) => Ok(answer),
            other => Err(unexpected(&parsed, other)),
        }
    }

    /// Asks the tracker at the announce URL `url` for the numbers of swarms, the first 74 of
    /// `info_hashes`. The answer has those that the tracker knows.
    ///
    /// # Errors
    /// [`AnnounceError`] if there is no answer.
    pub async fn scrape(
        &self,
        url: &str,
        info_hashes: &[[u8; 20]],
    ) -> Result<BTreeMap<[u8; 20], Scraped>, AnnounceError> {
        let parsed: TrackerUrl = url.parse()?;
        let _permit = self.inner.permits.acquire().await;
        if parsed.scheme != Scheme::Udp {
            let url = scrape_url(url).ok_or_else(|| AnnounceError::NoScrape(url.into()))?;
            let body = self
                .inner
                .http
                .fetch(&scrape_query(&url, info_hashes))
                .await?;
            return Ok(read_scrape(&body)?);
        }
        let ask = |connection, transaction| UdpRequest::Scrape {
            connection,
            transaction,
            info_hashes: info_hashes.to_vec(),
        };
        match self.ask(&parsed, &ask).await? {
            UdpAnswer::Scrape(swarms) => Ok(info_hashes.iter().copied().zip(swarms).collect()),
            other => Err(unexpected(&parsed, other)),
        }
    }

    /// Asks over UDP.
    async fn ask(
        &self,
        url: &TrackerUrl,
        ask: &(impl Fn(u64, u32) -> UdpRequest + Sync),
    ) -> Result<UdpAnswer, AnnounceError> {
        let inner = &self.inner;
        let host = url.authority();
        let addrs = match &url.host {
            Host::Scion(addr) => {
                let scion = inner.scion.as_ref();
                let exchange =
                    scion.ok_or_else(|| AnnounceError::NoScion { host: host.clone() })?;
                return exchange.ask(PeerAddr::Scion(*addr), &host, ask).await;
            }
            Host::Ip(ip) => vec![SocketAddr::new(*ip, url.port)],
            Host::Name(name) => {
                let found = hawser_http_client::resolve(name, url.port).await;
                found.map_err(|error| AnnounceError::Resolve {
                    host: name.clone(),
                    error,
                })?
            }
        };
        let over = async |exchange: &Option<Exchange>, ipv6: bool| {
            let addr = addrs.iter().find(|addr| addr.is_ipv6() == ipv6)?;
            Some(
                exchange
                    .as_ref()?
                    .ask(PeerAddr::Ip(*addr), &host, ask)
                    .await,
            )
        };
        let both = both(over(&inner.ipv4, false), over(&inner.ipv6, true)).await;
        both.unwrap_or_else(|| {
            Err(AnnounceError::Reach {
                host: host.clone(),
                error: io::ErrorKind::AddrNotAvailable.into(),
            })
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

type Asked = Option<Result<UdpAnswer, AnnounceError>>;

/// What comes of asking over two families: once one answers, the other has little time left.
async fn both(ipv4: impl Future<Output = Asked>, ipv6: impl Future<Output = Asked>) -> Asked {
    let (mut ipv4, mut ipv6) = (std::pin::pin!(ipv4), std::pin::pin!(ipv6));
    let (first, second) = tokio::select! {
        first = &mut ipv4 => {
            let second = wait(first.as_ref(), ipv6).await;
            (first, second)
        }
        first = &mut ipv6 => {
            let second = wait(first.as_ref(), ipv4).await;
            (first, second)
        }
    };
    match (first, second) {
        (Some(Ok(first)), Some(Ok(second))) => Some(Ok(merge(first, second))),
        (Some(Ok(one)), _) | (_, Some(Ok(one))) => Some(Ok(one)),
        (first, second) => first.or(second),
    }
}

async fn wait(
    first: Option<&Result<UdpAnswer, AnnounceError>>,
    second: impl Future<Output = Asked>,
) -> Asked {
    match first {
        Some(Ok(_)) => timeout(OTHER_FAMILY_TIMEOUT, second).await.ok().flatten(),
        _ => second.await,
    }
}

/// The peers of both announces; of other answers the first.
fn merge(first: UdpAnswer, second: UdpAnswer) -> UdpAnswer {
    match (first, second) {
        (UdpAnswer::Announce(mut first), UdpAnswer::Announce(second)) => {
            first.peers.extend(second.peers);
            first.complete = first.complete.max(second.complete);
            first.incomplete = first.incomplete.max(second.incomplete);
            UdpAnswer::Announce(first)
        }
        (UdpAnswer::Error(_), second) => second,
        (first, _) => first,
    }
}

fn unexpected(url: &TrackerUrl, answer: UdpAnswer) -> AnnounceError {
    match answer {
        UdpAnswer::Error(reason) => AnnounceError::Refused {
            reason,
            retry: Retry::Unsaid,
        },
        _ => AnnounceError::OtherAnswer {
            host: url.authority(),
        },
    }
}

/// What is sent of a URL's path (BEP 41): nothing for the usual ones, which tell no tracker anything.
fn url_data(path: &str) -> String {
    match path {
        "/" | "/announce" => String::new(),
        path => path.to_owned(),
    }
}

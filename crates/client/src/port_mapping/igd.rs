//! A port mapped by UPnP (InternetGatewayDevice): the gateway is searched for, describes itself, and is
//! called. Only the gateway is asked: answers of other hosts, and descriptions that name others, do not count.

mod message;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use hawser_http_client::{Host, HttpClient, HttpUrl};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use self::message::{Call, DEVICES, ONLY_PERMANENT, Service, search};
use super::mapper::{LIFETIME, Mapped};
use super::message::Protocol;

/// Where gateways listen for searches (SSDP).
const SEARCH_PORT: u16 = 1900;
const SEARCH_GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 255, 250);

/// Times that a search is sent, and the time for answers to each.
const SEARCHES: u32 = 4;
const SEARCH_PAUSE: Duration = Duration::from_millis(1500);

/// Longest answer to a search, and longest description or answer to a call, in bytes.
const MAX_ANSWER: usize = 2048;
const MAX_DESCRIPTION: usize = 256 << 10;

/// Longest time for a description or a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time for the end of a mapping, at the end.
const END_TIMEOUT: Duration = Duration::from_millis(750);

/// A gateway that maps ports by UPnP.
#[derive(Debug)]
pub(super) struct Igd {
    service: Service,
    /// The address of this host in the network of the gateway.
    host: Ipv4Addr,
    client: HttpClient,
    /// The lifetime that is asked for, in seconds; 0 where the gateway knows none.
    lifetime: u32,
}

/// Why a call has failed.
enum Failure {
    Refused(u32),
    Other(String),
}

impl Failure {
    fn reason(self) -> String {
        match self {
            Self::Refused(code) => message::refusal(code),
            Self::Other(reason) => reason,
        }
    }
}

impl Igd {
    /// Finds out how `gateway` is called. If it `is_named`, it alone is sent anything; otherwise the search goes
    /// to all hosts of its network, as UPnP has it.
    ///
    /// # Errors
    /// Why it is not.
    pub async fn find(gateway: Ipv4Addr, is_named: bool) -> Result<Self, String> {
        let mut to = vec![SocketAddr::from((gateway, SEARCH_PORT))];
        if !is_named {
            to.push(SocketAddr::from((SEARCH_GROUP, SEARCH_PORT)));
        }
        Self::find_at(gateway, &to).await
    }

    async fn find_at(gateway: Ipv4Addr, searched: &[SocketAddr]) -> Result<Self, String> {
        let failed = |error: io::Error| format!("cannot search for it: {error}");
        let host = own_address(gateway).await.map_err(failed)?;
        let socket = UdpSocket::bind((host, 0)).await.map_err(failed)?;
        for _ in 0..SEARCHES {
            for to in searched {
                for device in DEVICES {
                    if let Err(error) = socket.send_to(search(device).as_bytes(), to).await {
                        tracing::debug!("cannot search for a gateway at {to}: {error}");
                    }
                }
            }
            let found = timeout(SEARCH_PAUSE, answer(&socket, gateway)).await;
            if let Ok(location) = found {
                return Self::described(location, host).await;
            }
        }
        Err("the gateway does not answer: allow UPnP in its settings".to_owned())
    }

    /// Reads the description of a gateway.
    async fn described(location: HttpUrl, host: Ipv4Addr) -> Result<Self, String> {
        let client = HttpClient::default();
        let reading = async {
            let response = client.get(&location, None).await?;
            response.read(MAX_DESCRIPTION).await
        };
        let description = within(reading).await?;
        let description = String::from_utf8_lossy(&description);
        let service = message::service(&description, &location);
        let service = service.ok_or("the gateway has no service that maps ports")?;
        Ok(Self {
            service,
            host,
            client,
            lifetime: LIFETIME,
        })
    }

    /// Maps a port, or renews its mappings.
    ///
    /// # Errors
    /// Why none is mapped.
    pub async fn map(&mut self, port: u16) -> Result<Mapped, String> {
        let mut mapped = Mapped::default();
        for protocol in Protocol::BOTH {
            let external = match self.map_one(protocol, port).await {
                Ok(()) => Some(port),
                Err(failure) => {
                    let reason = format!("{}: {}", protocol.name(), failure.reason());
                    mapped.reason = Some(reason);
                    None
                }
            };
            match protocol {
                Protocol::Tcp => mapped.tcp = external,
                Protocol::Udp => mapped.udp = external,
            }
        }
        match mapped {
            Mapped {
                tcp: None,
                udp: None,
                reason,
                ..
            } => Err(reason.unwrap_or_default()),
            mut mapped => {
                // Some gateways do not tell it.
                let answer = self.call(Call::Address).await.ok();
                mapped.address = answer.and_then(|answer| message::address(&answer));
                Ok(mapped)
            }
        }
    }

    async fn map_one(&mut self, protocol: Protocol, port: u16) -> Result<(), Failure> {
        let call = |lifetime| Call::Map {
            protocol,
            port,
            host: self.host,
            lifetime,
        };
        match self.call(call(self.lifetime)).await {
            Err(Failure::Refused(ONLY_PERMANENT)) if self.lifetime > 0 => {
                self.call(call(0)).await?;
                self.lifetime = 0;
                Ok(())
            }
            result => result.map(drop),
        }
    }

    /// Ends the mappings of a port.
    pub async fn end(&self, port: u16) {
        let end = |protocol| self.call(Call::End { protocol, port });
        let [one, other] = Protocol::BOTH;
        let both = async { tokio::join!(end(one), end(other)) };
        // What is not ended ends with its lifetime.
        if timeout(END_TIMEOUT, both).await.is_err() {
            tracing::debug!("the gateway does not answer that the mapping has ended");
        }
    }

    /// Calls the service. Returns its answer.
    async fn call(&self, call: Call) -> Result<String, Failure> {
        let kind = self.service.kind;
        let action = call.header(kind);
        let headers = [
            ("content-type", "text/xml; charset=\"utf-8\""),
            ("soapaction", action.as_str()),
        ];
        let (url, body) = (&self.service.url, call.body(kind));
        let calling = async {
            let response = self.client.post(url, &headers, &body).await?;
            let status = response.status();
            Ok((status, response.read(MAX_DESCRIPTION).await?))
        };
        let (status, answer) = within(calling).await.map_err(Failure::Other)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        match (status, message::error_code(&answer)) {
            (200, _) => Ok(answer),
            (_, Some(code)) => Err(Failure::Refused(code)),
            (status, None) => {
                let reason = format!("the gateway refuses with status {status}");
                Err(Failure::Other(reason))
            }
        }
    }
}

/// The address of this host from which `gateway` is reached.
async fn own_address(gateway: Ipv4Addr) -> io::Result<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.connect((gateway, SEARCH_PORT)).await?;
    match socket.local_addr()?.ip() {
        IpAddr::V4(own) => Ok(own),
        IpAddr::V6(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

/// Waits for an answer of the gateway to a search, and returns the URL of its description.
async fn answer(socket: &UdpSocket, gateway: Ipv4Addr) -> HttpUrl {
    let mut bytes = [0; MAX_ANSWER];
    loop {
        // An error is that of an earlier search: nobody listens there.
        let Ok((length, from)) = socket.recv_from(&mut bytes).await else {
            continue;
        };
        let location = message::location(bytes.get(..length).unwrap_or_default());
        let is_gateway = from.ip() == gateway;
        let at_gateway = |url: &HttpUrl| is_gateway && url.host == Host::Ip(gateway.into());
        if let Some(location) = location.filter(at_gateway) {
            return location;
        }
    }
}

/// The result of a request, within its time.
async fn within<T>(
    request: impl Future<Output = Result<T, hawser_http_client::HttpError>>,
) -> Result<T, String> {
    let done = timeout(CALL_TIMEOUT, request).await;
    let done = done.map_err(|_| "the gateway does not answer a call".to_owned())?;
    done.map_err(|error| format!("cannot call the gateway: {error}"))
}

#[cfg(test)]
mod tests;

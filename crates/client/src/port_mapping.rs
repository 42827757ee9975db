//! The port at which IP peers connect, mapped by the gateway of this network: by NAT-PMP
//! (RFC 6886), and by UPnP where the gateway does not map it so.
//!
//! Behind a router that translates addresses, peers can be connected to, and cannot connect. The router maps
//! the port if it is asked to, for TCP and for UDP, as long as it is asked again; the mapping is removed at the
//! end. Nothing else depends on it: that it fails is shown, and logged once. PCP is not supported yet.

mod gateway;
mod igd;
mod mapper;
mod message;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::igd::Igd;
use self::mapper::{LIFETIME, Mapped, Mapper, RETRY, renewal};
use self::message::{Answer, MAX_ANSWER, Request};

/// The UDP port of gateways (RFC 6886, section 3).
pub const GATEWAY_PORT: u16 = 5351;
/// Times that the end of a mapping is sent, and the time for each answer. What is not answered ends with the
/// lifetime of the mapping.
const END_ATTEMPTS: u32 = 3;
const END_PAUSE: Duration = Duration::from_millis(250);

/// What there is of the mapping of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PortMapping {
    /// The gateway was not asked yet, or has not answered.
    #[default]
    Asking,
    /// Peers can connect by way of the gateway.
    Mapped {
        /// The address of the gateway on its other side, if it has told it.
        address: Option<Ipv4Addr>,
        /// The port there that leads to the TCP port of this host.
        tcp: Option<u16>,
        /// The port there that leads to the UDP port of this host.
        udp: Option<u16>,
    },
    /// There is none, for this reason. It is tried again.
    Failed(String),
}

impl PortMapping {
    /// The port at the gateway that leads to the TCP port of this host, if it maps one.
    pub fn tcp_port(&self) -> Option<u16> {
        match self {
            Self::Mapped { tcp, .. } => *tcp,
            Self::Asking | Self::Failed(_) => None,
        }
    }
}

impl From<Mapped> for PortMapping {
    fn from(mapped: Mapped) -> Self {
        match (mapped.tcp, mapped.udp, mapped.reason) {
            (None, None, Some(reason)) => Self::Failed(reason),
            (None, None, None) => Self::Asking,
            (tcp, udp, _) => Self::Mapped {
                address: mapped.address,
                tcp,
                udp,
            },
        }
    }
}

/// Keeps a port mapped until it is stopped.
#[derive(Debug)]
pub struct PortMapper {
    state: watch::Receiver<PortMapping>,
    tcp_port: watch::Receiver<Option<u16>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl PortMapper {
    /// Has the gateway map this port of this host, for TCP and UDP; without a `gateway`, that of the default
    /// route.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(port: u16, gateway: Option<SocketAddr>) -> Self {
        let (shown, state) = watch::channel(PortMapping::Asking);
        let (told, tcp_port) = watch::channel(None);
        let stop = CancellationToken::new();
        let job = Job {
            port,
            gateway,
            shown,
            told,
            stop: stop.clone(),
            began: Instant::now(),
        };
        let task = tokio::spawn(job.run());
        Self {
            state,
            tcp_port,
            stop,
            task,
        }
    }

    /// What there is of the mapping, also later.
    pub fn state(&self) -> watch::Receiver<PortMapping> {
        self.state.clone()
    }

    /// The port at the gateway that peers are to be told, while it maps one, also later.
    pub fn tcp_port(&self) -> watch::Receiver<Option<u16>> {
        self.tcp_port.clone()
    }

    /// Removes the mapping, which takes less than a second.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::warn!("the mapping of the port broke off: {error}");
        }
    }
}

struct Job {
    port: u16,
    gateway: Option<SocketAddr>,
    shown: watch::Sender<PortMapping>,
    told: watch::Sender<Option<u16>>,
    stop: CancellationToken,
    began: Instant,
}

impl Job {
    async fn run(self) {
        loop {
            if let Err(reason) = self.map().await {
                self.show(PortMapping::Failed(reason));
            }
            // The network may be another one then, with another gateway.
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = sleep(RETRY) => {}
            }
        }
    }

    /// Shows the state, and logs it if it is news.
    fn show(&self, state: PortMapping) {
        let is_news = self.shown.send_if_modified(|shown| {
            let is_news = *shown != state;
            shown.clone_from(&state);
            is_news
        });
        self.told.send_if_modified(|told| {
            let before = std::mem::replace(told, state.tcp_port());
            before != *told
        });
        let port = self.port;
        match state {
            _ if !is_news => {}
            PortMapping::Asking => {}
            PortMapping::Failed(reason) => {
                tracing::warn!("port {port} is not mapped by the gateway: {reason}");
            }
            PortMapping::Mapped { tcp, udp, .. } => {
                tracing::info!("port {port} is mapped by the gateway: TCP {tcp:?}, UDP {udp:?}");
            }
        }
    }

    /// Keeps the port mapped until it is stopped, or the gateway does not map it.
    ///
    /// # Errors
    /// Why the gateway cannot be asked.
    async fn map(&self) -> Result<(), String> {
        let gateway = match self.gateway {
            Some(gateway) => gateway,
            None => {
                let found = gateway::default_gateway();
                let found = found.map_err(|error| format!("cannot read the routes: {error}"))?;
                let none = "this host has no default route by a gateway";
                SocketAddr::from((found.ok_or(none)?, GATEWAY_PORT))
            }
        };
        let Some(reason) = self.map_by_nat_pmp(gateway).await? else {
            return Ok(());
        };
        let SocketAddr::V4(gateway) = gateway else {
            return Err(reason);
        };
        let mapped = self.map_by_upnp(*gateway.ip()).await;
        mapped.map_err(|other| format!("{reason}; by UPnP: {other}"))
    }

    /// Keeps the port mapped by NAT-PMP until it is stopped, or the gateway does not map it: returns why.
    ///
    /// # Errors
    /// Why the gateway cannot be asked.
    async fn map_by_nat_pmp(&self, gateway: SocketAddr) -> Result<Option<String>, String> {
        let socket = connect(gateway).await;
        let socket =
            socket.map_err(|error| format!("cannot ask the gateway {gateway}: {error}"))?;
        let mut mapper = Mapper::new(self.port, self.began.elapsed());
        loop {
            for request in mapper.advance(self.began.elapsed()) {
                send(&socket, request).await;
            }
            match PortMapping::from(mapper.mapped()) {
                PortMapping::Failed(reason) => return Ok(Some(reason)),
                mapped => self.show(mapped),
            }
            let wait = mapper.next_due().saturating_sub(self.began.elapsed());
            tokio::select! {
                () = self.stop.cancelled() => break,
                answer = receive(&socket) => if let Some(answer) = answer {
                    mapper.on_answer(answer, self.began.elapsed());
                },
                () = sleep(wait) => {}
            }
        }
        end(&socket, mapper.end()).await;
        Ok(None)
    }

    /// Keeps the port mapped by UPnP until it is stopped.
    ///
    /// # Errors
    /// Why the gateway does not map it.
    async fn map_by_upnp(&self, gateway: Ipv4Addr) -> Result<(), String> {
        let mut igd = tokio::select! {
            () = self.stop.cancelled() => return Ok(()),
            found = Igd::find(gateway, self.gateway.is_some()) => found?,
        };
        loop {
            let mapped = tokio::select! {
                () = self.stop.cancelled() => break,
                mapped = igd.map(self.port) => mapped?,
            };
            self.show(mapped.into());
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = sleep(renewal(LIFETIME)) => {}
            }
        }
        igd.end(self.port).await;
        Ok(())
    }
}

/// A socket that receives from the gateway alone.
async fn connect(gateway: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.connect(gateway).await?;
    Ok(socket)
}

async fn send(socket: &UdpSocket, request: Request) {
    // Without an answer it is sent again.
    if let Err(error) = socket.send(&request.encode()).await {
        tracing::debug!("cannot ask the gateway: {error}");
    }
}

/// The next answer; `None` if what is received is none, or nobody listens at the gateway. Cancel safe.
async fn receive(socket: &UdpSocket) -> Option<Answer> {
    let mut bytes = [0; MAX_ANSWER];
    let length = socket.recv(&mut bytes).await.ok()?;
    Answer::parse(bytes.get(..length)?)
}

/// Ends mappings, and waits a moment for the answers.
async fn end(socket: &UdpSocket, mut requests: Vec<Request>) {
    for _ in 0..END_ATTEMPTS {
        if requests.is_empty() {
            break;
        }
        for request in &requests {
            send(socket, *request).await;
        }
        // The next attempt follows.
        let _ = timeout(END_PAUSE, async {
            while !requests.is_empty() {
                let answer = receive(socket).await;
                requests.retain(|request| !ends(answer, *request));
            }
        })
        .await;
    }
}

/// Whether an answer says that a mapping has ended, or cannot be ended.
fn ends(answer: Option<Answer>, request: Request) -> bool {
    let Request::Map { protocol, .. } = request else {
        return false;
    };
    match answer {
        Some(Answer::Mapped {
            protocol: of,
            lifetime: 0,
            ..
        }) => of == protocol,
        Some(Answer::Refused(of, _)) => of == Some(protocol),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

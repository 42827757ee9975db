//! The baseline: the protocol library with its own driver, over plain UDP on loopback.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::PrivatePkcs8KeyDer;

use crate::{CHUNK, Run, UNDERLAY, cpu_time, socket};

/// The server name in the certificate.
const NAME: &str = "localhost";
/// Flow-control window of the stream, in packets: noq 1.4.0 ends a connection with more than 1024
/// unread pieces of a stream.
const STREAM_PACKETS: u32 = 960;
/// Most bytes the sender keeps until they are acknowledged.
const SEND_WINDOW: u64 = 8 << 20;

pub async fn run(mtu: u16, time: Duration) -> Run {
    let packet = mtu - UNDERLAY;
    let (client, server) = configs(packet);
    let local = (Ipv4Addr::LOCALHOST, 0).into();
    let mut endpoint = EndpointConfig::default();
    // The largest: every packet that fits the MTU is accepted.
    endpoint.max_udp_payload_size(65527).unwrap();
    let bind = |server| {
        let socket = std::net::UdpSocket::bind::<std::net::SocketAddr>(local).unwrap();
        let socket = socket::open(socket, packet).unwrap();
        let runtime = Arc::new(noq::TokioRuntime);
        Endpoint::new_with_abstract_socket(endpoint.clone(), server, socket, runtime).unwrap()
    };
    let (here, there) = (bind(Some(server)), bind(None));
    let address = here.local_addr().unwrap();
    let connecting = there.connect_with(client, address, NAME).unwrap();
    let accepting = async { here.accept().await.unwrap().await.unwrap() };
    let (connection, accepted) = tokio::join!(connecting, accepting);
    let receiver = tokio::spawn(receive(accepted));
    let connection = connection.unwrap();
    let (began, cpu) = (Instant::now(), cpu_time());
    let (mut stream, _keep) = connection.open_bi().await.unwrap();
    let chunk = Bytes::from(vec![5; CHUNK]);
    while began.elapsed() < time {
        stream.write_chunk(chunk.clone()).await.unwrap();
    }
    stream.finish().unwrap();
    let bytes = receiver.await.unwrap();
    let run = Run {
        bytes,
        seconds: began.elapsed().as_secs_f64(),
        cpu: cpu_time() - cpu,
    };
    connection.close(0u32.into(), b"");
    there.wait_all_draining().await;
    run
}

async fn receive(connection: Connection) -> u64 {
    let (_keep, mut stream) = connection.accept_bi().await.unwrap();
    let mut bytes = 0;
    while let Some(chunk) = stream.read_chunk(CHUNK).await.unwrap() {
        bytes += chunk.len() as u64;
    }
    bytes
}

/// Both sides' settings, for packets of `packet` bytes.
fn configs(packet: u16) -> (ClientConfig, ServerConfig) {
    let made = rcgen::generate_simple_self_signed(vec![NAME.into()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let tls13 = &[&rustls::version::TLS13];
    let client = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(tls13)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(tls13)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(packet)
        .min_mtu(packet)
        .mtu_discovery_config(None)
        .stream_receive_window((STREAM_PACKETS * u32::from(packet)).into())
        .send_window(SEND_WINDOW);
    let transport = Arc::new(transport);
    let client = QuicClientConfig::try_from(client).unwrap();
    let mut client = ClientConfig::new(Arc::new(client));
    client.transport_config(Arc::clone(&transport));
    let server = QuicServerConfig::try_from(server).unwrap();
    let mut server = ServerConfig::with_crypto(Arc::new(server));
    server.transport_config(transport);
    (client, server)
}

/// The cipher that connections over SCION use where the processor has AES instructions.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    provider.into()
}

use std::fs;

use axum::Router;
use axum::routing::get;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use super::*;
use crate::listener::Listener;

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Writes a new certificate and its key, and returns it.
fn renew(folder: &TempDir) -> (TlsFiles, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = TlsFiles {
        certificate: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
        client_ca: None,
    };
    fs::write(&files.certificate, made.cert.pem()).unwrap();
    fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    (files, made.cert.der().clone())
}

/// A connection to a server that shows `certificate`.
async fn connect(
    address: std::net::SocketAddr,
    certificate: &CertificateDer<'static>,
) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await
}

/// Whether a request is answered.
async fn is_answered(stream: &mut tokio_rustls::client::TlsStream<TcpStream>) -> bool {
    let request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        if stream.read_buf(&mut answer).await.unwrap_or_default() == 0 {
            return false;
        }
    }
    true
}

#[tokio::test]
async fn a_renewed_certificate_is_used_and_breaks_no_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (files, first) = renew(&folder);
    let tls = Tls::read(&files).unwrap();
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Some(tls)).await;
    let listener = listener.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(listener.serve(Router::new().route("/", get(async || "hello"))));
    let mut before = connect(address, &first).await.unwrap();
    assert!(is_answered(&mut before).await);

    let (_, second) = renew(&folder);
    let renewed = async {
        loop {
            match connect(address, &second).await {
                Ok(stream) => return stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let renewed = tokio::time::timeout(PATIENCE, renewed).await;
    let mut after = renewed.expect("the renewed certificate is shown");
    assert!(is_answered(&mut after).await);
    assert!(is_answered(&mut before).await);
    // The former one is shown no longer.
    assert!(connect(address, &first).await.is_err());
}

#[test]
fn files_that_cannot_be_used_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (files, _) = renew(&folder);
    let tls = Tls::read(&files).unwrap();
    let expires = tls.current().expires;
    fs::write(&files.certificate, "nothing").unwrap();
    tls.read_again();
    assert_eq!(tls.current().expires, expires);
    // A key of another certificate.
    let other = tempfile::tempdir().unwrap();
    let (others, _) = renew(&other);
    fs::copy(&others.certificate, &files.certificate).unwrap();
    assert!(Tls::read(&files).is_err());
}

#[test]
fn files_are_read_again_once_they_have_settled() {
    let mut follower = Follower::new(1);
    let mut is_due = |stamp| follower.is_due(stamp);
    assert_eq!(
        [1, 2, 3, 3, 3].map(&mut is_due),
        [false, false, false, true, false]
    );
}

#[test]
fn an_expiry_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let (files, _) = renew(&folder);
    let tls = Tls::read(&files).unwrap();
    let expires = tls.current().expires;
    assert_eq!(tls.warning(expires - 8 * DAY), None);
    let soon = tls.warning(expires - 6 * DAY).unwrap();
    assert!(soon.contains("cert.pem expires on 4096-01-01"), "{soon}");
    let late = tls.warning(expires + DAY).unwrap();
    assert!(late.contains("cert.pem expired on 4096-01-01"), "{late}");
}

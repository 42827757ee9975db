//! TLS by files, with certificates of clients.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, version};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_cert::der::Decode;

/// The files of the server's side of TLS, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain of certificates, the server's first.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The certificates of authorities that issue certificates of clients.
    pub client_ca: Option<PathBuf>,
}

/// The server's side of TLS.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why TLS cannot be served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or has nothing of what is needed.
    #[error("cannot read {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The files do not fit together.
    #[error("{path}: {reason}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`] when one of them cannot be used.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let unusable = |path: &Path, reason: &dyn std::fmt::Display| TlsError::Unusable {
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        let chain = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .map_err(|error| unreadable(&files.key, &error, "private key"))?;
        let provider = Arc::new(ring::default_provider());
        let clients = match &files.client_ca {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(path) => client_verifier(path, &provider)?,
        };
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|error| unusable(&files.certificate, &error))?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)
            .map_err(|error| unusable(&files.certificate, &error))?;
        Ok(Self(TlsAcceptor::from(Arc::new(server))))
    }

    /// Makes a handshake. Returns the connection, and the subject of the client's certificate.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<String>)> {
        let stream = self.0.accept(stream).await?;
        let (_, connection) = stream.get_ref();
        let first = connection.peer_certificates().and_then(<[_]>::first);
        let subject = first.map(subject).transpose()?;
        Ok((stream, subject))
    }
}

/// Verifies client certificates by the authorities in the file at `path`. A client without one is let
/// in, and needs a token.
fn client_verifier(
    path: &Path,
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let unusable = |reason: &dyn std::fmt::Display| TlsError::Unusable {
        path: path.to_owned(),
        reason: reason.to_string(),
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .allow_unauthenticated()
        .build()
        .map_err(|error| unusable(&error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = || CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    let certificates = read().map_err(|error| unreadable(path, &error, "certificate"))?;
    match certificates.is_empty() {
        false => Ok(certificates),
        true => Err(unreadable(path, &pem::Error::NoItemsFound, "certificate")),
    }
}

fn unreadable(path: &Path, error: &pem::Error, what: &str) -> TlsError {
    let reason = match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("it has no {what} in PEM"),
        error => error.to_string(),
    };
    TlsError::File {
        path: path.to_owned(),
        reason,
    }
}

/// The subject of a certificate, as RFC 4514 writes it.
fn subject(certificate: &CertificateDer<'_>) -> io::Result<String> {
    let parsed = x509_cert::Certificate::from_der(certificate);
    let parsed = parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(parsed.tbs_certificate.subject.to_string())
}

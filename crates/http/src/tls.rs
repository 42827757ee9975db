//! TLS by files, with certificates of clients.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use hawser_file::Stamp;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, version};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::MissedTickBehavior;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_cert::TbsCertificate;
use x509_cert::der::{DateTime, Decode};

/// Interval at which it is looked whether the files have changed.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// Time before its expiry from which on a certificate is warned of, and the interval of warnings.
const NOTICE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const WARNING_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

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

/// The server's side of TLS. Cloning shares it.
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    files: TlsFiles,
    current: RwLock<Current>,
}

/// What the files had when they were read last.
#[derive(Clone)]
struct Current {
    acceptor: TlsAcceptor,
    expires: SystemTime,
    /// Stamps of the files from before they were read, so that no change is missed.
    stamps: Vec<Option<Stamp>>,
}

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
    /// Reads the files. While a [`Listener`](crate::Listener) serves, they are read again when they
    /// change.
    ///
    /// # Errors
    /// [`TlsError`] when one of them cannot be used.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(Shared {
            current: RwLock::new(Current::read(files)?),
            files: files.clone(),
        })))
    }

    fn current(&self) -> Current {
        let current = self.0.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What an operator has to know of the certificate at the time `now`: that it has expired, or is
    /// about to.
    pub fn warning(&self, now: SystemTime) -> Option<String> {
        let path = self.0.files.certificate.display();
        let expires = self.current().expires;
        let date = DateTime::from_system_time(expires).map_or_else(
            |_| String::new(),
            |date| {
                format!(
                    " on {:04}-{:02}-{:02}",
                    date.year(),
                    date.month(),
                    date.day()
                )
            },
        );
        let remedy = "renew it; the file is read again when it changes";
        if expires <= now {
            return Some(format!("the certificate in {path} expired{date}: {remedy}"));
        }
        let is_soon = expires <= now + NOTICE;
        is_soon.then(|| format!("the certificate in {path} expires{date}: {remedy}"))
    }

    /// Reads the files again whenever they have changed, and warns of an expiry. What cannot be used is
    /// logged, and the former certificate stays in use.
    pub(crate) async fn follow(self) {
        let mut tick = tokio::time::interval(FOLLOW_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut follower = Follower::new(self.current().stamps);
        let mut warned = None;
        loop {
            tick.tick().await;
            if follower.is_due(self.stamps().await) {
                let this = self.clone();
                // A panic was reported.
                let _ = tokio::task::spawn_blocking(move || this.read_again()).await;
                warned = None;
            }
            let now = SystemTime::now();
            if warned
                .is_none_or(|at| now.duration_since(at).unwrap_or_default() >= WARNING_INTERVAL)
            {
                warned = Some(now);
                if let Some(warning) = self.warning(now) {
                    tracing::warn!("{warning}");
                }
            }
        }
    }

    fn read_again(&self) {
        match Current::read(&self.0.files) {
            Ok(current) => {
                tracing::info!(
                    "the certificate in {} was read again",
                    self.0.files.certificate.display()
                );
                *self
                    .0
                    .current
                    .write()
                    .unwrap_or_else(PoisonError::into_inner) = current;
            }
            Err(error) => tracing::error!("{error}; the former certificate stays in use"),
        }
    }

    async fn stamps(&self) -> Vec<Option<Stamp>> {
        let files = self.0.files.clone();
        let stamps = tokio::task::spawn_blocking(move || files.stamps());
        stamps.await.unwrap_or_default()
    }

    /// Makes a handshake. Returns the connection, and the subject of the client's certificate.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<String>)> {
        let stream = self.current().acceptor.accept(stream).await?;
        let (_, connection) = stream.get_ref();
        let first = connection.peer_certificates().and_then(<[_]>::first);
        let subject = first.map(subject).transpose()?;
        Ok((stream, subject))
    }
}

impl TlsFiles {
    fn stamps(&self) -> Vec<Option<Stamp>> {
        let always = [self.certificate.as_path(), self.key.as_path()];
        let all = always.into_iter().chain(self.client_ca.as_deref());
        all.map(Stamp::of).collect()
    }
}

/// Decides when files are read again, by a stamp of all of them.
struct Follower<S> {
    /// That of the files as they were read, and as they were seen last.
    read: S,
    seen: S,
}

impl<S: Clone + PartialEq> Follower<S> {
    fn new(read: S) -> Self {
        let seen = read.clone();
        Self { read, seen }
    }

    /// Whether the files are to be read now: they have changed, and are the same as the last time. A
    /// certificate and its key are renewed one after the other.
    fn is_due(&mut self, now: S) -> bool {
        let is_due = now != self.read && now == self.seen;
        if is_due {
            self.read.clone_from(&now);
        }
        self.seen = now;
        is_due
    }
}

impl Current {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let unusable = |path: &Path, reason: &dyn std::fmt::Display| TlsError::Unusable {
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        let stamps = files.stamps();
        let chain = certificates(&files.certificate)?;
        let expires = chain.first().map_or(Ok(SystemTime::UNIX_EPOCH), expires);
        let expires = expires.map_err(|error| unusable(&files.certificate, &error))?;
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
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(server)),
            expires,
            stamps,
        })
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
    Ok(parsed(certificate)?.subject.to_string())
}

/// When a certificate expires.
fn expires(certificate: &CertificateDer<'_>) -> io::Result<SystemTime> {
    Ok(parsed(certificate)?.validity.not_after.to_system_time())
}

fn parsed(certificate: &CertificateDer<'_>) -> io::Result<TbsCertificate> {
    let parsed = x509_cert::Certificate::from_der(certificate);
    let parsed = parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(parsed.tbs_certificate)
}

#[cfg(test)]
mod tests;

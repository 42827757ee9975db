//! Clients of the gRPC services of the daemon and the control service.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use connectrpc::client::{ClientConfig, HttpClient};
use connectrpc::{ConnectError, ErrorCode, Protocol};
use thiserror::Error;
use tokio::net::lookup_host;

use crate::patience::wait;
use crate::sync::lock;

/// The daemon's address unless the environment sets another.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:30255";
/// Services run on this host or near it: connecting takes milliseconds or fails.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A service may query control services of other ASes, which may be slow.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// How recent the answer of a source of paths must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// The source may answer from its cache.
    Cached,
    /// The source must look for new paths.
    New,
}

/// A service and its address (`HOST:PORT`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Service {
    /// The SCION daemon (`proto.daemon.v1.DaemonService`).
    Daemon(String),
    /// The AS's control service (`proto.control_plane.v1.SegmentLookupService`).
    Control(String),
}

impl Service {
    fn address(&self) -> &str {
        match self {
            Self::Daemon(address) | Self::Control(address) => address,
        }
    }

    /// What the user should do when the service cannot be reached.
    fn remedy(&self) -> &'static str {
        match self {
            Self::Daemon(_) => "start it, or set SCION_DAEMON",
            Self::Control(_) => "start it, or correct `control_service` in topology.json",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daemon(address) => write!(f, "the SCION daemon at {address}"),
            Self::Control(address) => write!(f, "the control service at {address}"),
        }
    }
}

/// Why a service gave no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The address is not HOST:PORT.
    #[error("`{0}` is not a daemon address: write HOST:PORT, as in {DEFAULT_ADDRESS}")]
    Address(String),
    /// No program answers at the service's address.
    #[error("cannot reach {0}: {remedy}", remedy = .0.remedy())]
    Unreachable(Service),
    /// The service's host name has no address.
    #[error("cannot find {0}: its host name is unknown; correct it, or write an IP address")]
    UnknownName(Service),
    /// The service did not answer in time.
    #[error("{service} did not answer {question} within {CALL_TIMEOUT:?}")]
    Timeout {
        /// The service.
        service: Service,
        /// The method that was called.
        question: &'static str,
    },
    /// The service refused to answer.
    #[error("{service} refused {question}: {message}")]
    Refused {
        /// The service.
        service: Service,
        /// The method that was called.
        question: &'static str,
        /// The service's error message.
        message: String,
    },
    /// The service's answer is invalid.
    #[error("{service} sent an invalid answer to {question}: {message}")]
    Invalid {
        /// The service.
        service: Service,
        /// The method that was called.
        question: &'static str,
        /// What is wrong with the answer.
        message: String,
    },
}

/// A gRPC client (`C`) of a service. It connects with the first call, and again after the service
/// was restarted.
pub(crate) struct Caller<C> {
    pub(crate) service: Service,
    make: fn(HttpClient, ClientConfig) -> C,
    config: ClientConfig,
    client: Mutex<C>,
}

impl<C: Clone> Caller<C> {
    /// A client of `service`; `None` when its address is invalid.
    pub(crate) fn new(service: Service, make: fn(HttpClient, ClientConfig) -> C) -> Option<Self> {
        let uri = format!("http://{}/", service.address()).parse().ok()?;
        let config = ClientConfig::new(uri).with_protocol(Protocol::Grpc);
        let client = Mutex::new(make(transport(), config.clone()));
        Some(Self {
            service,
            make,
            config,
            client,
        })
    }

    /// The client for the next call.
    pub(crate) fn client(&self) -> C {
        lock(&self.client).clone()
    }

    /// The error for an invalid answer to `question`; `message` describes the fault.
    pub(crate) fn invalid(
        &self,
        question: &'static str,
        message: impl fmt::Display,
    ) -> SourceError {
        SourceError::Invalid {
            service: self.service.clone(),
            question,
            message: message.to_string(),
        }
    }

    /// Waits for the answer to a call, and converts it. "Not found" is an error.
    pub(crate) async fn required<A, T, E: fmt::Display>(
        &self,
        question: &'static str,
        call: impl Future<Output = Result<A, ConnectError>>,
        read: impl FnOnce(A) -> Result<T, E>,
    ) -> Result<T, SourceError> {
        let answer = self.optional(question, call).await?;
        let answer = answer.ok_or_else(|| self.invalid(question, "\"not found\""))?;
        read(answer).map_err(|error| self.invalid(question, error))
    }

    /// Waits for the answer to a call, which is `None` for "not found".
    pub(crate) async fn optional<A>(
        &self,
        question: &'static str,
        call: impl Future<Output = Result<A, ConnectError>>,
    ) -> Result<Option<A>, SourceError> {
        // The client's own deadlines would count the time in which this process is stopped.
        let error = match wait(CALL_TIMEOUT, call).await {
            Some(Ok(answer)) => return Ok(Some(answer)),
            Some(Err(error)) => error,
            None => ConnectError::new(ErrorCode::DeadlineExceeded, "no answer"),
        };
        let service = self.service.clone();
        let message = error.message.unwrap_or_else(|| error.code.as_str().into());
        match error.code {
            ErrorCode::NotFound => Ok(None),
            ErrorCode::Unavailable => {
                let known = lookup_host(service.address()).await.is_ok();
                Err(match known {
                    true => SourceError::Unreachable(service),
                    false => SourceError::UnknownName(service),
                })
            }
            ErrorCode::DeadlineExceeded => {
                // The connection may be dead without a sign of it: replace the client.
                *lock(&self.client) = (self.make)(transport(), self.config.clone());
                Err(SourceError::Timeout { service, question })
            }
            _ => Err(SourceError::Refused {
                service,
                question,
                message,
            }),
        }
    }
}

/// The valid entries of an answer; the others are left out with `warning`.
///
/// # Errors
/// The first error, when no entry is valid.
pub(crate) fn valid<T, E: fmt::Display>(
    entries: impl Iterator<Item = Result<T, E>>,
    warning: &str,
) -> Result<Vec<T>, E> {
    let (mut valid, mut invalid, mut first_error) = (Vec::new(), 0, None);
    for entry in entries {
        match entry {
            Ok(entry) => valid.push(entry),
            Err(error) => {
                invalid += 1;
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if valid.is_empty() => return Err(error),
        Some(error) => tracing::warn!(invalid, %error, "{warning}"),
        None => {}
    }
    Ok(valid)
}

fn transport() -> HttpClient {
    HttpClient::builder()
        .tcp_connect_timeout(CONNECT_TIMEOUT)
        .establishment_timeout(CONNECT_TIMEOUT)
        .plaintext_http2_only()
}

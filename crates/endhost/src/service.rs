//! Clients of the gRPC services of the daemon and the control service.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hawser_proto::{Message, Method};
use hawser_rpc::{Client, Code, InvalidAddress, RpcError};
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

/// A gRPC client of a service. It connects with the first call, and again after the service was
/// restarted.
pub(crate) struct Caller {
    pub(crate) service: Service,
    client: Mutex<Arc<Client>>,
}

fn client(service: &Service) -> Result<Arc<Client>, InvalidAddress> {
    Client::new(service.address(), CONNECT_TIMEOUT).map(Arc::new)
}

impl Caller {
    /// A client of `service`; `None` when its address is invalid.
    pub(crate) fn new(service: Service) -> Option<Self> {
        let client = Mutex::new(client(&service).ok()?);
        Some(Self { service, client })
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

    /// Calls a method, and converts the answer. "Not found" is an error.
    pub(crate) async fn required<Q, A, T, E>(
        &self,
        method: Method<Q, A>,
        request: &Q,
        read: impl FnOnce(A) -> Result<T, E>,
    ) -> Result<T, SourceError>
    where
        Q: Message,
        A: Message + Default,
        E: fmt::Display,
    {
        let answer = self.optional(method, request).await?;
        let answer = answer.ok_or_else(|| self.invalid(method.name(), "\"not found\""))?;
        read(answer).map_err(|error| self.invalid(method.name(), error))
    }

    /// Calls a method. The answer is `None` for "not found".
    pub(crate) async fn optional<Q, A>(
        &self,
        method: Method<Q, A>,
        request: &Q,
    ) -> Result<Option<A>, SourceError>
    where
        Q: Message,
        A: Message + Default,
    {
        let client = Arc::clone(&lock(&self.client));
        // A deadline of the client's own would count the time in which this process is stopped.
        let RpcError { code, message, .. } =
            match wait(CALL_TIMEOUT, client.call(method, request)).await {
                Some(Ok(answer)) => return Ok(Some(answer)),
                Some(Err(error)) => error,
                None => RpcError::new(Code::DeadlineExceeded, "no answer"),
            };
        let (service, question) = (self.service.clone(), method.name());
        match code {
            Code::NotFound => Ok(None),
            Code::Unavailable => {
                let known = lookup_host(service.address()).await.is_ok();
                Err(match known {
                    true => SourceError::Unreachable(service),
                    false => SourceError::UnknownName(service),
                })
            }
            Code::DeadlineExceeded => {
                // The connection may be dead without a sign of it: replace the client.
                if let Ok(client) = self::client(&service) {
                    *lock(&self.client) = client;
                }
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

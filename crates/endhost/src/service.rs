//! Programs of this AS that are asked over gRPC: what they are called, and what can go wrong.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use connectrpc::client::{CallOptions, ClientConfig, HttpClient};
use connectrpc::{ConnectError, ErrorCode, Protocol};
use thiserror::Error;
use tokio::net::lookup_host;

/// They are on this host or near it: connecting takes milliseconds or fails.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// They may have to ask control services of other ASes, which may be slow.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// A program that is asked, and where it is (`HOST:PORT`).
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

    /// What to do when it cannot be reached.
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

/// Why there is no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The address is not HOST:PORT.
    #[error(
        "`{address}` is no daemon address: write HOST:PORT, as in {}",
        crate::daemon::DEFAULT_ADDRESS
    )]
    Address {
        /// What was given.
        address: String,
    },
    /// Nothing answers there.
    #[error("cannot reach {service}: {}", service.remedy())]
    Unreachable {
        /// The name that was looked up.
        service: Service,
    },
    /// It is named by a name that no address is known for.
    #[error(
        "{service} cannot be found: the name is unknown; correct it, or write an IP address instead"
    )]
    UnknownName {
        /// The name that was looked up.
        service: Service,
    },
    /// It does not answer in time.
    #[error("{service} does not answer {question} within {CALL_TIMEOUT:?}")]
    Timeout {
        /// Who was asked.
        service: Service,
        /// What it was asked.
        question: &'static str,
    },
    /// It refuses.
    #[error("{service} refuses {question}: {message}")]
    Refused {
        /// Who was asked.
        service: Service,
        /// What it was asked.
        question: &'static str,
        /// What it says.
        message: String,
    },
    /// It answers nonsense.
    #[error("{service} answers {question} with nonsense: {message}")]
    Nonsense {
        /// Who was asked.
        service: Service,
        /// What it was asked.
        question: &'static str,
        /// What is wrong with the answer.
        message: String,
    },
}

/// A gRPC client (`C`) of a service. It connects with the first question, and again when the
/// service was away.
pub(crate) struct Caller<C> {
    service: Service,
    make: fn(HttpClient, ClientConfig) -> C,
    config: ClientConfig,
    client: Mutex<C>,
}

impl<C: Clone> Caller<C> {
    /// A client of `service`; `None` when its address is none.
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

    /// Who is asked.
    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    /// The client to make the next call with.
    pub(crate) fn client(&self) -> C {
        self.lock().clone()
    }

    /// `message` says what is wrong with the answer to `question`.
    pub(crate) fn nonsense(
        &self,
        question: &'static str,
        message: impl fmt::Display,
    ) -> SourceError {
        SourceError::Nonsense {
            service: self.service.clone(),
            question,
            message: message.to_string(),
        }
    }

    /// Waits for the answer to a call that always has one.
    pub(crate) async fn found<T>(
        &self,
        question: &'static str,
        call: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, SourceError> {
        let answer = self.answer(question, call).await?;
        answer.ok_or_else(|| self.nonsense(question, "\"not found\""))
    }

    /// Waits for the answer to a call, none for "not found", and sorts out what went wrong.
    pub(crate) async fn answer<T>(
        &self,
        question: &'static str,
        call: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<Option<T>, SourceError> {
        // The call has its own deadline; this one also covers a peer that is not gRPC at all.
        let error = match tokio::time::timeout(CALL_TIMEOUT, call).await {
            Ok(Ok(answer)) => return Ok(Some(answer)),
            Ok(Err(error)) => error,
            Err(_) => ConnectError::new(ErrorCode::DeadlineExceeded, "no answer"),
        };
        let service = self.service.clone();
        let message = error.message.unwrap_or_else(|| error.code.as_str().into());
        match error.code {
            ErrorCode::NotFound => Ok(None),
            ErrorCode::Unavailable => {
                let known = lookup_host(service.address()).await.is_ok();
                Err(match known {
                    true => SourceError::Unreachable { service },
                    false => SourceError::UnknownName { service },
                })
            }
            ErrorCode::DeadlineExceeded => {
                // The connection itself may be dead without anybody having said so.
                *self.lock() = (self.make)(transport(), self.config.clone());
                Err(SourceError::Timeout { service, question })
            }
            _ => Err(SourceError::Refused {
                service,
                question,
                message,
            }),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, C> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What every call is made with.
pub(crate) fn options() -> CallOptions {
    CallOptions::default().with_timeout(CALL_TIMEOUT)
}

fn transport() -> HttpClient {
    HttpClient::builder()
        .tcp_connect_timeout(CONNECT_TIMEOUT)
        .establishment_timeout(CONNECT_TIMEOUT)
        .plaintext_http2_only()
}

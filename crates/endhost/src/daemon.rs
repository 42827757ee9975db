//! The SCION daemon of this AS, asked over gRPC (`proto.daemon.v1.DaemonService`).

mod convert;

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use connectrpc::client::{CallOptions, ClientConfig, HttpClient};
use connectrpc::{ConnectError, ErrorCode, Protocol};
use scion_protobuf::buffa_types::google::protobuf::Empty;
use scion_protobuf::proto::daemon::v1::{
    ASRequest, DaemonServiceClient, InterfacesRequest, PathsRequest,
};
use sciparse::identifier::isd_asn::IsdAsn;
use thiserror::Error;
use tokio::sync::OnceCell;

use crate::path::Path;

/// Where the daemon is unless the environment says otherwise.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:30255";
/// The daemon is on this host or near it: connecting takes milliseconds or fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A daemon may have to ask control services of other ASes for segments.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// A client of the daemon. It connects with the first question, and again when the daemon was away.
pub struct Daemon {
    address: String,
    client: DaemonServiceClient<HttpClient>,
    local: OnceCell<LocalAs>,
}

/// The AS the daemon serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalAs {
    /// Its number.
    pub isd_as: IsdAsn,
    /// Whether it is a core AS of its ISD.
    pub core: bool,
    /// The largest SCION packet inside it, in bytes.
    pub mtu: u16,
}

/// Why the daemon gave no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The address is not HOST:PORT.
    #[error(
        "`{address}` is no daemon address: set SCION_DAEMON to HOST:PORT, as in {DEFAULT_ADDRESS}"
    )]
    Address {
        /// What was given.
        address: String,
    },
    /// Nothing answers there.
    #[error("cannot reach the SCION daemon at {address}: start it, or set SCION_DAEMON")]
    Unreachable {
        /// Where it was looked for.
        address: String,
    },
    /// It does not answer in time.
    #[error("the SCION daemon at {address} does not answer {question} within {CALL_TIMEOUT:?}")]
    Timeout {
        /// Where it is.
        address: String,
        /// What it was asked.
        question: &'static str,
    },
    /// It refuses.
    #[error("the SCION daemon at {address} refuses {question}: {message}")]
    Refused {
        /// Where it is.
        address: String,
        /// What it was asked.
        question: &'static str,
        /// What it says.
        message: String,
    },
    /// It answers nonsense.
    #[error("the SCION daemon at {address} answers {question} with nonsense: {message}")]
    Nonsense {
        /// Where it is.
        address: String,
        /// What it was asked.
        question: &'static str,
        /// What is wrong with the answer.
        message: String,
    },
}

impl Daemon {
    /// A client of the daemon at `address` (`HOST:PORT`).
    ///
    /// # Errors
    /// [`DaemonError::Address`] when `address` is no address.
    pub fn connect(address: &str) -> Result<Self, DaemonError> {
        let bad = || DaemonError::Address {
            address: address.into(),
        };
        let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(bad());
        }
        let uri = format!("http://{address}/").parse().map_err(|_| bad())?;
        let transport = HttpClient::builder()
            .tcp_connect_timeout(CONNECT_TIMEOUT)
            .establishment_timeout(CONNECT_TIMEOUT)
            .plaintext_http2_only();
        let config = ClientConfig::new(uri).with_protocol(Protocol::Grpc);
        Ok(Self {
            address: address.into(),
            client: DaemonServiceClient::new(transport, config),
            local: OnceCell::new(),
        })
    }

    /// A client of the daemon that `SCION_DAEMON` names, else `SCION_DAEMON_ADDRESS`, else
    /// [`DEFAULT_ADDRESS`].
    ///
    /// # Errors
    /// [`DaemonError::Address`] when the variable holds no address.
    pub fn from_env() -> Result<Self, DaemonError> {
        let named = ["SCION_DAEMON", "SCION_DAEMON_ADDRESS"]
            .into_iter()
            .filter_map(|name| env::var(name).ok())
            .find(|address| !address.is_empty());
        Self::connect(named.as_deref().unwrap_or(DEFAULT_ADDRESS))
    }

    /// Where the daemon is.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The AS this host is in. Asked once.
    ///
    /// # Errors
    /// [`DaemonError`] when there is no usable answer.
    pub async fn local_as(&self) -> Result<LocalAs, DaemonError> {
        const QUESTION: &str = "AS";
        let ask = || async {
            let call = self
                .client
                .r#as_with_options(ASRequest::default(), options());
            let answer = self.found(QUESTION, call).await?.into_owned();
            let isd_as = IsdAsn::from_u64(answer.isd_as);
            if isd_as.is_wildcard() {
                return Err(self.nonsense(QUESTION, format!("{isd_as} is no AS")));
            }
            Ok(LocalAs {
                isd_as,
                core: answer.core,
                mtu: convert::mtu(answer.mtu).map_err(|what| self.nonsense(QUESTION, what))?,
            })
        };
        self.local.get_or_try_init(ask).await.copied()
    }

    /// The underlay addresses of this AS's border routers by interface.
    ///
    /// # Errors
    /// [`DaemonError`] when there is no usable answer.
    pub async fn interfaces(&self) -> Result<BTreeMap<u16, SocketAddr>, DaemonError> {
        const QUESTION: &str = "Interfaces";
        let call = self
            .client
            .interfaces_with_options(InterfacesRequest::default(), options());
        let answer = self.found(QUESTION, call).await?.into_owned();
        convert::interfaces(answer).map_err(|what| self.nonsense(QUESTION, what))
    }

    /// The UDP ports routers of this AS deliver to directly.
    ///
    /// # Errors
    /// [`DaemonError`] when there is no usable answer.
    pub async fn port_range(&self) -> Result<RangeInclusive<u16>, DaemonError> {
        const QUESTION: &str = "PortRange";
        let call = self
            .client
            .port_range_with_options(Empty::default(), options());
        let answer = self.found(QUESTION, call).await?.into_owned();
        convert::port_range(answer).map_err(|what| self.nonsense(QUESTION, what))
    }

    /// The paths to `dst`, in the daemon's order; `refresh` makes it look for new ones. Entries
    /// that contradict themselves are left out with a warning.
    ///
    /// # Errors
    /// [`DaemonError`] when there is no usable answer.
    pub async fn paths(&self, dst: IsdAsn, refresh: bool) -> Result<Vec<Path>, DaemonError> {
        const QUESTION: &str = "Paths";
        let src = self.local_as().await?.isd_as;
        let request = PathsRequest {
            source_isd_as: src.to_u64(),
            destination_isd_as: dst.to_u64(),
            refresh,
            ..PathsRequest::default()
        };
        let call = self.client.paths_with_options(request, options());
        // Some daemons say "not found" where others list no paths.
        let Some(answer) = self.answer(QUESTION, call).await? else {
            return Ok(Vec::new());
        };
        let answer = answer.into_owned();
        let offered = answer.paths.len();
        let mut first_fault = None;
        let paths: Vec<Path> = answer
            .paths
            .into_iter()
            .filter_map(|path| {
                convert::path(src, dst, path)
                    .map_err(|fault| first_fault.get_or_insert(fault.to_string()).clone())
                    .ok()
            })
            .collect();
        match first_fault {
            Some(fault) if paths.is_empty() => Err(self.nonsense(QUESTION, fault)),
            Some(fault) => {
                let broken = offered - paths.len();
                tracing::warn!(%dst, broken, fault, "the daemon offers broken paths");
                Ok(paths)
            }
            None => Ok(paths),
        }
    }

    fn nonsense(&self, question: &'static str, message: impl fmt::Display) -> DaemonError {
        DaemonError::Nonsense {
            address: self.address.clone(),
            question,
            message: message.to_string(),
        }
    }

    /// Waits for the answer to a call that always has one.
    async fn found<T>(
        &self,
        question: &'static str,
        call: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, DaemonError> {
        let answer = self.answer(question, call).await?;
        answer.ok_or_else(|| self.nonsense(question, "\"not found\""))
    }

    /// Waits for the answer to a call, none for "not found", and sorts out what went wrong.
    async fn answer<T>(
        &self,
        question: &'static str,
        call: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<Option<T>, DaemonError> {
        let address = self.address.clone();
        // The call has its own deadline; this one also covers a peer that is not gRPC at all.
        let error = match tokio::time::timeout(CALL_TIMEOUT, call).await {
            Ok(Ok(answer)) => return Ok(Some(answer)),
            Ok(Err(error)) => error,
            Err(_) => return Err(DaemonError::Timeout { address, question }),
        };
        let message = error.message.unwrap_or_else(|| error.code.as_str().into());
        match error.code {
            ErrorCode::NotFound => Ok(None),
            ErrorCode::Unavailable => Err(DaemonError::Unreachable { address }),
            ErrorCode::DeadlineExceeded => Err(DaemonError::Timeout { address, question }),
            _ => Err(DaemonError::Refused {
                address,
                question,
                message,
            }),
        }
    }
}

fn options() -> CallOptions {
    CallOptions::default().with_timeout(CALL_TIMEOUT)
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

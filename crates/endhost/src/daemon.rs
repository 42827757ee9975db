//! A client of the SCION daemon of this AS (gRPC, `proto.daemon.v1.DaemonService`).

pub(crate) mod convert;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use connectrpc::client::HttpClient;
use scion_protobuf::buffa_types::google::protobuf::Empty;
use scion_protobuf::proto::daemon::v1::{
    ASRequest, DaemonServiceClient, InterfacesRequest, PathsRequest,
};
use sciparse::identifier::isd_asn::IsdAsn;
use tokio::sync::OnceCell;

use crate::local_as::LocalAs;
use crate::path::Path;
pub use crate::service::DEFAULT_ADDRESS;
use crate::service::{Caller, Service, SourceError, options};

/// The environment variables that name the daemon, in order of precedence.
pub(crate) const ENVIRONMENT: [&str; 2] = ["SCION_DAEMON", "SCION_DAEMON_ADDRESS"];

/// A client of the daemon. It connects with the first call, and again after the daemon was
/// restarted.
pub struct Daemon {
    caller: Caller<DaemonServiceClient<HttpClient>>,
    local: OnceCell<LocalAs>,
}

impl Daemon {
    /// A client of the daemon at `address`: `HOST:PORT`, or `default` for [`DEFAULT_ADDRESS`].
    ///
    /// # Errors
    /// [`SourceError::Address`] when `address` is invalid.
    pub fn connect(address: &str) -> Result<Self, SourceError> {
        let address = match address {
            "default" => DEFAULT_ADDRESS,
            given => given,
        };
        let bad = || SourceError::Address {
            address: address.into(),
        };
        let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(bad());
        }
        let service = Service::Daemon(address.into());
        let caller = Caller::new(service, DaemonServiceClient::new).ok_or_else(bad)?;
        Ok(Self {
            caller,
            local: OnceCell::new(),
        })
    }

    /// The daemon and its address.
    pub fn service(&self) -> &Service {
        self.caller.service()
    }

    /// The AS this host is in. The daemon is asked once.
    ///
    /// # Errors
    /// [`SourceError`] when there is no usable answer.
    pub async fn local_as(&self) -> Result<LocalAs, SourceError> {
        const QUESTION: &str = "AS";
        let ask = || async {
            let client = self.caller.client();
            let call = client.r#as_with_options(ASRequest::default(), options());
            let answer = self.caller.required(QUESTION, call).await?.into_owned();
            let isd_as = IsdAsn::from_u64(answer.isd_as);
            if isd_as.is_wildcard() {
                let message = format!("{isd_as} is not an AS");
                return Err(self.caller.invalid(QUESTION, message));
            }
            Ok(LocalAs {
                isd_as,
                core: answer.core,
                mtu: convert::mtu(answer.mtu)
                    .map_err(|what| self.caller.invalid(QUESTION, what))?,
            })
        };
        self.local.get_or_try_init(ask).await.copied()
    }

    /// The underlay addresses of this AS's border routers by interface.
    ///
    /// # Errors
    /// [`SourceError`] when there is no usable answer.
    pub async fn interfaces(&self) -> Result<BTreeMap<u16, SocketAddr>, SourceError> {
        const QUESTION: &str = "Interfaces";
        let client = self.caller.client();
        let call = client.interfaces_with_options(InterfacesRequest::default(), options());
        let answer = self.caller.required(QUESTION, call).await?.into_owned();
        convert::interfaces(answer).map_err(|what| self.caller.invalid(QUESTION, what))
    }

    /// The UDP ports routers of this AS deliver to directly.
    ///
    /// # Errors
    /// [`SourceError`] when there is no usable answer.
    pub async fn port_range(&self) -> Result<RangeInclusive<u16>, SourceError> {
        const QUESTION: &str = "PortRange";
        let client = self.caller.client();
        let call = client.port_range_with_options(Empty::default(), options());
        let answer = self.caller.required(QUESTION, call).await?.into_owned();
        convert::port_range(answer).map_err(|what| self.caller.invalid(QUESTION, what))
    }

    /// The paths to `dst`, in the daemon's order; `refresh` makes it look for new ones. Invalid
    /// paths are left out with a warning.
    ///
    /// # Errors
    /// [`SourceError`] when there is no usable answer.
    pub async fn paths(&self, dst: IsdAsn, refresh: bool) -> Result<Vec<Path>, SourceError> {
        const QUESTION: &str = "Paths";
        let src = self.local_as().await?.isd_as;
        let request = PathsRequest {
            source_isd_as: src.to_u64(),
            destination_isd_as: dst.to_u64(),
            refresh,
            ..PathsRequest::default()
        };
        let client = self.caller.client();
        let call = client.paths_with_options(request, options());
        // Some daemons answer "not found" where others list no paths.
        let Some(answer) = self.caller.optional(QUESTION, call).await? else {
            return Ok(Vec::new());
        };
        let answer = answer.into_owned();
        let offered = answer.paths.len();
        let mut first_error = None;
        let paths: Vec<Path> = answer
            .paths
            .into_iter()
            .filter_map(|path| {
                convert::path(src, dst, path)
                    .map_err(|error| first_error.get_or_insert(error.to_string()).clone())
                    .ok()
            })
            .collect();
        match first_error {
            Some(error) if paths.is_empty() => Err(self.caller.invalid(QUESTION, error)),
            Some(error) => {
                let invalid = offered - paths.len();
                tracing::warn!(%dst, invalid, error, "the daemon offers invalid paths");
                Ok(paths)
            }
            None => Ok(paths),
        }
    }
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon")
            .field("service", self.service())
            .finish_non_exhaustive()
    }
}

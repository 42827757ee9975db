//! A client of the SCION daemon of this AS (gRPC, `proto.daemon.v1.DaemonService`).

pub(crate) mod convert;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use connectrpc::client::{HttpClient, UnaryResponse};
use hawser_address::IsdAsn;
use scion_protobuf::buffa_types::google::protobuf::Empty;
use scion_protobuf::proto::daemon::v1::{
    ASRequest, DaemonServiceClient, InterfacesRequest, PathsRequest,
};
use tokio::sync::OnceCell;

use crate::local_as::LocalAs;
use crate::path::Path;
pub use crate::service::DEFAULT_ADDRESS;
use crate::service::{Caller, Service, SourceError, valid};

/// The environment variables that name the daemon, in order of precedence.
pub(crate) const ENVIRONMENT: [&str; 2] = ["SCION_DAEMON", "SCION_DAEMON_ADDRESS"];

/// A client of the daemon. It connects with the first call, and again after the daemon was
/// restarted.
pub struct Daemon {
    pub(crate) caller: Caller<DaemonServiceClient<HttpClient>>,
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
        let bad = || SourceError::Address(address.into());
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

    /// The AS this host is in. The daemon is queried once.
    ///
    /// # Errors
    /// [`SourceError`] when there is no usable answer.
    pub async fn local_as(&self) -> Result<LocalAs, SourceError> {
        let ask = || async {
            let client = self.caller.client();
            let call = client.r#as(ASRequest::default());
            let read = |answer: UnaryResponse<_>| convert::local_as(answer.into_owned());
            self.caller.required("AS", call, read).await
        };
        self.local.get_or_try_init(ask).await.copied()
    }

    /// The underlay addresses of this AS's border routers by interface.
    ///
    /// # Errors
    /// [`SourceError`] when there is no usable answer.
    pub async fn interfaces(&self) -> Result<BTreeMap<u16, SocketAddr>, SourceError> {
        let client = self.caller.client();
        let call = client.interfaces(InterfacesRequest::default());
        let read = |answer: UnaryResponse<_>| convert::interfaces(answer.into_owned());
        self.caller.required("Interfaces", call, read).await
    }

    /// The UDP ports routers of this AS deliver to directly.
    ///
    /// # Errors
    /// [`SourceError`] when there is no usable answer.
    pub async fn port_range(&self) -> Result<RangeInclusive<u16>, SourceError> {
        let client = self.caller.client();
        let call = client.port_range(Empty::default());
        let read = |answer: UnaryResponse<_>| convert::port_range(answer.into_owned());
        self.caller.required("PortRange", call, read).await
    }

    /// The paths to `dst`, in the daemon's order; `refresh` makes the daemon look for new ones. An
    /// ISD without an AS (`1-0`) stands for each of its core ASes.
    /// Invalid paths are left out with a warning.
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
        // Some daemons answer "not found", others an empty list.
        let answer = self
            .caller
            .optional(QUESTION, client.paths(request))
            .await?;
        let answer = answer.map(UnaryResponse::into_owned).unwrap_or_default();
        let offered = answer.paths.into_iter();
        let offered = offered.map(|path| convert::path(src, dst, path));
        valid(
            offered,
            &format!("the daemon offers invalid paths to {dst}"),
        )
        .map_err(|error| self.caller.invalid(QUESTION, error))
    }
}

//! The daemon API (`proto.daemon.v1.DaemonService`), as scionproto's daemon answers it.

use connectrpc::{
    ConnectError, Encodable, RequestContext, Response, ServiceRequest, ServiceResult,
};
use hawser_topology::IsdAsn;
use scion_protobuf::buffa_types::Empty;
use scion_protobuf::proto::daemon::v1::{
    ASRequest, ASResponse, DRKeyASHostRequest, DRKeyASHostResponse, DRKeyHostASRequest,
    DRKeyHostASResponse, DRKeyHostHostRequest, DRKeyHostHostResponse, DaemonService,
    InterfacesRequest, InterfacesResponse, ListService, NotifyInterfaceDownRequest,
    NotifyInterfaceDownResponse, PathsRequest, PathsResponse, PortRangeResponse, Service,
    ServicesRequest, ServicesResponse,
};

use crate::clock::now;
use crate::shared::Shared;
use crate::wire;

/// The daemon API over the shared state.
pub(crate) struct Daemon(pub Shared);

impl DaemonService for Daemon {
    /// `refresh` changes nothing: every answer is made of the links as they are.
    async fn paths<'a>(
        &'a self,
        _: RequestContext,
        request: ServiceRequest<'_, PathsRequest>,
    ) -> ServiceResult<impl Encodable<PathsResponse> + Send + use<'a>> {
        if request.hidden {
            return Err(ConnectError::unimplemented(
                "this network has no hidden paths: ask without `hidden`",
            ));
        }
        let answer = self.0.lock()?.paths(
            IsdAsn::from_u64(request.source_isd_as),
            IsdAsn::from_u64(request.destination_isd_as),
            now(),
        )?;
        Response::ok(answer)
    }

    async fn r#as<'a>(
        &'a self,
        _: RequestContext,
        request: ServiceRequest<'_, ASRequest>,
    ) -> ServiceResult<impl Encodable<ASResponse> + Send + use<'a>> {
        let plane = self.0.lock()?;
        let asked = match IsdAsn::from_u64(request.isd_as) {
            IsdAsn::WILDCARD => plane.isd_as(),
            isd_as => isd_as,
        };
        let r#as = plane.graph.r#as(plane.find(asked)?);
        Response::ok(ASResponse {
            isd_as: asked.to_u64(),
            core: r#as.core,
            mtu: r#as.mtu.into(),
        })
    }

    async fn interfaces<'a>(
        &'a self,
        _: RequestContext,
        _: ServiceRequest<'_, InterfacesRequest>,
    ) -> ServiceResult<impl Encodable<InterfacesResponse> + Send + use<'a>> {
        let plane = self.0.lock()?;
        let routers = plane.topology.border_routers.values();
        Response::ok(InterfacesResponse {
            interfaces: routers
                .flat_map(|router| {
                    let address = router.internal_addr;
                    let ids = router.interfaces.keys();
                    ids.map(move |&id| (id.into(), wire::interface(address)))
                })
                .collect(),
        })
    }

    async fn services<'a>(
        &'a self,
        _: RequestContext,
        _: ServiceRequest<'_, ServicesRequest>,
    ) -> ServiceResult<impl Encodable<ServicesResponse> + Send + use<'a>> {
        let plane = self.0.lock()?;
        let control = plane.topology.control_service.values();
        let list = ListService {
            services: control
                .map(|address| Service {
                    uri: address.to_string(),
                })
                .collect(),
        };
        Response::ok(ServicesResponse {
            // The name scionproto's daemon uses.
            services: [("control".to_owned(), list)].into(),
        })
    }

    /// Paths over the interface are left out for a while, as by scionproto's daemon: the host has
    /// it from a router, by SCMP.
    async fn notify_interface_down<'a>(
        &'a self,
        _: RequestContext,
        request: ServiceRequest<'_, NotifyInterfaceDownRequest>,
    ) -> ServiceResult<impl Encodable<NotifyInterfaceDownResponse> + Send + use<'a>> {
        let isd_as = IsdAsn::from_u64(request.isd_as);
        tracing::debug!("a host reports {isd_as}#{} down", request.id);
        self.0.lock()?.revoke(isd_as, request.id, now());
        Response::ok(NotifyInterfaceDownResponse::default())
    }

    async fn port_range<'a>(
        &'a self,
        _: RequestContext,
        _: ServiceRequest<'_, Empty>,
    ) -> ServiceResult<impl Encodable<PortRangeResponse> + Send + use<'a>> {
        let (first, last) = self.0.lock()?.topology.dispatched_ports;
        Response::ok(PortRangeResponse {
            dispatched_port_start: first.into(),
            dispatched_port_end: last.into(),
        })
    }

    async fn dr_key_as_host<'a>(
        &'a self,
        _: RequestContext,
        _: ServiceRequest<'_, DRKeyASHostRequest>,
    ) -> ServiceResult<impl Encodable<DRKeyASHostResponse> + Send + use<'a>> {
        Err::<Response<DRKeyASHostResponse>, _>(no_drkey())
    }

    async fn dr_key_host_as<'a>(
        &'a self,
        _: RequestContext,
        _: ServiceRequest<'_, DRKeyHostASRequest>,
    ) -> ServiceResult<impl Encodable<DRKeyHostASResponse> + Send + use<'a>> {
        Err::<Response<DRKeyHostASResponse>, _>(no_drkey())
    }

    async fn dr_key_host_host<'a>(
        &'a self,
        _: RequestContext,
        _: ServiceRequest<'_, DRKeyHostHostRequest>,
    ) -> ServiceResult<impl Encodable<DRKeyHostHostResponse> + Send + use<'a>> {
        Err::<Response<DRKeyHostHostResponse>, _>(no_drkey())
    }
}

fn no_drkey() -> ConnectError {
    ConnectError::unimplemented("this network hands out no DRKeys")
}

//! The daemon API (`proto.daemon.v1.DaemonService`), with the same answers as scionproto's daemon.

use connectrpc::{ConnectError, Router};
use hawser_topology::IsdAsn;
use scion_protobuf::buffa_types::Empty;
use scion_protobuf::proto::daemon::v1::{
    ASRequest, ASResponse, DAEMON_SERVICE_SERVICE_NAME, DRKeyASHostRequest, DRKeyASHostResponse,
    DRKeyHostASRequest, DRKeyHostASResponse, DRKeyHostHostRequest, DRKeyHostHostResponse,
    InterfacesRequest, InterfacesResponse, ListService, NotifyInterfaceDownRequest,
    NotifyInterfaceDownResponse, PathsRequest, PortRangeResponse, Service as ServiceMessage,
    ServicesRequest, ServicesResponse,
};

use crate::plane::{Answer, Plane};
use crate::shared::{Service, Shared, now};
use crate::wire;

/// Adds the methods of the API.
pub(crate) fn add(router: Router, shared: &Shared) -> Router {
    Service::new(router, DAEMON_SERVICE_SERVICE_NAME, shared)
        .method("Paths", paths)
        .method("AS", r#as)
        .method("Interfaces", interfaces)
        .method("Services", services)
        .method("NotifyInterfaceDown", notify_interface_down)
        .method("PortRange", port_range)
        .method(
            "DRKeyASHost",
            drkey::<DRKeyASHostRequest, DRKeyASHostResponse>,
        )
        .method(
            "DRKeyHostAS",
            drkey::<DRKeyHostASRequest, DRKeyHostASResponse>,
        )
        .method(
            "DRKeyHostHost",
            drkey::<DRKeyHostHostRequest, DRKeyHostHostResponse>,
        )
        .router
}

/// Answers a request for paths. `refresh` has no effect: answers always use the current states of
/// the links.
fn paths(plane: &mut Plane, request: PathsRequest) -> Result<Answer, ConnectError> {
    if request.hidden {
        return Err(ConnectError::unimplemented(
            "this network has no hidden paths: leave out `hidden`",
        ));
    }
    let src = request.source_isd_as.into();
    let dst = request.destination_isd_as.into();
    Ok(plane.paths(src, dst, now())?)
}

fn r#as(plane: &mut Plane, request: ASRequest) -> Result<ASResponse, ConnectError> {
    let isd_as = match IsdAsn::from_u64(request.isd_as) {
        IsdAsn::WILDCARD => plane.isd_as(),
        isd_as => isd_as,
    };
    let r#as = &plane.beacons.graph.network.ases[plane.find(isd_as)?];
    Ok(ASResponse {
        isd_as: isd_as.to_u64(),
        core: r#as.core,
        mtu: r#as.mtu.into(),
    })
}

fn interfaces(plane: &mut Plane, _: InterfacesRequest) -> Result<InterfacesResponse, ConnectError> {
    let routers = plane.topology.border_routers.values();
    let interfaces = routers.flat_map(|router| {
        let ids = router.interfaces.keys();
        ids.map(|&id| (id.into(), wire::interface(router.internal_addr)))
    });
    Ok(InterfacesResponse {
        interfaces: interfaces.collect(),
    })
}

fn services(plane: &mut Plane, _: ServicesRequest) -> Result<ServicesResponse, ConnectError> {
    let control = plane.topology.control_service.values();
    let services = control.map(|address| ServiceMessage {
        uri: address.to_string(),
    });
    let list = ListService {
        services: services.collect(),
    };
    Ok(ServicesResponse {
        // The name that scionproto's daemon uses.
        services: [("control".to_owned(), list)].into(),
    })
}

/// Leaves out paths over the interface for a while, as scionproto's daemon does. The host got an
/// SCMP error from a router.
fn notify_interface_down(
    plane: &mut Plane,
    request: NotifyInterfaceDownRequest,
) -> Result<NotifyInterfaceDownResponse, ConnectError> {
    let isd_as = IsdAsn::from_u64(request.isd_as);
    tracing::debug!("a host reports {isd_as}#{} down", request.id);
    plane.revoke(isd_as, request.id, now());
    Ok(NotifyInterfaceDownResponse::default())
}

fn port_range(plane: &mut Plane, _: Empty) -> Result<PortRangeResponse, ConnectError> {
    let (first, last) = plane.topology.dispatched_ports;
    Ok(PortRangeResponse {
        dispatched_port_start: first.into(),
        dispatched_port_end: last.into(),
    })
}

fn drkey<Q, A>(_: &mut Plane, _: Q) -> Result<A, ConnectError> {
    Err(ConnectError::unimplemented("this network has no DRKeys"))
}

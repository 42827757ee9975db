//! The daemon API (`proto.daemon.v1.DaemonService`), with the same answers as scionproto's daemon.

use hawser_proto::daemon::{
    AS, ASRequest, ASResponse, DRKEYS, INTERFACES, InterfacesResponse, ListService,
    NOTIFY_INTERFACE_DOWN, NotifyInterfaceDownRequest, PATHS, PORT_RANGE, PathsRequest,
    PortRangeResponse, SERVICES, Service, ServicesResponse,
};
use hawser_proto::well_known::Empty;
use hawser_rpc::{Code, RpcError};
use hawser_topology::IsdAsn;

use crate::plane::{Answer, Plane};
use crate::shared::{Methods, now};
use crate::wire;

/// Adds the methods of the API.
pub(crate) fn add(methods: Methods) -> Methods {
    let methods = methods
        .with(PATHS, paths)
        .with(AS, r#as)
        .with(INTERFACES, interfaces)
        .with(SERVICES, services)
        .with(NOTIFY_INTERFACE_DOWN, notify_interface_down)
        .with(PORT_RANGE, port_range);
    let drkeys = DRKEYS.into_iter();
    drkeys.fold(methods, |methods, method| methods.with(method, drkey))
}

/// Answers a request for paths. `refresh` has no effect: answers always use the current states of
/// the links.
fn paths(plane: &mut Plane, request: PathsRequest) -> Result<Answer, RpcError> {
    if request.hidden {
        let message = "this network has no hidden paths: leave out `hidden`";
        return Err(RpcError::new(Code::Unimplemented, message));
    }
    let src = request.source_isd_as.into();
    let dst = request.destination_isd_as.into();
    Ok(plane.paths(src, dst, now())?)
}

fn r#as(plane: &mut Plane, request: ASRequest) -> Result<ASResponse, RpcError> {
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

fn interfaces(plane: &mut Plane, _: Empty) -> Result<InterfacesResponse, RpcError> {
    let routers = plane.topology.border_routers.values();
    let interfaces = routers.flat_map(|router| {
        let ids = router.interfaces.keys();
        ids.map(|&id| (id.into(), wire::interface(router.internal_addr)))
    });
    Ok(InterfacesResponse {
        interfaces: interfaces.collect(),
    })
}

fn services(plane: &mut Plane, _: Empty) -> Result<ServicesResponse, RpcError> {
    let control = plane.topology.control_service.values();
    let services = control.map(|address| Service {
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
) -> Result<Empty, RpcError> {
    let isd_as = IsdAsn::from_u64(request.isd_as);
    tracing::debug!("a host reports {isd_as}#{} down", request.id);
    plane.revoke(isd_as, request.id, now());
    Ok(Empty {})
}

fn port_range(plane: &mut Plane, _: Empty) -> Result<PortRangeResponse, RpcError> {
    let (first, last) = plane.topology.dispatched_ports;
    Ok(PortRangeResponse {
        dispatched_port_start: first.into(),
        dispatched_port_end: last.into(),
    })
}

fn drkey(_: &mut Plane, _: Empty) -> Result<Empty, RpcError> {
    let message = "this network has no DRKeys";
    Err(RpcError::new(Code::Unimplemented, message))
}

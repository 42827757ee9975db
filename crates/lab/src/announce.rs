//! Changes of a link announced to the processes of an AS that have it.

use hawser_router::live as router;
use hawser_topology::{IsdAsn, LinkState};

use crate::dir::LabDir;
use crate::emulator;
use crate::state::{AsState, Service};

/// Announces the state of the link at an interface to the routers and the emulator of its AS. Returns
/// what failed.
pub(crate) fn to_end(
    dir: &LabDir,
    as_: &AsState,
    interface: (IsdAsn, u16),
    wanted: LinkState,
) -> Vec<String> {
    let mut failures = Vec::new();
    match to_router(dir, as_, interface, wanted) {
        // A router that the user runs may have no such socket, or may not run yet.
        Err(_) if as_.no_router => {}
        result => failures.extend(result.err()),
    }
    if as_.emulates {
        failures.extend(to_emulator(dir, as_, interface.1, wanted).err());
    }
    failures
}

/// Announces the state of a link to the emulator of an AS, which begins to emulate it if it does not yet.
pub(crate) fn to_emulator(
    dir: &LabDir,
    as_: &AsState,
    id: u16,
    wanted: LinkState,
) -> Result<(), String> {
    ask_emulator(dir, as_, &emulator::Request::SetLink { id, state: wanted })
}

/// Has the emulator of an AS forget a link, whose devices are about to be removed.
pub(crate) fn removal_to_emulator(dir: &LabDir, as_: &AsState, id: u16) -> Result<(), String> {
    ask_emulator(dir, as_, &emulator::Request::RemoveLink { id })
}

fn ask_emulator(dir: &LabDir, as_: &AsState, request: &emulator::Request) -> Result<(), String> {
    let socket = dir.as_dir(as_.isd_as).emulator_socket();
    match emulator::call(&socket, request) {
        Ok(emulator::Reply::Done) => Ok(()),
        Ok(other) => Err(format!("emulator of {}: {other:?}", as_.isd_as)),
        Err(e) => Err(e.to_string()),
    }
}

/// Announces the state of a link to the router that has its interface.
fn to_router(
    dir: &LabDir,
    as_: &AsState,
    (isd_as, id): (IsdAsn, u16),
    wanted: LinkState,
) -> Result<(), String> {
    let as_dir = dir.as_dir(as_.isd_as);
    let topology = as_dir.topology().map_err(|e| e.to_string())?;
    let index = as_.routers.iter().position(|router| {
        let router = topology.border_routers.get(&router.name);
        router.is_some_and(|router| router.interfaces.contains_key(&id))
    });
    let index = index.ok_or_else(|| format!("no router of {isd_as} has the interface {id}"))?;
    let service = Service::Router(index);
    let request = router::Request::SetLink { id, state: wanted };
    match router::call(&as_.socket(&as_dir, service), &request) {
        Ok(router::Reply::Done) => Ok(()),
        Ok(other) => Err(format!("{}: {other:?}", as_.service_name(service))),
        Err(e) => Err(e.to_string()),
    }
}

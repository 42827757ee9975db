//! A running router takes over a changed topology: what is the same in it goes on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use hawser_topology::{AsDir, LinkAddresses};

use crate::bfd::{Neighbour, Neighbours};
use crate::error::RouterError;
use crate::io::open;
use crate::port::Port;
use crate::setup::Setup;
use crate::shared::Shared;
use crate::switch::Switch;
use crate::verdict::Origin;

/// Has the router `name` of the AS, which `switch` is the only one of, go over to the topology in
/// `dir`. Interfaces that are in both keep their sockets, the packets in them, and their BFD sessions.
///
/// # Errors
/// [`RouterError`] when the folder is not usable, an address is taken, or something changed that takes
/// a restart. Then nothing has changed.
pub(crate) fn reload(
    switch: &mut Switch,
    dir: &AsDir,
    name: Option<&str>,
    enforce_mtu: bool,
) -> Result<(), RouterError> {
    let topology = dir.topology()?;
    let setup = Setup::new(dir, &topology, name)?.with_enforced_mtu(enforce_mtu);
    let internal = switch.ports[0].socket.local_addr().ok();
    if internal != Some(setup.router.internal_addr) {
        return Err(RouterError::Reload("its internal address is another one"));
    }
    let siblings = setup.siblings();
    let siblings = siblings.map(|(name, sibling)| (name.as_str(), Some(sibling.internal_addr)));
    if !siblings.eq(switch.neighbours.siblings()) {
        return Err(RouterError::Reload("it has other routers beside it"));
    }
    let mut forwarder = setup.forwarder()?;
    let mut ports = new_ports(&setup, switch)?;
    // Nothing fails from here on.
    let opened: Vec<u16> = ports.keys().copied().collect();
    let mut changed = opened.clone();
    let mut old = std::mem::take(&mut switch.ports).into_iter();
    let mut all: Vec<Port> = old.next().into_iter().collect();
    for mut port in old {
        if let Some(interface) = setup.router.interfaces.get(&port.id)
            && !ports.contains_key(&port.id)
        {
            let remote = Some(interface.underlay.remote);
            if std::mem::replace(&mut port.remote, remote) != remote {
                changed.push(port.id);
            }
            forwarder.set_up(port.id, port.up);
            ports.insert(port.id, port);
        }
    }
    all.extend(ports.into_values());
    let mut known = switch.neighbours.take();
    let mut fresh = setup.neighbours(&all);
    for neighbour in &mut fresh {
        let is_same = |old: &Neighbour| is_same(old, neighbour, &changed);
        if let Some(at) = known.iter().position(is_same) {
            *neighbour = known.swap_remove(at);
        }
    }
    for neighbour in &fresh {
        forwarder.set_bfd_up(neighbour.origin, neighbour.session.is_up());
    }
    switch.replace(forwarder, all, Neighbours::new(fresh));
    for id in opened {
        if let Some(state) = setup.links.get(&id) {
            switch.set_link(id, state);
        }
    }
    Ok(())
}

/// Whether a session goes on: it is with the same router over the same link, as before.
fn is_same(old: &Neighbour, new: &Neighbour, changed: &[u16]) -> bool {
    let is_changed = matches!(old.origin, Origin::Interface(id) if changed.contains(&id));
    !is_changed
        && old.origin == new.origin
        && old.address == new.address
        && old.frame == new.frame
        && old.session.config() == new.session.config()
}

/// The ports of interfaces that the switch does not have at their address.
fn new_ports(setup: &Setup<'_>, switch: &Switch) -> Result<BTreeMap<u16, Port>, RouterError> {
    let mut ports = BTreeMap::new();
    for (id, interface) in &setup.router.interfaces {
        let LinkAddresses { local, remote } = interface.underlay;
        let mut known = switch.ports.iter().skip(1);
        let is_there = known
            .any(|port| port.id == *id && port.socket.local_addr().is_ok_and(|at| at == local));
        if is_there {
            continue;
        }
        let failed = |source| RouterError::Interface {
            id: *id,
            local,
            source,
        };
        let shared = Arc::new(Shared::new(Instant::now()));
        for socket in open(local, 1).map_err(failed)? {
            let seed = fastrand::u64(..);
            let port = Port::new(*id, (socket, Some(remote)), seed, shared.clone());
            ports.insert(*id, port);
        }
    }
    Ok(ports)
}

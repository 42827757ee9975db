//! A running router takes over a changed topology: what is the same in it goes on.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
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
use crate::worker::lock;

/// Has the router `name` of the AS, which has one of `switches` for each thread, go over to the
/// topology in `dir`. Interfaces that are in both keep their sockets, the packets in them, and their
/// BFD sessions. New sockets are bound before; then all threads wait until all have gone over: no packet
/// finds some of them gone over, and others not. Only one reload may run at a time.
///
/// # Errors
/// [`RouterError`] when the folder is not usable, an address is taken, or something changed that takes
/// a restart. Then nothing has changed.
pub(crate) fn reload(
    switches: &[Mutex<Switch>],
    dir: &AsDir,
    name: Option<&str>,
    enforce_mtu: bool,
) -> Result<(), RouterError> {
    let topology = dir.topology()?;
    let setup = Setup::new(dir, &topology, name)?.with_enforced_mtu(enforce_mtu);
    let Some(first) = switches.first() else {
        return Ok(());
    };
    let known = known_ports(&setup, &lock(first))?;
    let mut forwarder = setup.forwarder()?;
    let new = new_ports(&setup, &known, switches.len())?;
    // Nothing fails from here on. In their order, and by nobody else: a thread locks its own only.
    let mut switches: Vec<_> = switches.iter().map(lock).collect();
    let first = &switches[0];
    let opened: Vec<u16> = new[0].keys().copied().collect();
    let mut changed = opened.clone();
    for port in first.ports.iter().skip(1) {
        if let Some(interface) = setup.router.interfaces.get(&port.id)
            && !opened.contains(&port.id)
        {
            if port.remote != Some(interface.underlay.remote) {
                changed.push(port.id);
            }
            forwarder.set_up(port.id, port.up);
        }
    }
    let ports: Vec<Vec<Port>> = new
        .into_iter()
        .zip(&mut switches)
        .map(|(new, switch)| merge(&setup, std::mem::take(&mut switch.ports), new))
        .collect();
    let mut known = switches[0].neighbours.take();
    let mut fresh = setup.neighbours(&ports[0]);
    for neighbour in &mut fresh {
        let is_same = |old: &Neighbour| is_same(old, neighbour, &changed);
        if let Some(at) = known.iter().position(is_same) {
            *neighbour = known.swap_remove(at);
        }
    }
    for neighbour in &fresh {
        forwarder.set_bfd_up(neighbour.origin, neighbour.session.is_up());
    }
    let mut neighbours = Some(Neighbours::new(fresh));
    for (switch, ports) in switches.iter_mut().zip(ports) {
        let neighbours = neighbours.take();
        let neighbours = neighbours.unwrap_or_else(|| Neighbours::new(Vec::new()));
        switch.replace(forwarder.clone(), ports, neighbours);
        for id in &opened {
            if let Some(state) = setup.links.get(id) {
                switch.set_link(*id, state);
            }
        }
    }
    Ok(())
}

/// The interfaces that a thread has, and their addresses.
///
/// # Errors
/// [`RouterError::Reload`] when something changed that takes a restart.
fn known_ports(setup: &Setup<'_>, switch: &Switch) -> Result<Vec<(u16, SocketAddr)>, RouterError> {
    let internal = switch.ports[0].socket.local_addr().ok();
    if internal != Some(setup.router.internal_addr) {
        return Err(RouterError::Reload("its internal address is another one"));
    }
    let siblings = setup.siblings();
    let siblings = siblings.map(|(name, sibling)| (name.as_str(), Some(sibling.internal_addr)));
    if !siblings.eq(switch.neighbours.siblings()) {
        return Err(RouterError::Reload("it has other routers beside it"));
    }
    let external = switch.ports.iter().skip(1);
    let known = external.filter_map(|port| Some((port.id, port.socket.local_addr().ok()?)));
    Ok(known.collect())
}

/// The ports of a thread: those of `old` whose interfaces stay, and the `new` ones.
fn merge(setup: &Setup<'_>, old: Vec<Port>, mut new: BTreeMap<u16, Port>) -> Vec<Port> {
    let mut old = old.into_iter();
    let mut all: Vec<Port> = old.next().into_iter().collect();
    for mut port in old {
        if let Some(interface) = setup.router.interfaces.get(&port.id)
            && !new.contains_key(&port.id)
        {
            port.remote = Some(interface.underlay.remote);
            new.insert(port.id, port);
        }
    }
    all.extend(new.into_values());
    all
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

/// For each of `threads` the ports of interfaces that are not among the `known` ones at their address.
fn new_ports(
    setup: &Setup<'_>,
    known: &[(u16, SocketAddr)],
    threads: usize,
) -> Result<Vec<BTreeMap<u16, Port>>, RouterError> {
    let mut all: Vec<BTreeMap<u16, Port>> = (0..threads).map(|_| BTreeMap::new()).collect();
    for (id, interface) in &setup.router.interfaces {
        let LinkAddresses { local, remote } = interface.underlay;
        if known.contains(&(*id, local)) {
            continue;
        }
        let failed = |source| RouterError::Interface {
            id: *id,
            local,
            source,
        };
        let shared = Arc::new(Shared::new(Instant::now()));
        let sockets = open(local, threads).map_err(failed)?;
        for (ports, socket) in all.iter_mut().zip(sockets) {
            let seed = fastrand::u64(..);
            let port = Port::new(*id, (socket, Some(remote)), seed, shared.clone());
            ports.insert(*id, port);
        }
    }
    Ok(all)
}

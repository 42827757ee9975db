//! Waiting for the links of a lab that comes up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hawser_router::live::{Reply, Request, call};
use hawser_topology::{Network, Side};

use super::starter::{Starter, StarterEnded};
use crate::dir::LabDir;
use crate::state::{AsState, State};

/// How long no further link may come up before the others are given up. RFC 5880,
/// 6.8.3: a session that is not up sends once a second at most; in a large lab
/// on a busy machine a router waits for its turn.
const STALL: Duration = Duration::from_secs(10);
/// How often routers are asked.
const ASK: Duration = Duration::from_millis(20);

/// Waits until the routers at both ends of every link hear each other. Links with an end that the
/// user runs are not waited for. Returns those that did not come up.
pub(super) fn wait(
    dir: &LabDir,
    state: &State,
    network: &Network,
    starter: &Starter,
) -> Result<Vec<String>, StarterEnded> {
    let ours = |side: Side, link: usize| {
        let devices = &state.links[link];
        let owner = match side {
            Side::A => devices.a.owner,
            Side::B => devices.b.owner,
        };
        (!state.ases[owner].no_router).then_some(owner)
    };
    // Of each AS the interfaces that are not heard on yet.
    let mut silent: BTreeMap<usize, BTreeSet<u16>> = BTreeMap::new();
    for (at, link) in network.links.iter().enumerate() {
        if let (Some(a), Some(b)) = (ours(Side::A, at), ours(Side::B, at)) {
            silent.entry(a).or_default().insert(link.a.id);
            silent.entry(b).or_default().insert(link.b.id);
        }
    }
    let mut deadline = Instant::now() + STALL;
    while !silent.is_empty() && Instant::now() < deadline {
        for (&owner, interfaces) in &mut silent {
            starter.check()?;
            let before = interfaces.len();
            silence(dir, &state.ases[owner], interfaces);
            if interfaces.len() < before {
                deadline = Instant::now() + STALL;
            }
        }
        silent.retain(|_, interfaces| !interfaces.is_empty());
        if !silent.is_empty() {
            std::thread::sleep(ASK);
        }
    }
    let is_silent = |owner: usize, id: u16| silent.get(&owner).is_some_and(|ids| ids.contains(&id));
    let dead = network.links.iter().zip(&state.links);
    Ok(dead
        .filter(|(link, devices)| {
            is_silent(devices.a.owner, link.a.id) || is_silent(devices.b.owner, link.b.id)
        })
        .map(|(link, _)| format!("{} - {}", link.a, link.b))
        .collect())
}

/// Leaves those interfaces on which the AS's routers hear nobody.
fn silence(dir: &LabDir, as_: &AsState, interfaces: &mut BTreeSet<u16>) {
    let as_dir = dir.as_dir(&as_.folder);
    for router in 0..as_.routers.len() {
        match call(&as_.router_socket(&as_dir, router), &Request::Counters) {
            Ok(Reply::Counters(counters)) => {
                // One without BFD is up as soon as its router runs.
                let watched = |id: &u16| counters.bfd.get(&id.to_string()).copied();
                interfaces.retain(|id| {
                    !counters.interfaces.contains_key(id) || watched(id) == Some(false)
                });
            }
            Ok(other) => tracing::warn!("{}: {other:?}", as_.isd_as),
            Err(error) => tracing::warn!("{error}"),
        }
    }
}

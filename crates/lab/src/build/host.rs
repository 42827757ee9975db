//! Hosts that are added to an AS, as devices, addresses and routes.

use std::fs;
use std::io;
use std::net::IpAddr;

use hawser_kernel::interface::{LOOPBACK, addresses};
use hawser_kernel::namespace::NetNs;
use hawser_kernel::offload;

use crate::netlink::{Netlink, VethEnd};
use crate::plan::AddedPlan;

/// Lets the kernel forward IPv6 in the namespace of the process that writes it.
const FORWARDING6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";

/// The reason why a namespace cannot become a host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    #[error(
        "the network namespace has a device {0} already: it is a host of a lab; `hawser lab detach` takes it out"
    )]
    Attached(&'static str),
    #[error(
        "the network namespace has the address {address}, which the network inside the AS ({network}) has too: \
         give it another one, or attach it to another AS"
    )]
    Conflict { address: IpAddr, network: String },
    #[error("cannot {0}: {1}")]
    Failed(&'static str, io::Error),
}

/// Gives an error the name of what failed.
fn doing<T>(what: &'static str, done: io::Result<T>) -> Result<T, HostError> {
    done.map_err(|error| HostError::Failed(what, error))
}

/// Joins the namespace `host` with that of its AS. `is_new` says that the lab has made it.
///
/// If this fails, nothing of it is left in either namespace. Returns what is left to the user.
pub(crate) fn add_host(
    plan: &AddedPlan,
    (of_as, host): (&NetNs, &NetNs),
    (is_new, no_offload): (bool, bool),
) -> Result<Vec<String>, HostError> {
    doing("look into the network namespace", host.run(|| check(plan)))??;
    let joined = join(plan, (of_as, host), (is_new, no_offload));
    if joined.is_err()
        && let Err(error) = remove_host(plan, of_as)
    {
        tracing::error!("AS {}: {}: {error}", plan.isd_as, plan.near.0);
    }
    joined
}

/// Removes the devices of a host, and with them all that [`add_host`] has made; also if the namespace of the
/// host has ended.
pub(crate) fn remove_host(plan: &AddedPlan, of_as: &NetNs) -> io::Result<()> {
    of_as
        .run(|| Netlink::open()?.remove_device(plan.near.1))
        .flatten()
}

/// Whether the devices of a host exist: they end with its namespace.
pub(crate) fn exists(plan: &AddedPlan, of_as: &NetNs) -> io::Result<bool> {
    let found = of_as.run(|| Netlink::open()?.index_of(&plan.near.0));
    Ok(found.flatten()?.is_some())
}

/// Checks that the namespace, which the caller is in, can be a host.
fn check(plan: &AddedPlan) -> Result<(), HostError> {
    let device = doing("read devices", Netlink::open())
        .and_then(|mut socket| doing("read devices", socket.index_of(plan.far.0)))?;
    if device.is_some() {
        return Err(HostError::Attached(plan.far.0));
    }
    let all = doing("read addresses", addresses().map_err(Into::into))?;
    for inside in plan.networks() {
        if let Some((_, address)) = all.iter().find(|(_, ip)| inside.contains(*ip)) {
            return Err(HostError::Conflict {
                address: *address,
                network: format!("{}/{}", inside.network(), inside.prefix),
            });
        }
    }
    Ok(())
}

fn join(
    plan: &AddedPlan,
    (of_as, host): (&NetNs, &NetNs),
    (is_new, no_offload): (bool, bool),
) -> Result<Vec<String>, HostError> {
    let (near, index, near_mac) = &plan.near;
    let (far, far_mac) = plan.far;
    let near_side = || {
        let mut socket = Netlink::open()?;
        let ends = [
            VethEnd {
                device: near,
                index: *index,
                mac: *near_mac,
            },
            VethEnd {
                device: far,
                index: 0,
                mac: far_mac,
            },
        ];
        socket.add_veth(&ends[0], &ends[1], host, plan.mtu)?;
        socket.configure(*index)?;
        socket.set_up(*index, true)?;
        for inside in plan.networks() {
            socket.add_neighbour(*index, inside.address, far_mac)?;
            socket.add_host_route(*index, inside.address, inside.gateway)?;
        }
        match no_offload {
            true => offload::disable(near),
            false => Ok(()),
        }
    };
    doing("make its device at the AS", of_as.run(near_side).flatten())?;
    let far_side = || {
        let mut socket = Netlink::open()?;
        if is_new {
            socket.set_up(LOOPBACK, true)?;
        }
        let Some(index) = socket.index_of(far)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        socket.set_up(index, true)?;
        for inside in plan.networks() {
            socket.add_neighbour(index, inside.gateway, *near_mac)?;
            socket.add_inside(index, &inside)?;
        }
        if is_new {
            // A guest keeps the networks that it has in this range.
            socket.add_network_route(index, &plan.lab())?;
        }
        match no_offload {
            true => offload::disable(far),
            false => Ok(()),
        }
    };
    doing("set up its device", host.run(far_side).flatten())?;
    Ok(forward_ipv6(plan, of_as)?.into_iter().collect())
}

/// Has the AS forward IPv6 between its hosts. IPv4 is forwarded by each device that a lab makes.
fn forward_ipv6(plan: &AddedPlan, of_as: &NetNs) -> Result<Option<String>, HostError> {
    if plan.address6.is_none() {
        return Ok(None);
    }
    let forward = || match fs::read_to_string(FORWARDING6)?.trim() {
        "1" => Ok(()),
        _ => fs::write(FORWARDING6, "1"),
    };
    let done = doing("enter the AS", of_as.run(forward))?;
    Ok(done.err().map(|error| {
        format!(
            "hosts that are added to {} do not reach each other, but all else: IPv6 cannot be forwarded there \
             ({FORWARDING6}: {error})",
            plan.isd_as
        )
    }))
}

//! Addresses and ports of this host.

use std::net::SocketAddr;

use hawser_kernel::bind::{Cause, Refused};

use crate::code::Code;
use crate::facts::{Facts, Listen, Refusal};
use crate::finding::Finding;

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    let sockets = &facts.sockets;
    if let Some(Err(refusal)) = &sockets.any {
        findings.push(refused(facts, None, refusal));
    }
    if let Some(Listen {
        address,
        refusal: Some(refusal),
    }) = &sockets.listen
    {
        findings.push(refused(facts, Some(*address), refusal));
    }
    if let Some(network) = facts.network()
        && network.ports == (0..=0)
        && !sockets.dispatcher
    {
        findings.push(Finding::error(
            Code::NoDispatcher,
            format!(
                "{} delivers all packets to the dispatcher (UDP 30041), and no program receives \
                 there",
                network.isd_as
            ),
            "start the dispatcher, or set `dispatched_ports` in topology.json, for example to \
             31000-32767",
        ));
    }
}

/// The finding for a socket that could not be bound, at `address` or at any.
fn refused(facts: &Facts, address: Option<SocketAddr>, refusal: &Refusal) -> Finding {
    let ports = facts
        .network()
        .map_or(0..=0, |network| network.ports.clone());
    let range = format!("{} to {}", ports.start(), ports.end());
    let at = address.map_or("a socket".to_owned(), |address| address.to_string());
    match refusal {
        Refusal::System(refused) => system(facts, &at, refused, &range),
        Refusal::NoFreePort => Finding::error(
            Code::NoFreePort,
            format!("all UDP ports to which routers of this AS deliver ({range}) are taken"),
            "end programs that hold many (`ss -ulpn` shows them), or widen `dispatched_ports` in \
             topology.json",
        ),
        Refusal::Outside => Finding::error(
            Code::PortOutside,
            format!("{at}: routers of this AS deliver to the ports {range} only"),
            format!("take a port of {range}, or 0 for any that is free"),
        ),
        Refusal::NoAddress(reason) => Finding::error(
            Code::NoAddress,
            format!("this host has no address towards its border routers: {reason}"),
            "give the device towards them an address and a route, or name this host's address in \
             SCION_LOCAL_ADDR",
        ),
        Refusal::Other(error) => Finding::error(
            Code::NoAddress,
            format!("{at} cannot be bound: {error}"),
            "mend what the system names, or take another address",
        ),
    }
}

/// The finding for a socket `at` an address that the system refused to bind.
fn system(facts: &Facts, at: &str, refused: &Refused, range: &str) -> Finding {
    let (reason, remedy) = (refused.reason(), refused.remedy());
    let at_it = format!("{at}: {reason}");
    match refused.cause {
        Cause::Taken => Finding::error(
            Code::PortTaken,
            at_it,
            format!("{remedy}; routers of this AS deliver to the ports {range}"),
        ),
        Cause::NotHere if facts.sockets.configured == Some(refused.address.ip()) => Finding::error(
            Code::AddressNotHere,
            reason,
            "correct SCION_LOCAL_ADDR (or --local): `ip address` shows the addresses",
        ),
        Cause::NotHere => Finding::error(Code::AddressNotHere, reason, remedy),
        Cause::Forbidden => Finding::error(Code::PortForbidden, at_it, remedy),
        _ => Finding::error(Code::NoAddress, at_it, remedy),
    }
}

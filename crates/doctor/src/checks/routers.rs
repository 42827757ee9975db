//! The border routers of the AS: routes to them, answers, MTU.

use hawser_endhost::IsdAsn;

use crate::code::Code;
use crate::facts::{Facts, Router, RouterAnswer};
use crate::finding::Finding;

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(network) = facts.network() else {
        return;
    };
    for router in &facts.routers {
        let name = name(router, network.isd_as);
        match &router.answer {
            RouterAnswer::Answered(_) | RouterAnswer::NotAsked => {}
            RouterAnswer::NoRoute(error) => findings.push(Finding::error(
                Code::NoRoute,
                format!("no packet gets to {name}: {error}"),
                format!(
                    "look at `ip route get {}`: add the route, or set the device up",
                    router.address.ip()
                ),
            )),
            RouterAnswer::Refused => findings.push(Finding::error(
                Code::RouterRefused,
                format!("no program listens at {name}: its host refuses packets"),
                "start the border router, or correct its `internal_addr` in topology.json",
            )),
            RouterAnswer::Silent(given) => findings.push(silent(facts, router, &name, *given)),
        }
        // UDP and IP headers come before the SCION packet.
        let headers = if router.address.is_ipv4() { 28 } else { 48 };
        let needed = u32::from(network.mtu) + headers;
        if let Some(mtu) = router.mtu.filter(|mtu| *mtu < needed) {
            findings.push(Finding::warning(
                Code::MtuSmall,
                format!(
                    "the way to {name} takes packets of {mtu} bytes, but SCION packets of {}, which \
                     the AS announces, need {needed}: they are fragmented, or lost",
                    network.mtu
                ),
                format!(
                    "raise the MTU of the device (`ip link set DEVICE mtu {needed}`), or lower `mtu` \
                     in topology.json to {}",
                    mtu.saturating_sub(headers)
                ),
            ));
        }
    }
}

fn silent(facts: &Facts, router: &Router, name: &str, given: std::time::Duration) -> Finding {
    let ports = facts
        .network()
        .map_or(0..=0, |network| network.ports.clone());
    let (first, last) = (ports.start(), ports.end());
    let rule = format!(
        "let UDP from {} to the ports {first} to {last} of this host in",
        router.address.ip()
    );
    match facts.dropping_chains.as_slice() {
        [] => Finding::error(
            Code::RouterSilent,
            format!("{name} did not answer within {given:?}"),
            format!("look whether it runs; if a firewall is between it and this host, {rule}"),
        ),
        chains => Finding::error(
            Code::RouterSilent,
            format!(
                "no answer of {name} arrived within {given:?}, and this host drops packets that no \
                 rule accepts ({})",
                chains.join(", ")
            ),
            format!("{rule} (`nft list ruleset` shows the rules), or look whether the router runs"),
        ),
    }
}

/// A router for people, with its interfaces.
fn name(router: &Router, isd_as: IsdAsn) -> String {
    let interfaces = router.interfaces.iter().map(|id| format!("{isd_as}#{id}"));
    let interfaces: Vec<String> = interfaces.collect();
    match interfaces.as_slice() {
        [] => format!("the border router {}", router.address),
        many => format!("the border router {} ({})", router.address, many.join(", ")),
    }
}

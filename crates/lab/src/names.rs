//! Names of the hosts and routers of a lab, as a file of the format of hosts(5), which programs that run in the
//! lab see as `/etc/hosts`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

use hawser_topology::IsdAsn;

use crate::plan::AsPlan;
use crate::state::AsState;

/// The name of an AS's own host, a DNS label: `as1-ff00-0-110`, as in exports.
pub(crate) fn of_as(isd_as: IsdAsn) -> String {
    format!("as{isd_as}").replace(':', "-")
}

/// The file: the lines of `before`, the machine's own, then the hosts and routers of the ASes. A host `web` of
/// an AS is `web.as1-ff00-0-110`, and `web` too if no other AS has one of that name.
pub(crate) fn file<'a>(
    before: &str,
    ases: impl Iterator<Item = (&'a AsPlan, Option<&'a AsState>)>,
) -> String {
    let mut lines: Vec<(IpAddr, String)> = Vec::new();
    let mut short: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for (plan, state) in ases {
        let of_as = of_as(plan.isd_as);
        for router in &plan.routers {
            let label = router.name.replace('_', "-").to_ascii_lowercase();
            lines.push((router.address, format!("{label}.{of_as}")));
        }
        for host in state.into_iter().flat_map(|state| &state.hosts) {
            lines.push((host.address, format!("{}.{of_as}", host.name)));
            let addresses = short.entry(host.name.clone()).or_default();
            addresses.push(host.address);
        }
        lines.push((plan.scion_host(), of_as));
    }
    let only = short
        .into_iter()
        .filter_map(|(name, addresses)| match addresses[..] {
            [address] => Some((address, name)),
            _ => None,
        });
    lines.extend(only);
    let mut text = before.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text += "# The hosts and routers of the lab.\n";
    for (address, name) in lines {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{address} {name}");
    }
    text
}

#[cfg(test)]
mod tests {
    use hawser_kernel::namespace::NetNsId;
    use hawser_topology::Network;

    use super::*;
    use crate::plan::Plan;
    use crate::state::{HostState, Settings};

    /// The addresses of a name in a file of hosts(5).
    fn addresses(text: &str, wanted: &str) -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let words = lines.map(|line| line.split(' ').collect::<Vec<_>>());
        let found = words.filter(|words| words[1..].contains(&wanted));
        found.map(|words| words[0].to_owned()).collect()
    }

    #[test]
    fn every_host_and_router_has_a_name() {
        let plan = Plan::of(&Network::ready("fig4").unwrap()).unwrap();
        let mut states: Vec<AsState> = plan
            .ases
            .iter()
            .map(|as_| AsState::new(as_, &Settings::default()))
            .collect();
        let host = |name: &str, address: &str| HostState {
            name: name.to_owned(),
            number: 0,
            address: address.parse().unwrap(),
            net_ns: NetNsId {
                inode: 1,
                cookie: 1,
            },
            is_guest: false,
        };
        states[0].hosts = vec![host("web", "10.0.1.2"), host("db", "10.0.1.3")];
        states[1].hosts = vec![host("web", "10.0.2.2")];
        let text = file(
            "127.0.0.1 localhost",
            plan.ases.iter().zip(states.iter().map(Some)),
        );
        let [a, b] = [0, 1].map(|at| of_as(plan.ases[at].isd_as));
        assert_eq!(addresses(&text, "localhost"), ["127.0.0.1"]);
        assert_eq!(addresses(&text, &a), ["10.0.1.1"]);
        assert_eq!(addresses(&text, &format!("web.{a}")), ["10.0.1.2"]);
        assert_eq!(addresses(&text, &format!("web.{b}")), ["10.0.2.2"]);
        assert_eq!(addresses(&text, "db"), ["10.0.1.3"]);
        // Two hosts have it: it would be that of either.
        assert!(addresses(&text, "web").is_empty());
        for as_ in &plan.ases {
            for router in &as_.routers {
                let of_router = |line: &str| line.starts_with(&format!("{} br", router.address));
                assert!(text.lines().any(of_router), "{text}");
            }
        }
        for line in text.lines().skip(1).filter(|line| !line.starts_with('#')) {
            let is_plain =
                |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
            let (_, name) = line.split_once(' ').unwrap();
            assert!(name.bytes().all(is_plain), "{line}");
        }
    }
}

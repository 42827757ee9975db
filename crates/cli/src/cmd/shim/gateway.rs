//! `--gateway` of `hawser shim up`.

use std::fs;

use hawser_shim::map::{Destination, Entry, Hosts, Target};

use crate::out::errln;

/// Reads `PREFIX=TARGET`.
pub(super) fn parse(text: &str) -> Result<Entry, String> {
    let parts = text.split_once('=');
    let (prefix, target) = parts.ok_or("write for example 10.1.0.0/16=1-ff00:0:4,10.1.0.1")?;
    let destination: Destination = prefix.parse().map_err(|error| format!("{error}"))?;
    let target: Target = target.parse().map_err(|error| format!("{error}"))?;
    if !matches!(destination.hosts, Hosts::Prefix(_)) || destination.port.is_some() {
        return Err("write an IP prefix, without a port, before the `=`".to_owned());
    }
    match target {
        Target::Host { .. } => Ok(Entry::new(destination, target)),
        Target::As(isd_as) => Err(format!(
            "name the gateway's address in {isd_as}, as {isd_as},IP: to find gateways is not \
             supported yet"
        )),
    }
}

/// Warns if this host does not forward what other hosts send to these prefixes.
pub(super) fn warn_without_forwarding(gateways: &[Entry]) {
    let has = |is_v4: bool| {
        gateways.iter().any(|entry| match &entry.destination.hosts {
            Hosts::Prefix(prefix) => prefix.addr().is_ipv4() == is_v4,
            _ => false,
        })
    };
    let settings = [
        (true, "net.ipv4.ip_forward"),
        (false, "net.ipv6.conf.all.forwarding"),
    ];
    for (_, name) in settings.into_iter().filter(|one| has(one.0)) {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        if fs::read_to_string(file).is_ok_and(|value| value.trim() == "0") {
            errln!(
                "hawser: warning: UDP and pings of other hosts do not arrive, as this host forwards \
                 nothing: `sysctl {name}=1`"
            );
        }
    }
}

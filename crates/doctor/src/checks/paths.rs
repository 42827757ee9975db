//! Paths to the core of the ISD, or to a destination, and the host at their end.

use super::network::source_failed;
use crate::code::Code;
use crate::facts::{Destination, Echo, Facts, Known, Offer};
use crate::finding::Finding;
use crate::time::utc;

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    match &facts.offer {
        None => {}
        Some(Offer {
            paths: Err(error), ..
        }) => findings.push(source_failed(error, error.to_string())),
        Some(Offer {
            to,
            needed: true,
            paths: Ok(paths),
        }) if paths.is_empty() => {
            let source = facts.network().map_or("the daemon", |n| &n.source);
            let what = match to.is_wildcard() {
                true => format!("a core AS of its ISD ({to})"),
                false => to.to_string(),
            };
            findings.push(Finding::error(
                Code::NoPaths,
                format!("{source} knows no path to {what}"),
                format!(
                    "look whether the links of the AS are up and {what} exists, at the log of the \
                     control service, and whether the clocks of both agree with this one, which \
                     shows {}",
                    utc(facts.now)
                ),
            ));
        }
        Some(_) => {}
    }
    if let Some(destination) = &facts.destination {
        check_destination(destination, findings);
    }
}

fn check_destination(destination: &Destination, findings: &mut Vec<Finding>) {
    let isd_as = destination.isd_as;
    if let (0, count @ 1..) = destination.alive {
        findings.push(Finding::error(
            Code::PathsDead,
            format!("none of the {count} paths to {isd_as} works: no router at their ends answers"),
            format!("`hawser traceroute {isd_as},IP` shows how far packets get"),
        ));
    }
    let Some((ip, echo, known)) = &destination.host else {
        return;
    };
    if let Echo::Failed(reason) = echo {
        findings.push(Finding::error(
            Code::HostSilent,
            format!("{isd_as},{ip} does not answer an echo request: {reason}"),
            "look whether the host is up, and whether it answers SCMP (port 30041): programs of it \
             may still be reachable",
        ));
    }
    if let Known::No(file) = known {
        findings.push(Finding::warning(
            Code::KeyUnknown,
            format!("no key of {isd_as},{ip} is in {}", file.display()),
            format!(
                "run `hawser key` on {ip}, and add the line `{isd_as},{ip} KEY` to {}: `send` and \
                 `fetch` trust no unknown host",
                file.display()
            ),
        ));
    }
}

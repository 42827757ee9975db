//! Whether the host is in a network: its daemon, its address, its AS.

use hawser_endhost::{BootstrapError, Service, SourceError};

use crate::code::Code;
use crate::facts::{Facts, Fetch, Joined, NotFetched};
use crate::finding::Finding;

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    match &facts.joined {
        Joined::NotTried => {}
        Joined::TimedOut(given) => findings.push(Finding::error(
            Code::DaemonTimeout,
            format!("the SCION daemon did not answer within {given:?}"),
            "restart it, or give it longer with --timeout",
        )),
        Joined::No(error) => findings.push(not_joined(error)),
        Joined::NotFetched(failed) => findings.push(not_fetched(failed)),
        Joined::Yes(network) => {
            if let Some((file, configured)) = &facts.configured_as
                && *configured != network.isd_as
            {
                findings.push(Finding::error(
                    Code::AsMismatch,
                    format!(
                        "{} is of {}, but {} is of {configured}",
                        network.source,
                        network.isd_as,
                        file.display()
                    ),
                    "name the daemon of this AS in SCION_DAEMON, or restart the daemon with the \
                     configuration of its AS",
                ));
            }
            if facts.routers.is_empty() {
                findings.push(Finding::error(
                    Code::NoRouter,
                    format!("{} has no border router", network.isd_as),
                    "add one to `border_routers` in topology.json, and restart the daemon",
                ));
            }
        }
    }
}

fn not_fetched(failed: &NotFetched) -> Finding {
    let (code, remedy) = match &failed.kind {
        Fetch::Unreachable => (
            Code::BootstrapUnreachable,
            "ask the operator of the AS for its address, which is the control service's with port \
             8041 where hawser runs it; or leave --bootstrap out, if this host has a daemon"
                .to_owned(),
        ),
        Fetch::Timeout => (
            Code::BootstrapTimeout,
            "look whether its machine is overloaded, or a firewall drops the requests; or give it \
             longer with --timeout"
                .to_owned(),
        ),
        Fetch::Invalid => (
            Code::BootstrapInvalid,
            "correct the address, if another server has it; otherwise tell the operator of the AS"
                .to_owned(),
        ),
        Fetch::Untrusted(folder) => (
            Code::BootstrapUntrusted,
            format!(
                "ask the operator of the AS whether the network was set up anew: if so, remove {}; \
                 otherwise another server answers in place of the AS's",
                folder.display()
            ),
        ),
        Fetch::Folder => (
            Code::BootstrapFolder,
            "remove the folder, to fetch and trust anew; or set XDG_STATE_HOME to a folder that can \
             be written"
                .to_owned(),
        ),
    };
    Finding::error(code, failed.problem.clone(), remedy)
}

fn not_joined(error: &BootstrapError) -> Finding {
    let text = error.to_string();
    match error {
        BootstrapError::Local(_) => Finding::error(
            Code::LocalAddress,
            text,
            "set SCION_LOCAL_ADDR to this host's IP address, or unset it",
        ),
        BootstrapError::Folder(_) => Finding::error(
            Code::ConfigFolder,
            text,
            "correct the file, or name another folder with --config-dir",
        ),
        BootstrapError::Named { source, .. } => source_failed(source, text),
        BootstrapError::Nothing(_) => Finding::error(
            Code::NoNetwork,
            "this host is in no SCION network: no daemon answers at 127.0.0.1:30255, and \
             /etc/scion/topology.json does not exist",
            "start the daemon, or name one (SCION_DAEMON=HOST:PORT), or get topology.json from the \
             operator of the AS",
        ),
        _ => Finding::error(
            Code::DaemonInvalid,
            text,
            "restart the daemon, and look at its log",
        ),
    }
}

/// The finding for a failed request; `text` describes it.
pub(super) fn source_failed(error: &SourceError, text: String) -> Finding {
    match error {
        SourceError::Address(_) => Finding::error(
            Code::DaemonAddress,
            text,
            "write HOST:PORT, as in SCION_DAEMON=127.0.0.1:30255",
        ),
        SourceError::UnknownName(_) => Finding::error(
            Code::DaemonName,
            text,
            "correct the host name, or write the IP address in its place",
        ),
        SourceError::Unreachable(service) => Finding::error(
            Code::DaemonUnreachable,
            text,
            match service {
                Service::Control(_) => {
                    "start the control service, or correct `control_service` in topology.json"
                }
                _ => {
                    "start it (`systemctl start scion-daemon`), or name the one that runs in \
                     SCION_DAEMON"
                }
            },
        ),
        SourceError::Timeout { .. } => Finding::error(
            Code::DaemonTimeout,
            text,
            "restart it, and look whether its machine is overloaded",
        ),
        _ => Finding::error(
            Code::DaemonInvalid,
            text,
            "look at its log; if its version and that of hawser differ by years, update the older",
        ),
    }
}

//! What this user may do, and which commands need it.

use crate::code::Code;
use crate::facts::{Facts, Purpose, Rights, Tun};
use crate::finding::{Finding, Severity};

const LAB: &str = "`hawser lab`, `demo` and `bench`";
const SHIM: &str = "`hawser shim` and `run`";
const LIMIT: &str = "`hawser limit` and the attachment points of a coordinator";

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(rights) = &facts.rights else {
        return;
    };
    let Rights {
        net_admin,
        namespaces,
        no_user_namespaces,
        tun,
        no_nf_tables,
        no_mptcp,
    } = rights;
    let mut missing = |for_any: &[Purpose], code, problem: String, remedy: &str| {
        let needed = for_any.iter().any(|one| facts.purposes.contains(one));
        let severity = if needed {
            Severity::Error
        } else {
            Severity::Note
        };
        findings.push(Finding::new(severity, code, problem, remedy));
    };
    if !net_admin {
        missing(
            &[Purpose::Shim, Purpose::Limit],
            Code::NoNetAdmin,
            format!(
                "this user may not change devices, routes and packet filters (CAP_NET_ADMIN), as \
                 {SHIM} and {LIMIT} do"
            ),
            "run them as root (`sudo`), or as services, whose units give them the capability",
        );
    }
    if let Some(reason) = no_user_namespaces
        && !namespaces
    {
        missing(
            &[Purpose::Lab],
            Code::NoUserNamespaces,
            format!("{LAB} cannot run without root: user namespaces are not allowed: {reason}"),
            "run them as root, or allow user namespaces to this user (user_namespaces(7))",
        );
    }
    match tun {
        Tun::Usable => {}
        Tun::Missing => missing(
            &[Purpose::Shim],
            Code::NoTun,
            format!("there is no /dev/net/tun, from which {SHIM} make devices"),
            "`modprobe tun`; in a container, pass the device on (`--device /dev/net/tun`)",
        ),
        Tun::Refused(error) => missing(
            &[Purpose::Shim],
            Code::NoTun,
            format!("/dev/net/tun cannot be opened, from which {SHIM} make devices: {error}"),
            "let this user open it (mode 0666 is usual), or run them as root",
        ),
    }
    if let Some(error) = no_nf_tables {
        missing(
            &[Purpose::Shim],
            Code::NoNfTables,
            format!("the kernel's nf_tables, by which {SHIM} capture connections, fail: {error}"),
            "`modprobe nf_tables nft_redir nft_nat`, or use a kernel with CONFIG_NF_TABLES",
        );
    }
    if let Some(error) = no_mptcp {
        // QUIC carries connections as well.
        findings.push(Finding::new(
            Severity::Note,
            Code::NoMptcp,
            format!("{SHIM} carry connections by QUIC only: {error}"),
            "nothing, if that is enough; otherwise give the kernel MPTCP, as said",
        ));
    }
}

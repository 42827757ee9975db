//! What is broken at the host itself: sockets, files, disks, rights.

use std::io::ErrorKind;

use hawser_kernel::bind::Refused;

use super::*;

fn system(address: &str, error: ErrorKind) -> Refusal {
    Refusal::System(Refused::udp(super::address(address), &error.into()))
}

#[test]
fn a_port_that_is_taken() {
    let finding = one(Code::PortTaken, |facts| {
        refused(facts, system("10.0.1.1:31000", ErrorKind::AddrInUse))
    });
    assert!(finding.problem.contains("10.0.1.1:31000"), "{finding:?}");
    assert!(finding.remedy.contains("sport = 31000"), "{finding:?}");
    problem(Code::NoFreePort, &["31000 to 32767"], |facts| {
        facts.sockets.any = Some(Err(Refusal::NoFreePort));
    });
}

#[test]
fn a_port_that_cannot_be_used() {
    problem(Code::PortOutside, &["31000 to 32767"], |facts| {
        refused(facts, Refusal::Outside);
    });
    problem(Code::PortForbidden, &["10.0.1.1:31000"], |facts| {
        refused(facts, system("10.0.1.1:31000", ErrorKind::PermissionDenied));
    });
}

#[test]
fn an_address_of_another_host() {
    let ip = "10.0.9.9".parse().unwrap();
    let finding = one(Code::AddressNotHere, |facts| {
        facts.sockets.configured = Some(ip);
        let refusal = system("10.0.9.9:0", ErrorKind::AddrNotAvailable);
        facts.sockets.any = Some(Err(refusal));
    });
    assert!(finding.problem.contains("10.0.9.9"), "{finding:?}");
    assert!(finding.remedy.contains("SCION_LOCAL_ADDR"), "{finding:?}");
    problem(Code::NoAddress, &["router 10.0.1.254"], |facts| {
        let reason = "router 10.0.1.254:30042: Network is unreachable".to_owned();
        facts.sockets.any = Some(Err(Refusal::NoAddress(reason)));
    });
}

#[test]
fn an_as_with_a_dispatcher_that_does_not_run() {
    let without = |dispatcher| {
        move |facts: &mut Facts| {
            let ports = 0..=0;
            facts.joined = Joined::Yes(Network { ports, ..network() });
            facts.sockets.dispatcher = dispatcher;
        }
    };
    problem(Code::NoDispatcher, &["30041"], without(false));
    assert_eq!(found(without(true)), []);
}

#[test]
fn a_certificate_that_expired() {
    let names = [
        "certificate of 1-ff00:0:111",
        "ISD1-ASff00_0_111.pem",
        "a day ago",
    ];
    problem(Code::CertificateExpired, &names, |facts| {
        facts.trust[1] = certificate(NOW - 4 * DAY, NOW - DAY);
    });
    let finding = one(Code::CertificateExpires, |facts| {
        facts.trust[1] = certificate(NOW - 3 * DAY, NOW + 2 * HOUR);
    });
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.problem.contains("in 2 hours"), "{finding:?}");
}

#[test]
fn a_trc_that_expired_or_is_damaged() {
    problem(Code::TrcExpired, &["ISD1-B1-S1", "3 days ago"], |facts| {
        facts.trust[0] = trc(NOW - 300 * DAY, NOW - 3 * DAY);
    });
    problem(Code::TrustFile, &["ISD1-B1-S1.trc", "not DER"], |facts| {
        facts.trust[0].item = Err("it is not DER".to_owned());
    });
}

#[test]
fn a_key_that_is_open_or_broken() {
    let path = PathBuf::from("/home/alice/.config/hawser/key");
    let finding = one(Code::KeyOpen, |facts| {
        let mode = 0o644;
        facts.keys.own = Some(KeyState::Open {
            path: path.clone(),
            mode,
        });
    });
    assert!(finding.problem.contains("mode 0644"), "{finding:?}");
    assert!(
        finding.remedy.contains("chmod 600 /home/alice/"),
        "{finding:?}"
    );
    problem(Code::KeyUnusable, &["is not a key"], |facts| {
        let reason = "/home/alice/.config/hawser/key is not a key".to_owned();
        let path = Some(path.clone());
        facts.keys.own = Some(KeyState::Unusable { path, reason });
    });
}

#[test]
fn known_hosts_that_cannot_be_read() {
    problem(Code::KeysFile, &["known_hosts:3"], |facts| {
        facts.keys.unusable.push(LineFile {
            path: "/home/alice/.config/hawser/known_hosts".into(),
            reason: "/home/alice/.config/hawser/known_hosts:3: no key".to_owned(),
        });
    });
}

#[test]
fn a_disk_that_is_full() {
    let finding = one(Code::DiskFull, |facts| facts.folders[0].free = 4096);
    assert_eq!(finding.severity, Severity::Error);
    for name in ["/var/lib/hawser (state)", "4 KiB are free"] {
        assert!(finding.problem.contains(name), "{finding:?}");
    }
    let nearly = one(Code::DiskFull, |facts| facts.folders[0].free = 10 << 20);
    assert_eq!(nearly.severity, Severity::Warning);
    problem(Code::NoInodes, &["/var/lib/hawser"], |facts| {
        facts.folders[0].files = Some(0);
    });
}

#[test]
fn a_state_folder_that_cannot_be_written() {
    problem(Code::FolderNotWritable, &["/var/lib/hawser"], |facts| {
        facts.folders[0].writable = false;
    });
    problem(Code::FolderReadOnly, &["/var/lib/hawser"], |facts| {
        (facts.folders[0].writable, facts.folders[0].read_only) = (false, true);
    });
    let other = found(|facts| {
        (facts.folders[0].needed, facts.folders[0].writable) = (false, false);
    });
    assert_eq!(other, []);
}

/// A missing right is a note, and a problem only for what needs it.
fn right(code: Code, purpose: Purpose, change: impl Fn(&mut Rights)) {
    let note = one(code, |facts| change(facts.rights.as_mut().unwrap()));
    assert!(!note.is_problem(), "{note:?}");
    problem(code, &[], |facts| {
        change(facts.rights.as_mut().unwrap());
        facts.purposes = vec![purpose];
    });
}

#[test]
fn a_user_without_rights() {
    let no_admin = |rights: &mut Rights| rights.net_admin = false;
    right(Code::NoNetAdmin, Purpose::Limit, no_admin);
    right(Code::NoNetAdmin, Purpose::Shim, no_admin);
    right(Code::NoUserNamespaces, Purpose::Lab, |rights| {
        rights.namespaces = false;
        rights.no_user_namespaces = Some("Operation not permitted".to_owned());
    });
    // Root needs no user namespaces.
    let root = found(|facts| {
        let reason = Some("Operation not permitted".to_owned());
        facts.rights.as_mut().unwrap().no_user_namespaces = reason;
    });
    assert_eq!(root, []);
}

#[test]
fn a_kernel_without_tun_or_nf_tables() {
    right(Code::NoTun, Purpose::Shim, |rights| {
        rights.tun = Tun::Missing
    });
    right(Code::NoTun, Purpose::Shim, |rights| {
        rights.tun = Tun::Refused("Permission denied".to_owned());
    });
    right(Code::NoNfTables, Purpose::Shim, |rights| {
        rights.no_nf_tables = Some("Protocol not supported".to_owned());
    });
    // QUIC carries connections without it.
    let finding = one(Code::NoMptcp, |facts| {
        facts.purposes = vec![Purpose::Shim];
        facts.rights.as_mut().unwrap().no_mptcp = Some("MPTCP is off".to_owned());
    });
    assert_eq!(finding.severity, Severity::Note);
}

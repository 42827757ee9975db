//! Broken set-ups, as facts: each is named, with a remedy.

mod host;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hawser_bootstrap::JoinError;
use hawser_endhost::{BootstrapError, IsdAsn, Service, SourceError};

use super::diagnose;
use crate::code::Code;
use crate::facts::*;
use crate::finding::{Finding, Severity};
use crate::time::utc;

/// 2026-08-01 12:30 UTC.
const NOW: u64 = 1_785_587_400;
const DAY: u64 = 86_400;
const HOUR: u64 = 3600;

fn isd_as(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn network() -> Network {
    Network {
        source: "the SCION daemon at 127.0.0.1:30255".to_owned(),
        isd_as: isd_as("1-ff00:0:111"),
        mtu: 1472,
        ports: 31000..=32767,
    }
}

fn router() -> Router {
    Router {
        address: address("10.0.1.254:30042"),
        interfaces: vec![1, 2],
        mtu: Some(1500),
        answer: RouterAnswer::Answered(Duration::from_micros(200)),
    }
}

fn trc(not_before: u64, not_after: u64) -> Trust {
    Trust {
        path: "/etc/scion/certs/ISD1-B1-S1.trc".into(),
        item: Ok(TrustItem {
            name: "the TRC ISD1-B1-S1".to_owned(),
            is_trc: true,
            not_before,
            not_after,
        }),
    }
}

fn certificate(not_before: u64, not_after: u64) -> Trust {
    Trust {
        path: "/etc/scion/crypto/as/ISD1-ASff00_0_111.pem".into(),
        item: Ok(TrustItem {
            name: "the certificate of 1-ff00:0:111".to_owned(),
            is_trc: false,
            not_before,
            not_after,
        }),
    }
}

fn folder() -> Folder {
    Folder {
        path: "/var/lib/hawser".into(),
        what: "state",
        needed: true,
        free: 10 << 30,
        files: Some(100_000),
        writable: true,
        read_only: false,
    }
}

fn rights() -> Rights {
    Rights {
        net_admin: true,
        namespaces: true,
        no_user_namespaces: None,
        tun: Tun::Usable,
        no_nf_tables: None,
        no_mptcp: None,
    }
}

/// A sound host in a leaf AS.
fn sound() -> Facts {
    Facts {
        now: NOW,
        joined: Joined::Yes(network()),
        configured_as: Some(("/etc/scion/topology.json".into(), isd_as("1-ff00:0:111"))),
        routers: vec![router()],
        sockets: Sockets {
            any: Some(Ok(address("10.0.1.1:31000"))),
            dispatcher: true,
            ..Sockets::default()
        },
        offer: Some(Offer {
            to: isd_as("1-0"),
            needed: true,
            paths: Ok(vec![(NOW - 60, NOW + 6 * HOUR)]),
        }),
        trust: vec![
            trc(NOW - 30 * DAY, NOW + 300 * DAY),
            certificate(NOW - DAY, NOW + 2 * DAY),
        ],
        keys: Keys {
            own: Some(KeyState::Usable),
            unusable: Vec::new(),
        },
        folders: vec![folder()],
        rights: Some(rights()),
        ..Facts::default()
    }
}

/// What is found after a change of a sound host.
fn found(change: impl FnOnce(&mut Facts)) -> Vec<Finding> {
    let mut facts = sound();
    change(&mut facts);
    diagnose(&facts)
}

/// The only finding after a change.
fn one(code: Code, change: impl FnOnce(&mut Facts)) -> Finding {
    let mut findings = found(change);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let finding = findings.remove(0);
    assert_eq!(finding.code, code, "{finding:?}");
    finding
}

/// The only finding after a change is a problem whose text has all of `names`.
fn problem(code: Code, names: &[&str], change: impl FnOnce(&mut Facts)) {
    let finding = one(code, change);
    assert!(finding.is_problem(), "{finding:?}");
    for name in names {
        assert!(finding.problem.contains(name), "{name:?}: {finding:?}");
    }
    assert!(!finding.remedy.is_empty());
}

fn refused(facts: &mut Facts, refusal: Refusal) {
    facts.sockets.listen = Some(Listen {
        address: address("10.0.1.1:31000"),
        refusal: Some(refusal),
    });
}

fn not_joined(source: SourceError) -> impl FnOnce(&mut Facts) {
    move |facts| {
        let by = "SCION_DAEMON";
        facts.joined = Joined::No(BootstrapError::Named { by, source });
        (facts.routers, facts.offer) = (Vec::new(), None);
    }
}

fn daemon() -> Service {
    Service::Daemon("127.0.0.1:30255".to_owned())
}

#[test]
fn a_sound_host_has_no_problem() {
    assert_eq!(found(|_| {}), []);
    // A core AS may be alone in its ISD.
    let alone = found(|facts| {
        let offer = facts.offer.as_mut().unwrap();
        (offer.needed, offer.paths) = (false, Ok(Vec::new()));
    });
    assert_eq!(alone, []);
    assert_eq!(found(|facts| facts.keys.own = Some(KeyState::Missing)), []);
    assert_eq!(diagnose(&Facts::default()), []);
}

#[test]
fn a_clock_that_is_days_behind() {
    let (then, now) = (NOW - 3 * DAY, NOW);
    problem(
        Code::ClockBehind,
        &[&utc(then), "a path to 1-0", &utc(now - 60), "2 days behind"],
        |facts| {
            facts.now = then;
            facts.trust.clear();
        },
    );
    // A certificate that was made since shows it without paths, and is not called expired.
    problem(
        Code::ClockBehind,
        &["the certificate of 1-ff00:0:111"],
        |facts| {
            facts.now = then;
            facts.offer = None;
        },
    );
    // Clocks differ by seconds.
    assert_eq!(found(|facts| facts.now = NOW - 5 * 60), []);
}

#[test]
fn a_clock_that_is_days_ahead() {
    let finding = one(Code::ClockAhead, |facts| {
        facts.now = NOW + DAY;
    });
    assert!(
        finding.problem.contains(&utc(NOW + 6 * HOUR)),
        "{finding:?}"
    );
    assert!(finding.problem.contains("18 hours ago"), "{finding:?}");
    assert!(finding.remedy.contains("timedatectl"), "{finding:?}");
    // Then certificates seem to have expired, too: the clock comes first.
    let codes: Vec<Code> = found(|facts| facts.now = NOW + 10 * DAY)
        .iter()
        .map(|finding| finding.code)
        .collect();
    assert_eq!(codes, [Code::ClockAhead, Code::CertificateExpired]);
    // One path that is valid shows that the clock is not to blame.
    let paths = vec![(NOW - 7 * HOUR, NOW - HOUR), (NOW - HOUR, NOW + 5 * HOUR)];
    assert_eq!(
        found(|facts| facts.offer.as_mut().unwrap().paths = Ok(paths)),
        []
    );
}

#[test]
fn a_daemon_that_is_gone() {
    let gone = SourceError::Unreachable(daemon());
    problem(
        Code::DaemonUnreachable,
        &["127.0.0.1:30255", "SCION_DAEMON"],
        not_joined(gone),
    );
    problem(
        Code::NoNetwork,
        &["127.0.0.1:30255", "/etc/scion"],
        |facts| {
            facts.joined = Joined::No(BootstrapError::Nothing(Vec::new()));
            (facts.routers, facts.offer) = (Vec::new(), None);
        },
    );
}

#[test]
fn a_daemon_that_is_named_wrongly() {
    let wrong = SourceError::Address("127.0.0.1".to_owned());
    problem(Code::DaemonAddress, &["`127.0.0.1`"], not_joined(wrong));
    let unknown = SourceError::UnknownName(Service::Daemon("sciond.example:30255".to_owned()));
    problem(
        Code::DaemonName,
        &["sciond.example:30255"],
        not_joined(unknown),
    );
}

#[test]
fn a_daemon_that_does_not_answer_or_answers_wrongly() {
    problem(Code::DaemonTimeout, &["3s"], |facts| {
        facts.joined = Joined::TimedOut(Duration::from_secs(3));
        (facts.routers, facts.offer) = (Vec::new(), None);
    });
    let invalid = SourceError::Invalid {
        service: daemon(),
        question: "AS",
        message: "0-0 is not an AS".to_owned(),
    };
    problem(
        Code::DaemonInvalid,
        &["0-0 is not an AS"],
        not_joined(invalid),
    );
    let refused = SourceError::Refused {
        service: daemon(),
        question: "Paths",
        message: "no segments".to_owned(),
    };
    problem(Code::DaemonInvalid, &["no segments"], |facts| {
        facts.offer.as_mut().unwrap().paths = Err(refused);
    });
}

#[test]
fn a_bootstrap_server_that_gives_nothing() {
    let not_fetched = |failed: NotFetched| {
        move |facts: &mut Facts| {
            facts.joined = Joined::NotFetched(failed);
            (facts.routers, facts.offer) = (Vec::new(), None);
        }
    };
    let url = || "http://192.0.2.1:8041/topology".to_owned();
    let reason = || "refused".to_owned();
    let folder = || PathBuf::from("/kept/1-ff00_0_110");
    let unreachable = JoinError::Unreachable {
        url: url(),
        reason: reason(),
    };
    let status = JoinError::Status {
        url: url(),
        status: 404,
        reason: reason(),
    };
    let trust = JoinError::Trust {
        url: url(),
        folder: folder(),
        reason: reason(),
    };
    for (code, names, failed) in [
        (
            Code::BootstrapUnreachable,
            [url(), reason()],
            unreachable.into(),
        ),
        (
            Code::BootstrapInvalid,
            [url(), "404".to_owned()],
            status.into(),
        ),
        (Code::BootstrapUntrusted, [url(), reason()], trust.into()),
        (
            Code::BootstrapTimeout,
            [url(), "3s".to_owned()],
            NotFetched::late(&url(), Duration::from_secs(3)),
        ),
    ] {
        let names = names.each_ref().map(String::as_str);
        problem(code, &names, not_fetched(failed));
    }
    let trust = JoinError::Trust {
        url: url(),
        folder: folder(),
        reason: reason(),
    };
    let finding = one(Code::BootstrapUntrusted, not_fetched(trust.into()));
    assert!(finding.remedy.contains("/kept/1-ff00_0_110"), "{finding:?}");
}

#[test]
fn a_configuration_that_is_broken() {
    problem(Code::ConfigFolder, &["topology.json: expected"], |facts| {
        let text = "/etc/scion/topology.json: expected `,` at line 3".to_owned();
        facts.joined = Joined::No(BootstrapError::Folder(text));
        (facts.routers, facts.offer) = (Vec::new(), None);
    });
    problem(Code::LocalAddress, &["`10.0.1`"], |facts| {
        facts.joined = Joined::No(BootstrapError::Local("10.0.1".to_owned()));
        (facts.routers, facts.offer) = (Vec::new(), None);
    });
    let other = isd_as("1-ff00:0:112");
    problem(
        Code::AsMismatch,
        &["1-ff00:0:111", "1-ff00:0:112"],
        |facts| {
            facts.configured_as = Some(("/etc/scion/topology.json".into(), other));
        },
    );
    problem(Code::NoRouter, &["1-ff00:0:111"], |facts| {
        facts.routers.clear()
    });
}

#[test]
fn a_router_without_a_route() {
    let error = "Network is unreachable (os error 101)";
    problem(Code::NoRoute, &["10.0.1.254:30042", error], |facts| {
        let answer = RouterAnswer::NoRoute(error.to_owned());
        (facts.routers[0].answer, facts.routers[0].mtu) = (answer, None);
    });
}

#[test]
fn a_router_that_is_dead() {
    let names = ["10.0.1.254:30042", "1-ff00:0:111#1, 1-ff00:0:111#2"];
    problem(Code::RouterRefused, &names, |facts| {
        facts.routers[0].answer = RouterAnswer::Refused;
    });
    problem(Code::RouterSilent, &names, |facts| {
        facts.routers[0].answer = RouterAnswer::Silent(Duration::from_secs(3));
    });
    // The other router is not blamed.
    let findings = found(|facts| {
        let dead = Router {
            address: address("10.0.1.253:30042"),
            answer: RouterAnswer::Refused,
            ..router()
        };
        facts.routers.push(dead);
    });
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].problem.contains("10.0.1.253"), "{findings:?}");
}

#[test]
fn a_port_that_a_firewall_blocks() {
    let finding = one(Code::RouterSilent, |facts| {
        facts.dropping_chains = vec!["inet filter input".to_owned()];
        facts.routers[0].answer = RouterAnswer::Silent(Duration::from_secs(3));
    });
    assert!(finding.problem.contains("inet filter input"), "{finding:?}");
    assert!(finding.remedy.contains("31000 to 32767"), "{finding:?}");
    // A firewall that lets packets in is no problem.
    let chains = vec!["inet filter input".to_owned()];
    assert_eq!(found(|facts| facts.dropping_chains = chains), []);
}

#[test]
fn a_network_with_a_small_mtu() {
    let finding = one(Code::MtuSmall, |facts| facts.routers[0].mtu = Some(1450));
    assert_eq!(finding.severity, Severity::Warning);
    for name in ["1450", "1472", "1500"] {
        assert!(finding.problem.contains(name), "{finding:?}");
    }
    assert!(finding.remedy.contains("to 1422"), "{finding:?}");
    problem(Code::MtuSmall, &["1520"], |facts| {
        facts.routers[0].address = address("[fd00::254]:30042");
    });
}

#[test]
fn an_as_without_paths() {
    problem(Code::NoPaths, &["a core AS of its ISD (1-0)"], |facts| {
        facts.offer.as_mut().unwrap().paths = Ok(Vec::new());
    });
    problem(Code::NoPaths, &["to 1-ff00:0:110"], |facts| {
        let offer = facts.offer.as_mut().unwrap();
        (offer.to, offer.paths) = (isd_as("1-ff00:0:110"), Ok(Vec::new()));
    });
}

fn to_host(facts: &mut Facts, alive: (usize, usize), echo: Echo, known: Known) {
    facts.destination = Some(Destination {
        isd_as: isd_as("1-ff00:0:112"),
        alive,
        host: Some(("10.0.2.1".parse().unwrap(), echo, known)),
    });
}

#[test]
fn a_destination_that_is_not_reached() {
    let reached = found(|facts| to_host(facts, (2, 3), Echo::Answered, Known::Yes));
    assert_eq!(reached, []);
    problem(Code::PathsDead, &["3 paths to 1-ff00:0:112"], |facts| {
        to_host(facts, (0, 3), Echo::NotAsked, Known::Yes);
    });
    problem(
        Code::HostSilent,
        &["1-ff00:0:112,10.0.2.1", "no answer"],
        |facts| {
            let silent = Echo::Failed("no answer within 1s".to_owned());
            to_host(facts, (3, 3), silent, Known::Yes);
        },
    );
}

#[test]
fn a_host_whose_key_is_unknown() {
    let finding = one(Code::KeyUnknown, |facts| {
        let known = Known::No("/home/alice/.config/hawser/known_hosts".into());
        to_host(facts, (3, 3), Echo::Answered, known);
    });
    assert_eq!(finding.severity, Severity::Warning);
    let line = "`1-ff00:0:112,10.0.2.1 KEY` to /home/alice/.config/hawser/known_hosts";
    assert!(finding.remedy.contains(line), "{finding:?}");
}

#[test]
fn a_check_that_hangs() {
    problem(Code::CheckTimeout, &["keys and folders", "3s"], |facts| {
        facts
            .late
            .push(("keys and folders", Duration::from_secs(3)));
    });
}

#[test]
fn problems_come_before_notes() {
    let findings = found(|facts| {
        facts.rights.as_mut().unwrap().tun = Tun::Missing;
        facts.routers[0].mtu = Some(1400);
        facts.folders[0].free = 0;
    });
    let codes: Vec<Code> = findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, [Code::DiskFull, Code::MtuSmall, Code::NoTun]);
}

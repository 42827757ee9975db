//! Packets that somebody on a link has changed, forged, repeated or reordered, and packets of
//! nobody.

use std::env;
use std::fs::File;
use std::net::UdpSocket;

use hawser_endhost::socket::Socket;
use hawser_endhost::{Bootstrap, Endhost, Headers, ScionAddr};

use super::mangler::{self, Mangler, Sent};
use super::*;
use crate::flood::this_program;

/// The environment variable that makes this program send datagrams of no session: where to.
const STRAY: &str = "HAWSER_TEST_STRAY";
/// The link with the attackers. The other one is left alone.
const ATTACKED: &str = "1-ff00:0:110#1";

#[test]
#[ignore = "not a test but a process that tests start"]
fn attacker() {
    mangler::attack_if_planned();
}

#[test]
#[ignore = "not a test but a process that tests start"]
fn stray() {
    let Ok(plan) = env::var(STRAY) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let host = Endhost::bootstrap(&Bootstrap::default()).await.unwrap();
        let local = Socket::bind(&host, None).unwrap().local_addr();
        let socket = UdpSocket::bind((local.host.ip(), 0)).unwrap();
        for to in plan.split(' ') {
            let to: ScionAddr = to.parse().unwrap();
            let paths = host.paths(to.isd_as).await.unwrap();
            let headers = Headers::new(local, to, &paths[0]).unwrap();
            // Of every kind, and the numbers beside those that are one.
            for kind in 0..=4 {
                let mut packet = Vec::new();
                headers.write(&[&[kind][..], &[0; 1000]].concat(), 0, &mut packet);
                socket.send_to(&packet, headers.next_hop).unwrap();
            }
        }
    });
}

/// The ports that programs of the receiver's host listen at.
fn ports(bed: &Bed) -> Vec<u16> {
    let output = bed.lab.exec(RECEIVER, &["cat", "/proc/net/udp"]).output();
    let table = String::from_utf8(output.unwrap().stdout).unwrap();
    // 10.0.2.1, as the kernel prints it.
    let local = table.split_whitespace().filter_map(|word| {
        let port = word.strip_prefix("0102000A:")?;
        u16::from_str_radix(port, 16).ok()
    });
    local.collect()
}

/// Asserts that a transfer used both paths to its end, and that packets were rejected on one of them.
fn assert_rejected(report: &Value) {
    let paths = report["paths"].as_array().unwrap();
    let mut rejected: Vec<_> = paths.iter().map(|path| path["rejected"].as_u64()).collect();
    rejected.sort();
    assert!(
        rejected.len() == 2 && rejected[0] == Some(0) && rejected[1] > Some(50),
        "{report}"
    );
    // On a busy machine a path may fail because nobody is given the time to answer.
    let used = |path: &Value| path["bytes"].as_u64() > Some(0);
    assert!(paths.iter().all(used), "{report}");
}

/// Asserts [`assert_rejected`] of the side that chose the paths, and that the path with rejected
/// packets is the attacked one.
fn assert_attacked(report: &Value) {
    assert_rejected(report);
    for path in report["paths"].as_array().unwrap() {
        let attacked = path["interfaces"][0] == ATTACKED;
        assert_eq!(attacked, path["rejected"] != 0, "{report}");
    }
}

fn assert_all_sent(sent: &Sent) {
    let all = sent.changed.iter();
    let sent_all = all
        .clone()
        .all(|(_, datagrams, quic)| *datagrams > 0 && *quic > 0);
    assert!(sent_all && sent.late > 0 && sent.crossed > 0, "{sent:?}");
}

#[test]
fn mangled_packets_change_nothing_but_counters() {
    let Some(lab) = As::default().up_with("fig4", "mangled", &["--no-offload"]) else {
        return;
    };
    for link in 1..=2 {
        // The jitter reorders genuine packets.
        let shape = ["--rate", "60mbit", "--delay", "4ms", "--jitter", "2ms"];
        lab.set(&format!("{SENDER}#{link}"), &shape);
    }
    let folder = tempfile::tempdir().unwrap();
    let bed = Bed { lab, folder };
    let data = bed.folder.path().join("data");
    fs::create_dir_all(&data).unwrap();
    let mut bytes = vec![0; 12_000_000];
    fastrand::fill(&mut bytes);
    fs::write(data.join("large"), &bytes).unwrap();
    fs::write(data.join("small"), b"small").unwrap();
    let key = bed.exec(SENDER, &["key"]).output().unwrap();
    let key = String::from_utf8(key.stdout).unwrap();
    let errors = bed.folder.path().join("errors");

    let start = |flags: &[&str]| {
        let mut command = bed.receive_command("in", flags);
        command.stderr(File::create(&errors).unwrap());
        Receiver::start(command)
    };
    // Datagrams of no session, to both sockets, and a stranger: nothing is written.
    let receiver = start(&[]);
    let to: ScionAddr = receiver.address.parse().unwrap();
    let ports = ports(&bed);
    assert!(
        ports.len() == 2 && ports.contains(&to.host.port()),
        "{ports:?}"
    );
    let places = ports
        .iter()
        .map(|port| ScionAddr::new(to.isd_as, (to.host.ip(), *port).into()).to_string());
    let plan = format!("{STRAY}={}", places.collect::<Vec<_>>().join(" "));
    let program = this_program(&["--exact", "bulk::mangled::stray", "--ignored"]);
    let mut words = vec!["env", &plan];
    words.extend(program.iter().map(String::as_str));
    let output = bed.lab.exec(SENDER, &words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let refused = bed.send(&receiver, &[]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(!bed.folder.path().join("in").exists());
    drop(receiver);

    let mut receiver = start(&["--allow", key.trim()]);
    let manglers = [(SENDER, ATTACKED), (RECEIVER, "1-ff00:0:111#1")].map(|(isd_as, interface)| {
        Mangler::start(&bed.lab.name, interface, |words| {
            bed.lab.exec(isd_as, words)
        })
    });
    let report = bed.report(bed.send(&receiver, &["--paths", "2"]));
    assert_attacked(&report);
    assert_rejected(&receiver.report());
    bed.assert_received();

    let report = bed.report(bed.fetch(&receiver, "large", &["--paths", "2"]));
    assert_attacked(&report);
    assert_rejected(&receiver.report());
    assert!(fs::read(bed.folder.path().join("out/large")).unwrap() == bytes);

    for mangler in manglers {
        assert_all_sent(&mangler.end());
    }
    assert_eq!(receiver.child.try_wait().unwrap(), None);
    assert_eq!(fs::read_to_string(&errors).unwrap(), "");
    // Nothing is beside what the commands were given.
    let names = fs::read_dir(bed.folder.path()).unwrap();
    let mut names: Vec<_> = names.map(|name| name.unwrap().file_name()).collect();
    names.sort();
    let keys = [SENDER, RECEIVER].map(|isd_as| format!("{isd_as}.key"));
    assert_eq!(names, [&keys[0], &keys[1], "data", "errors", "in", "out"]);
}

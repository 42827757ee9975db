//! A host that knows nothing but the address of its AS's bootstrap server joins the AS; its border
//! router tells it the address that its packets have there; and paths name the services of the ASes.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hawser_router::live::{self, Reply, Request};
use hawser_topology::{AsDir, AsTopology, as_folder};
use serde_json::{Value, json};

use crate::support::{As, TestLab};

const A: &str = "1-ff00:0:110";
const B: &str = "1-ff00:0:111";
/// What makes this program a host behind a router: the router's address.
const ROUTER: &str = "HAWSER_TEST_STUN";

#[test]
fn a_host_joins_by_its_bootstrap_server_and_router() {
    let Some(lab) = As::default().up("fig4", "joining") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    joins(&lab, folder.path());
    shows_services(&lab);
    asks_its_router(&lab);
    lab.down();
}

fn dir(lab: &TestLab, isd_as: &str) -> AsDir {
    let folder = PathBuf::from(lab.status()["dir"].as_str().unwrap());
    AsDir::new(folder.join(as_folder(isd_as.parse().unwrap())))
}

fn topology(lab: &TestLab, isd_as: &str) -> AsTopology {
    dir(lab, isd_as).topology().unwrap()
}

/// Fetches what `server` has under a path.
fn fetch(lab: &TestLab, server: SocketAddr, path: &str) -> Vec<u8> {
    let url = format!("http://{server}/{path}");
    let output = lab.exec(A, &["curl", "-sS", "--fail", &url]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{url}: {output:?}");
    output.stdout
}

fn joins(lab: &TestLab, folder: &Path) {
    let control = *topology(lab, A).control_service.values().next().unwrap();
    let server = SocketAddr::new(control.ip(), 8041);
    let topology = fetch(lab, server, "topology");
    let text = String::from_utf8_lossy(&topology);
    assert!(!text.contains("underlay"), "{text}");
    std::fs::write(folder.join("topology.json"), topology).unwrap();

    let trcs: Value = serde_json::from_slice(&fetch(lab, server, "trcs")).unwrap();
    let id = json!({"isd": 1, "base_number": 1, "serial_number": 1});
    assert_eq!(trcs, json!([{"id": id}]));
    let trc = fetch(lab, server, "trcs/isd1-b1-s1/blob");
    std::fs::create_dir(folder.join("certs")).unwrap();
    std::fs::write(folder.join("certs/ISD1-B1-S1.trc"), trc).unwrap();

    let folder = folder.to_str().unwrap();
    let args = [
        "paths",
        B,
        "--json",
        "--timeout",
        "60s",
        "--config-dir",
        folder,
    ];
    let output = lab.hawser(A, &args);
    assert!(output.status.success(), "{output:?}");
    let listing: Value = serde_json::from_slice(&output.stdout).unwrap();
    let paths = listing["paths"].as_array().unwrap();
    assert!(
        paths.iter().all(|path| path["status"] == "alive"),
        "{listing}"
    );
    let hops: Vec<_> = paths.iter().map(|path| path["hops"].to_string()).collect();
    assert_eq!(hops, lab.paths(A, B));
    // The segments were verified: no warning says otherwise.
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!error.contains("unverified"), "{error}");
    joins_by_url(lab, server, &hops);
    serves_by_url(lab, server);
}

/// The daemon joins by the same URL in its configuration, and fails without an answer.
fn serves_by_url(lab: &TestLab, server: SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("daemon.toml");
    let serve = |url: &str| {
        let text = format!(
            "state = \"state\"\nkey = \"key\"\nnetwork.bootstrap = \"{url}\"\n\
             http.listen = \"127.0.0.1:0\"\ntransfers.known_hosts = \"known\"\n\
             receive = {{ folder = \"in\", allowed_keys = \"allowed\" }}\n"
        );
        std::fs::write(&file, text).unwrap();
        let args = [lab.program(), "daemon", "--config", file.to_str().unwrap()];
        let args = [&args[..], &["--tcp", "none"]].concat();
        let mut command = lab.exec(A, &args);
        // Nobody is there.
        command.env("SCION_DAEMON", "127.0.0.1:1");
        command
    };
    std::fs::create_dir(folder.path().join("in")).unwrap();
    std::fs::write(folder.path().join("allowed"), "").unwrap();
    let nowhere = format!("http://{}:1", server.ip());
    let output = serve(&nowhere).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    let expected =
        format!("network.bootstrap: no bootstrap server answers at {nowhere}/topology: ");
    assert!(error.contains(&expected), "{error}");

    let url = format!("http://{server}");
    let mut child = serve(&url)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let line = lines.find(|line| line.starts_with("receiving at "));
    let ready = line
        .as_deref()
        .is_some_and(|line| line.starts_with("receiving at 1-ff00:0:110,"));
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(ready, "{line:?}: {error}");
    let kept = folder.path().join("state/bootstrap/1-ff00_0_110");
    assert!(kept.join("topology.json").exists() && kept.join("certs/ISD1-B1-S1.trc").exists());
    let trusted = format!("ISD1-B1-S1 of {url} is trusted from now on");
    assert!(error.contains(&trusted), "{error}");
}

/// The same by `--bootstrap`, for a host that has no daemon.
fn joins_by_url(lab: &TestLab, server: SocketAddr, expected: &[String]) {
    let state = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let args = [&[lab.program()], args].concat();
        let mut command = lab.exec(A, &args);
        command
            .env("XDG_STATE_HOME", state.path())
            // Nobody is there.
            .env("SCION_DAEMON", "127.0.0.1:1");
        let output = command.output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), output.stdout, error)
    };
    let url = format!("http://{server}");
    for is_first in [true, false] {
        let args = [
            "paths",
            B,
            "--json",
            "--timeout",
            "60s",
            "--bootstrap",
            &url,
        ];
        let (code, listing, error) = run(&args);
        assert_eq!(code, Some(0), "{error}");
        let listing: Value = serde_json::from_slice(&listing).unwrap();
        let paths = listing["paths"].as_array().unwrap();
        let hops: Vec<_> = paths.iter().map(|path| path["hops"].to_string()).collect();
        assert_eq!(hops, expected);
        // The TRC is trusted once, and what it verifies is verified.
        let trusted = format!("ISD1-B1-S1 of {url} is trusted from now on");
        assert_eq!(error.contains(&trusted), is_first, "{error}");
        assert!(!error.contains("unverified"), "{error}");
    }
    let kept = state.path().join("hawser/bootstrap/1-ff00_0_110");
    assert!(kept.join("topology.json").exists() && kept.join("certs/ISD1-B1-S1.trc").exists());
    // Where no bootstrap server is.
    let nowhere = format!("http://{}:1", server.ip());
    let (code, _, error) = run(&["paths", B, "--bootstrap", &nowhere]);
    assert_eq!(code, Some(2), "{error}");
    assert!(
        error.contains(&format!(
            "no bootstrap server answers at {nowhere}/topology: "
        )),
        "{error}"
    );
}

fn shows_services(lab: &TestLab) {
    let args = ["paths", B, "--json", "--no-probe", "--timeout", "60s"];
    let listing: Value = serde_json::from_slice(&lab.hawser(A, &args).stdout).unwrap();
    let services = |isd_as| {
        let topology = topology(lab, isd_as);
        let control: Vec<_> = topology.control_service.values().collect();
        let discovery: Vec<_> = topology.discovery_service.values().collect();
        json!({"control_services": control, "discovery_services": discovery})
    };
    let expected = json!({A: services(A), B: services(B)});
    let paths = listing["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2);
    for path in paths {
        assert_eq!(path["discovery"], expected);
    }
    let human = lab.hawser(A, &["paths", B, "--extended", "--no-probe"]);
    let human = String::from_utf8(human.stdout).unwrap();
    let control = topology(lab, B).control_service.into_values().next();
    let line = format!("{B}: {{Control: {}, ", control.unwrap());
    assert!(human.contains(&line), "{human}");
}

fn asks_its_router(lab: &TestLab) {
    let router = topology(lab, A).border_routers.into_values().next();
    let router = router.unwrap().internal_addr;
    let own = std::env::current_exe().unwrap();
    let words = [
        own.to_str().unwrap(),
        "joining::host",
        "--exact",
        "--nocapture",
    ];
    let mut command = lab.exec(A, &words);
    let output = command.env(ROUTER, router.to_string()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let Ok(Reply::Counters(counters)) =
        live::call(&dir(lab, A).router_socket(), &Request::Counters)
    else {
        panic!("no counters")
    };
    assert_eq!(counters.stun_answers, 2);
    assert_eq!(counters.drops.get("stun-malformed"), Some(&1));
}

/// The fingerprint of the request below, computed with Python's `zlib.crc32`.
const FINGERPRINT: [u8; 4] = [0x40, 0x4e, 0x85, 0x2d];

/// The host, inside the AS.
#[test]
fn host() {
    let Ok(router) = std::env::var(ROUTER) else {
        return;
    };
    let router: SocketAddr = router.parse().unwrap();
    let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
    socket.connect(router).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // Without a fingerprint, with a wrong one, with the right one.
    let head = [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
    let plain = [&head[..], &[7; 12]].concat();
    let mut with = plain.clone();
    with[3] = 8;
    let fingerprint = [0x80, 0x28, 0, 4];
    let wrong = [&with[..], &fingerprint, &[0; 4]].concat();
    let right = [&with[..], &fingerprint, &FINGERPRINT].concat();
    for request in [&wrong, &plain, &right] {
        socket.send(request).unwrap();
    }
    for (request, length) in [(&plain, 32), (&right, 40)] {
        let mut answer = [0; 1500];
        assert_eq!(socket.recv(&mut answer).unwrap(), length);
        assert_eq!(answer[..2], [1, 1]);
        assert_eq!(answer[4..20], request[4..20]);
        let cookie = [0x21, 0x12, 0xa4, 0x42];
        let port = u16::from_be_bytes([answer[26], answer[27]]) ^ 0x2112;
        let ip: Vec<u8> = answer[28..32]
            .iter()
            .zip(cookie)
            .map(|(a, b)| a ^ b)
            .collect();
        let ip: [u8; 4] = ip.try_into().unwrap();
        assert_eq!(socket.local_addr().unwrap(), SocketAddr::from((ip, port)));
    }
}

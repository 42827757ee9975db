//! Faults during a download: paths expire, the daemon dies or sends invalid answers, links go down
//! meanwhile.

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::ExitStatus;

use super::*;

/// Lifetime of segments in these labs: the control service makes new ones after half of it.
const LIFETIME: Duration = Duration::from_secs(12);

/// A lab of two links of 3 Mbit/s whose segments live for [`LIFETIME`].
fn short_lived(what: &str, flags: &[&str]) -> Option<TestLab> {
    let lifetime = format!("{}s", LIFETIME.as_secs());
    let flags = [&["--segment-lifetime", &lifetime], flags].concat();
    let lab = As::default().up_with("fig4", what, &flags)?;
    for id in ["#1", "#2"] {
        lab.set(&format!("{A}{id}"), &["--rate", "3mbit"]);
    }
    Some(lab)
}

/// A download that takes such a lab more than twice the lifetime of a segment.
fn long_download() -> Files {
    Files::new(&[("data", 18 << 20)])
}

/// Waits until a link has carried `more` further bytes.
fn until_carried(lab: &TestLab, link: usize, more: u64) {
    let before = sent(lab)[link];
    eventually("the link carries the file", || {
        sent(lab)[link] > before + more
    });
}

/// A download that logs the ends of its connections.
fn leech(lab: &TestLab, env: &[&str], files: &Files, peer: &str) -> Running {
    let mut all = vec!["RUST_LOG=hawser_torrent=debug"];
    all.extend(env);
    Running::start_with(lab, A, &all, &files.get_args(peer))
}

/// The number of connections that ended before the download did.
fn ended(log: &str) -> usize {
    log.matches("connection ended").count()
}

#[test]
fn a_download_survives_the_expiry_of_its_paths() {
    let Some(lab) = short_lived("expiry", &[]) else {
        return;
    };
    let files = long_download();
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let (report, log) = leech(&lab, &[], &files, &peer).end();
    assert!(files.same("data"));
    // The rate of the links implies this duration.
    let lived = report["seconds"].as_f64().unwrap() / LIFETIME.as_secs_f64();
    assert!(lived > 2.0, "too short to show anything: {report}");
    assert_eq!(report["paths"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(ended(&log), 0, "{log}");
}

#[test]
fn a_restart_of_the_daemon_stops_no_download() {
    let Some(lab) = short_lived("daemon-dies", &["--no-control", A]) else {
        return;
    };
    let dir = lab.status()["dir"].as_str().unwrap().to_owned();
    let dir = format!("{dir}/{}", A.replace(':', "_"));
    let lifetime = format!("{}s", LIFETIME.as_secs());
    let run = ["control", "run", &dir, "--segment-lifetime", &lifetime].map(str::to_owned);
    let control = Running::start(&lab, A, &run);
    eventually("the daemon answers", || {
        lab.hawser(A, &["paths", B, "--json"]).status.success()
    });
    let files = long_download();
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let leecher = leech(&lab, &[], &files, &peer);
    until_carried(&lab, 0, 1 << 20);
    // Sends SIGKILL.
    drop(control);
    // No source offers other paths now, and the known ones still work.
    let interface = format!("{A}#1");
    lab.set(&interface, &["--down"]);
    until_carried(&lab, 1, 1 << 20);
    let _control = Running::start(&lab, A, &run);
    until_carried(&lab, 1, 1 << 20);
    lab.set(&interface, &["--up"]);
    until_carried(&lab, 0, 1 << 20);
    let (report, log) = leecher.end();
    assert_eq!(report["fetched_bytes"], 18 << 20, "{log}");
    assert!(files.same("data"));
}

#[test]
fn a_slow_or_faulty_daemon_stops_no_download() {
    let Some(lab) = short_lived("daemon-mad", &[]) else {
        return;
    };
    let files = long_download();
    let (_seeder, peer) = Running::seed(&lab, B, &files.torrent(), &files.content());
    let between = Between::start(&lab);
    let daemon = format!("SCION_DAEMON={}", Between::AT);
    let leecher = leech(&lab, &[&daemon], &files, &peer);
    until_carried(&lab, 0, 1 << 20);
    between.does("slow");
    until_carried(&lab, 0, 2 << 20);
    between.does("nonsense");
    lab.set(&format!("{A}#1"), &["--down"]);
    until_carried(&lab, 1, 1 << 20);
    between.does("pass");
    until_carried(&lab, 1, 1 << 20);
    lab.set(&format!("{A}#1"), &["--up"]);
    until_carried(&lab, 0, 1 << 20);
    let (report, log) = leecher.end();
    assert_eq!(report["fetched_bytes"], 18 << 20, "{log}");
    assert!(files.same("data"));
}

/// A proxy between the programs of an AS and its daemon: another process of these tests.
struct Between {
    process: Running,
    conduct: tempfile::NamedTempFile,
}

/// The environment variable with the file that sets the conduct of [`between`].
const CONDUCT: &str = "HAWSER_TEST_CONDUCT";

impl Between {
    /// The proxy's address.
    const AT: &str = "127.0.0.1:30256";

    fn start(lab: &TestLab) -> Self {
        let conduct = tempfile::NamedTempFile::new().unwrap();
        let program = std::env::current_exe().unwrap();
        let args = [
            program.to_str().unwrap(),
            "--exact",
            "transfer::faults::between",
            "--ignored",
            "--nocapture",
        ];
        let mut command = vec!["env".to_owned()];
        command.push(format!("{CONDUCT}={}", conduct.path().display()));
        command.extend(args.map(str::to_owned));
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut command = lab.exec(A, &command);
        command.stdout(Stdio::null()).stderr(Stdio::inherit());
        let between = Self {
            process: Running(command.spawn().unwrap()),
            conduct,
        };
        between.does("pass");
        let env = format!("SCION_DAEMON={}", Self::AT);
        let hawser = env!("CARGO_BIN_EXE_hawser");
        let ask = || -> ExitStatus {
            let mut ask = lab.exec(A, &["env", &env, hawser, "paths", B, "--json"]);
            ask.output().unwrap().status
        };
        eventually("the daemon answers through it", || ask().success());
        between
    }

    fn does(&self, what: &str) {
        assert!(self.process.0.id() > 0);
        fs::write(self.conduct.path(), what).unwrap();
    }
}

#[test]
#[ignore = "not a test but a process that tests start"]
fn between() {
    let Some(conduct) = std::env::var_os(CONDUCT) else {
        return;
    };
    let listener = TcpListener::bind(Between::AT).unwrap();
    for client in listener.incoming() {
        let client = client.unwrap();
        let Ok(daemon) = TcpStream::connect("127.0.0.1:30255") else {
            continue;
        };
        let conduct = conduct.clone();
        let (ask, answer) = (client.try_clone().unwrap(), daemon.try_clone().unwrap());
        std::thread::spawn(move || pass(ask, daemon, |_| {}));
        std::thread::spawn(move || {
            pass(answer, client, |bytes| {
                match fs::read_to_string(&conduct).as_deref() {
                    Ok("slow") => std::thread::sleep(Duration::from_secs(2)),
                    Ok("nonsense") => bytes.iter_mut().for_each(|byte| *byte ^= 0x5a),
                    _ => {}
                }
            });
        });
    }
}

/// Forwards data after applying `change` to it.
fn pass(mut from: TcpStream, mut to: TcpStream, change: impl Fn(&mut [u8])) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        change(&mut buffer[..read]);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    // A peer that is gone already needs no notice.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

//! The real `transmission-remote`, if there is one, over HTTP of this test's own.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use hawser_transmission::{Challenge, SESSION_ID_HEADER, Session, answer};

use self::memory::Memory;

mod memory;

/// One client behind HTTP. It serves one connection after the other until the test ends.
struct Server {
    addr: SocketAddr,
    /// What the client did, request by request.
    logs: Receiver<Vec<String>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address");
        let (sender, logs) = channel();
        thread::spawn(move || serve(&listener, &sender));
        Self { addr, logs }
    }

    /// Runs transmission-remote and returns what it prints and what the client did, or `None` if there is
    /// no such program.
    fn remote(&self, arguments: &[&str]) -> Option<(String, Vec<String>)> {
        let mut command = Command::new("transmission-remote");
        command.arg(self.addr.to_string()).args(arguments);
        let output = match command.output() {
            Ok(output) => output,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => panic!("transmission-remote: {error}"),
        };
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {printed}{errors}");
        let done = self.logs.try_iter().flatten().collect();
        Some((printed, done))
    }
}

fn serve(listener: &TcpListener, logs: &Sender<Vec<String>>) {
    let mut client = Memory::sample();
    let mut rng = Rng::with_seed(1);
    let mut session = Session::new(Duration::ZERO, &mut rng);
    for stream in listener.incoming().map_while(Result::ok) {
        let Ok((id, body)) = read(&stream) else {
            continue;
        };
        let reply = match session.check(id.as_deref(), Duration::ZERO, &mut rng) {
            Err(challenge) => refuse(&challenge),
            Ok(()) => match answer(&body, session.id(), &mut client) {
                None => b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".to_vec(),
                Some(answer) => respond("200 OK", "Content-Type: application/json\r\n", &answer),
            },
        };
        // In the log before the program knows that it is done.
        let _ = logs.send(std::mem::take(&mut client.log));
        let _ = (&stream).write_all(&reply);
    }
}

/// The id of the session and the body of a request.
fn read(stream: &TcpStream) -> io::Result<(Option<String>, Vec<u8>)> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(stream);
    let (mut id, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case(SESSION_ID_HEADER) {
            id = Some(value.to_owned());
        } else if name.eq_ignore_ascii_case("Content-Length") {
            length = value.parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((id, body))
}

fn refuse(challenge: &Challenge) -> Vec<u8> {
    let headers = challenge.headers();
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let status = format!("{} Conflict", Challenge::STATUS);
    respond(&status, &headers, challenge.body().as_bytes())
}

fn respond(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Arguments, texts that must be printed, and what the client must have done.
type Step = (
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

const STEPS: &[Step] = &[
    (
        &["-l"],
        &["data set", "Up & Down", "magnet", "Stopped", "Sum:"],
        &[],
    ),
    (
        &["-t", "1", "-i"],
        &[
            "Id: 1",
            "Name: data set",
            "Hash: 000102030405060708090a0b0c0d0e0f10111213",
            "State: Up & Down",
            "Location: /srv/data",
            "Percent Done: 50.0%",
            "Labels: linux, sets",
            "Download Limit:",
        ],
        &[],
    ),
    (
        &["-t", "1", "-if"],
        &["data set (2 files)", "data set/a", "High"],
        &[],
    ),
    (
        &["-t", "1", "-ip"],
        &["1-ff00:0:110,10.0.0.1", "fd00::2", "hawser 0.1.0"],
        &[],
    ),
    (
        &["-t", "1", "-it"],
        &[
            "Tracker 7: tracker.example.org:6969",
            "Active in tier 0",
            "Asking for more peers in",
        ],
        &[],
    ),
    (&["-t", "1", "-ic"], &["1000"], &[]),
    (
        &["-si"],
        &[
            "4.1.0 (hawser 0.1.0)",
            "RPC version: 18",
            "Listenport: 6881",
        ],
        &[],
    ),
    (&["-st"], &["Started 3 times", "CURRENT SESSION"], &[]),
    (&["-t", "1", "-S"], &["success"], &["Stop [1]"]),
    (&["-t", "1", "-s"], &["success"], &["Start [1]"]),
    (&["-t", "all", "-v"], &["success"], &["Verify [1, 2]"]),
    (
        &["-t", "1", "--reannounce"],
        &["success"],
        &["Reannounce [1]"],
    ),
    (
        &["-t", "1", "-L", "one,two"],
        &["success"],
        &["change 1 [Labels([\"one\", \"two\"])]"],
    ),
    (
        &["-t", "1", "-d", "40", "-G", "0", "-ph", "1"],
        &["success"],
        &[
            "change 1 [Wanted(Some([0]), false), FilePriority(Some([1]), High), DownLimit(40), \
           DownLimited(true)]",
        ],
    ),
    (
        &["-t", "1", "-sr", "1.5"],
        &["success"],
        &["change 1 [RatioLimit(1.5), RatioMode(Own)]"],
    ),
    (
        &["-t", "1", "-tr", "7"],
        &["success"],
        &["change 1 [TrackersRemoved([7])]"],
    ),
    (
        &["-t", "1", "-td", "udp://a:1/announce"],
        &["success"],
        &["change 1 [TrackersAdded([\"udp://a:1/announce\"])]"],
    ),
    (
        &["-t", "1", "--move", "/srv/other"],
        &["success"],
        &["relocate [1] /srv/other true"],
    ),
    (
        &["-t", "1", "--find", "/srv/found"],
        &["success"],
        &["relocate [1] /srv/found false"],
    ),
    (
        &["-d", "70"],
        &["success"],
        &["session [DownLimit(70), DownLimited(true)]"],
    ),
    (&["-M"], &["success"], &["session [PortForwarding(false)]"]),
    (&["-er"], &["success"], &["session [Encryption(Required)]"]),
    (
        &["-a", "magnet:?xt=urn:btih:abc", "-w", "/srv/new"],
        &["success"],
        &[],
    ),
    (&["-pt"], &["Port is open: Yes"], &[]),
    (&["-t", "1", "-rad"], &["success"], &["remove [1] true"]),
    (&["-t", "active", "-l"], &["Sum:"], &[]),
    (&["--exit"], &["success"], &["close"]),
];

#[test]
fn transmission_remote_works() {
    let server = Server::start();
    for (arguments, texts, expected) in STEPS {
        let Some((printed, done)) = server.remote(arguments) else {
            eprintln!("skipped: there is no transmission-remote here");
            return;
        };
        for text in *texts {
            assert!(
                printed.contains(text),
                "{arguments:?} has no {text:?}:\n{printed}"
            );
        }
        assert_eq!(done, *expected, "{arguments:?}");
    }
}

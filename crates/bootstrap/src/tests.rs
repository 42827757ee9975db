use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use hawser_topology::IsdAsn;
use hawser_trust::{AsRole, Store, add_core, write};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const TOPOLOGY: &str = r#"{"isd_as": "1-ff00:0:110", "mtu": 1472,
    "dispatched_ports": "31000-32767",
    "control_service": {"cs": {"addr": "127.0.0.1:30252"}}}"#;
const FIRST: &str = r#"[{"id": {"isd": 1, "base_number": 1, "serial_number": 1}}]"#;
const SECOND: &str = r#"[{"id": {"isd": 1, "base_number": 1, "serial_number": 2}}]"#;

fn ia(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

/// An ISD, and what a server of it has.
struct Isd {
    keep: tempfile::TempDir,
}

impl Isd {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let role = AsRole {
            isd_as: ia("1-ff00:0:110"),
            core: true,
            voting: false,
            authoritative: false,
            issuing: false,
            cert_issuer: None,
        };
        write(&[role], |_| keep.path().join("as")).unwrap();
        Self { keep }
    }

    fn update(&self, core: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let folders = [self.keep.path().join("as")];
        add_core(1, &[ia(core)], &folders, now.as_secs()).unwrap();
    }

    fn trc(&self, serial: u64) -> Vec<u8> {
        let name = format!("as/certs/ISD1-B1-S{serial}.trc");
        fs::read(self.keep.path().join(name)).unwrap()
    }
}

type Answers = BTreeMap<String, Vec<u8>>;

fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A server that answers each path with these bytes, and others with 404.
struct Toy {
    at: SocketAddr,
    answers: Arc<Mutex<Answers>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Toy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Toy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let answers = Arc::<Mutex<Answers>>::default();
        let shared = Arc::clone(&answers);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => request.push(byte),
                        Err(_) => break,
                    }
                }
                let request = String::from_utf8(request).unwrap();
                let path = request.split(' ').nth(1).unwrap_or_default();
                let known = shared.lock().unwrap().get(path).cloned();
                let missing = || answer("404 N", br#"{"error": "nothing \u001b[31mhere"}"#);
                let _ = stream.write_all(&known.unwrap_or_else(missing)).await;
            }
        });
        Self { at, answers, task }
    }

    /// One that has this topology and list, and the first `count` TRCs of `isd`.
    async fn of(isd: &Isd, list: &str, count: u64) -> Self {
        let toy = Self::start().await;
        toy.has("/topology", "200 O", TOPOLOGY.as_bytes());
        toy.has("/trcs", "200 O", list.as_bytes());
        for serial in 1..=count {
            let path = format!("/trcs/isd1-b1-s{serial}/blob");
            toy.has(&path, "200 O", &isd.trc(serial));
        }
        toy
    }

    fn has(&self, path: &str, status: &str, body: &[u8]) {
        let bytes = answer(status, body);
        self.answers.lock().unwrap().insert(path.to_owned(), bytes);
    }

    async fn join(&self, state: &Path) -> Result<Joined, JoinError> {
        let server: Server = format!("http://{}", self.at).parse().unwrap();
        join(&server, state).await
    }

    /// The error, which must be about this server, on one line, and change nothing of `state`.
    async fn refusal(&self, state: &Path) -> String {
        let error = self.join(state).await.unwrap_err().to_string();
        assert!(error.contains(&format!("http://{}/", self.at)), "{error}");
        assert!(!error.contains(char::is_control), "{error}");
        error
    }
}

#[tokio::test]
async fn what_is_fetched_is_kept_and_updates_are_followed() {
    let isd = Isd::new();
    let state = tempfile::tempdir().unwrap();
    let toy = Toy::of(&isd, FIRST, 1).await;
    let joined = toy.join(state.path()).await.unwrap();
    assert_eq!(joined.folder, state.path().join("1-ff00_0_110"));
    let trusted = TrcId {
        isd: 1,
        base: 1,
        serial: 1,
    };
    assert_eq!(joined.trusted, [trusted]);
    let topology = fs::read_to_string(joined.folder.join("topology.json")).unwrap();
    assert_eq!(topology, TOPOLOGY);
    let certs = joined.folder.join("certs");
    assert_eq!(
        Store::load(&certs).unwrap().newest(1).unwrap().id(),
        trusted
    );
    // The same again trusts nothing new; a changed topology is taken over.
    let changed = TOPOLOGY.replace("1472", "1400");
    toy.has("/topology", "200 O", changed.as_bytes());
    assert_eq!(toy.join(state.path()).await.unwrap().trusted, []);
    let topology = fs::read_to_string(joined.folder.join("topology.json")).unwrap();
    assert_eq!(topology, changed);
    // Two updates at once: the one in between is needed.
    isd.update("1-ff00:0:111");
    isd.update("1-ff00:0:112");
    let toy = Toy::of(&isd, &SECOND.replace(": 2", ": 3"), 3).await;
    assert_eq!(toy.join(state.path()).await.unwrap().trusted, []);
    assert_eq!(
        Store::load(&certs).unwrap().newest(1).unwrap().id().serial,
        3
    );
    // A server that is late takes nothing back.
    let toy = Toy::of(&isd, FIRST, 1).await;
    toy.join(state.path()).await.unwrap();
    assert_eq!(
        Store::load(&certs).unwrap().newest(1).unwrap().id().serial,
        3
    );
}

#[tokio::test]
async fn another_trc_in_place_of_the_trusted_one_is_refused() {
    let (isd, other) = (Isd::new(), Isd::new());
    let state = tempfile::tempdir().unwrap();
    let joined = Toy::of(&isd, FIRST, 1).await.join(state.path()).await;
    let certs = joined.unwrap().folder.join("certs");
    other.update("1-ff00:0:111");
    for (list, count) in [(FIRST, 1), (SECOND, 2)] {
        let toy = Toy::of(&other, list, count).await;
        let changed = TOPOLOGY.replace("1472", "1300");
        toy.has("/topology", "200 O", changed.as_bytes());
        let error = toy.refusal(state.path()).await;
        assert!(
            error.contains("is not trusted") && error.contains("remove "),
            "{error}"
        );
        let store = Store::load(&certs).unwrap();
        let first = Trc::parse(&isd.trc(1)).unwrap();
        assert_eq!(store.newest(1).unwrap().to_der(), first.to_der());
        let topology = fs::read_to_string(certs.with_file_name("topology.json")).unwrap();
        assert_eq!(topology, TOPOLOGY);
    }
    // So is one with another base.
    let list = FIRST.replace("_number\": 1", "_number\": 2");
    let error = Toy::of(&other, &list, 2).await.refusal(state.path()).await;
    assert!(error.contains("is no update of"), "{error}");
}

#[tokio::test]
async fn bad_answers_are_named_with_the_remedy_and_leave_nothing() {
    let isd = Isd::new();
    let state = tempfile::tempdir().unwrap();
    let large = vec![b' '; MAX_TOPOLOGY + 1];
    let wildcard = TOPOLOGY.replace("1-ff00:0:110", "1-0");
    let no_service = TOPOLOGY.replace("control_service", "control");
    let blob = "/trcs/isd1-b1-s1/blob";
    let many = format!("[{}]", vec![&FIRST[1..FIRST.len() - 1]; 300].join(","));
    let cases: [(&str, &str, &[u8], &str); 12] = [
        (
            "/topology",
            "404 N",
            b"{\"error\": \"no \\u001bsuch\"}",
            "answered 404: no such",
        ),
        ("/topology", "302 F", b"", "answered 302: Found"),
        ("/topology", "200 O", b"<html>", "not a topology.json"),
        ("/topology", "200 O", &large, "larger than 4194304 bytes"),
        (
            "/topology",
            "200 O",
            wildcard.as_bytes(),
            "1-0 is not one AS",
        ),
        (
            "/topology",
            "200 O",
            no_service.as_bytes(),
            "no control service",
        ),
        ("/trcs", "200 O", b"{}", "not a list of TRCs"),
        ("/trcs", "200 O", b"[]", "no TRC of ISD 1"),
        ("/trcs", "200 O", many.as_bytes(), "more than 256 TRCs"),
        ("/trcs", "200 O", SECOND.as_bytes(), "answered 404"),
        (blob, "200 O", b"-----BEGIN TRC-----\n", "not a TRC"),
        (
            blob,
            "200 O",
            &vec![0; MAX_TRC + 1],
            "larger than 262144 bytes",
        ),
    ];
    for (path, status, body, expected) in cases {
        let toy = Toy::of(&isd, FIRST, 1).await;
        toy.has(path, status, body);
        let error = toy.refusal(state.path()).await;
        assert!(error.contains(expected), "{expected} is not in {error}");
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0, "{expected}");
    }
    // Another TRC than was asked for, and one that was changed.
    isd.update("1-ff00:0:111");
    let toy = Toy::of(&isd, FIRST, 1).await;
    toy.has(blob, "200 O", &isd.trc(2));
    let error = toy.refusal(state.path()).await;
    assert!(error.contains("it is ISD1-B1-S2"), "{error}");
    // What is no HTTP, and nobody.
    let mut answers = BTreeMap::from([("/topology".to_owned(), b"SSH-2.0-x\r\n".to_vec())]);
    std::mem::swap(&mut *toy.answers.lock().unwrap(), &mut answers);
    let error = toy.refusal(state.path()).await;
    assert!(error.contains("no bootstrap server answers"), "{error}");
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = nobody.local_addr().unwrap();
    drop(nobody);
    let server: Server = format!("http://{at}").parse().unwrap();
    let error = join(&server, state.path()).await.unwrap_err().to_string();
    assert!(
        error.contains(&format!(
            "no bootstrap server answers at http://{at}/topology: "
        )) && error.contains("port 8041"),
        "{error}"
    );
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
}

#[test]
fn urls_name_a_host_and_perhaps_a_port_and_a_path() {
    for (text, url) in [
        ("http://192.0.2.1", "http://192.0.2.1:8041/topology"),
        ("http://192.0.2.1:80/", "http://192.0.2.1:80/topology"),
        ("http://[fd00::1]", "http://[fd00::1]:8041/topology"),
        ("http://[fd00::1]:1/a/", "http://[fd00::1]:1/a/topology"),
        (
            "http://boot.example/scion",
            "http://boot.example:8041/scion/topology",
        ),
    ] {
        let server: Server = text.parse().unwrap();
        assert_eq!(server.url("/topology"), url);
        assert_eq!(server.to_string().parse(), Ok(server));
    }
    for wrong in [
        "",
        "192.0.2.1",
        "192.0.2.1:8041",
        "/topology",
        "https://192.0.2.1",
        "ftp://192.0.2.1",
        "http://",
        "http://:8041",
        "http://a b",
        "http://x:99999",
        "http://x:0",
        "http://x:",
        "http://u@x",
        "http://x/?a=b",
        "http://[::1",
        "http://[x]",
    ] {
        let error = wrong.parse::<Server>().unwrap_err();
        assert!(
            error.ends_with("write for example http://192.0.2.1:8041"),
            "{wrong}: {error}"
        );
    }
}

#[test]
fn bytes_from_outside_do_not_crash_it() {
    let isd = Isd::new();
    let id = TrcId {
        isd: 1,
        base: 1,
        serial: 1,
    };
    let valid = [
        TOPOLOGY.into(),
        FIRST.into(),
        isd.trc(1),
        b"http://[::1]:1/a".to_vec(),
    ];
    let mut read = [0; 4];
    hawser_fuzz::fuzz(&valid, |input| {
        if let Ok(isd_as) = answers::topology(input) {
            assert!(!isd_as.is_wildcard());
            read[0] += 1;
        }
        if let Ok(ids) = answers::trcs(input) {
            assert!(ids.iter().all(|id| id.isd > 0 && id.base <= id.serial));
            let wanted = updates::wanted(&ids, |_| Some(id)).unwrap_or_default();
            assert!(wanted.len() <= 64);
            read[1] += 1;
        }
        if let Ok(trc) = answers::trc(input, id) {
            let _ = updates::check(&trc, None);
            read[2] += 1;
        }
        let text = String::from_utf8_lossy(input);
        if let Ok(server) = text.parse::<Server>() {
            assert_eq!(server.to_string().parse(), Ok(server));
            read[3] += 1;
        }
    });
    assert!(read.iter().all(|count| *count > 0), "{read:?}");
}

fn ids() -> impl Strategy<Value = Vec<TrcId>> {
    let id = (1_u16..4, 1_u64..4, 0_u64..90);
    let id = id.prop_map(|(isd, base, more)| TrcId {
        isd,
        base,
        serial: base + more,
    });
    prop::collection::vec(id, 0..8)
}

proptest! {
    /// What is fetched is, of each ISD, without a gap from what is trusted to the newest offered.
    #[test]
    fn what_is_fetched_has_no_gaps(offered in ids(), known in ids()) {
        let newest = |isd| known.iter().copied().filter(|id| id.isd == isd).max();
        let Ok(wanted) = updates::wanted(&offered, newest) else { return Ok(()) };
        prop_assert!(wanted.len() <= 64);
        for isd in 1..4 {
            let of: Vec<_> = wanted.iter().filter(|id| id.isd == isd).collect();
            let last = offered.iter().copied().filter(|id| id.isd == isd).max();
            for pair in of.windows(2) {
                prop_assert_eq!(pair[0].serial + 1, pair[1].serial);
            }
            match (newest(isd), last) {
                (None, last) => prop_assert_eq!(of, last.iter().collect::<Vec<_>>()),
                (Some(known), Some(last)) if last >= known && last.base == known.base => {
                    prop_assert_eq!(of.last(), Some(&&last));
                    let first = (known.serial + 1).min(last.serial);
                    prop_assert_eq!(of[0].serial, first);
                }
                (Some(_), _) => prop_assert!(of.is_empty()),
            }
        }
    }
}

use std::fs;

use hawser_topology::AsTopology;
use hawser_trust::Trc;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::testing::{Lab, ia};

const AS: &str = "1-ff00:0:110";

/// A control plane with a bootstrap server on a free port, which runs until this is dropped.
struct Running {
    at: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    async fn start(lab: &Lab) -> Self {
        let control = lab.control(AS).await.unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let control = control.with_bootstrap_at(&[any]).await;
        let at = control.status.bootstrap[0];
        let run = async { control.run(std::future::pending()).await.unwrap() };
        let task = tokio::spawn(run);
        Self { at, task }
    }

    /// The status and the body of the answer.
    async fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.at).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }
}

#[tokio::test]
async fn a_host_gets_the_topology_without_what_only_routers_need() {
    let lab = Lab::two_isds();
    let server = Running::start(&lab).await;
    let (status, body) = server.get("/topology").await;
    assert_eq!(status, 200);
    for private in ["underlay", "bfd", "10.128.0"] {
        assert!(!body.contains(private), "{private}: {body}");
    }
    // A host reads it: all is there but what was left out.
    let read: AsTopology = serde_json::from_str(&body).unwrap();
    let mut expected = lab.dir(ia(AS)).topology().unwrap();
    assert!(!expected.border_routers.is_empty());
    for router in expected.border_routers.values_mut() {
        for interface in router.interfaces.values_mut() {
            interface.underlay = Default::default();
        }
    }
    assert_eq!(read, expected);
    // Changes are followed, and an invalid file is an error of each request.
    expected.mtu = 1300;
    lab.dir(ia(AS)).write_topology(&expected).unwrap();
    let (_, body) = server.get("/topology").await;
    assert!(body.contains("\"mtu\":1300"), "{body}");
    fs::write(lab.dir(ia(AS)).path().join("topology.json"), "{").unwrap();
    let (status, body) = server.get("/topology").await;
    assert_eq!(status, 500);
    assert!(body.contains("topology.json"), "{body}");
}

#[tokio::test]
async fn a_host_gets_the_trcs() {
    let lab = Lab::two_isds();
    let server = Running::start(&lab).await;
    let one = r#"{"id":{"isd":1,"base_number":1,"serial_number":1}}"#;
    let two = r#"{"id":{"isd":2,"base_number":1,"serial_number":1}}"#;
    let certs = lab.dir(ia(AS)).path().join("certs");
    let known = fs::read_dir(&certs).unwrap().count();
    assert_eq!(known, 2, "each AS has the TRCs of both ISDs");
    let all = format!("[{one},{two}]\n");
    assert_eq!(server.get("/trcs").await, (200, all.clone()));
    assert_eq!(server.get("/trcs?all=true").await, (200, all));
    assert_eq!(server.get("/trcs?isd=2").await, (200, format!("[{two}]\n")));
    assert_eq!(server.get("/trcs?isd=3").await.0, 404);
    assert_eq!(server.get("/trcs?isd=one").await.0, 400);

    let (status, blob) = server.get("/trcs/isd1-b1-s1/blob").await;
    assert_eq!(status, 200);
    let got = Trc::parse(blob.as_bytes()).unwrap();
    let file = fs::read(certs.join("ISD1-B1-S1.trc")).unwrap();
    assert_eq!(got.to_der(), Trc::parse(&file).unwrap().to_der());
    for (path, status) in [
        ("/trcs/isd1-b1-s2/blob", 404),
        ("/trcs/ISD1-B1-S1/blob", 400),
        ("/trcs/..%2f..%2fkeys%2fmaster0.key/blob", 400),
        ("/trcs/isd1-b1-s1", 404),
        ("/keys/master0.key", 404),
        ("/", 404),
    ] {
        let (got, body) = server.get(path).await;
        assert_eq!(got, status, "{path}");
        assert!(body.starts_with("{\"error\":"), "{path}: {body}");
    }

    // One that comes later is served too; one that is damaged does not hide the others.
    fs::remove_file(certs.join("ISD2-B1-S1.trc")).unwrap();
    fs::write(certs.join("ISD9-B1-S1.trc"), "damaged").unwrap();
    assert_eq!(server.get("/trcs").await, (200, format!("[{one}]\n")));
}

#[tokio::test]
async fn an_address_that_is_taken_is_left_out() {
    let lab = Lab::ready("fig4");
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let control = lab.control(AS).await.unwrap();
    let at = taken.local_addr().unwrap();
    let free = "127.0.0.1:0".parse().unwrap();
    let control = control.with_bootstrap_at(&[at, free]).await;
    assert_eq!(control.status.bootstrap.len(), 1);
    assert_ne!(control.status.bootstrap[0], at);
}

#[test]
fn only_the_newest_of_an_isd_is_listed_unless_all_are_wanted() {
    let id = |isd, base, serial| TrcId { isd, base, serial };
    let ids = [
        id(1, 1, 1),
        id(1, 1, 2),
        id(1, 3, 3),
        id(2, 1, 1),
        id(4, 1, 1),
        id(4, 1, 2),
    ];
    let select = |query| Wanted::parse(query).unwrap().select(ids.into_iter());
    assert_eq!(select(""), [ids[2], ids[3], ids[5]]);
    assert_eq!(select("all=true"), ids);
    assert_eq!(select("isd=1,4&color=red"), [ids[2], ids[5]]);
    assert_eq!(select("all=true&isd=1%2C2"), ids[..4]);
    for query in ["all=yes", "isd=", "isd=1,", "isd=-1", "isd=65536"] {
        assert!(Wanted::parse(query).is_err(), "{query}");
    }
}

#[test]
fn any_query_and_id_are_read_without_panic() {
    let valid = ["isd1-b1-s1", "isd=1,2&all=true", "all=false&isd=7"];
    let valid: Vec<_> = valid.map(|text| text.as_bytes().to_vec()).into();
    let mut read = 0;
    hawser_fuzz::fuzz(&valid, |input| {
        let text = String::from_utf8_lossy(input);
        let _ = Wanted::parse(&text);
        if let Some(id) = parse_id(&text) {
            read += 1;
            assert_eq!(parse_id(&id.to_string().to_lowercase()), Some(id));
        }
    });
    assert!(read > 0, "no input was valid");
}

proptest! {
    #[test]
    fn identifiers_are_read_back(isd: u16, base: u64, serial: u64) {
        let id = TrcId { isd, base, serial };
        prop_assert_eq!(parse_id(&id.to_string().to_lowercase()), Some(id));
    }
}

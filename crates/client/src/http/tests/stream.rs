//! Files that are read while they are fetched.

use std::os::unix::fs::FileExt;

use hawser_torrent::{Listener as Peers, PeerAddr, Seed, SeedOptions};
use tokio::io::AsyncBufReadExt;
use tokio::io::BufReader;

use super::*;
use crate::record::parse_hash;

/// A torrent of a file of these bytes in pieces of 16 KiB, and a seeder of it.
struct Film {
    metainfo: Vec<u8>,
    hash: String,
    peer: PeerAddr,
    content: Vec<u8>,
    _seed: Seed,
}

impl Film {
    async fn start(dir: &Path, length: usize) -> Self {
        let content: Vec<u8> = (0..length).map(|at| (at / 251 + at) as u8).collect();
        let path = dir.join("film.mp4");
        std::fs::write(&path, &content).unwrap();
        let options = CreateOptions {
            piece_length: Some(16 << 10),
            ..CreateOptions::default()
        };
        let metainfo = create(&path, &options, |_, _| {}).unwrap();
        let parsed = Metainfo::parse(&metainfo).unwrap();
        let hash = parsed.info_hash.to_string();
        let listener = Peers::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let peer = PeerAddr::Ip(listener.local_addr());
        let network = Network::ip().with_listener(listener);
        let seed = Seed::start(parsed, path, network, SeedOptions::default(), |_, _| {});
        Self {
            metainfo,
            hash,
            peer,
            content,
            _seed: seed.await.unwrap(),
        }
    }

    fn file(&self) -> String {
        format!("/api/v1/torrents/{}/files/0", self.hash)
    }
}

impl Api {
    /// The status, head and body of the answer to a request for a file.
    async fn read(&self, first: &str, head: &str) -> (u16, String, Vec<u8>) {
        let mut stream = self.open(first, head).await;
        let (status, head) = head_of(&mut stream).await;
        let mut body = Vec::new();
        stream.read_to_end(&mut body).await.unwrap();
        (status, head, body)
    }

    async fn open(&self, first: &str, head: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let bearer = self.bearer();
        let request = format!(
            "{first} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{bearer}{head}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    fn verified(&self, view: &crate::view::View) -> u64 {
        view.with_progress(|progress| progress.verified_bytes)
            .unwrap()
    }
}

/// The status and the head of an answer, in small letters.
async fn head_of(stream: &mut BufReader<TcpStream>) -> (u16, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).await.unwrap() > 0, "{head}");
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_read_while_it_is_fetched_from_where_it_is_asked_for() {
    let api = Api::start().await;
    let length = 12 << 20;
    let film = Film::start(api.dir.path(), length).await;
    let add = json!({"metainfo": BASE64.encode(&film.metainfo), "peers": [film.peer.to_string()], "stopped": true});
    assert_eq!(api.json("POST /api/v1/torrents", &add).await.0, 201);
    let get = format!("GET {}", film.file());
    // It cannot be fetched as long as it does not run.
    let (status, body) = api.json(&get, &Value::Null).await;
    assert_eq!(status, 409);
    assert!(
        body["error"].as_str().unwrap().contains("start it"),
        "{body}"
    );

    // Slow: all of it would take four minutes.
    let one = format!("/api/v1/torrents/{}", film.hash);
    let slow = json!({"download_rate": 400_000});
    assert_eq!(api.json(&format!("PATCH {one}"), &slow).await.0, 200);
    assert_eq!(
        api.json(&format!("POST {one}/start"), &Value::Null).await.0,
        200
    );
    while api.read(&get.replace("GET", "HEAD"), "").await.0 == 409 {
        tokio::task::yield_now().await;
    }
    // The place that is asked for comes first, wherever it is, and then another one.
    for from in [length - 100_000, length / 2 + 7] {
        let range = format!("Range: bytes={from}-{}\r\n", from + 60_000);
        let (status, head, body) = api.read(&get, &range).await;
        assert_eq!(status, 206, "{head}");
        let expected = format!("content-range: bytes {from}-{}/{length}\r\n", from + 60_000);
        assert!(head.contains(&expected), "{head}");
        assert!(head.contains("content-type: video/mp4\r\n"), "{head}");
        assert!(body == film.content[from..=from + 60_000]);
        let hash = parse_hash(&film.hash).unwrap();
        let verified = api.verified(&api.client.view(hash).await.unwrap());
        assert!(
            verified < length as u64 / 4,
            "{verified} were fetched before"
        );
    }

    // A client that leaves is not waited for, and nothing is fetched first for it any more.
    let hash = parse_hash(&film.hash).unwrap();
    let windows = async || {
        let windows = api.client.call(move |owner| owner.windows(hash)).await;
        windows.unwrap().unwrap()
    };
    let reader = api.open(&get, "Range: bytes=5000000-\r\n").await;
    let mut seen = windows().await.subscribe();
    seen.wait_for(|all| all.latest().is_some_and(|it| it.offset == 5_000_000))
        .await
        .unwrap();
    drop(reader);
    seen.wait_for(|all| all.latest().is_none()).await.unwrap();

    // All of it, as it comes.
    let fast = json!({"download_rate": "unlimited"});
    assert_eq!(api.json(&format!("PATCH {one}"), &fast).await.0, 200);
    let (status, head, body) = api.read(&get, "").await;
    assert_eq!(status, 200, "{head}");
    assert!(body == film.content);
    // Of a torrent that is complete, also when it does not run.
    assert_eq!(
        api.json(&format!("GET {one}/settled"), &Value::Null)
            .await
            .1["status"],
        "seeding"
    );
    assert_eq!(
        api.json(&format!("POST {one}/stop"), &Value::Null).await.0,
        200
    );
    while api.json(&format!("GET {one}"), &Value::Null).await.1["torrent"]["status"] != "stopped" {
        tokio::task::yield_now().await;
    }
    let (status, _, body) = api.read(&get, "Range: bytes=-5\r\n").await;
    assert!(status == 206 && body == film.content[length - 5..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_for_files_are_answered_as_the_rfc_says() {
    let api = Api::start().await;
    let film = Film::start(api.dir.path(), 50_000).await;
    // One that is there already.
    let downloads = api.dir.path().join("downloads");
    std::fs::create_dir(&downloads).unwrap();
    std::fs::write(downloads.join("film.mp4"), &film.content).unwrap();
    let add = json!({"metainfo": BASE64.encode(&film.metainfo)});
    assert_eq!(api.json("POST /api/v1/torrents", &add).await.0, 201);
    let one = format!("/api/v1/torrents/{}", film.hash);
    let settled = api
        .json(&format!("GET {one}/settled"), &Value::Null)
        .await
        .1;
    assert_eq!(settled["status"], "seeding");
    let (get, head) = (
        format!("GET {}", film.file()),
        format!("HEAD {}", film.file()),
    );

    let (status, answer, body) = api.read(&head, "").await;
    assert_eq!((status, body.len()), (200, 0));
    for line in [
        "content-length: 50000",
        "accept-ranges: bytes",
        "x-content-type-options: nosniff",
    ] {
        assert!(answer.contains(&format!("{line}\r\n")), "{answer}");
    }
    assert!(answer.contains(
        "content-security-policy: default-src 'none'; img-src 'self'; media-src 'self'; sandbox"
    ));
    let tag = answer
        .lines()
        .find_map(|line| line.strip_prefix("etag: "))
        .unwrap();
    for (range, expected) in [
        ("bytes=0-9", 206),
        ("bytes=50000-", 416),
        ("bytes=0-1,5-6", 200),
        ("lines=0-1", 200),
    ] {
        let (status, answer, body) = api.read(&get, &format!("Range: {range}\r\n")).await;
        assert_eq!(status, expected, "{range}");
        match status {
            206 => assert_eq!(body, film.content[..10]),
            416 => assert!(
                answer.contains("content-range: bytes */50000\r\n"),
                "{answer}"
            ),
            _ => assert!(body == film.content),
        }
    }
    let same = format!("Range: bytes=1-2\r\nIf-Range: {tag}\r\n");
    assert_eq!(api.read(&get, &same).await.0, 206);
    assert_eq!(
        api.read(&get, "Range: bytes=1-2\r\nIf-Range: \"other\"\r\n")
            .await
            .0,
        200
    );
    // `json` compares the answers with the description.
    for (path, expected) in [("1", 404), ("x", 400), ("4294967296", 400)] {
        let path = format!("GET {one}/files/{path}");
        assert_eq!(api.json(&path, &Value::Null).await.0, expected, "{path}");
    }
    let skipped = json!({"files": [{"wanted": false}]});
    assert_eq!(api.json(&format!("PATCH {one}"), &skipped).await.0, 200);
    let (status, body) = api.json(&get, &Value::Null).await;
    assert_eq!(
        (status, body["error"].as_str().unwrap()),
        (409, "the file is not downloaded: choose it first")
    );

    // What is gone from the disk ends the answer early.
    let wanted = json!({"files": [{"wanted": true}]});
    assert_eq!(api.json(&format!("PATCH {one}"), &wanted).await.0, 200);
    let file = std::fs::File::options()
        .write(true)
        .open(downloads.join("film.mp4"))
        .unwrap();
    file.write_all_at(b"x", 0).unwrap();
    file.set_len(10).unwrap();
    let mut stream = api.open(&get, "").await;
    // Either the head is sent before it is known, or the disk is looked at again.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(rest.len() < 50_000);
}

//! Torrents that are added by the URLs of their files.

use super::*;
use crate::fetch::testing::{server, server_of_heads};

#[tokio::test(flavor = "multi_thread")]
async fn a_torrent_is_added_by_its_url() {
    let api = Api::start().await;
    let (bytes, hash) = torrent(api.dir.path());
    let web = server(move |path| match path {
        "/x.torrent" => [b"HTTP/1.1 200 OK\r\n\r\n", &bytes[..]].concat(),
        "/page" => b"HTTP/1.1 200 OK\r\n\r\n<html>".to_vec(),
        _ => b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec(),
    })
    .await;
    let add = |path: &str| json!({"url": format!("http://{web}{path}"), "stopped": true});
    for (body, expected) in [
        (add("/page"), 400),
        (add("/none"), 502),
        (json!({"url": "ftp://a.example/x.torrent"}), 400),
        (
            json!({"url": "http://127.0.0.1:1/x", "magnet": "magnet:?"}),
            400,
        ),
    ] {
        let (status, answer) = api.json("POST /api/v1/torrents", &body).await;
        assert_eq!(status, expected, "{body}: {answer}");
    }
    let (status, added) = api.json("POST /api/v1/torrents", &add("/x.torrent")).await;
    assert_eq!((status, &added["info_hash"]), (201, &json!(hash)));

    // The same by Transmission's RPC, where it is there already.
    let (_, head, _) = api.rpc("", &json!({})).await;
    let id = head
        .lines()
        .find_map(|line| line.strip_prefix("x-transmission-session-id: "))
        .unwrap();
    let call = async |arguments: Value| {
        let body = json!({"method": "torrent-add", "arguments": arguments});
        let (status, _, answer) = api.rpc(id, &body).await;
        assert_eq!(status, 200);
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    let url = format!("http://{web}/x.torrent");
    let again = call(json!({"filename": url})).await;
    assert_eq!(
        again["arguments"]["torrent-duplicate"]["hashString"], hash,
        "{again}"
    );
    // One that lets in nobody without cookies.
    let bytes = std::fs::read(
        api.dir
            .path()
            .join("state/torrents")
            .join(format!("{hash}.torrent")),
    );
    let bytes = bytes.unwrap();
    let closed =
        server_of_heads(
            move |head| match head.to_lowercase().contains("cookie: a=b\r\n") {
                true => [b"HTTP/1.1 200 OK\r\n\r\n", &bytes[..]].concat(),
                false => b"HTTP/1.1 403 Forbidden\r\n\r\n".to_vec(),
            },
        );
    let url = format!("http://{}/", closed.await);
    let refused = call(json!({"filename": url})).await;
    assert!(
        refused["result"].as_str().unwrap().contains("403"),
        "{refused}"
    );
    let again = call(json!({"filename": url, "cookies": "a=b"})).await;
    assert_eq!(
        again["arguments"]["torrent-duplicate"]["hashString"], hash,
        "{again}"
    );
    let missing = call(json!({"filename": format!("http://{web}/none")})).await;
    assert!(
        missing["result"].as_str().unwrap().contains("404"),
        "{missing}"
    );
}

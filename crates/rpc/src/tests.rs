//! A service and its clients, over TCP.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hawser_proto::Message;
use hawser_proto::daemon::{AS, ASRequest, ASResponse, INTERFACES};
use hawser_proto::well_known::Empty;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::{Client, Code, MAX_MESSAGE, Router, RpcError, frame, serve};

const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// What the service says of these ASes.
const UNKNOWN: u64 = 404;
const SLOW: u64 = 504;

async fn answer(request: ASRequest) -> Result<ASResponse, RpcError> {
    match request.isd_as {
        UNKNOWN => Err(RpcError::new(Code::NotFound, "kein AS für 100 %")),
        SLOW => std::future::pending().await,
        isd_as => Ok(ASResponse {
            isd_as,
            core: true,
            mtu: 1472,
        }),
    }
}

struct Service {
    at: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Service {
    async fn start(at: impl Into<SocketAddr>) -> Self {
        let listener = TcpListener::bind(at.into()).await.unwrap();
        let at = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let router = Router::new().with_method(AS, answer);
        let task = tokio::spawn(serve(listener, router, stopped));
        Self { at, stop, task }
    }

    async fn stop(self) {
        self.stop.send(true).unwrap();
        self.task.await.unwrap();
    }
}

fn client(at: SocketAddr) -> Client {
    Client::new(&at.to_string(), Duration::from_secs(10)).unwrap()
}

async fn ask(client: &Client, isd_as: u64) -> Result<ASResponse, RpcError> {
    client.call(AS, &ASRequest { isd_as }).await
}

/// The head and the body of the answer to a request over HTTP/1.
async fn http(at: SocketAddr, head: &str, body: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let head = format!(
        "{head}\r\nHost: {at}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(&[head.as_bytes(), body].concat())
        .await
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let body = answer.split_off(end + 4);
    (String::from_utf8(answer).unwrap().to_lowercase(), body)
}

fn post(headers: &str) -> String {
    format!("POST {} HTTP/1.1\r\n{headers}", AS.path())
}

#[tokio::test]
async fn calls_are_answered_by_grpc() {
    let service = Service::start(ANY).await;
    let client = client(service.at);
    let found = ask(&client, 7).await.unwrap();
    assert_eq!((found.isd_as, found.core, found.mtu), (7, true, 1472));
    // A message without bytes has a frame, too.
    assert_eq!(ask(&client, 0).await.unwrap().isd_as, 0);
    let error = ask(&client, UNKNOWN).await.unwrap_err();
    assert_eq!(error, RpcError::new(Code::NotFound, "kein AS für 100 %"));
    let error = client.call(INTERFACES, &Empty {}).await.unwrap_err();
    assert_eq!(error.code, Code::Unimplemented);
    let (one, other) = tokio::join!(ask(&client, 1), ask(&client, 2));
    assert_eq!((one.unwrap().isd_as, other.unwrap().isd_as), (1, 2));
}

#[tokio::test]
async fn calls_are_answered_by_connect() {
    let service = Service::start(ANY).await;
    let request = |isd_as| ASRequest { isd_as }.encode_to_vec();
    let proto = post("Content-Type: application/proto");
    let (head, body) = http(service.at, &proto, &request(7)).await;
    assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/proto\r\n"),
        "{head}"
    );
    assert_eq!(ASResponse::decode(body.as_slice()).unwrap().isd_as, 7);
    let (head, body) = http(service.at, &proto, &request(UNKNOWN)).await;
    assert!(head.starts_with("http/1.1 404 "), "{head}");
    assert!(
        head.contains("content-type: application/json\r\n"),
        "{head}"
    );
    let expected = r#"{"code":"not_found","message":"kein AS für 100 %"}"#;
    assert_eq!(String::from_utf8(body).unwrap(), expected);
}

#[tokio::test]
async fn what_there_is_not_is_refused() {
    let service = Service::start(ANY).await;
    let request = ASRequest { isd_as: 7 }.encode_to_vec();
    let proto = "Content-Type: application/proto";
    for (head, status, code) in [
        (post("Content-Type: application/json"), 415, ""),
        (post("X-None: 1"), 415, ""),
        (format!("GET {} HTTP/1.1", AS.path()), 405, ""),
        (format!("PUT {} HTTP/1.1\r\n{proto}", AS.path()), 405, ""),
        ("GET /none HTTP/1.1".to_owned(), 404, "unimplemented"),
        (
            format!("POST /a/b HTTP/1.1\r\n{proto}"),
            404,
            "unimplemented",
        ),
        (
            post(&format!("{proto}\r\nContent-Encoding: gzip")),
            501,
            "unimplemented",
        ),
        (
            post(&format!("{proto}\r\nConnect-Protocol-Version: 2")),
            400,
            "invalid_argument",
        ),
        (
            post(&format!("{proto}\r\nConnect-Timeout-Ms: 0")),
            504,
            "deadline_exceeded",
        ),
    ] {
        // A timeout that is over counts only while there is something to wait for.
        let request = match status {
            504 => ASRequest { isd_as: SLOW }.encode_to_vec(),
            _ => request.clone(),
        };
        let (answer, body) = http(service.at, &head, &request).await;
        assert!(
            answer.starts_with(&format!("http/1.1 {status} ")),
            "{head}: {answer}"
        );
        let body = String::from_utf8(body).unwrap();
        let has = body.contains(&format!("\"code\":\"{code}\""));
        assert!(
            if code.is_empty() {
                body.is_empty()
            } else {
                has
            },
            "{head}: {body}"
        );
    }
    let (answer, _) = http(service.at, &post("Content-Type: text/plain"), b"").await;
    assert!(
        answer.contains("accept-post: application/grpc, "),
        "{answer}"
    );
    let (answer, body) = http(service.at, &post(proto), &[0xff]).await;
    assert!(answer.starts_with("http/1.1 400 "), "{answer}");
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains("failed to decode proto request"), "{body}");
}

#[tokio::test]
async fn what_there_is_not_is_refused_by_grpc() {
    let service = Service::start(ANY).await;
    let valid = frame::frame(&ASRequest { isd_as: SLOW }.encode_to_vec());
    let grpc = "Content-Type: application/grpc";
    let twice = [valid.as_ref(), valid.as_ref()].concat();
    for (headers, body, status) in [
        ("Content-Type: application/grpc-web", valid.as_ref(), 12),
        ("Content-Type: application/grpc+json", valid.as_ref(), 12),
        (
            "Content-Type: application/grpc\r\nGrpc-Encoding: gzip",
            valid.as_ref(),
            12,
        ),
        (
            "Content-Type: application/grpc\r\nGrpc-Timeout: 1n",
            valid.as_ref(),
            4,
        ),
        (grpc, b"", 12),
        (grpc, &twice, 12),
        (grpc, &valid[..4], 3),
        (grpc, b"\0\0\0\0\x01\xff", 3),
        (grpc, b"\x01\0\0\0\0", 13),
        (grpc, b"\0\x7f\0\0\0", 8),
    ] {
        let (answer, body) = http(service.at, &post(headers), body).await;
        assert!(answer.starts_with("http/1.1 200 "), "{headers}: {answer}");
        assert!(
            answer.contains("content-type: application/grpc+proto\r\n"),
            "{answer}"
        );
        let expected = format!("grpc-status: {status}\r\n");
        assert!(answer.contains(&expected), "{headers}: {answer}");
        assert!(body.is_empty());
    }
}

#[tokio::test]
async fn long_bodies_are_refused() {
    let service = Service::start(ANY).await;
    // It fits into the longest frame, but is no message.
    let longest = vec![0xff; MAX_MESSAGE];
    let proto = post("Content-Type: application/proto");
    let (head, _) = http(service.at, &proto, &longest).await;
    assert!(head.starts_with("http/1.1 400 "), "{head}");
    let (head, body) = http(service.at, &proto, &[&longest[..], &[0; 6]].concat()).await;
    assert!(head.starts_with("http/1.1 429 "), "{head}");
    assert!(body.starts_with(b"{\"code\":\"resource_exhausted\""));
}

#[tokio::test]
async fn a_client_connects_again() {
    let service = Service::start(ANY).await;
    let (at, client) = (service.at, client(service.at));
    assert!(ask(&client, 1).await.is_ok());
    service.stop().await;
    for _ in 0..2 {
        let error = ask(&client, 1).await.unwrap_err();
        assert_eq!(error.code, Code::Unavailable, "{error}");
    }
    let _service = Service::start(at).await;
    assert!(ask(&client, 1).await.is_ok());
}

#[tokio::test]
async fn calls_share_a_connection() {
    let service = Service::start(ANY).await;
    let front = TcpListener::bind(ANY).await.unwrap();
    let client = client(front.local_addr().unwrap());
    // Only one connection is taken on to the service.
    tokio::spawn(async move {
        let (mut near, _) = front.accept().await.unwrap();
        drop(front);
        let mut far = TcpStream::connect(service.at).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
    });
    let (one, two, three) = tokio::join!(ask(&client, 1), ask(&client, 2), ask(&client, 3));
    let answers = [one, two, three].map(|answer| answer.unwrap().isd_as);
    assert_eq!(answers, [1, 2, 3]);
}

#[tokio::test]
async fn other_answers_than_those_of_grpc_are_refused() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream
                .write_all(b"220 mail.example ESMTP\r\n")
                .await
                .unwrap();
        }
    });
    let error = ask(&client(at), 1).await.unwrap_err();
    assert_eq!(error.code, Code::Unavailable, "{error}");
}

#[test]
fn addresses_are_host_and_port() {
    let new = |address: &str| Client::new(address, Duration::from_secs(1));
    for valid in [
        "127.0.0.1:30255",
        "[::1]:30255",
        "localhost:1",
        "a-b.example:65535",
    ] {
        assert!(new(valid).is_ok(), "{valid}");
    }
    for invalid in [
        "", ":1", "a", "a:", "a:b", "a b:1", "a:1/b", "user@a:1", "a:65536", "::1:1",
    ] {
        assert!(new(invalid).is_err(), "{invalid}");
    }
}

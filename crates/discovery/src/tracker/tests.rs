use std::sync::Arc;
use std::time::Duration;

use hawser_tracker::SwarmOptions;
use hawser_tracker::message::Event;
use hawser_tracker::message::http::AnswerError;
use hawser_tracker::message::udp::Form;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

mod endless;

use super::*;
use crate::serve::ServeOptions;
use crate::testing::{Local, request, response, scripted, wire};

fn client() -> Client {
    client_with(ClientOptions::default())
}

fn client_with(options: ClientOptions) -> Client {
    Client::new(options).expect("a client")
}

fn hasty() -> ClientOptions {
    ClientOptions {
        timeout: Duration::from_millis(500),
        udp_timeout: Duration::from_millis(150),
        ..ClientOptions::default()
    }
}

fn texts(answer: &Answer) -> Vec<String> {
    let mut texts: Vec<_> = answer.peers.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn trackers_are_asked_over_http_and_udp() {
    let tracker = Local::default();
    let client = client();
    for (port, url) in (1..).zip(tracker.http.iter().chain(&tracker.udp)) {
        client
            .announce(url, &request(port))
            .await
            .expect("an answer");
    }
    let over_http = client
        .announce(&tracker.http[0], &request(5))
        .await
        .expect("an answer");
    assert_eq!(
        texts(&over_http),
        ["127.0.0.1:1", "127.0.0.1:3", "[::1]:2", "[::1]:4"]
    );
    assert_eq!(over_http.external_ip, Some([127, 0, 0, 1].into()));
    let over_udp = client
        .announce(&tracker.udp[1], &request(6))
        .await
        .expect("an answer");
    assert_eq!(texts(&over_udp), ["[::1]:2", "[::1]:4"]);
    assert_eq!(over_udp.incomplete, Some(6));
    for url in [&tracker.http[0], &tracker.udp[0]] {
        let hashes = [[1; 20], [2; 20]];
        let scraped = client.scrape(url, &hashes).await.expect("numbers");
        assert_eq!(scraped[&[1; 20]].incomplete, 6);
        assert_eq!(scraped[&[2; 20]], Scraped::default());
    }
    let stopped = AnnounceRequest {
        event: Event::Stopped,
        ..request(5)
    };
    client
        .announce(&tracker.http[0], &stopped)
        .await
        .expect("an answer");
    let counters = tracker.monitor.counters();
    assert_eq!(
        (counters.peers, counters.announces, counters.scrapes),
        (5, 7, 2)
    );
    // One connection id for each address.
    assert_eq!(counters.connects, 2);
}

#[tokio::test]
async fn scion_addresses_are_given_to_those_that_have_one() {
    let tracker = Local::default();
    let client = client();
    let with_scion = |port, scion: &str| AnnounceRequest {
        scion: Some(scion.parse().expect("an address")),
        ..request(port)
    };
    let first = with_scion(1, "1-ff00:0:110,10.0.0.1:6881");
    client
        .announce(&tracker.http[0], &first)
        .await
        .expect("an answer");
    // In URL data.
    let second = with_scion(2, "1-ff00:0:111,[fd00::1]:6881");
    let over_udp = client
        .announce(&tracker.udp[0], &second)
        .await
        .expect("an answer");
    assert_eq!(texts(&over_udp), ["127.0.0.1:1"]);
    let third = with_scion(3, "1-ff00:0:112,10.0.0.1:6881");
    let answer = client
        .announce(&tracker.http[0], &third)
        .await
        .expect("an answer");
    let expected = [
        "1-ff00:0:110,10.0.0.1:6881",
        "1-ff00:0:111,[fd00::1]:6881",
        "127.0.0.1:1",
        "127.0.0.1:2",
    ];
    assert_eq!(texts(&answer), expected);
    let plain = client
        .announce(&tracker.http[0], &request(4))
        .await
        .expect("an answer");
    assert_eq!(texts(&plain), ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]);
}

#[tokio::test]
async fn a_tracker_in_a_scion_network_is_asked() {
    let host: PeerAddr = "1-ff00:0:110,10.0.0.1:40000".parse().expect("a peer");
    let server: PeerAddr = "1-ff00:0:112,10.0.0.2:6969".parse().expect("a peer");
    let (here, there) = wire(host, server);
    let tracker = Local::new(ServeOptions {
        scion: Some(there),
        ..ServeOptions::default()
    });
    let client = client_with(ClientOptions {
        scion: Some(here),
        ..ClientOptions::default()
    });
    client
        .announce(&tracker.http[0], &request(9))
        .await
        .expect("an answer");
    let url = "udp://[1-ff00:0:112,10.0.0.2]:6969/announce";
    let own = AnnounceRequest {
        scion: Some("1-ff00:0:110,10.0.0.1:6881".parse().expect("an address")),
        ..request(1)
    };
    let answer = client.announce(url, &own).await.expect("an answer");
    assert_eq!(texts(&answer), ["127.0.0.1:9"]);
    let scion_only = AnnounceRequest {
        scion: None,
        port: 7,
        ..request(1)
    };
    let answer = client.announce(url, &scion_only).await.expect("an answer");
    assert_eq!(
        texts(&answer),
        ["1-ff00:0:110,10.0.0.1:6881", "127.0.0.1:9"]
    );
    let without = super::tests::client().announce(url, &own).await;
    assert!(matches!(without, Err(AnnounceError::NoScion { .. })));
}

#[tokio::test]
async fn refusals_have_their_reason() {
    let tracker = Local::new(ServeOptions {
        swarms: SwarmOptions {
            allowed: Some([[9; 20]].into()),
            ..SwarmOptions::default()
        },
        ..ServeOptions::default()
    });
    for url in [&tracker.http[0], &tracker.udp[0]] {
        let refused = client().announce(url, &request(1)).await;
        let text = refused.expect_err("a refusal").to_string();
        assert_eq!(
            text,
            "the tracker refuses: this torrent is not tracked here"
        );
    }
}

/// What comes of an announce to a server that answers so.
async fn against(answers: Vec<Vec<u8>>) -> Result<Answer, AnnounceError> {
    let port = scripted(answers).await;
    let url = format!("http://127.0.0.1:{port}/announce");
    client_with(hasty()).announce(&url, &request(1)).await
}

#[tokio::test]
async fn odd_answers_over_http_are_refused() {
    let good = response("200 OK", "", b"d8:intervali900e5:peers0:e");
    assert!(against(vec![good.clone()]).await.is_ok());
    let refused = response("403 Forbidden", "", b"d14:failure reason2:noe");
    let error = against(vec![refused]).await;
    assert!(matches!(error, Err(AnnounceError::Refused { reason, .. }) if reason == "no"));
    let error = against(vec![response("500 Oops", "", b"<html>")]).await;
    assert!(matches!(
        error,
        Err(AnnounceError::Status { status: 500, .. })
    ));
    let error = against(vec![response("200 OK", "", b"<html>")]).await;
    assert!(matches!(
        error,
        Err(AnnounceError::Answer(AnswerError::Bencode(_)))
    ));
    let error = against(vec![b"garbage\r\n\r\n".to_vec()]).await;
    assert!(matches!(error, Err(AnnounceError::Http { .. })));
    let error = against(vec![Vec::new()]).await;
    assert!(matches!(error, Err(AnnounceError::Http { .. })));
    let long = response("200 OK", "", &vec![b'x'; 2 << 20]);
    let error = against(vec![long]).await;
    assert!(
        matches!(error, Err(AnnounceError::Answer(AnswerError::Long))),
        "{error:?}"
    );
    let long_head = format!("X: {}\r\n", "y".repeat(1 << 20));
    let error = against(vec![response("200 OK", &long_head, b"de")]).await;
    assert!(
        matches!(error, Err(AnnounceError::Http { .. })),
        "{error:?}"
    );
    let gzip = response("200 OK", "Content-Encoding: gzip\r\n", b"\x1f\x8b");
    let error = against(vec![gzip]).await;
    assert!(matches!(error, Err(AnnounceError::Http { .. })));
    // Up to the end of the connection.
    let old = b"HTTP/1.0 200 OK\r\n\r\nd8:intervali900e5:peers0:e".to_vec();
    assert!(against(vec![old]).await.is_ok());
    // Without an end.
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nd8:in".to_vec();
    let error = against(vec![cut]).await;
    assert!(matches!(error, Err(AnnounceError::Http { .. })));
}

#[tokio::test]
async fn redirects_are_followed_for_a_while() {
    let to = |location: &str| response("302 Found", &format!("Location: {location}\r\n"), b"");
    let good = response("200 OK", "", b"d8:intervali900e5:peers0:e");
    let few = vec![to("/a?b=c"), to("/b"), to("/c"), good.clone()];
    assert!(against(few).await.is_ok());
    let port = scripted(vec![good]).await;
    let absolute = to(&format!("http://127.0.0.1:{port}/x"));
    assert!(against(vec![absolute]).await.is_ok());
    for location in ["/loop", "udp://127.0.0.1:5", "", "ftp://x/", "//x/y"] {
        let error = against(vec![to(location)]).await;
        assert!(
            matches!(error, Err(AnnounceError::Redirect { .. })),
            "{location}: {error:?}"
        );
    }
}

#[tokio::test]
async fn trackers_that_are_silent_are_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let addr = silent.local_addr().expect("an address");
    let url = format!("http://{addr}/announce");
    let error = client_with(hasty()).announce(&url, &request(1)).await;
    assert!(
        matches!(error, Err(AnnounceError::TimedOut { .. })),
        "{error:?}"
    );
    drop(silent);
    let error = client_with(hasty()).announce(&url, &request(1)).await;
    assert!(
        matches!(error, Err(AnnounceError::Reach { .. })),
        "{error:?}"
    );
    let silent = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let addr = silent.local_addr().expect("an address");
    let begin = tokio::time::Instant::now();
    let url = format!("udp://{addr}/announce");
    let error = client_with(hasty()).announce(&url, &request(1)).await;
    assert!(
        matches!(error, Err(AnnounceError::TimedOut { .. })),
        "{error:?}"
    );
    assert!(begin.elapsed() >= Duration::from_millis(450));
    // It was asked twice.
    let mut buffer = [0; 100];
    for _ in 0..2 {
        assert_eq!(silent.try_recv(&mut buffer).expect("a packet"), 16);
    }
    assert!(silent.try_recv(&mut buffer).is_err());
}

#[tokio::test]
async fn packets_that_are_lost_or_false_do_no_harm() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let addr = socket.local_addr().expect("an address");
    let server = tokio::spawn(async move {
        let mut buffer = [0; 2048];
        let mut asked = 0;
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.expect("a packet");
            let request = UdpRequest::read(&buffer[..length]).expect("a request");
            asked += 1;
            let (transaction, answer) = match request {
                // The first is lost.
                _ if asked == 1 => continue,
                UdpRequest::Connect { transaction } => (transaction, UdpAnswer::Connect(77)),
                UdpRequest::Announce {
                    transaction,
                    connection,
                    ..
                } => {
                    assert_eq!(connection, 77);
                    (
                        transaction,
                        UdpAnswer::Announce(Answer {
                            peers: vec!["10.0.0.1:5".parse().expect("a peer")],
                            ..Answer::default()
                        }),
                    )
                }
                UdpRequest::Scrape { .. } => panic!("a scrape"),
            };
            let false_one = UdpAnswer::Error("false".into()).write(transaction ^ 1, Form::Ipv4);
            for packet in [vec![1, 2], false_one, answer.write(transaction, Form::Ipv4)] {
                socket.send_to(&packet, from).await.expect("sent");
            }
            // Repeated.
            socket
                .send_to(&answer.write(transaction, Form::Ipv4), from)
                .await
                .expect("sent");
        }
    });
    let url = format!("udp://{addr}");
    let client = client_with(hasty());
    for _ in 0..3 {
        let answer = client.announce(&url, &request(1)).await.expect("an answer");
        assert_eq!(texts(&answer), ["10.0.0.1:5"]);
    }
    server.abort();
}

#[tokio::test]
async fn a_tracker_that_was_restarted_is_connected_anew() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let addr = socket.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        let (mut given, mut announces) = (0, 0);
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.expect("a packet");
            let (transaction, answer) = match UdpRequest::read(&buffer[..length]) {
                Ok(UdpRequest::Connect { transaction }) => {
                    given += 1;
                    (transaction, UdpAnswer::Connect(given))
                }
                Ok(UdpRequest::Announce {
                    transaction,
                    connection,
                    ..
                }) => {
                    announces += 1;
                    // After the first announce, the first id is no longer known.
                    let answer = match connection == 1 && announces > 1 {
                        true => UdpAnswer::Error("unknown connection id".into()),
                        false => UdpAnswer::Announce(Answer::default()),
                    };
                    (transaction, answer)
                }
                other => panic!("{other:?}"),
            };
            socket
                .send_to(&answer.write(transaction, Form::Ipv4), from)
                .await
                .expect("sent");
        }
    });
    let url = format!("udp://{addr}");
    let client = client_with(hasty());
    for _ in 0..3 {
        client.announce(&url, &request(1)).await.expect("an answer");
    }
}

#[tokio::test]
async fn names_are_asked_over_both_families() {
    let tracker = Local::default();
    let port = tracker.http[0]
        .trim_end_matches("/announce")
        .rsplit(':')
        .next();
    let url = format!("http://localhost:{}/announce", port.expect("a port"));
    client()
        .announce(&url, &request(1))
        .await
        .expect("an answer");
    let missing = client()
        .announce("http://no-such-host.invalid/announce", &request(1))
        .await;
    assert!(
        matches!(missing, Err(AnnounceError::Resolve { .. })),
        "{missing:?}"
    );
    let udp_missing = client()
        .announce("udp://no-such-host.invalid:5", &request(1))
        .await;
    assert!(matches!(udp_missing, Err(AnnounceError::Resolve { .. })));
    let invalid = client().announce("wss://t.example/", &request(1)).await;
    assert!(matches!(invalid, Err(AnnounceError::Url(_))));
}

#[tokio::test]
async fn an_answer_of_one_family_waits_for_the_other() {
    let answer = |peer: &str| {
        Some(Ok(UdpAnswer::Announce(Answer {
            peers: vec![peer.parse().expect("a peer")],
            ..Answer::default()
        })))
    };
    let failed = || {
        Some(Err(AnnounceError::TimedOut {
            host: "t".into(),
            after: Duration::ZERO,
        }))
    };
    let peers = |asked| match asked {
        Some(Ok(UdpAnswer::Announce(answer))) => answer.peers.len(),
        _ => 0,
    };
    let (one, other) = (answer("10.0.0.1:1"), answer("[fd00::1]:1"));
    assert_eq!(peers(both(async { one }, async { other }).await), 2);
    let one = answer("10.0.0.1:1");
    assert_eq!(peers(both(async { failed() }, async { one }).await), 1);
    let one = answer("10.0.0.1:1");
    assert_eq!(peers(both(async { None }, async { one }).await), 1);
    assert!(both(async { None }, async { None }).await.is_none());
    assert!(
        both(async { failed() }, async { None })
            .await
            .is_some_and(|it| it.is_err())
    );
    tokio::time::pause();
    let one = answer("10.0.0.1:1");
    assert_eq!(peers(both(async { one }, std::future::pending()).await), 1);
}

#[tokio::test]
async fn https_needs_a_trusted_certificate() {
    let names = vec!["localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let root = made.cert.der().to_vec();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.expect("a key"))
        .expect("a configuration");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.expect("a byte"));
            }
            let text = String::from_utf8_lossy(&head);
            assert!(text.starts_with("GET /secret/announce?"), "{text}");
            assert!(
                text.contains(&format!("host: localhost:{port}\r\n")),
                "{text}"
            );
            let answer = response("200 OK", "", b"d8:intervali900e5:peers0:e");
            stream.write_all(&answer).await.expect("written");
            let _ = stream.shutdown().await;
        }
    });
    let url = format!("https://localhost:{port}/secret/announce");
    let trusting = client_with(ClientOptions {
        roots: vec![root],
        ..ClientOptions::default()
    });
    trusting
        .announce(&url, &request(1))
        .await
        .expect("an answer");
    let other = client().announce(&url, &request(1)).await;
    assert!(matches!(other, Err(AnnounceError::Tls { .. })), "{other:?}");
    let wrong_name = url.replace("localhost", "127.0.0.1");
    let other = trusting.announce(&wrong_name, &request(1)).await;
    assert!(matches!(other, Err(AnnounceError::Tls { .. })), "{other:?}");
    let malformed = client_with(ClientOptions {
        roots: vec![vec![1, 2, 3]],
        ..ClientOptions::default()
    });
    let other = malformed.announce(&url, &request(1)).await;
    assert!(matches!(other, Err(AnnounceError::Tls { .. })), "{other:?}");
}

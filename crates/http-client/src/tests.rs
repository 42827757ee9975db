//! Requests against servers that answer as a script says.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Serves one answer after another, the last one over and over; returns the URL and the heads of requests.
async fn scripted(answers: &[&str]) -> (HttpUrl, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let url = format!("http://{}/a/b", listener.local_addr().expect("an address"));
    let answers: Vec<String> = answers.iter().map(|it| (*it).to_owned()).collect();
    let (sender, heads) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut next = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let _ = sender.send(String::from_utf8_lossy(&head).into_owned());
            let answer = &answers[next.min(answers.len() - 1)];
            next += 1;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (url.parse().expect("a URL"), heads)
}

#[tokio::test]
async fn a_range_is_asked_for_and_its_bytes_arrive() {
    let answer = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-8/20\r\nContent-Length: 4\r\n\r\nabcd";
    let (url, mut heads) = scripted(&[answer]).await;
    let client = HttpClient::default();
    let response = client.get(&url, Some(5..9)).await.expect("a response");
    let range = ContentRange {
        first: 5,
        last: 8,
        total: Some(20),
    };
    assert_eq!(response.status(), 206);
    assert_eq!(response.content_range(), Some(range));
    assert_eq!(response.content_length(), Some(4));
    response.check_encoding().expect("it is not compressed");
    assert_eq!(response.read(4).await.expect("a body"), b"abcd");
    let head = heads.recv().await.expect("a request").to_lowercase();
    assert!(head.starts_with("get /a/b http/1.1\r\n"), "{head}");
    assert!(head.contains("range: bytes=5-8\r\n"), "{head}");
    assert!(
        head.contains(&format!("host: {}\r\n", url.authority())),
        "{head}"
    );
}

#[tokio::test]
async fn cookies_are_sent_to_their_host_alone() {
    let done = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (other, mut elsewhere) = scripted(&[done]).await;
    let away = format!("HTTP/1.1 302 x\r\nLocation: {other}\r\nContent-Length: 0\r\n\r\n");
    let here = "HTTP/1.1 302 x\r\nLocation: /c\r\nContent-Length: 0\r\n\r\n";
    let (url, mut heads) = scripted(&[here, &away]).await;
    let client = HttpClient::default();
    let cookies = Some("uid=1; pass=secret");
    let response = client.get_with_cookies(&url, None, cookies).await;
    assert_eq!(response.expect("a response").status(), 200);
    for _ in 0..2 {
        let head = heads.recv().await.expect("a request").to_lowercase();
        assert!(head.contains("cookie: uid=1; pass=secret\r\n"), "{head}");
    }
    let head = elsewhere.recv().await.expect("a request").to_lowercase();
    assert!(
        !head.contains("cookie") && !head.contains("secret"),
        "{head}"
    );
    // None that would be further headers, and none in an error.
    let wrong = Some("secret\r\nX: y");
    let error = client.get_with_cookies(&url, None, wrong).await;
    let error = error.expect_err("it is no header").to_string();
    assert!(!error.contains("secret"), "{error}");
    assert!(heads.try_recv().is_err());
}

#[test]
fn cookies_follow_a_host_to_https_and_not_back() {
    let url = |text: &str| text.parse::<HttpUrl>().expect("a URL");
    for (first, next, is) in [
        ("http://a.example/", "http://a.example/x", true),
        ("http://a.example/", "https://a.example/", true),
        ("https://a.example/", "http://a.example/", false),
        ("https://a.example/", "https://a.example:444/", false),
        ("http://a.example/", "http://b.a.example/", false),
    ] {
        assert_eq!(url(next).is_trusted_by(&url(first)), is, "{first} {next}");
    }
}

#[tokio::test]
async fn redirects_keep_the_range_and_end() {
    let there = "HTTP/1.1 302 Found\r\nLocation: /c\r\nContent-Length: 0\r\n\r\n";
    let good = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (url, mut heads) = scripted(&[there, there, there, good]).await;
    let client = HttpClient::default();
    let response = client.get(&url, Some(0..1)).await.expect("a response");
    assert_eq!(response.status(), 200);
    for path in ["/a/b", "/c", "/c", "/c"] {
        let head = heads.recv().await.expect("a request").to_lowercase();
        assert!(head.starts_with(&format!("get {path} ")), "{head}");
        assert!(head.contains("range: bytes=0-0\r\n"), "{head}");
    }
    let (url, _heads) = scripted(&[there]).await;
    let error = client.get(&url, None).await.expect_err("it never ends");
    assert!(matches!(error, HttpError::Redirect { .. }), "{error}");
}

#[tokio::test]
async fn bodies_that_are_cut_long_or_compressed_are_errors() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
    let (url, _heads) = scripted(&[cut]).await;
    let client = HttpClient::default();
    let response = client.get(&url, None).await.expect("a response");
    let error = response.read(100).await.expect_err("it is cut");
    assert!(matches!(error, HttpError::Protocol { .. }), "{error}");
    let response = client.get(&url, None).await.expect("a response");
    let error = response.read(2).await.expect_err("it is long");
    assert!(matches!(error, HttpError::Long { most: 2, .. }), "{error}");
    let packed = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nRetry-After: 7\r\n\r\n";
    let (url, _heads) = scripted(&[packed]).await;
    let response = client.get(&url, None).await.expect("a response");
    assert_eq!(response.retry_after(), Some(7));
    assert!(response.check_encoding().is_err());
}

#[test]
fn any_content_range_is_read_or_refused() {
    for (text, read) in [
        ("bytes 0-0/1", Some((0, 0, Some(1)))),
        ("Bytes 3-9/*", Some((3, 9, None))),
        ("bytes 3-2/9", None),
        ("bytes 3-9/9", None),
        ("bytes */9", None),
        ("items 0-1/2", None),
        ("bytes +0-1/2", None),
        ("bytes 0-18446744073709551616/*", None),
    ] {
        let range = ContentRange::parse(text);
        let range = range.map(|range| (range.first, range.last, range.total));
        assert_eq!(range, read, "{text}");
    }
    let valid = [b"bytes 0-99/1000".to_vec(), b"bytes 5-9/*".to_vec()];
    hawser_fuzz::fuzz(&valid, |input| {
        if let Some(range) = ContentRange::parse(&String::from_utf8_lossy(input)) {
            assert!(range.first <= range.last);
            assert!(range.total.is_none_or(|total| range.last < total));
        }
    });
}

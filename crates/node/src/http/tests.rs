use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// Answers each request of a connection with the same bytes.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => break,
        }
    }
    let _ = stream.write_all(answer).await;
    let _ = stream.shutdown().await;
    String::from_utf8(request).unwrap()
}

fn ask(path: &str) -> Ask<'_> {
    Ask {
        method: Method::GET,
        path,
        tag: Some("\"1\""),
        body: None,
        patience: Duration::from_secs(30),
        most: 100,
    }
}

/// What a client makes of `bytes` over plain HTTP, and its request.
async fn plain(bytes: &[u8]) -> (Result<Answer, FetchError>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/base/", listener.local_addr().unwrap());
    let mut client = Client::new(&url, "secret", None).unwrap();
    let serve = async {
        let (stream, _) = listener.accept().await.unwrap();
        answer(stream, bytes).await
    };
    tokio::join!(client.ask(ask("/api/host/h/config?wait=1")), serve)
}

#[tokio::test]
async fn requests_say_who_asks_and_what_is_known() {
    let ok = b"HTTP/1.1 200 OK\r\netag: \"2\"\r\ncontent-length: 2\r\n\r\nhi";
    let (answer, request) = plain(ok).await;
    let answer = answer.unwrap();
    assert_eq!(answer.tag.as_deref(), Some("\"2\""));
    assert_eq!(&answer.body[..], b"hi");
    let request = request.to_lowercase();
    assert!(
        request.starts_with("get /base/api/host/h/config?wait=1 http/1.1\r\n"),
        "{request}"
    );
    for line in [
        "authorization: bearer secret\r\n",
        "if-none-match: \"1\"\r\n",
        "host: 127.0.0.1:",
    ] {
        assert!(request.contains(line), "{line} is not in {request}");
    }
}

#[tokio::test]
async fn errors_name_the_coordinator_and_the_reason() {
    let error = |bytes: &'static [u8]| async { plain(bytes).await.0.err().unwrap().to_string() };
    let body = b"HTTP/1.1 403 F\r\ncontent-length: 26\r\n\r\n{\"error\": \"not \\u001byours\"}";
    let refused = error(body).await;
    assert!(refused.contains("refuses this host (403)"), "{refused}");
    let body = b"HTTP/1.1 503 S\r\ncontent-length: 0\r\n\r\n";
    let status = error(body).await;
    assert!(
        status.contains("answered 503: Service Unavailable"),
        "{status}"
    );
    let long = b"HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n";
    let mut bytes = long.to_vec();
    bytes.extend([b'x'; 101]);
    let (answer, _) = plain(&bytes).await;
    let too_long = answer.err().unwrap();
    assert!(
        matches!(too_long, FetchError::TooLong { most: 100, .. }),
        "{too_long}"
    );
    let broken = error(b"").await;
    assert!(broken.contains("did not answer"), "{broken}");
    let nonsense = error(b"SSH-2.0-OpenSSH\r\n").await;
    assert!(nonsense.contains("did not answer"), "{nonsense}");
}

#[test]
fn urls_have_a_scheme_and_a_host() {
    for wrong in [
        "",
        "x",
        "coordinator.example",
        "ftp://x",
        "http://",
        "http:///x",
        "https://a b",
    ] {
        let error = Client::new(wrong, "t", None).err().unwrap();
        assert!(matches!(error, FetchError::Url(_)), "{wrong}: {error}");
    }
    // A token that cannot be in a header.
    assert!(Client::new("http://x", "a\nb", None).is_err());
    for right in ["http://[::1]:8040", "http://coordinator.example/path"] {
        assert_eq!(Client::new(right, "t", None).unwrap().url(), right);
    }
}

#[tokio::test]
async fn tls_is_verified_by_the_given_certificate() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    for (ca, good) in [(made.cert.pem(), true), (other.cert.pem(), false)] {
        let mut client = Client::new(&url, "secret", Some(&ca)).unwrap();
        let serve = async {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                answer(stream, b"HTTP/1.1 304 N\r\n\r\n").await;
            }
        };
        let (answer, ()) = tokio::join!(client.ask(ask("/")), serve);
        match answer {
            Ok(answer) => assert!(good && answer.status == StatusCode::NOT_MODIFIED),
            Err(error) => {
                assert!(!good, "{error}");
                assert!(matches!(error, FetchError::Unreachable { .. }), "{error}");
            }
        }
    }
    let none = Client::new("https://x", "t", Some("")).err().unwrap();
    assert!(matches!(none, FetchError::Certificates(_)), "{none}");
}

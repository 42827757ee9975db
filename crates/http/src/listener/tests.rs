use axum::http::StatusCode;
use axum::http::header::WWW_AUTHENTICATE;
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::JsonError;

/// A listener for four connections, and its address.
async fn serve() -> SocketAddr {
    let address = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(address, None).await.unwrap();
    let address = listener.local_addr().unwrap();
    let echo = async |body: String| body;
    let router = Router::new()
        .route("/", get(async || "hello"))
        .route("/echo", post(echo))
        .route("/text", get(async || (StatusCode::UNAUTHORIZED, "who?")))
        .route(
            "/json",
            get(async || JsonError(StatusCode::UNAUTHORIZED, String::new())),
        )
        .route(
            "/other",
            get(async || (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Other")])),
        )
        .route("/forbidden", get(async || StatusCode::FORBIDDEN));
    tokio::spawn(listener.with_connections(4).serve(router));
    address
}

async fn connect(address: SocketAddr, first: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(first.as_bytes()).await.unwrap();
    stream
}

/// The last line of the answer to a request on a connection that ends with it.
async fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text.lines().last().unwrap_or_default().to_owned()
}

const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn half_open_connections_delay_nobody() {
    let address = serve().await;
    let beginnings = [
        "",
        "GET / HTTP/1.1\r\nhost",
        "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhe",
    ];
    let mut open = Vec::new();
    for beginning in beginnings.into_iter().cycle().take(12) {
        open.push(connect(address, beginning).await);
    }
    let honest = connect(address, GET).await;
    assert_eq!(answer(honest).await, "hello");
    // It was not answered because the others had timed out: the latest of them can still go on.
    let mut last = open.pop().unwrap();
    last.write_all(b"llo").await.unwrap();
    let mut begun = [0; 12];
    last.read_exact(&mut begun).await.unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    // The first ones made room.
    assert_eq!(open[0].read(&mut begun).await.unwrap_or_default(), 0);
}

#[tokio::test]
async fn a_connection_is_used_again_after_an_answer() {
    let address = serve().await;
    let request = GET.replace("connection: close\r\n", "");
    let mut stream = connect(address, &request).await;
    for _ in 0..3 {
        let mut text = Vec::new();
        while !text.ends_with(b"hello") {
            assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0);
        }
        stream.write_all(request.as_bytes()).await.unwrap();
    }
}

/// Requests that come together on a connection are answered in turn with those of others.
#[tokio::test]
async fn pipelined_requests_take_turns_with_others() {
    const PIPELINED: usize = 64;
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), None);
    let listener = listener.await.unwrap();
    let address = listener.local_addr().unwrap();
    let answered = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = |path: &'static str| {
        let answered = Arc::clone(&answered);
        get(move || async move { answered.lock().unwrap().push(path) })
    };
    let router = Router::new()
        .route("/many", note("/many"))
        .route("/one", note("/one"));
    let many = "GET /many HTTP/1.1\r\nhost: x\r\n\r\n".repeat(PIPELINED);
    // All have arrived before the first is read.
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(connect(address, &many).await);
    }
    let one = connect(address, &GET.replace("GET /", "GET /one")).await;
    let serving = tokio::spawn(listener.serve(router));
    answer(one).await;
    let before = answered
        .lock()
        .unwrap()
        .iter()
        .position(|path| *path == "/one")
        .unwrap();
    // One turn of each of the others, or a few.
    assert!(before < 8 * 8, "{before} requests were answered before");
    serving.abort();
}

#[tokio::test]
async fn each_401_says_how_to_authenticate() {
    let address = serve().await;
    for (path, expected) in [
        ("/text", Some("Bearer")),
        ("/json", Some("Bearer")),
        ("/other", Some("Other")),
        ("/forbidden", None),
        ("/", None),
        ("/none", None),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let mut stream = connect(address, &request).await;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let mut fields = text.lines().filter_map(|line| line.split_once(": "));
        let field = fields.find(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"));
        assert_eq!(field.map(|(_, value)| value), expected, "{path}: {text}");
    }
}

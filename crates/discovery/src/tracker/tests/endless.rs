//! Trackers over HTTP whose answers have no end.

use tokio::task::JoinHandle;

use super::*;

/// Longest wait for an event that must come.
const LONG: Duration = Duration::from_secs(300);

/// A server that answers one request with `head`, and then with `piece` again and again until the client has
/// closed the connection; it waits for `pause` after each. Returns its URL, and how many bytes it could send.
async fn endless(
    head: &'static str,
    piece: Vec<u8>,
    pause: Duration,
) -> (String, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let addr = listener.local_addr().expect("an address");
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut sent = 0;
        let mut piece_of_head = head.as_bytes();
        while stream.write_all(piece_of_head).await.is_ok() {
            sent += piece_of_head.len();
            tokio::time::sleep(pause).await;
            piece_of_head = &piece;
        }
        sent
    });
    (format!("http://{addr}/announce"), served)
}

#[tokio::test]
async fn an_answer_without_an_end_is_read_up_to_a_bound() {
    let page = vec![b'x'; 65536];
    let chunk = [&b"10000\r\n"[..], &page, b"\r\n"].concat();
    let field = format!("X: {}\r\n", "y".repeat(1000)).into_bytes();
    for (head, piece) in [
        ("HTTP/1.0 200 OK\r\n\r\n", page.clone()),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            chunk,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            page,
        ),
        ("HTTP/1.1 200 OK\r\n", field),
    ] {
        let (url, served) = endless(head, piece, Duration::ZERO).await;
        let error = client().announce(&url, &request(1)).await;
        let is_bound = matches!(
            error,
            Err(AnnounceError::Answer(AnswerError::Long) | AnnounceError::Http { .. })
        );
        assert!(is_bound, "{head:?}: {error:?}");
        let sent = tokio::time::timeout(LONG, served).await;
        let sent = sent.expect("the connection stays open").expect("a count");
        // The bound, and what the kernel keeps of both ends.
        assert!(sent < 64 << 20, "{head:?}: {sent} bytes were taken");
    }
}

#[tokio::test]
async fn an_answer_that_trickles_holds_up_no_other_and_is_given_up() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nd8:intervali900e5:peers";
    let pause = Duration::from_millis(20);
    let (url, served) = endless(head, vec![b'0'], pause).await;
    let client = Arc::new(client());
    let slow = {
        let client = Arc::clone(&client);
        tokio::spawn(async move { client.announce(&url, &request(1)).await })
    };
    let honest = Local::default();
    for port in 1..4 {
        let answer = client.announce(&honest.http[0], &request(port)).await;
        answer.expect("an answer");
    }
    slow.abort();
    assert!(slow.await.is_err(), "the slow answer was taken");
    tokio::time::timeout(LONG, served)
        .await
        .expect("the connection stays open")
        .expect("a count");

    let (url, served) = endless(head, vec![b'0'], pause).await;
    let error = client_with(hasty()).announce(&url, &request(1)).await;
    assert!(
        matches!(error, Err(AnnounceError::TimedOut { .. })),
        "{error:?}"
    );
    tokio::time::timeout(LONG, served)
        .await
        .expect("the connection stays open")
        .expect("a count");
}

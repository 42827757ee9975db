//! A gateway in this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// What a gateway maps: the lifetime, by protocol and port.
type Table = Arc<Mutex<BTreeMap<String, String>>>;

const KIND: &str = "urn:schemas-upnp-org:service:WANIPConnection:1";

fn between<'a>(text: &'a str, name: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("<{name}>")).unwrap();
    rest.split_once('<').unwrap().0
}

/// Answers one request.
async fn serve(mut stream: TcpStream, table: Table, only_permanent: bool) {
    let mut request = Vec::new();
    let text = loop {
        let mut bytes = [0; 4096];
        let length = stream.read(&mut bytes).await.unwrap();
        request.extend_from_slice(&bytes[..length]);
        let text = String::from_utf8(request.clone()).unwrap();
        let is_whole = match text.starts_with("GET") {
            true => text.contains("\r\n\r\n"),
            false => text.contains("</s:Envelope>"),
        };
        if is_whole {
            break text;
        }
    };
    let (status, body) = match text.as_str() {
        _ if text.starts_with("GET /desc.xml ") => (
            200,
            format!(
                "<service><serviceType>{KIND}</serviceType><controlURL>ctl</controlURL></service>"
            ),
        ),
        _ if !text.starts_with("POST /ctl ") => (404, String::new()),
        _ if text.contains("<u:GetExternalIPAddress") => (
            200,
            "<NewExternalIPAddress>203.0.113.7</NewExternalIPAddress>".to_owned(),
        ),
        _ => {
            let name = format!(
                "{} {}",
                between(&text, "NewProtocol"),
                between(&text, "NewExternalPort")
            );
            let mut table = table.lock().unwrap();
            if text.contains("<u:DeletePortMapping") {
                table.remove(&name);
                (200, String::new())
            } else if only_permanent && between(&text, "NewLeaseDuration") != "0" {
                (500, "<errorCode>725</errorCode>".to_owned())
            } else {
                assert_eq!(between(&text, "NewInternalClient"), "127.0.0.1");
                table.insert(name, between(&text, "NewLeaseDuration").to_owned());
                (200, String::new())
            }
        }
    };
    let answer = format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
}

/// A gateway on loopback: the address of its search, and what it maps.
async fn gateway(only_permanent: bool) -> (SocketAddr, Table) {
    let search = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, at) = (search.local_addr().unwrap(), server.local_addr().unwrap());
    let table = Table::default();
    let shared = Arc::clone(&table);
    tokio::spawn(async move {
        let mut bytes = [0; 1024];
        while let Ok((length, from)) = search.recv_from(&mut bytes).await {
            assert!(bytes[..length].starts_with(b"M-SEARCH * HTTP/1.1\r\n"));
            // Another host is named first, which does not count.
            for host in ["192.0.2.1:5", &at.to_string()] {
                let answer = format!("HTTP/1.1 200 OK\r\nLOCATION: http://{host}/desc.xml\r\n\r\n");
                search.send_to(answer.as_bytes(), from).await.unwrap();
            }
        }
    });
    tokio::spawn(async move {
        while let Ok((stream, _)) = server.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&shared), only_permanent));
        }
    });
    (addr, table)
}

#[tokio::test]
async fn a_port_is_mapped_for_both_protocols_and_ended() {
    for (only_permanent, lifetime) in [(false, "7200"), (true, "0")] {
        let (addr, table) = gateway(only_permanent).await;
        let mut igd = Igd::find_at(Ipv4Addr::LOCALHOST, &[addr]).await.unwrap();
        let mapped = igd.map(6881).await.unwrap();
        let expected = Mapped {
            address: Some(Ipv4Addr::new(203, 0, 113, 7)),
            tcp: Some(6881),
            udp: Some(6881),
            reason: None,
        };
        assert_eq!(mapped, expected);
        let there = [("TCP 6881", lifetime), ("UDP 6881", lifetime)];
        let there = there.map(|(name, lifetime)| (name.to_owned(), lifetime.to_owned()));
        assert_eq!(*table.lock().unwrap(), BTreeMap::from(there));
        // It is renewed in the same way.
        assert_eq!(igd.map(6881).await, Ok(expected));
        igd.end(6881).await;
        assert!(table.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_does_not_answer_is_given_up() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let addr = silent.local_addr().unwrap();
    let found = Igd::find_at(Ipv4Addr::LOCALHOST, &[addr]).await;
    assert!(found.unwrap_err().contains("does not answer"));
}

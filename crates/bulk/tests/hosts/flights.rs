//! How many flights there are until content is sent, and until a transfer ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hawser_bulk::content::Source;
use hawser_bulk::{Destination, Node, Request, Sockets, serve, transfer};
use hawser_keys::Identity;
use tokio::sync::mpsc::unbounded_channel;

use super::toy::{Flights, ToyNet, own_ip};
use super::{server_options, transfer_options};

/// Milliseconds of a flight: long beside what hosts take to answer.
const FLIGHT: u64 = 60;
/// Transfers that are tried: a host that was kept from answering in time shows more flights than there
/// are, never fewer.
const TRIES: usize = 10;
/// The two round trips before content: the handshake, with the client's second flight naming the
/// content, and the answer to that.
const BEFORE_CONTENT: u32 = 4;
/// The content and what confirms it, then the source's last message and what confirms that.
const AFTER_CONTENT: u32 = 4;

/// Whether a payload is a data packet (`docs/bulk-protocol.md`, *Datagrams*), if it is no packet of QUIC: those
/// may begin with the same bits (RFC 9287).
fn is_data(payload: &[u8]) -> bool {
    payload
        .first()
        .is_some_and(|first| first & 0b1110_0111 == 1)
}

/// The flights before the first data packet, and those of a whole transfer of six bytes.
async fn flights(last: u8) -> (u32, u32) {
    let net = ToyNet::start().await;
    net.conduct.delay.store(FLIGHT, Ordering::SeqCst);
    let node = |host, last| {
        let sockets = Sockets {
            listen: Some((own_ip(last), 0).into()),
            ..Sockets::default()
        };
        Node::bind(host, &sockets, Identity::generate().unwrap()).unwrap()
    };
    let client = node(net.a.endhost().await, last);
    let server = node(net.b.endhost().await, last + 1);
    // Both know their paths: how long that takes is another matter.
    server.host().paths(net.a_as).await.unwrap();
    let options = server_options(Some(Destination::Discard));
    let peer = server.local_addr();
    let serving = tokio::spawn(async move {
        let (events, _ended) = unbounded_channel();
        serve(&server, options, events).await;
    });
    let request = Request::Send {
        content: Arc::new(Source::zeros(6).unwrap()),
        name: String::new(),
    };
    let (events, _seen) = unbounded_channel();
    transfer(&client, peer, request, transfer_options(), events)
        .await
        .unwrap();
    let Flights { arrived, sent } = &*net.conduct.flights.lock().unwrap();
    let quic = client.local_addr().host.port();
    let content = sent
        .iter()
        .find(|(_, port, payload)| *port != quic && is_data(payload));
    serving.abort();
    (content.unwrap().0 - 1, arrived[0])
}

#[tokio::test(flavor = "multi_thread")]
async fn content_is_sent_after_two_round_trips_and_confirmed_in_two_more() {
    let mut fewest = (u32::MAX, u32::MAX);
    for attempt in 0..TRIES as u8 {
        let (before, all) = flights(10 + 2 * attempt).await;
        fewest = (fewest.0.min(before), fewest.1.min(all));
        if fewest == (BEFORE_CONTENT, BEFORE_CONTENT + AFTER_CONTENT) {
            return;
        }
    }
    panic!("flights before content, and of the transfer: {fewest:?}");
}

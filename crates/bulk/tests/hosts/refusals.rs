//! Hosts that are refused again and again, while nobody looks at what a server reports.

use std::time::Duration;

use hawser_bulk::protocol::{Choices, Wants};
use hawser_bulk::{
    Algorithm, Clients, Destination, Node, PathOptions, Request, ServerEvent, ServerOptions,
    Sockets, TransferError, TransferOptions, serve, transfer,
};
use hawser_endhost::Endhost;
use hawser_keys::{Identity, Trust};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;

/// Refusals that wait to be handled at most, as documented.
const MAX_WAITING: usize = 256;

fn node() -> Node {
    let sockets = Sockets {
        listen: Some(([127, 0, 0, 1], 0).into()),
        ..Sockets::default()
    };
    let host = Endhost::on_plain_ip(None);
    Node::bind(host, &sockets, Identity::generate().unwrap()).unwrap()
}

async fn refused(client: Node, server: hawser_endhost::ScionAddr) {
    let request = Request::Fetch {
        name: String::new(),
        destination: Destination::Discard,
    };
    let options = TransferOptions {
        paths: PathOptions::default(),
        policy: None,
        algorithm: Algorithm::Auto,
        server: Trust::Any,
        limit: None,
        retry: Duration::ZERO,
        wants: Wants::default(),
    };
    let (events, _seen) = unbounded_channel();
    let ended = transfer(&client, server, request, options, events).await;
    assert!(
        matches!(ended, Err(TransferError::Peer { .. })),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_that_nobody_handles_are_bounded() {
    let (client, server) = (node(), node());
    let peer = server.local_addr();
    let (events, mut received) = unbounded_channel();
    let serving = tokio::spawn(async move {
        let options = ServerOptions {
            clients: Clients::any(),
            code: None,
            // Whatever a client wants is refused.
            receive: None,
            share: None,
            take: Choices::NONE,
            sessions: 1,
            algorithm: Algorithm::Auto,
            limit: None,
        };
        serve(&server, options, events).await;
    });
    let mut clients = JoinSet::new();
    for number in 0..MAX_WAITING + 40 {
        if number >= 16 {
            clients.join_next().await.unwrap().unwrap();
        }
        clients.spawn(refused(client.clone(), peer));
    }
    clients.join_all().await;
    let mut waiting = 0;
    while let Ok(event) = received.try_recv() {
        assert!(matches!(event, ServerEvent::Refused { .. }), "{event:?}");
        waiting += 1;
    }
    assert_eq!(waiting, MAX_WAITING);
    // Their places are free again.
    refused(client, peer).await;
    let event = received.recv().await.unwrap();
    assert!(matches!(event, ServerEvent::Refused { .. }), "{event:?}");
    serving.abort();
}

//! Hosts that are refused again and again, while nobody looks at what a server reports.

use hawser_bulk::{
    Destination, Node, Request, ServerEvent, Sockets, TransferError, serve, transfer,
};
use hawser_endhost::Endhost;
use hawser_keys::Identity;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;

use super::{server_options, transfer_options};

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
    let (events, _seen) = unbounded_channel();
    let ended = transfer(&client, server, request, transfer_options(), events).await;
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
        // Whatever a client wants is refused.
        let options = server_options(None);
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

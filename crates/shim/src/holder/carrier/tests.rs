//! What connections learn of the ends of their sessions.

use std::future::pending;

use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::*;
use crate::handover;
use crate::holder::relays::New;
use crate::relay::Watched;
use std::net::Ipv6Addr;

const PEER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);

/// Without captures, and a carrier whose requests go nowhere.
fn carriers() -> (Carriers, mpsc::UnboundedReceiver<ToCarrier>) {
    let (requests, received) = mpsc::unbounded_channel();
    let (end, _) = handover::pair().unwrap();
    let handover = Arc::new(HandoverSender::new(end).unwrap());
    (
        with_carrier(Some(Attached {
            requests,
            handover,
            lender: None,
        })),
        received,
    )
}

/// A carrier to which connections are lent, in the place of the one there was.
pub(in crate::holder) fn set_lender(carriers: &Carriers, lender: Lender) {
    let (requests, _) = mpsc::unbounded_channel();
    let (end, _) = handover::pair().unwrap();
    carriers.state().carrier = Some(Attached {
        requests,
        handover: Arc::new(HandoverSender::new(end).unwrap()),
        lender: Some(lender),
    });
}

/// The carrier has sent this.
pub(in crate::holder) async fn tell(carriers: &Carriers, message: ToHolder) {
    carriers.on_message(message).await;
}

/// Without captures and without a carrier.
pub(in crate::holder) fn alone() -> Carriers {
    with_carrier(None)
}

fn with_carrier(carrier: Option<Attached>) -> Carriers {
    Carriers(Arc::new(Inner {
        state: Mutex::new(CarriersState {
            carrier,
            requests: HashMap::new(),
            next_request: 0,
            live: HashMap::new(),
        }),
        captures: Captures::new(None, 0),
        is_enclosed: false,
        mptcp: Mptcp::Unused(String::new()),
        relays: Relays::default(),
        budget: Budget::new(1),
        served: watch::Sender::default(),
        attached: Notify::new(),
        detached: Notify::new(),
        moved: Notify::new(),
        accept: |_, _| {},
    }))
}

#[tokio::test]
async fn a_carrier_takes_the_place_of_one_whose_end_is_not_noticed_yet() {
    let carriers = with_carrier(None);
    let attach = || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (end, _) = handover::pair().unwrap();
        let attached = carriers.attach(Link::new(ours), HandoverSender::new(end).unwrap(), None);
        attached.map(|()| theirs)
    };
    let killed = attach().unwrap();
    drop(killed);
    // The holder's task has had no turn since.
    assert!(matches!(attach(), Err(HolderError::Attached)));
    carriers.vacated().await;
    let _lives = attach().unwrap();
    // One that lives stays.
    carriers.vacated().await;
    assert!(matches!(attach(), Err(HolderError::Attached)));
}

/// What a program's connection finds when its session is refused right after the answer.
async fn find_refused(live: Vec<Slot>) -> (Carriers, Result<Connect, String>) {
    let (carriers, mut requests) = carriers();
    let asking = {
        let carriers = carriers.clone();
        tokio::spawn(async move { carriers.find("192.0.2.1:9".parse().unwrap()).await })
    };
    let Some(ToCarrier::Connect { id, .. }) = requests.recv().await else {
        panic!("no request");
    };
    let role = Role::Client;
    let found = Found::Peer(PEER);
    let reason = "refused".to_owned();
    for message in [
        ToHolder::Slots {
            peer: PEER,
            role,
            live,
            name: "the other host".to_owned(),
        },
        ToHolder::Connected { id, found },
        ToHolder::Ended {
            peer: PEER,
            role,
            reason,
            at_once: false,
        },
    ] {
        carriers.on_message(message).await;
    }
    (carriers, asking.await.unwrap())
}

#[tokio::test]
async fn a_session_that_ends_right_after_the_answer_says_why() {
    let (carriers, found) = find_refused(vec![3]).await;
    let Ok(Connect::Peer(expected, 3)) = found else {
        panic!("{:?}", found.err());
    };
    assert_eq!(expected.end().as_deref(), Some("refused"));
    // Its socket is there only now.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let peer = TcpStream::connect(address).await.unwrap();
    let peer = Watched::from_tokio(peer).unwrap();
    let relayed = expected.begin(New {
        source: address,
        destination: address,
        peer: Arc::new(peer),
    });
    let ended = relayed.run(pending::<()>()).await;
    assert_eq!(ended.map_err(|end| end.reason()), Err("refused".to_owned()));
    drop(relayed);
    // Nothing is left of the session.
    assert!(carriers.report().sessions.is_empty());

    let (_, found) = find_refused(Vec::new()).await;
    assert_eq!(found.err().as_deref(), Some("refused"));
}

#[tokio::test]
async fn a_session_that_begins_after_one_has_ended_is_another() {
    let (carriers, found) = find_refused(vec![3]).await;
    let expected = carriers.relays().expect((PEER, Role::Client));
    assert_eq!(expected.end(), None);
    drop(found);
    carriers.relays().end_all("down");
    assert_eq!(expected.end().as_deref(), Some("down"));
}

#[tokio::test(start_paused = true)]
async fn a_connection_may_arrive_before_the_carrier_speaks_of_its_session() {
    let carriers = alone();
    let session = (PEER, Role::Server);
    let asking = {
        let carriers = carriers.clone();
        tokio::spawn(async move { carriers.has_session(session).await })
    };
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!asking.is_finished());
    let role = Role::Server;
    let slots = ToHolder::Slots {
        peer: PEER,
        role,
        live: vec![1],
        name: "the other host".to_owned(),
    };
    carriers.on_message(slots).await;
    assert!(asking.await.unwrap());
    // One whose session has ended does not find it.
    let ended = ToHolder::Ended {
        peer: PEER,
        role,
        reason: "unused".to_owned(),
        at_once: false,
    };
    carriers.on_message(ended).await;
    assert!(!carriers.has_session(session).await);
}

#[tokio::test(start_paused = true)]
async fn a_connection_waits_for_a_path_as_long_as_tcp_tries() {
    let (carriers, mut requests) = carriers();
    let asking = {
        let carriers = carriers.clone();
        tokio::spawn(async move { carriers.find("192.0.2.1:9".parse().unwrap()).await })
    };
    assert!(matches!(
        requests.recv().await,
        Some(ToCarrier::Connect { .. })
    ));
    let seconds = Duration::from_secs;
    tokio::time::sleep(seconds(100)).await;
    // This process does not run for a while: the answer may be there when it does again.
    tokio::time::advance(seconds(3600)).await;
    tokio::time::sleep(seconds(10)).await;
    assert!(!asking.is_finished());
    let found = asking.await.unwrap();
    assert_eq!(found.err().as_deref(), Some("no path works within 120 s"));
}

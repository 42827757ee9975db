use hawser_kernel::namespace::is_privileged;
use hawser_keys::PeerKey;
use hawser_mptcp::Subflow;

use super::super::relays::{Expected, New, Relayed};
use super::*;
use crate::relay::{Endpoint, Watched};

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until `is_so`.
async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, wait).await;
    assert!(waited.is_ok(), "never so: {what}");
}

fn begin(expected: Expected, socket: &Arc<Watched>) -> Relayed {
    let address = "[::1]:1".parse().unwrap();
    expected.begin(New {
        source: address,
        destination: address,
        peer: Arc::clone(socket),
    })
}

#[tokio::test]
async fn connections_get_subflows_after_the_thread_has_failed() {
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return;
    }
    let own = Block::of(&PeerKey([1; 32]), 0);
    let network = Network::create(own).unwrap();
    let relays = Relays::default();
    let subflows = Subflows::start(&network, relays.clone()).unwrap();
    let listener = network.listen().unwrap();
    let socket = network.connect(1, own.address(0)).await.unwrap();
    let socket = Arc::new(Watched::new(socket));
    let (accepted, _) = listener.accept().await.unwrap();
    let accepted = Watched::from_tokio(accepted).unwrap();
    // Further subflows are possible from then on.
    for (from, to) in [(&*socket, &accepted), (&accepted, &*socket)] {
        from.writable().await.unwrap();
        from.try_write(&[7]).unwrap();
        to.readable().await.unwrap();
        to.try_read(&mut [0]).unwrap();
    }
    let session = (own.address(0), Role::Client);
    let _relayed = begin(relays.expect(session), &socket);

    subflows.request(Request::Panic);
    eventually("the failure is reported", || {
        relays.report(true).problem.is_some()
    })
    .await;
    let problem = relays.report(true).problem;
    subflows.set(session.0, session.1, vec![1, 2]);
    eventually("the failure is over", || {
        relays.report(true).problem.is_none()
    })
    .await;
    eventually("there are two subflows", || {
        Info::read(&*socket).unwrap().subflows.len() == 2
    })
    .await;
    // The other end answers each, over which nothing else was sent.
    let accepted = || {
        let info = Info::read(&*socket).unwrap();
        info.subflows.iter().all(Subflow::is_accepted)
    };
    eventually("they are accepted", accepted).await;
    // It may have worked again by then.
    if let Some(problem) = problem {
        assert!(problem.ends_with("its thread panicked"), "{problem}");
    }
}

//! The daemon's client, against a daemon whose answers the test sets.

use hawser_endhost::{Daemon, Endhost, PathsError, SourceError};
use hawser_rpc::{Code, RpcError};

use crate::toy::{Answers, PORTS, ToyDaemon, ToyNet, isd_as, path_over, unix_now};

#[tokio::test]
async fn the_daemon_is_queried_over_grpc() {
    let net = ToyNet::start().await;
    let daemon = net.a.client();
    let local = daemon.local_as().await.unwrap();
    assert_eq!(
        (local.isd_as, local.mtu, local.core),
        (net.a_as, 1472, false)
    );
    assert_eq!(daemon.port_range().await.unwrap(), PORTS.0..=PORTS.1);
    assert_eq!(daemon.interfaces().await.unwrap()[&1], net.router_a());
    let paths = daemon.paths(net.b_as, false).await.unwrap();
    assert_eq!(paths.len(), 1);
    assert_eq!(paths[0].info().to_string(), "1-ff00:0:110 1>2 1-ff00:0:111");
    assert_eq!(
        daemon.paths(isd_as("1-ff00:0:999"), false).await.unwrap(),
        []
    );
}

#[tokio::test]
async fn an_unreachable_daemon_is_reported_with_the_remedy() {
    // Bound, so that no program listens there.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = bound.local_addr().unwrap().to_string();
    let error = Endhost::new(Daemon::connect(&address).unwrap())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot reach the SCION daemon at {address}: start it, or set SCION_DAEMON")
    );
}

#[tokio::test]
async fn an_invalid_address_is_refused() {
    for address in ["", "127.0.0.1", ":30255", "127.0.0.1:port", "a b:1"] {
        let error = Daemon::connect(address).err().unwrap();
        let address = address.to_owned();
        assert_eq!(error, SourceError::Address(address));
    }
    assert!(Daemon::connect("localhost:30255").is_ok());
    assert!(Daemon::connect("[::1]:30255").is_ok());
}

#[tokio::test]
async fn refusals_and_invalid_answers_have_distinct_errors() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let set = |change: fn(&mut Answers)| change(&mut daemon.answers.lock().unwrap());
    set(|answers| answers.error = Some(RpcError::new(Code::PermissionDenied, "not for you")));
    let error = daemon.client().port_range().await.unwrap_err().to_string();
    assert!(error.ends_with("refused PortRange: not for you"), "{error}");
    set(|answers| answers.error = None);
    set(|answers| answers.ports = (2, 1));
    let error = daemon.client().port_range().await.unwrap_err().to_string();
    assert!(error.ends_with("2 to 1 is not a port range"), "{error}");
    set(|answers| answers.isd_as = 0);
    let error = daemon.client().local_as().await.unwrap_err().to_string();
    assert!(error.ends_with("0-0 is not an AS"), "{error}");
}

#[tokio::test]
async fn another_program_at_the_address_is_reported() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            connection
                .write_all(b"220 mail.example ESMTP\r\n")
                .await
                .unwrap();
        }
    });
    let daemon = Daemon::connect(&address).unwrap();
    let error = daemon.local_as().await.unwrap_err().to_string();
    assert!(
        error.contains(&format!("the SCION daemon at {address}")),
        "{error}"
    );
}

#[tokio::test]
async fn invalid_paths_do_not_hide_valid_ones() {
    let net = ToyNet::start().await;
    let now = unix_now() as u32;
    let whole = path_over((net.a_as, 1), (net.b_as, 2), net.router_a(), now);
    let mut broken = whole.clone();
    broken.raw.pop();
    net.a.set_paths(net.b_as, vec![broken.clone(), whole]);
    let daemon = net.a.client();
    assert_eq!(daemon.paths(net.b_as, false).await.unwrap().len(), 1);
    net.a.set_paths(net.b_as, vec![broken]);
    let error = daemon.paths(net.b_as, false).await.unwrap_err();
    assert!(
        matches!(
            error,
            SourceError::Invalid {
                question: "Paths",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_destination_without_paths_is_named() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let error = host.paths(isd_as("1-ff00:0:999")).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("no path to 1-ff00:0:999: the SCION daemon at 127.0.0.1:"),
        "{text}"
    );
    assert!(matches!(error, PathsError::None { .. }));
    // The answer is not cached: the next call queries the daemon again.
    let before = daemon.asked.load(std::sync::atomic::Ordering::SeqCst);
    assert!(host.paths(isd_as("1-ff00:0:999")).await.is_err());
    assert!(daemon.asked.load(std::sync::atomic::Ordering::SeqCst) > before);
}

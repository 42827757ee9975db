//! Transfers without a network, and what they take over.

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use super::*;
use crate::job::FailureKind;
use crate::service::NewJob;
use crate::service::tests::until;

#[tokio::test]
async fn the_end_of_a_part_is_noticed() {
    let mut parts = Parts::default();
    parts.spawn("what lasts", std::future::pending());
    parts.spawn("what ends", std::future::ready(()));
    assert_eq!(parts.next_end().await, "what ends");
    parts.spawn("what panics", async { panic!("as the test wants") });
    let text = parts.next_end().await;
    assert!(text.contains("panicked"), "{text}");
}

/// Transfers in a folder with a file `run`, on a host without a network.
async fn alone(
    folder: &Path,
    text: &str,
) -> Result<(Transfers, UnboundedReceiver<ServiceEvent>), TransfersError> {
    std::fs::write(folder.join("run"), "content").unwrap();
    let config = Config::parse(&folder.join("daemon.toml"), text).unwrap();
    let (events, happened) = unbounded_channel();
    let network = HostNetwork::none("there is no network");
    let owner = TokenHash::of("owner");
    let state = folder.join("state");
    let opened = Transfers::open(&config, &state, owner, network, events).await;
    opened.map(|opened| (opened, happened))
}

const SERVER: &str = "1-ff00:0:111,10.0.2.1:31000";

#[tokio::test(flavor = "multi_thread")]
async fn without_a_network_a_transfer_waits_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let (transfers, mut happened) = alone(folder.path(), "key = 'key'").await.unwrap();
    let service = transfers.service().clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(transfers.run(stopped));
    let users = service.users();
    let owner = users.by_token(&TokenHash::of("owner")).unwrap();
    let new = NewJob {
        source: folder.path().join("run").to_str().unwrap().to_owned(),
        server: SERVER.parse().unwrap(),
        destination: String::new(),
        priority: 0,
    };
    let id = service.submit(owner, new).await.unwrap().id;
    let error = until(&mut happened, "waiting").await.error.unwrap();
    assert_eq!(error.kind, FailureKind::NoPaths);
    assert!(error.text.contains("there is no network"), "{}", error.text);
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    drop((users, service));
    // It is there at the next start.
    let (again, _happened) = alone(folder.path(), "key = 'key'").await.unwrap();
    let users = again.service().users();
    let owner = users.by_token(&TokenHash::of("owner")).unwrap();
    assert_eq!(again.service().job(owner, id).await.unwrap().id, id);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_network_nothing_is_received_and_the_reason_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("in")).unwrap();
    std::fs::write(folder.path().join("allowed"), "").unwrap();
    let text = "key = 'key'\n[receive]\nfolder = 'in'\nallowed_keys = 'allowed'";
    let (transfers, mut happened) = alone(folder.path(), text).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(transfers.run(stopped));
    match happened.recv().await.unwrap() {
        ServiceEvent::Trouble(text) => {
            assert_eq!(text, "nothing is received yet: there is no network");
        }
        other => panic!("{other:?}"),
    }
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(happened.try_recv().is_err());

    let file = text.replace("'in'", "'run'");
    let error = alone(folder.path(), &file).await.err().unwrap();
    assert!(error.to_string().starts_with("receive: "), "{error}");
}

#[tokio::test]
async fn jobs_of_the_former_service_are_taken_over_once() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    drop(JobLog::open(&state).unwrap());
    let old = state.join(log::FILE);
    let jobs = std::fs::read_to_string(&old).unwrap();
    drop(alone(folder.path(), "key = 'key'").await.unwrap());
    assert!(!old.exists());
    let new = state.join(FOLDER).join(log::FILE);
    let moved = std::fs::read_to_string(&new).unwrap();
    assert_eq!(moved, jobs);
    // What is there is never replaced.
    std::fs::write(&old, "other").unwrap();
    drop(alone(folder.path(), "key = 'key'").await.unwrap());
    assert_eq!(std::fs::read_to_string(&new).unwrap(), moved);
    assert!(old.exists());
}

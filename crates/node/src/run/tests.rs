//! An AS with services that only listen, and a coordinator that only answers.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hawser_control::Publication;
use hawser_topology::Network;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::testing::{FakeCoordinator, FakeLimits, TOKEN, bundle, followed, limited, program};
use super::*;
use crate::event::ServiceName;

/// Not a test: the services of the AS in the other tests.
#[test]
fn fake_service() {
    let (Some(kind), Some(dir)) = (
        std::env::var_os("FAKE_SERVICE"),
        std::env::var_os("FAKE_DIR"),
    ) else {
        return;
    };
    let (kind, dir) = (kind.into_string().unwrap(), Path::new(&dir));
    let root = dir.ancestors().nth(2).unwrap();
    if root.join(format!("{kind}.fails")).exists() {
        eprintln!("hawser: cannot bind 192.0.2.1:50000: not an address of this host");
        std::process::exit(1);
    }
    // Before the socket, which shows that the service is ready; and whole.
    let written = root.join(format!("{kind}.pid.new"));
    fs::write(&written, std::process::id().to_string()).unwrap();
    fs::rename(&written, root.join(format!("{kind}.pid"))).unwrap();
    let socket = dir.join(format!("{kind}.sock"));
    let _ = fs::remove_file(&socket);
    let _listener = UnixListener::bind(socket).unwrap();
    loop {
        std::thread::park();
    }
}

/// Longest time without an event while one is awaited, also on a machine that is very busy.
const MAX_SILENCE: Duration = Duration::from_secs(300);

/// An AS that runs.
struct Running {
    folder: tempfile::TempDir,
    limits: Arc<FakeLimits>,
    events: UnboundedReceiver<Event>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), NodeError>>,
}

impl Running {
    fn start(bundle: &Bundle) -> Self {
        Self::start_with(bundle, FakeLimits::default(), |_| {})
    }

    fn start_with(bundle: &Bundle, limits: FakeLimits, prepare: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("as");
        let (node, _) = Folder::join(&at, bundle).unwrap();
        prepare(&at);
        let limits = Arc::new(limits);
        let options = Options {
            addresses: Substitutes::default(),
            program: program(folder.path(), "run::tests::fake_service"),
            limits: Some(Arc::clone(&limits) as _),
            segments: None,
            health: None,
        };
        let (sender, events) = unbounded_channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(run(node, options, sender, async {
            let _ = stopped.await;
        }));
        Self {
            folder,
            limits,
            events,
            stop: Some(stop),
            task,
        }
    }

    /// Waits for an event, and returns those before it.
    async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut before = Vec::new();
        loop {
            let event = timeout(MAX_SILENCE, self.events.recv()).await;
            let Ok(Some(event)) = event else {
                panic!("{event:?} after {before:?}");
            };
            if wanted(&event) {
                return before;
            }
            before.push(event);
        }
    }

    /// Waits for the first version to be ready and for another event, in either order.
    async fn until_ready_and(&mut self, wanted: impl Fn(&Event) -> bool) {
        let before = self.until_ready(1).await;
        if !before.iter().any(&wanted) {
            self.until(wanted).await;
        }
    }

    async fn until_ready(&mut self, version: u64) -> Vec<Event> {
        self.until(|event| *event == Event::Ready { version }).await
    }

    /// The processes of the services.
    fn pids(&self) -> [String; 2] {
        let read = |kind: &str| fs::read_to_string(self.folder.path().join("as").join(kind));
        ["router.pid", "control.pid"].map(|kind| read(kind).unwrap())
    }

    async fn stop(&mut self) -> Result<(), NodeError> {
        drop(self.stop.take());
        (&mut self.task).await.unwrap()
    }
}

fn runs(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// Waits until something holds of what the coordinator knows.
async fn heard(coordinator: &FakeCoordinator, holds: impl Fn(&super::testing::Known) -> bool) {
    let mut answered = coordinator.answered.subscribe();
    let holds = |_: &u64| holds(&coordinator.known.lock().unwrap());
    if timeout(MAX_SILENCE, answered.wait_for(holds))
        .await
        .is_err()
    {
        let known = coordinator.known.lock().unwrap();
        panic!(
            "the coordinator has heard of {:?} and {:?}, with {} reports of usage",
            known.deployed,
            known.failed,
            known.usage.len()
        );
    }
}

/// Waits until something holds that nothing reports.
async fn until_true(what: &str, holds: impl Fn() -> bool) {
    let waited = timeout(MAX_SILENCE, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "never so: {what}");
}

#[tokio::test]
async fn the_services_run_until_they_are_stopped() {
    let mut node = Running::start(&bundle(1, "a"));
    node.until_ready(1).await;
    let pids = node.pids();
    assert!(pids.iter().all(|pid| runs(pid)));
    node.stop().await.unwrap();
    assert!(!pids.iter().any(|pid| runs(pid)));
    assert_eq!(*node.limits.resets.lock().unwrap(), 1);
}

#[tokio::test]
async fn a_service_that_ends_is_started_again() {
    let mut node = Running::start(&bundle(1, "a"));
    node.until_ready(1).await;
    let [router, control] = node.pids();
    let pid = rustix::process::Pid::from_raw(router.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let router_ended = |event: &Event| {
        matches!(event, Event::Ended { service, how, .. }
        if *service == ServiceName::Router("br1".into()) && how.contains("9"))
    };
    node.until(router_ended).await;
    until_true("another process runs", || node.pids()[0] != router).await;
    assert_eq!(node.pids()[1], control);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn a_service_that_does_not_start_says_why() {
    let fails = |at: &Path| fs::write(at.join("router.fails"), "").unwrap();
    let mut node = Running::start_with(&bundle(1, "a"), FakeLimits::default(), fails);
    let error = (&mut node.task).await.unwrap().unwrap_err().to_string();
    let expected = "the border router br1 does not start: cannot bind 192.0.2.1:50000: not an \
                    address of this host";
    assert_eq!(error, expected);
}

#[tokio::test]
async fn changed_limits_restart_nothing_and_other_changes_do() {
    let (listener, at) = listener().await;
    let coordinator = FakeCoordinator::new();
    let first = limited(followed(1, "a", at, TOKEN), 500_000);
    coordinator.set(&first);
    coordinator.serve(listener);
    let mut node = Running::start(&first);
    node.until_ready(1).await;
    let pids = node.pids();

    coordinator.set(&limited(followed(2, "a", at, TOKEN), 800_000));
    let changed = |version, restart| move |e: &Event| *e == Event::Changed { version, restart };
    node.until(changed(2, false)).await;
    node.until_ready(2).await;
    assert_eq!(node.pids(), pids);
    let rates = || {
        let applied = node.limits.applied.lock().unwrap();
        let rates = applied.iter().map(|links| links[0].limits.egress);
        rates.map(|limit| limit.unwrap().rate).collect::<Vec<_>>()
    };
    assert_eq!(rates(), [500_000, 800_000]);

    coordinator.set(&limited(followed(3, "b", at, TOKEN), 800_000));
    node.until(changed(3, true)).await;
    node.until_ready(3).await;
    let after = node.pids();
    assert!(
        after
            .iter()
            .zip(&pids)
            .all(|(after, before)| after != before)
    );
    heard(&coordinator, |known| known.deployed.last() == Some(&3)).await;
    heard(&coordinator, |known| !known.usage.is_empty()).await;
    let usage = coordinator.known.lock().unwrap().usage[0].clone();
    assert_eq!(usage["links"][0]["link"], 5);
    assert_eq!(usage["links"][0]["egress"]["bytes"], 1000);
    node.stop().await.unwrap();
    // The next start has the newest version.
    let folder = Folder::open(&node.folder.path().join("as")).unwrap();
    let version = folder
        .current()
        .unwrap()
        .unwrap()
        .manifest()
        .unwrap()
        .version;
    assert_eq!(version, 3);
}

#[tokio::test]
async fn everything_goes_on_while_the_coordinator_is_away() {
    // It has the port from the beginning, and listens later.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let at = socket.local_addr().unwrap();
    let mut node = Running::start(&followed(1, "a", at, TOKEN));
    let is_away =
        |e: &Event| matches!(e, Event::Coordinator { reason } if reason.contains("reached"));
    node.until_ready_and(is_away).await;
    let coordinator = FakeCoordinator::new();
    coordinator.set(&followed(2, "a", at, TOKEN));
    coordinator.serve(socket.listen(16).unwrap());
    let before = node.until_ready(2).await;
    assert!(before.contains(&Event::CoordinatorBack), "{before:?}");
    heard(&coordinator, |known| known.deployed.contains(&2)).await;
    node.stop().await.unwrap();
}

#[tokio::test]
async fn a_refused_token_is_reported_and_the_services_run() {
    let (listener, at) = listener().await;
    let coordinator = FakeCoordinator::new();
    coordinator.set(&followed(1, "a", at, TOKEN));
    coordinator.serve(listener);
    let mut node = Running::start(&followed(1, "a", at, "wrong"));
    let refused = |event: &Event| match event {
        Event::Coordinator { reason } => {
            reason.contains("refuses this host (401): the token is wrong: fetch a new archive")
        }
        _ => false,
    };
    node.until_ready_and(refused).await;
    node.stop().await.unwrap();
}

#[tokio::test]
async fn without_a_configuration_the_services_stop() {
    let (listener, at) = listener().await;
    let coordinator = FakeCoordinator::new();
    let first = followed(1, "a", at, TOKEN);
    coordinator.set(&first);
    coordinator.serve(listener);
    let mut node = Running::start(&first);
    node.until_ready(1).await;
    let pids = node.pids();
    coordinator.set_archive(None);
    node.until(|event| *event == Event::Nothing).await;
    assert!(!pids.iter().any(|pid| runs(pid)));
    coordinator.set(&followed(2, "a", at, TOKEN));
    node.until_ready(2).await;
    node.stop().await.unwrap();
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_changes_nothing() {
    let (listener, at) = listener().await;
    let coordinator = FakeCoordinator::new();
    let first = followed(1, "a", at, TOKEN);
    let mut cut = followed(2, "a", at, TOKEN).pack();
    cut.truncate(cut.len() / 2);
    coordinator.set_archive(Some((cut, "\"cut\"".to_owned())));
    coordinator.serve(listener);
    let mut node = Running::start(&first);
    let cut =
        |e: &Event| matches!(e, Event::Coordinator { reason } if reason.contains("cut short"));
    node.until(cut).await;
    let mut other = followed(3, "a", at, TOKEN);
    let isd_as = "1-ff00:0:999".parse().unwrap();
    let topology = other.topology().unwrap();
    other.set_topology(&hawser_topology::AsTopology { isd_as, ..topology });
    other.set_manifest(&Manifest::new(isd_as, hawser_bundle::Role::User, 3));
    coordinator.set(&other);
    let foreign = |e: &Event| matches!(e, Event::NotInstalled { reason } if reason.contains("999"));
    node.until(foreign).await;
    coordinator.set(&followed(4, "a", at, TOKEN));
    node.until_ready(4).await;
    node.stop().await.unwrap();
}

#[tokio::test]
async fn limits_that_fail_are_tried_again() {
    let limits = FakeLimits {
        fails: true.into(),
        ..FakeLimits::default()
    };
    let (listener, at) = listener().await;
    let coordinator = FakeCoordinator::new();
    let first = limited(followed(1, "a", at, TOKEN), 8_000);
    coordinator.set(&first);
    coordinator.serve(listener);
    let mut node = Running::start_with(&first, limits, |_| {});
    let reason = "no permission".to_owned();
    let failed = Event::LimitsFailed { reason };
    node.until(|event| *event == failed).await;
    heard(&coordinator, |known| known.failed == ["no permission"]).await;
    node.limits.fails.store(false, Ordering::SeqCst);
    node.until_ready(1).await;
    assert_eq!(node.limits.applied.lock().unwrap().len(), 1);
    heard(&coordinator, |known| known.deployed == [1]).await;
    // However often it was tried in vain: the same outcome is reported once.
    assert_eq!(coordinator.known.lock().unwrap().failed, ["no permission"]);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn an_outcome_is_reported_once_to_each_run_of_the_coordinator() {
    let (listener, at) = listener().await;
    let coordinator = FakeCoordinator::new();
    let first = limited(followed(1, "a", at, TOKEN), 8_000);
    coordinator.set(&first);
    coordinator.serve(listener);
    let mut node = Running::start(&first);
    node.until_ready(1).await;
    heard(&coordinator, |known| known.deployed == [1]).await;
    // The node has much to do, of which nothing changes the outcome.
    for _ in 0..3 {
        let [router, _] = node.pids();
        let pid = rustix::process::Pid::from_raw(router.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        until_true("another process runs", || node.pids()[0] != router).await;
    }
    coordinator.set(&limited(followed(2, "a", at, TOKEN), 8_000));
    node.until_ready(2).await;
    heard(&coordinator, |known| known.deployed.last() == Some(&2)).await;
    assert_eq!(coordinator.known.lock().unwrap().deployed, [1, 2]);
    coordinator.cut();
    heard(&coordinator, |known| known.deployed == [1, 2, 2]).await;
    node.stop().await.unwrap();
}

#[tokio::test]
async fn a_link_that_fails_is_reported_and_the_version_is_in_force() {
    let reason = "no device leads there".to_owned();
    let limits = FakeLimits {
        failed: Mutex::new([("5".to_owned(), reason.clone())].into()),
        ..FakeLimits::default()
    };
    let (listener, at) = listener().await;
    let coordinator = FakeCoordinator::new();
    let first = limited(followed(1, "a", at, TOKEN), 8_000);
    coordinator.set(&first);
    coordinator.serve(listener);
    let mut node = Running::start_with(&first, limits, |_| {});
    let before = node.until_ready(1).await;
    let failed = Event::LinkFailed {
        link: "5".to_owned(),
        reason,
    };
    assert!(before.contains(&failed), "{before:?}");
    // It is tried again, which works.
    let applied = || node.limits.applied.lock().unwrap().len();
    until_true("it is tried again", || applied() == 2).await;
    heard(&coordinator, |known| known.deployed.contains(&1)).await;
    assert_eq!(coordinator.known.lock().unwrap().failed, [""; 0]);
    node.stop().await.unwrap();
}

#[tokio::test]
async fn segments_are_fetched_checked_and_written_again_if_they_were_not() {
    let (listener, at) = listener().await;
    let coordinator = FakeCoordinator::new();
    let first = followed(1, "a", at, TOKEN);
    coordinator.set(&first);
    let empty = Network {
        ases: Vec::new(),
        links: Vec::new(),
    };
    let (nowhere, minute) = (Path::new("/nowhere"), Duration::from_secs(60));
    let made = Publication::make(empty, nowhere, |_| Default::default(), minute, 1);
    let good = made.unwrap().to_json();
    coordinator.known.lock().unwrap().segments = b"{}".to_vec();
    coordinator.serve(listener);
    let mut node = Running::start(&first);
    let bad = |e: &Event| matches!(e, Event::Coordinator { reason } if reason.contains("segments"));
    node.until(bad).await;
    // They cannot be written at first.
    let path = node.folder.path().join("as/segments.json");
    fs::create_dir_all(path.join("in the way")).unwrap();
    coordinator.known.lock().unwrap().segments.clone_from(&good);
    let refused = |event: &Event| matches!(event, Event::NotInstalled { .. });
    node.until(refused).await;
    fs::remove_dir_all(&path).unwrap();
    node.until(|event| *event == Event::Segments).await;
    assert_eq!(fs::read(path).unwrap(), good);
    node.stop().await.unwrap();
}

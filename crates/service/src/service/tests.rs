//! A service with a carrier whose attempts end as each test sets, without a network.

use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use super::*;
use crate::carrier::{Attempt, Task};
use crate::job::{FailureKind, JobFailure, JobProgress};
use crate::queue::Outcome;

/// How the attempts of a [`Told`] end.
#[derive(Clone)]
pub(crate) enum Ends {
    /// At once.
    With(Outcome),
    /// When the value is true.
    When(watch::Receiver<bool>),
    /// Never by themselves.
    Never,
    /// With a panic.
    Panic,
}

/// A carrier that carries nothing.
pub(crate) struct Told {
    pub ends: Ends,
    /// Attempts that were begun.
    pub begun: Arc<AtomicUsize>,
    /// Attempts that were interrupted.
    pub interrupted: Arc<AtomicUsize>,
}

impl Told {
    pub fn new(ends: Ends) -> Arc<Self> {
        Arc::new(Self {
            ends,
            begun: Arc::default(),
            interrupted: Arc::default(),
        })
    }
}

impl Carrier for Told {
    fn carry(&self, task: Task) -> Pin<Box<dyn Future<Output = Attempt> + Send>> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let (ends, interrupted) = (self.ends.clone(), Arc::clone(&self.interrupted));
        Box::pin(async move {
            task.progress.send_replace(JobProgress {
                bytes: 10,
                verified_bytes: 4,
                ..JobProgress::default()
            });
            let by_itself = async {
                match ends {
                    Ends::With(outcome) => outcome,
                    Ends::When(mut done) => {
                        done.wait_for(|done| *done).await.unwrap();
                        task.progress
                            .send_modify(|progress| progress.verified_bytes = 10);
                        Outcome::Done
                    }
                    Ends::Never => std::future::pending().await,
                    Ends::Panic => panic!("told to"),
                }
            };
            tokio::select! {
                outcome = by_itself => Attempt::Ended(outcome),
                _ = task.stop => {
                    interrupted.fetch_add(1, Ordering::Relaxed);
                    Attempt::Interrupted
                }
            }
        })
    }
}

/// A service in a folder, with the files `data/a` and `data/b/c`, and the users alice and bob.
pub(crate) struct Bed {
    pub folder: TempDir,
    pub config: Config,
}

pub(crate) const TOKEN: &str = "alice's token";
/// The token of the daemon itself.
pub(crate) const OWNERS: &str = "the owner's token";

impl Bed {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("data/b")).unwrap();
        fs::create_dir_all(folder.path().join("in")).unwrap();
        fs::write(folder.path().join("data/a"), b"0123456789").unwrap();
        fs::write(folder.path().join("data/b/c"), b"01234").unwrap();
        fs::write(folder.path().join("in/received"), b"012").unwrap();
        let text = "
            transfers = { running = 1, attempts = 2 }
            receive = { folder = 'in', allowed_keys = 'allowed' }
            [users.alice]
            # `alice's token`
            token_sha256 = '4d63559a10572d247b6d2d666f8f776c2610b47d33255a6d136746d76f8d970d'
            folders = ['data']
            queued = 3
            [users.bob]
            token_sha256 = '81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9'
            [users.root]
            token_sha256 = '4813494d137e1631bba301d5acab6e7bb7aa74ce1185d456565ef51d737677b2'
            admin = true
        ";
        let config = Config::parse(&folder.path().join("daemon.toml"), text).unwrap();
        Self { folder, config }
    }

    pub fn service(&self, carrier: Arc<dyn Carrier>) -> (Service, UnboundedReceiver<ServiceEvent>) {
        let (log, loaded) = JobLog::open(&self.folder.path().join("state")).unwrap();
        let queue = Queue::new(self.config.limits(), loaded.jobs, loaded.next);
        let (events, happened) = unbounded_channel();
        let owner = TokenHash::of(OWNERS);
        let service = Service::new(&self.config, owner, (queue, log), carrier, events);
        let address = "1-ff00:0:111,10.0.2.1:31000".parse().unwrap();
        service.0.receiving.set(address).unwrap();
        (service, happened)
    }
}

pub(crate) fn new_job(source: &str) -> NewJob {
    NewJob {
        source: source.into(),
        server: "1-ff00:0:111,10.0.2.1:31000".parse().unwrap(),
        destination: String::new(),
        priority: 0,
    }
}

/// Longest wait for anything, also on a machine that is very busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Waits for the next job that is in `state`.
pub(crate) async fn until(happened: &mut UnboundedReceiver<ServiceEvent>, state: &str) -> Job {
    let mut before = Vec::new();
    loop {
        let event = tokio::time::timeout(PATIENCE, happened.recv()).await;
        match event {
            Ok(Some(ServiceEvent::Job(job))) if job.state.name() == state => return *job,
            Ok(Some(event)) => before.push(event),
            _ => panic!("no job was {state}: {before:?}"),
        }
    }
}

/// Waits until a counter is not zero.
async fn until_counted(counter: &AtomicUsize) {
    let counted = async {
        while counter.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    };
    let counted = tokio::time::timeout(PATIENCE, counted).await;
    counted.expect("the carrier does something");
}

#[tokio::test]
async fn jobs_run_in_turn_and_survive_the_end_of_the_service() {
    let bed = Bed::new();
    let carrier = Told::new(Ends::Never);
    let (service, mut happened) = bed.service(Arc::clone(&carrier) as Arc<dyn Carrier>);
    let alice = service.users().by_name("alice").unwrap().clone();
    let first = service.submit(&alice, new_job("a")).await.unwrap();
    let second = service.submit(&alice, new_job("b")).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn({
        let service = service.clone();
        async move { service.run(stopped).await }
    });
    assert_eq!(until(&mut happened, "running").await.id, first.id);
    assert_eq!(
        service.job(&alice, second.id).await.unwrap().state,
        JobState::Queued
    );
    stop.send(()).unwrap();
    running.await.unwrap();
    assert_eq!(carrier.interrupted.load(Ordering::Relaxed), 1);
    // Requests may hold it for longer; they find its jobs, and change none.
    let ended = service;
    assert_eq!(ended.jobs(&alice).await.len(), 2);
    let refused = ended.submit(&alice, new_job("a")).await;
    assert!(matches!(
        refused,
        Err(RequestError::Log(JobLogError::Closed))
    ));

    let (sender, done) = watch::channel(true);
    let (service, mut happened) = bed.service(Told::new(Ends::When(done)));
    let running = service.clone();
    tokio::spawn(async move { running.run(std::future::pending::<()>()).await });
    for id in [first.id, second.id] {
        let job = until(&mut happened, "done").await;
        assert_eq!((job.id, job.progress.verified_bytes), (id, 10));
    }
    drop(sender);
    assert_eq!(service.jobs(&alice).await.len(), 2);
}

#[tokio::test]
async fn a_running_job_that_is_cancelled_is_interrupted() {
    let bed = Bed::new();
    let carrier = Told::new(Ends::Never);
    let (service, mut happened) = bed.service(Arc::clone(&carrier) as Arc<dyn Carrier>);
    let alice = service.users().by_name("alice").unwrap().clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = service.clone();
    let running = tokio::spawn(async move { running.run(stopped).await });
    let job = service.submit(&alice, new_job("a")).await.unwrap();
    until(&mut happened, "running").await;
    let cancelled = service.cancel(&alice, job.id).await.unwrap();
    assert_eq!(cancelled.state, JobState::Cancelled);
    let again = service.cancel(&alice, job.id).await;
    assert!(matches!(again, Err(RequestError::Ended(_))));
    // The next one has its place.
    service.submit(&alice, new_job("b")).await.unwrap();
    until(&mut happened, "running").await;
    stop.send(()).unwrap();
    running.await.unwrap();
    assert_eq!(carrier.interrupted.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn failures_that_may_pass_are_tried_again_and_panics_are_not() {
    let bed = Bed::new();
    let failure = JobFailure {
        kind: FailureKind::Timeout,
        text: "no answer".into(),
    };
    let transient = Ends::With(Outcome::Transient(failure.clone()));
    for (ends, state) in [
        (transient, "waiting"),
        (Ends::With(Outcome::Permanent(failure)), "failed"),
        (Ends::Panic, "failed"),
    ] {
        let (service, mut happened) = bed.service(Told::new(ends));
        let alice = service.users().by_name("alice").unwrap().clone();
        service.submit(&alice, new_job("a")).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = service.clone();
        let running = tokio::spawn(async move { running.run(stopped).await });
        let job = until(&mut happened, state).await;
        assert!(job.error.is_some());
        stop.send(()).unwrap();
        running.await.unwrap();
    }
}

#[tokio::test]
async fn transfers_end_when_their_user_or_its_folder_is_removed() {
    for (removed, reason) in [
        ("user", "is no user any more"),
        ("folder", "has no folders"),
    ] {
        let bed = Bed::new();
        let carrier = Told::new(Ends::Never);
        let (service, mut happened) = bed.service(Arc::clone(&carrier) as Arc<dyn Carrier>);
        let alice = service.users().by_name("alice").unwrap().clone();
        let running = service.clone();
        tokio::spawn(async move { running.run(std::future::pending::<()>()).await });
        let job = service.submit(&alice, new_job("a")).await.unwrap();
        until(&mut happened, "running").await;
        until_counted(&carrier.begun).await;
        // What changes nothing for it leaves it alone.
        service.configure(bed.config.clone()).await;
        let state = service.job(&alice, job.id).await.unwrap().state;
        assert_eq!(state, JobState::Running);
        let mut config = bed.config.clone();
        match removed {
            "user" => drop(config.users.remove("alice")),
            _ => config.users.get_mut("alice").unwrap().folders.clear(),
        }
        service.configure(config).await;
        let failed = until(&mut happened, "failed").await;
        assert_eq!(failed.id, job.id);
        let error = failed.error.unwrap().text;
        assert!(error.contains(reason), "{error}");
        until_counted(&carrier.interrupted).await;
    }
}

#[tokio::test]
async fn what_is_not_the_users_is_refused() {
    let bed = Bed::new();
    let (service, _happened) = bed.service(Told::new(Ends::Never));
    let user = |name: &str| service.users().by_name(name).unwrap().clone();
    let (alice, bob, root) = (user("alice"), user("bob"), user("root"));
    for source in ["../in/received", "/etc/passwd", "absent", ""] {
        let error = service.submit(&alice, new_job(source)).await.unwrap_err();
        assert!(
            matches!(error, RequestError::Source(_)),
            "{source}: {error}"
        );
    }
    let error = service.submit(&bob, new_job("a")).await.unwrap_err();
    assert!(matches!(error, RequestError::Source(_)), "{error}");
    for destination in ["..", "a/../../b", "/", "/x/y", "."] {
        let mut new = new_job("a");
        new.destination = destination.into();
        let error = service.submit(&alice, new).await.unwrap_err();
        let is_absolute = matches!(error, RequestError::Absolute(_));
        assert_eq!(is_absolute, destination.starts_with('/'), "{error}");
        assert!(
            is_absolute || matches!(error, RequestError::Destination(_)),
            "{error}"
        );
    }
    // The server's folder itself, with the name of the file.
    let job = service.submit(&alice, new_job("a")).await.unwrap();
    assert_eq!(job.submission.destination, "a");
    let mut new = new_job("a");
    new.destination = "x/y/".into();
    let job = service.submit(&alice, new).await.unwrap();
    assert_eq!(job.submission.destination, "x/y/a");
    let theirs = service.job(&bob, job.id).await;
    assert!(matches!(theirs, Err(RequestError::NotYours(_))));
    assert!(service.jobs(&bob).await.is_empty());
    assert_eq!(service.jobs(&root).await.len(), 2);
    service.cancel(&root, job.id).await.unwrap();
    for _ in 0..2 {
        service.submit(&alice, new_job("a")).await.unwrap();
    }
    let full = service.submit(&alice, new_job("a")).await;
    assert!(matches!(full, Err(RequestError::Submit(_))));
}

#[tokio::test]
async fn sizes_are_of_own_files_and_of_what_was_received() {
    let bed = Bed::new();
    let (service, _happened) = bed.service(Told::new(Ends::Never));
    let alice = service.users().by_name("alice").unwrap().clone();
    let bob = service.users().by_name("bob").unwrap().clone();
    let received = bed.folder.path().join("in/received");
    for (file, size) in [
        ("a", Some(10)),
        ("b", Some(5)),
        (".", Some(15)),
        ("received", Some(3)),
        (received.to_str().unwrap(), Some(3)),
        ("absent", None),
        ("b/absent/x", None),
    ] {
        assert_eq!(service.size(&alice, file).await.unwrap(), size, "{file}");
    }
    assert_eq!(service.size(&bob, "a").await.unwrap(), None);
    assert!(service.size(&bob, "../data/a").await.is_err());
    std::os::unix::fs::symlink("/etc/passwd", bed.folder.path().join("data/link")).unwrap();
    assert!(service.size(&alice, "link").await.is_err());
    assert!(service.size(&alice, "/etc/passwd").await.unwrap().is_none());
    assert!(!Path::new("etc").exists());
}

/// A carrier whose attempts report progress until they are interrupted.
struct Reporting;

impl Carrier for Reporting {
    fn carry(&self, mut task: Task) -> Pin<Box<dyn Future<Output = Attempt> + Send>> {
        Box::pin(async move {
            loop {
                tokio::select! {
                    _ = &mut task.stop => return Attempt::Interrupted,
                    () = tokio::time::sleep(Duration::from_millis(5)) => {
                        task.progress.send_modify(|progress| progress.bytes += 1);
                    }
                }
            }
        })
    }
}

/// In a runtime of one thread, which nothing else may hold up.
#[tokio::test]
async fn no_task_waits_for_the_disk_with_the_jobs() {
    let bed = Bed::new();
    let (service, mut happened) = bed.service(Arc::new(Reporting));
    let alice = service.users().by_name("alice").unwrap().clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = service.clone();
    let running = tokio::spawn(async move { running.run(stopped).await });
    let job = service.submit(&alice, new_job("a")).await.unwrap();
    until(&mut happened, "running").await;
    // As a thread that waits for the disk does.
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (locked, is_locked) = oneshot::channel();
    let disk = service.clone();
    let disk = std::thread::spawn(move || {
        let _core = disk.core();
        locked.send(()).unwrap();
        released.recv_timeout(PATIENCE).is_ok()
    });
    is_locked.await.unwrap();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.send(()).unwrap();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // It fails if the thread has given up, as this task waited for it.
    let _ = release.send(());
    assert!(disk.join().unwrap(), "it has waited");
    running.await.unwrap();
    // What was reported meanwhile counts.
    assert!(service.job(&alice, job.id).await.unwrap().progress.bytes > 1);
}

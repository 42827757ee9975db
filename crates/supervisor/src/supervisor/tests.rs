//! Shells as services.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;

/// Longest wait for anything here.
const TIMEOUT: Duration = Duration::from_secs(300);

/// A service that runs a script of the shell in a folder.
struct Shell<'a> {
    supervisor: Supervisor,
    folder: &'a Path,
    script: &'a str,
    socket: Option<PathBuf>,
}

impl<'a> Shell<'a> {
    fn new(folder: &'a Path, script: &'a str) -> (Self, ServiceId) {
        let policy = Policy {
            grace: Duration::from_millis(50),
            ..Policy::default()
        };
        let mut supervisor = Supervisor::new(policy).unwrap();
        let id = supervisor.add();
        let this = Self {
            supervisor,
            folder,
            script,
            socket: None,
        };
        (this, id)
    }

    /// Drives until something is reported. Returns all reports until then.
    fn until(&mut self, is_it: impl Fn(&Report) -> bool) -> Vec<Report> {
        let deadline = Instant::now() + TIMEOUT;
        let mut all = Vec::new();
        loop {
            let launch = |_| {
                let child = Command::new("sh")
                    .args(["-c", self.script])
                    .current_dir(self.folder)
                    .stderr(Stdio::piped())
                    .spawn()?;
                let socket = self.socket.clone();
                Ok(Launch::Started { child, socket })
            };
            let reports = self.supervisor.drive(launch).unwrap();
            let found = reports.iter().any(&is_it);
            all.extend(reports);
            if found {
                return all;
            }
            assert!(Instant::now() < deadline, "{all:?}");
            self.supervisor.wait(deadline).unwrap();
        }
    }
}

fn said(reports: &[Report]) -> Vec<&str> {
    let said = reports.iter().filter_map(|report| match report {
        Report::Said { line, .. } => Some(line.as_str()),
        _ => None,
    });
    said.collect()
}

#[test]
fn a_service_that_ends_is_started_again_and_its_lines_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo begun >&2; printf cut >&2; exit 3";
    let (mut shell, id) = Shell::new(folder.path(), script);
    let reports = shell.until(|report| matches!(report, Report::Ended { .. }));
    assert_eq!(said(&reports), ["begun", "cut"]);
    assert!(
        matches!(&reports[..2], [Report::Started { again: false, .. }, Report::Ready { service }] if *service == id),
        "{reports:?}"
    );
    let Some(Report::Ended {
        status,
        last_line,
        again_after,
        ..
    }) = reports.last()
    else {
        panic!("{reports:?}");
    };
    assert_eq!(status.as_ref().unwrap().code(), Some(3));
    assert_eq!(last_line.as_deref(), Some("cut"));
    assert_eq!(*again_after, Duration::from_millis(100));
    assert!(matches!(shell.supervisor.status(id), Status::Waiting(_)));
    shell.until(|report| matches!(report, Report::Started { again: true, .. }));
    assert_eq!(shell.supervisor.restarts(id), 1);
}

#[test]
fn a_service_is_ready_when_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let (mut shell, id) = Shell::new(folder.path(), "echo runs >&2; exec sleep 1000");
    let socket = folder.path().join("socket");
    shell.socket = Some(socket.clone());
    shell.until(|report| matches!(report, Report::Said { .. }));
    assert_eq!(shell.supervisor.status(id), Status::Starting);
    let _listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    shell.until(|report| matches!(report, Report::Ready { .. }));
    assert_eq!(shell.supervisor.status(id), Status::Ready);
    shell.supervisor.stop_all();
    shell.until(|report| matches!(report, Report::Stopped { .. }));
    assert!(shell.supervisor.is_over());
}

#[test]
fn a_service_that_ignores_sigterm_is_killed_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; echo $$ >&2; while :; do sleep 0.01; done";
    let (mut shell, id) = Shell::new(folder.path(), script);
    let before = shell.until(|report| matches!(report, Report::Said { .. }));
    let first = said(&before)[0].parse().unwrap();
    assert!(shell.supervisor.owns(first));
    shell.supervisor.restart(id);
    let after = shell.until(|report| matches!(report, Report::Said { .. }));
    let second = said(&after)[0].parse().unwrap();
    assert!(first != second && shell.supervisor.owns(second));
    assert!(!shell.supervisor.owns(first));
    assert!(matches!(after[0], Report::Stopped { .. }), "{after:?}");
    assert_eq!(shell.supervisor.restarts(id), 0);
    let path = format!("/proc/{second}/cmdline");
    drop(shell);
    // It is dead at once, and stays a zombie.
    let deadline = Instant::now() + TIMEOUT;
    while fs::read(&path).is_ok_and(|arguments| !arguments.is_empty()) {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
}

#[test]
fn a_program_that_does_not_exist_is_tried_again() {
    let mut supervisor = Supervisor::new(Policy::default()).unwrap();
    let id = supervisor.add();
    let launch = |_| {
        let child = Command::new("/nonexistent").spawn()?;
        Ok(Launch::Started {
            child,
            socket: None,
        })
    };
    let reports = supervisor.drive(launch).unwrap();
    let first = Duration::from_millis(100);
    assert!(
        matches!(reports[..], [Report::NotStarted { service, again_after, .. }]
            if service == id && again_after == first),
        "{reports:?}"
    );
    let deadline = Instant::now() + TIMEOUT;
    let reports = loop {
        supervisor.wait(deadline).unwrap();
        match supervisor
            .drive(|_| Ok(Launch::Postponed(TIMEOUT)))
            .unwrap()
        {
            none if none.is_empty() && supervisor.next_due() < Some(deadline) => {}
            reports => break reports,
        }
    };
    assert!(reports.is_empty(), "{reports:?}");
    assert!(matches!(supervisor.status(id), Status::Waiting(_)));
}

//! What a crash leaves, and what it must not.

use proptest::prelude::*;

use super::*;
use crate::job::{JobProgress, JobState, Submission};
use crate::queue::{Limits, Queue, UserLimits};

fn job(id: u64, state: JobState, text: &str) -> Job {
    Job {
        id: JobId(id),
        submission: Submission {
            user: "alice".into(),
            source: text.to_owned(),
            server: "1-ff00:0:111,10.0.2.1:31000".parse().unwrap(),
            destination: text.to_owned(),
            priority: -3,
        },
        state,
        failed_attempts: 1,
        failing_since: None,
        error: None,
        progress: JobProgress {
            bytes: u64::MAX,
            ..JobProgress::default()
        },
        submitted: 1,
        started: None,
        ended: Some(7),
    }
}

fn state() -> impl Strategy<Value = JobState> {
    prop_oneof![
        Just(JobState::Queued),
        any::<u64>().prop_map(|until| JobState::Waiting { until }),
        Just(JobState::Running),
        Just(JobState::Done),
        Just(JobState::Failed),
        Just(JobState::Cancelled),
    ]
}

/// The last versions of these jobs.
fn last(jobs: &[Job]) -> Vec<Job> {
    let by_id = jobs.iter().map(|job| (job.id, job.clone()));
    let by_id: std::collections::BTreeMap<_, _> = by_id.collect();
    by_id.into_values().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Wherever the file is cut, all jobs whose lines are complete are there, and no others.
    #[test]
    fn a_file_cut_anywhere_has_what_was_complete(
        versions in proptest::collection::vec((1..5_u64, state(), "\\PC{0,9}"), 1..8)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, loaded) = JobLog::open(folder.path()).unwrap();
        prop_assert!(loaded.jobs.is_empty());
        let mut ends = vec![log.length];
        let mut jobs = Vec::new();
        for (id, state, text) in versions {
            let job = job(id, state, &text);
            log.append(&job).unwrap();
            ends.push(log.length);
            jobs.push(job);
        }
        drop(log);
        let path = folder.path().join(FILE);
        let bytes = fs::read(&path).unwrap();
        for length in ends[0] as usize..=bytes.len() {
            let found = parse(&path, &bytes[..length]).unwrap();
            let whole = ends.iter().filter(|end| **end <= length as u64).count() - 1;
            prop_assert_eq!((found.length, found.lines), (ends[whole], whole));
            prop_assert_eq!(found.loaded.jobs, last(&jobs[..whole]));
        }
        // And a log that was cut continues behind its last complete line.
        let cut = (ends[ends.len() - 2] + ends[ends.len() - 1]) / 2;
        OpenOptions::new().write(true).open(&path).unwrap().set_len(cut).unwrap();
        let (mut log, _) = JobLog::open(folder.path()).unwrap();
        let added = job(9, JobState::Queued, "added");
        log.append(&added).unwrap();
        drop(log);
        jobs.pop();
        jobs.push(added);
        let (_, loaded) = JobLog::open(folder.path()).unwrap();
        prop_assert_eq!(loaded.jobs, last(&jobs));
        prop_assert_eq!(loaded.next, JobId(10));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(Path::new("x"), &bytes);
    }
}

#[test]
fn a_rewritten_file_keeps_the_jobs_and_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = JobLog::open(folder.path()).unwrap();
    for id in 1..=700 {
        log.append(&job(id, JobState::Queued, "a")).unwrap();
        log.append(&job(id, JobState::Done, "a")).unwrap();
    }
    drop(log);
    let (mut log, _) = JobLog::open(folder.path()).unwrap();
    assert!(log.is_worn(5));
    let kept = job(3, JobState::Done, "a");
    log.rewrite([&kept].into_iter(), JobId(701)).unwrap();
    assert!(!log.is_worn(1));
    log.append(&job(2, JobState::Queued, "b")).unwrap();
    drop(log);
    let (_, loaded) = JobLog::open(folder.path()).unwrap();
    assert_eq!(loaded.next, JobId(701));
    assert_eq!(loaded.jobs, [job(2, JobState::Queued, "b"), kept]);
}

#[test]
fn one_service_uses_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = JobLog::open(folder.path()).unwrap();
    let second = JobLog::open(folder.path());
    assert!(matches!(second, Err(JobLogError::InUse(_))));
    drop(first);
    JobLog::open(folder.path()).unwrap();
}

#[test]
fn damage_in_the_middle_is_reported_and_newer_formats_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = JobLog::open(folder.path()).unwrap();
    for id in 1..4 {
        log.append(&job(id, JobState::Queued, "a")).unwrap();
    }
    drop(log);
    let path = folder.path().join(FILE);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"id\":2", "\"id\"=2", 1)).unwrap();
    let error = JobLog::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("line 3 is damaged"), "{error}");
    fs::write(&path, text.replacen(":1", ":2", 1)).unwrap();
    let error = JobLog::open(folder.path()).unwrap_err();
    assert!(matches!(error, JobLogError::Version { found: 2, .. }));
}

/// A write that fails leaves the log as it was, and later ones work.
#[test]
fn a_write_that_fails_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = JobLog::open(folder.path()).unwrap();
    log.append(&job(1, JobState::Queued, "a")).unwrap();
    let file = std::mem::replace(&mut log.file, File::open(folder.path().join(FILE)).unwrap());
    log.append(&job(2, JobState::Queued, "b")).unwrap_err();
    // A file that is open for reading alone can be neither written nor cut.
    let broken = log.append(&job(3, JobState::Queued, "c"));
    assert!(matches!(broken, Err(JobLogError::Broken(_))));
    log.file = file;
    log.rewrite([&job(1, JobState::Queued, "a")].into_iter(), JobId(2))
        .unwrap();
    log.append(&job(2, JobState::Queued, "b")).unwrap();
    drop(log);
    assert_eq!(JobLog::open(folder.path()).unwrap().1.jobs.len(), 2);
}

#[test]
fn what_ran_when_the_service_was_killed_is_queued_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = JobLog::open(folder.path()).unwrap();
    log.append(&job(1, JobState::Running, "a")).unwrap();
    drop(log);
    let (_, loaded) = JobLog::open(folder.path()).unwrap();
    let user = UserLimits {
        running: 1,
        queued: 1,
        priority: 0,
    };
    let limits = Limits {
        running: 1,
        attempts: Some(1),
        retry: 0,
        users: [("alice".to_owned(), user)].into(),
    };
    let queue = Queue::new(limits, loaded.jobs, loaded.next);
    assert_eq!(queue.start(9).map(|job| job.id), Some(JobId(1)));
}

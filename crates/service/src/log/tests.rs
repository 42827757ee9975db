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
    let newer = line::write(&Header {
        hawser_jobs: 3,
        next: JobId(1),
    });
    fs::write(&path, newer.unwrap()).unwrap();
    let error = JobLog::open(folder.path()).unwrap_err();
    assert!(matches!(error, JobLogError::Version { found: 3, .. }));
}

/// A write that fails leaves the log as it was, and later ones work.
#[test]
fn a_write_that_fails_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = JobLog::open(folder.path()).unwrap();
    log.append(&job(1, JobState::Queued, "a")).unwrap();
    let path = folder.path().join(FILE);
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    log.file = full();
    let error = log.append(&job(2, JobState::Queued, "b")).unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
    // A part of a line that could not be removed either.
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"id\":3,").unwrap();
    fs::rename(&path, folder.path().join("away")).unwrap();
    log.file = full();
    log.append(&job(3, JobState::Queued, "c")).unwrap_err();
    log.append(&job(3, JobState::Queued, "c")).unwrap_err();
    fs::rename(folder.path().join("away"), &path).unwrap();
    log.append(&job(4, JobState::Queued, "d")).unwrap();
    drop(log);
    let (mut log, loaded) = JobLog::open(folder.path()).unwrap();
    let ids: Vec<u64> = loaded.jobs.iter().map(|job| job.id.0).collect();
    assert_eq!((ids, loaded.cut), (vec![1, 4], 0));
    log.rewrite([&job(1, JobState::Queued, "a")].into_iter(), JobId(2))
        .unwrap();
    drop(log);
    assert_eq!(JobLog::open(folder.path()).unwrap().1.jobs.len(), 1);
}

/// Whatever bytes are changed, the jobs are those that were written, or the file is refused.
#[test]
fn a_file_with_changed_bytes_is_refused_or_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = JobLog::open(folder.path()).unwrap();
    for id in 1..6 {
        log.append(&job(id, JobState::Queued, "some text")).unwrap();
    }
    drop(log);
    let path = folder.path().join(FILE);
    let whole = fs::read(&path).unwrap();
    let written = parse(&path, &whole).unwrap().loaded;
    let mut refused = 0;
    for at in 0..whole.len() {
        for byte in [whole[at] ^ 1, b'\n', b'\t', b' ', b'}', 0] {
            let mut changed = whole.clone();
            changed[at] = byte;
            match parse(&path, &changed) {
                Ok(found) => assert_eq!(found.loaded, written, "{byte} at {at}"),
                Err(error) => {
                    let text = error.to_string();
                    let remedy = text.contains("restore") && text.contains(FILE);
                    assert!(remedy && !text.contains('\n'), "{text}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > whole.len());
}

#[test]
fn an_empty_file_is_no_empty_queue() {
    let folder = tempfile::tempdir().unwrap();
    drop(JobLog::open(folder.path()).unwrap());
    let path = folder.path().join(FILE);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let error = JobLog::open(folder.path()).unwrap_err().to_string();
        let expected = "restore it from a backup, or move it away to start without jobs";
        assert!(error.ends_with(expected), "{error}");
        assert_eq!(fs::read(&path).unwrap(), &whole[..length]);
    }
}

/// A file of the format without checksums is read, and has them from then on.
#[test]
fn an_older_file_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let (first, second) = (job(1, JobState::Queued, "a"), job(2, JobState::Done, "b"));
    let lines: Vec<String> = [&first, &second]
        .map(|job| serde_json::to_string(job).unwrap())
        .into();
    let text = format!("{{\"hawser_jobs\":1,\"next\":7}}\n{}\n", lines.join("\n"));
    fs::write(&path, format!("{text}{{\"id\":3,")).unwrap();
    let (_, loaded) = JobLog::open(folder.path()).unwrap();
    assert_eq!(
        (loaded.jobs, loaded.next.0, loaded.cut),
        (vec![first, second], 7, 8)
    );
    let found = parse(&path, &fs::read(&path).unwrap()).unwrap();
    assert!(found.is_checked);
    assert_eq!((found.loaded.jobs.len(), found.loaded.next.0), (2, 7));
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

#[test]
fn lines_that_were_changed_are_refused_or_whole() {
    let lines = [JobState::Queued, JobState::Done].map(|state| {
        let job = job(7, state, "a\tb\n\u{1f600}");
        (job.clone(), line::write(&job).unwrap())
    });
    let valid: Vec<Vec<u8>> = lines.iter().map(|(_, line)| line.clone()).collect();
    hawser_fuzz::fuzz(&valid, |input| {
        let _ = line::read_unchecked::<Job>(input);
        if let Ok(job) = line::read::<Job>(input) {
            assert!(lines.iter().any(|(one, line)| *one == job && line == input));
        }
    });
}

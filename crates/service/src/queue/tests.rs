//! The queue under random operations, and by example.

use proptest::prelude::*;

use super::*;
use crate::job::FailureKind;

const USERS: [&str; 3] = ["alice", "bob", "carol"];

fn limits() -> Limits {
    let limits = |running, queued, priority| UserLimits {
        running,
        queued,
        priority,
    };
    Limits {
        running: 3,
        attempts: Some(3),
        retry: 3600,
        users: HashMap::from([
            ("alice".to_owned(), limits(2, 4, 5)),
            ("bob".to_owned(), limits(1, 3, 0)),
        ]),
    }
}

pub fn submission(user: &str, priority: i8) -> Submission {
    Submission {
        user: user.to_owned(),
        source: "/data/run 1".into(),
        server: "1-ff00:0:111,10.0.2.1:31000".parse().unwrap(),
        destination: "run".into(),
        priority,
    }
}

fn failure() -> JobFailure {
    JobFailure {
        kind: FailureKind::Timeout,
        text: "no answer".into(),
    }
}

#[derive(Debug, Clone)]
enum Op {
    Submit(usize, i8),
    Start,
    End(usize, Option<bool>, u64),
    Cancel(usize),
    Prefer(usize, i8),
    Elapse(u64),
    Restart,
    Forget,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..3_usize, -1..8_i8).prop_map(|(user, priority)| Op::Submit(user, priority)),
        4 => Just(Op::Start),
        3 => (0..9_usize, any::<Option<bool>>(), 0..100_u64)
            .prop_map(|(job, outcome, sent)| Op::End(job, outcome, sent)),
        1 => (0..9_usize).prop_map(Op::Cancel),
        1 => (0..9_usize, -1..8_i8).prop_map(|(job, priority)| Op::Prefer(job, priority)),
        2 => (0..30_u64).prop_map(Op::Elapse),
        1 => Just(Op::Restart),
        1 => Just(Op::Forget),
    ]
}

proptest! {
    #[test]
    fn limits_hold_and_final_states_stay(ops in proptest::collection::vec(op(), 1..120)) {
        let mut queue = Queue::new(limits(), [], JobId(1));
        let mut now = 1000;
        let mut last = JobId(0);
        for op in ops {
            let before = queue.clone();
            let nth = |index: usize| before.jobs().nth(index).map_or(JobId(999), |job| job.id);
            match op {
                Op::Submit(user, priority) => {
                    match queue.submit(submission(USERS[user], priority), now) {
                        Ok(job) => {
                            prop_assert!(job.id > last, "a number is used twice");
                            last = job.id;
                            queue.put(job);
                        }
                        Err(SubmitError::Unknown(_)) => prop_assert_eq!(user, 2),
                        Err(SubmitError::Priority { given, most }) => prop_assert!(given > most),
                        Err(SubmitError::Full(_)) => {}
                    }
                }
                Op::Start => match queue.start(now) {
                    Some(job) => {
                        let old = before.job(job.id).unwrap();
                        let due = match old.state {
                            JobState::Waiting { until } => until <= now,
                            state => state == JobState::Queued,
                        };
                        prop_assert!(due);
                        queue.put(job);
                    }
                    None => assert_nothing_may_run(&queue, now),
                },
                Op::End(index, outcome, sent) => {
                    let outcome = match outcome {
                        None => Outcome::Done,
                        Some(true) => Outcome::Transient(failure()),
                        Some(false) => Outcome::Permanent(failure()),
                    };
                    let progress = JobProgress { bytes: 100, verified_bytes: sent, ..JobProgress::default() };
                    let was = before.job(nth(index)).map(|job| job.state);
                    match queue.end(nth(index), outcome, progress, now) {
                        Some(job) => {
                            prop_assert_eq!(was, Some(JobState::Running));
                            prop_assert_eq!(job.state.is_final(), job.ended.is_some());
                            if let JobState::Waiting { until } = job.state {
                                prop_assert!((now + MIN_BACKOFF..=now + LONGEST_WAIT).contains(&until));
                            }
                            queue.put(job);
                        }
                        None => prop_assert_ne!(was, Some(JobState::Running)),
                    }
                }
                Op::Cancel(index) => match queue.cancel(nth(index), now) {
                    Ok(job) => queue.put(job),
                    Err(CancelError::Ended(id)) => {
                        prop_assert!(queue.job(id).unwrap().state.is_final());
                    }
                    Err(CancelError::Unknown(id)) => prop_assert!(queue.job(id).is_none()),
                },
                Op::Prefer(index, priority) => {
                    if let Ok(job) = queue.to_run(nth(index))
                        && let Ok(job) = queue.with_priority(job, priority)
                    {
                        queue.put(job);
                    }
                }
                Op::Elapse(seconds) => now += seconds,
                Op::Restart => {
                    let jobs: Vec<Job> = before.jobs().cloned().collect();
                    queue = Queue::new(limits(), jobs, before.next_id());
                    prop_assert!(queue.jobs().all(|job| job.state != JobState::Running));
                }
                Op::Forget => {
                    let gone = queue.forget_ended_before(now.saturating_sub(20));
                    prop_assert_eq!(gone, before.jobs().count() - queue.jobs().count());
                }
            }
            assert_limits(&queue);
            for job in before.jobs().filter(|job| job.state.is_final()) {
                prop_assert!(queue.job(job.id).is_none_or(|now| now == job));
            }
        }
    }
}

fn assert_limits(queue: &Queue) {
    let running = |job: &&Job| job.state == JobState::Running;
    assert!(queue.jobs().filter(running).count() <= limits().running);
    for (user, limits) in limits().users {
        let mine = || queue.jobs().filter(|job| job.submission.user == user);
        assert!(mine().filter(running).count() <= limits.running);
        assert!(mine().all(|job| job.submission.priority <= limits.priority));
    }
}

fn assert_nothing_may_run(queue: &Queue, now: u64) {
    let running = |user: Option<&str>| {
        let of = |job: &&Job| {
            job.state == JobState::Running && user.is_none_or(|user| job.submission.user == user)
        };
        queue.jobs().filter(of).count()
    };
    for job in queue.jobs() {
        let waits = match job.state {
            JobState::Queued => false,
            JobState::Waiting { until } => until > now,
            _ => true,
        };
        let user = &job.submission.user;
        let most = limits().users[user].running;
        assert!(waits || running(Some(user)) >= most || running(None) >= limits().running);
    }
}

#[test]
fn higher_priorities_run_first_then_users_in_turn() {
    let mut queue = Queue::new(limits(), [], JobId(1));
    for (user, priority) in [("alice", 0), ("alice", 0), ("bob", 0), ("alice", 5)] {
        let job = queue.submit(submission(user, priority), 0).unwrap();
        queue.put(job);
    }
    let mut ran = Vec::new();
    while let Some(job) = queue.start(1) {
        ran.push(job.id.0);
        queue.put(job);
    }
    assert_eq!(ran, [4, 3, 1]);
}

#[test]
fn an_attempt_that_delivers_begins_the_count_anew() {
    let mut queue = Queue::new(limits(), [], JobId(1));
    queue.put(queue.submit(submission("bob", 0), 0).unwrap());
    let id = JobId(1);
    let mut now = 0;
    for sent in [0, 0, 7, 0, 0] {
        queue.put(queue.start(now).unwrap());
        let progress = JobProgress {
            verified_bytes: sent,
            ..JobProgress::default()
        };
        let job = queue.end(id, Outcome::Transient(failure()), progress, now);
        queue.put(job.unwrap());
        now = queue.next_due().unwrap_or(now);
    }
    let job = queue.job(id).unwrap();
    assert_eq!((job.state, job.failed_attempts), (JobState::Failed, 3));
}

#[test]
fn what_delivers_nothing_is_tried_again_until_its_time_is_over() {
    let limits = Limits {
        attempts: None,
        ..limits()
    };
    let mut queue = Queue::new(limits, [], JobId(1));
    let job = queue.submit(submission("alice", 0), 0).unwrap();
    let id = job.id;
    queue.put(job);
    let fail = |queue: &mut Queue, now: u64, verified_bytes: u64| {
        queue.put(queue.start(now).unwrap());
        let progress = JobProgress {
            bytes: 10,
            verified_bytes,
            ..JobProgress::default()
        };
        let failed = queue.end(id, Outcome::Transient(failure()), progress, now);
        let failed = failed.unwrap();
        queue.put(failed.clone());
        failed.state
    };
    let mut now = 0;
    let mut attempts = 0;
    while let JobState::Waiting { until } = fail(&mut queue, now, 0) {
        assert!(until > now && until <= 3600, "{until}");
        now = until;
        attempts += 1;
        if attempts == 5 {
            // Something was delivered: the time begins again.
            let state = fail(&mut queue, now, 1);
            assert_eq!(state, JobState::Waiting { until: now + 5 });
            break;
        }
    }
    let since = now;
    now += 5;
    while let JobState::Waiting { until } = fail(&mut queue, now, 0) {
        now = until;
    }
    assert_eq!(now, since + 3600);
}

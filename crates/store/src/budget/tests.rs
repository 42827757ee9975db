use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Far longer than any test takes: only a test that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_single_job_has_the_whole_budget() {
    let account = Budget::new(100, 1).join();
    let half = account.try_reserve(60).unwrap();
    let rest = account.try_reserve(40).unwrap();
    assert!(account.try_reserve(1).is_none());
    let again = half.clone();
    drop(half);
    assert!(account.try_reserve(1).is_none(), "a clone still holds it");
    drop((again, rest));
    // More than the budget, as nothing is in use.
    assert!(account.try_reserve(500).is_some());
}

#[test]
fn a_job_whose_disk_hangs_leaves_the_others_their_share() {
    let budget = Budget::new(100, 1);
    let (hung, good) = (budget.join(), budget.join());
    let mut never_written: Vec<_> = (0..10).map(|_| hung.try_reserve(10).unwrap()).collect();
    // At least one at a time, although nothing is left.
    let one = good.try_reserve(10).unwrap();
    assert!(good.try_reserve(10).is_none());
    drop(one);
    // The excess of the first job over its share is the other's once it is released.
    never_written.truncate(5);
    assert!(hung.try_reserve(10).is_none());
    let taken: Vec<_> = (0..5).map(|_| good.try_reserve(10).unwrap()).collect();
    assert!(good.try_reserve(10).is_none());
    drop((taken, good));
    // The whole budget again, as the first job is alone.
    never_written.push(hung.try_reserve(50).unwrap());
}

#[tokio::test]
async fn two_jobs_share_the_budget_and_neither_starves() {
    let budget = Budget::new(64, 2);
    // Many tasks of one job want more than the budget, as long as the other one works.
    let (greedy, modest) = (Arc::new(budget.join()), budget.join());
    let over = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (greedy, over) = (Arc::clone(&greedy), Arc::clone(&over));
            tokio::spawn(async move {
                let mut times = 0u32;
                while !over.load(Ordering::Relaxed) {
                    let _room = greedy.reserve(16).await;
                    let _read = greedy.read().await;
                    tokio::task::yield_now().await;
                    times += 1;
                }
                times
            })
        })
        .collect();
    let work = async {
        for _ in 0..1000 {
            let _room = modest.reserve(32).await;
            let _read = modest.read().await;
            tokio::task::yield_now().await;
            assert!(budget.bytes.lock().used <= 64 + 32);
        }
        over.store(true, Ordering::Relaxed);
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        sum
    };
    let of_greedy = tokio::time::timeout(PATIENCE, work).await.unwrap();
    assert!(
        of_greedy >= 500,
        "the other job took {of_greedy} times only"
    );
    assert_eq!(budget.bytes.lock().used, 0);
    assert_eq!(budget.reads.lock().used, 0);
}

#[tokio::test]
async fn waiting_calls_are_served_in_order() {
    let account = Arc::new(Budget::new(100, 1).join());
    let held = account.reserve(90).await;
    let (sender, mut served) = tokio::sync::mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    // The first amount is too large for now, the others would fit.
    for bytes in [80, 10, 5] {
        let (account, sender) = (Arc::clone(&account), sender.clone());
        tasks.push(tokio::spawn(async move {
            let _room = account.reserve(bytes).await;
            sender.send(bytes).unwrap();
        }));
        tokio::task::yield_now().await;
    }
    drop(held);
    for bytes in [80, 10, 5] {
        let next = tokio::time::timeout(PATIENCE, served.recv()).await;
        assert_eq!(next.unwrap(), Some(bytes));
    }
}

proptest! {
    /// Jobs join, take, release and leave in any order.
    #[test]
    fn the_sums_are_right_and_no_job_is_refused_everything(
        steps in proptest::collection::vec((0usize..4, 0usize..4, 1usize..40), 1..200),
    ) {
        let budget = Budget::new(100, 1);
        let mut jobs: Vec<(Account, Vec<(usize, Reservation)>)> = Vec::new();
        // Reservations of jobs that have ended.
        let mut left: Vec<(usize, Reservation)> = Vec::new();
        for (step, which, amount) in steps {
            match step {
                0 if jobs.len() < 4 => jobs.push((budget.join(), Vec::new())),
                1 if !jobs.is_empty() => {
                    let (_, held) = jobs.swap_remove(which % jobs.len());
                    left.extend(held);
                }
                2 if !jobs.is_empty() => {
                    let count = jobs.len();
                    let (_, held) = &mut jobs[which % count];
                    if held.pop().is_none() {
                        left.pop();
                    }
                }
                _ if !jobs.is_empty() => {
                    let count = jobs.len();
                    let (account, held) = &mut jobs[which % count];
                    let own: usize = held.iter().map(|(amount, _)| amount).sum();
                    let used = budget.bytes.lock().used;
                    match account.try_reserve(amount) {
                        Some(room) => {
                            prop_assert!(own == 0 || used + amount <= 100);
                            held.push((amount, room));
                        }
                        None => prop_assert!(own > 0),
                    }
                }
                _ => {}
            }
            let held = jobs.iter().flat_map(|(_, held)| held).chain(&left);
            prop_assert_eq!(budget.bytes.lock().used, held.map(|(amount, _)| amount).sum::<usize>());
        }
    }
}

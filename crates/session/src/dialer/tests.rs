//! A dialer at work, on virtual time.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use hawser_manager::{Action, Demand, Failure, PathOptions};
use hawser_path::{Interface, Metadata, Policy};
use tokio::time::{sleep, timeout, timeout_at};

use super::*;

/// What comes of each dial, in the order in which they are started, and after how many seconds.
type Outcomes = Mutex<VecDeque<(u64, Result<u32, String>)>>;

struct Server {
    outcomes: Outcomes,
}

impl Remote for Server {
    type Path = Arc<Path>;
    type Outcome = Result<u32, String>;

    fn fits(&self, path: &Self::Path) -> Result<(), String> {
        match path.interfaces[0].id {
            NARROW => Err("too narrow".to_owned()),
            _ => Ok(()),
        }
    }

    fn dial(&self, _: Self::Path) -> impl Future<Output = Self::Outcome> + Send + 'static {
        let next = self.outcomes.lock().unwrap().pop_front();
        let (seconds, outcome) = next.expect("a dial that the test does not expect");
        async move {
            sleep(Duration::from_secs(seconds)).await;
            outcome
        }
    }
}

/// The interface of a path over which nothing can be sent.
const NARROW: u16 = 9;

/// A path from AS 1 to AS 2 over the link of this number.
fn path(id: u16) -> Arc<Path> {
    let [from, to] = ["1-ff00:0:1", "1-ff00:0:2"].map(|isd_as| isd_as.parse().unwrap());
    let interfaces = [from, to].map(|isd_as| Interface { isd_as, id });
    Arc::new(Path::new(from, to, interfaces.to_vec(), Metadata::default()).unwrap())
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

type Offers = watch::Sender<Arc<Vec<Arc<Path>>>>;

/// A dialer of up to two paths, whose dials come to these outcomes.
fn dialer(outcomes: &[(u64, Result<u32, &str>)], ids: &[u16]) -> (Dialer<Server>, Offers) {
    let owned =
        |(after, outcome): &(u64, Result<u32, &str>)| (*after, outcome.map_err(str::to_owned));
    let server = Server {
        outcomes: Mutex::new(outcomes.iter().map(owned).collect()),
    };
    let options = PathOptions {
        subflows: 2,
        ..PathOptions::default()
    };
    let (offers, offered) = watch::channel(Arc::new(ids.iter().map(|id| path(*id)).collect()));
    (Dialer::new(server, PathSet::new(options), offered), offers)
}

fn orders(dialer: &mut Dialer<Server>) -> Vec<Order> {
    dialer.orders(|_| Carried::default(), now())
}

#[tokio::test(start_paused = true)]
async fn offered_paths_are_dialed_and_each_outcome_is_returned() {
    let (mut dialer, _offers) = dialer(&[(2, Ok(1)), (1, Ok(2))], &[1, 2, NARROW]);
    assert!(!dialer.is_dialing());
    assert_eq!(dialer.next().await, None);
    assert!(orders(&mut dialer).is_empty());
    assert!(dialer.is_dialing());
    let (second, outcome) = dialer.next().await.unwrap();
    assert_eq!(outcome, Ok(2));
    dialer.paths.connected(second, None, now());
    assert!(orders(&mut dialer).is_empty());
    let mut outcome = dialer.next().await;
    while outcome.is_none() {
        // The path manager was due.
        orders(&mut dialer);
        outcome = dialer.next().await;
    }
    let (first, outcome) = outcome.unwrap();
    assert_eq!(outcome, Ok(1));
    assert_ne!(first, second);
    assert!(!dialer.is_dialing());
}

#[tokio::test(start_paused = true)]
async fn a_path_is_dialed_again_when_it_is_due_though_nothing_happens() {
    let (mut dialer, _offers) = dialer(&[(0, Err("refused")), (0, Ok(1))], &[1]);
    assert_eq!(dialer.next().await, None);
    orders(&mut dialer);
    let (subflow, outcome) = dialer.next().await.unwrap();
    let error = outcome.unwrap_err();
    dialer.paths.lost(subflow, Failure::Failed, error, now());
    assert!(orders(&mut dialer).is_empty());
    assert!(!dialer.is_dialing());
    let due = dialer.paths.next_due().unwrap();
    // Woken once, when it is due, and not before.
    assert_eq!(dialer.next().await, None);
    assert!(now() >= due && now() < due + Duration::from_millis(10));
    orders(&mut dialer);
    assert!(dialer.is_dialing());
    let (again, outcome) = dialer.next().await.unwrap();
    assert_eq!(outcome, Ok(1));
    assert_ne!(again, subflow);
}

#[tokio::test(start_paused = true)]
async fn a_path_in_use_wakes_it_when_slots_end_and_not_else() {
    const RUN: Duration = Duration::from_secs(600);
    let (mut dialer, _offers) = dialer(&[(0, Ok(1))], &[1]);
    assert_eq!(dialer.next().await, None);
    orders(&mut dialer);
    let (subflow, _) = dialer.next().await.unwrap();
    dialer.paths.connected(subflow, None, now());
    orders(&mut dialer);
    let (end, mut woken) = (tokio::time::Instant::now() + RUN, 0);
    while let Ok(outcome) = timeout_at(end, dialer.next()).await {
        assert_eq!(outcome, None);
        assert!(orders(&mut dialer).is_empty());
        woken += 1;
    }
    let slots = RUN.as_millis() / PathOptions::default().slots.time_slot.as_millis();
    // Handshakes are compared once. Slots and what sensing compares may end apart.
    assert!(
        (1..=1 + 2 * slots).contains(&woken),
        "{woken} times in {slots} slots"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_is_not_wanted_any_more_is_cancelled() {
    let (mut dialer, offers) = dialer(&[(5, Ok(1)), (5, Ok(2)), (5, Ok(3))], &[1]);
    assert_eq!(dialer.next().await, None);
    orders(&mut dialer);
    // Another path is offered in its place.
    offers.send_replace(Arc::new(vec![path(2)]));
    assert_eq!(dialer.next().await, None);
    assert!(orders(&mut dialer).is_empty());
    let (second, outcome) = dialer.next().await.unwrap();
    assert_eq!(outcome, Ok(2));
    dialer.paths.connected(second, None, now());
    dialer.paths.set_demand(Demand::None);
    orders(&mut dialer);
    assert!(!dialer.is_dialing());
    let more = timeout(Duration::from_secs(60), dialer.next()).await;
    assert!(more.is_err(), "it woke though nothing is wanted");
}

#[tokio::test(start_paused = true)]
async fn what_comes_of_dials_is_known_before_paths_are_judged() {
    let (mut dialer, _offers) = dialer(&[(1, Ok(1))], &[1]);
    orders(&mut dialer);
    // This program gets no processor time for a minute, and something else has happened.
    sleep(Duration::from_secs(60)).await;
    dialer.paths.set_demand(Demand::None);
    for _ in 0..3 {
        assert!(orders(&mut dialer).is_empty());
        assert!(dialer.is_dialing());
    }
    let (subflow, outcome) = dialer.next().await.unwrap();
    assert_eq!(outcome, Ok(1));
    assert!(!dialer.is_dialing());
    dialer.paths.connected(subflow, None, now());
    let ordered = orders(&mut dialer);
    let closes = |order: &Order| matches!(order.action, Action::Close { .. });
    assert!(ordered.len() == 1 && closes(&ordered[0]), "{ordered:?}");
}

#[tokio::test(start_paused = true)]
async fn orders_about_connected_subflows_are_returned() {
    let (mut dialer, offers) = dialer(&[(0, Ok(1))], &[1]);
    assert_eq!(dialer.next().await, None);
    orders(&mut dialer);
    let (subflow, _) = dialer.next().await.unwrap();
    dialer.paths.connected(subflow, None, now());
    orders(&mut dialer);
    offers.send_replace(Arc::default());
    let ordered = loop {
        assert_eq!(dialer.next().await, None);
        let orders = orders(&mut dialer);
        if !orders.is_empty() {
            break orders;
        }
    };
    let actions = ordered.iter().map(|order| (order.subflow, order.action));
    assert_eq!(Vec::from_iter(actions), [(subflow, Action::Hold)]);
}

#[tokio::test(start_paused = true)]
async fn all_dials_can_be_cancelled() {
    let (mut dialer, _offers) = dialer(&[(5, Ok(1))], &[1]);
    assert_eq!(dialer.next().await, None);
    orders(&mut dialer);
    dialer.cancel();
    assert!(!dialer.is_dialing());
}

#[tokio::test(start_paused = true)]
async fn offers_count_whatever_else_happened_first() {
    let (mut dialer, offers) = dialer(&[(5, Ok(1)), (5, Ok(2))], &[1]);
    // Nobody has awaited `next`: another event of the session came before.
    assert!(orders(&mut dialer).is_empty());
    assert!(dialer.paths.is_usable() && dialer.is_dialing());

    offers.send_replace(Arc::new(vec![path(1), path(2)]));
    orders(&mut dialer);
    assert!(dialer.paths.path(path(2).fingerprint()).is_some());
}

#[tokio::test(start_paused = true)]
async fn offers_count_once_and_outlive_whoever_made_them() {
    let (mut dialer, offers) = dialer(&[(0, Ok(1))], &[1]);
    assert_eq!(dialer.next().await, None);
    let again = timeout(Duration::from_secs(60), dialer.next()).await;
    assert!(again.is_err());
    drop(offers);
    orders(&mut dialer);
    assert!(dialer.paths.is_usable());
    assert!(dialer.next().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_closes_what_it_denies_and_dials_what_it_allows() {
    let deny = |link: u16| {
        let acl = format!("- 1-ff00:0:1#{link}; +");
        Some(Policy::new().with_acl(acl.parse().unwrap()))
    };
    let policy = SharedPolicy::new(deny(2));
    let (dialer, _offers) = dialer(&[(1, Ok(1)), (1, Ok(2))], &[1, 2]);
    let mut dialer = dialer.with_policy(&policy);
    let mut taken = Vec::new();
    let mut step = async |dialer: &mut Dialer<Server>| {
        let next = timeout(Duration::from_secs(5), dialer.next()).await;
        if let Ok(Some((subflow, Ok(number)))) = next {
            dialer.paths.connected(subflow, None, now());
            taken.push((subflow, number));
        }
        (orders(dialer), taken.clone())
    };
    let mut taken = Vec::new();
    while taken.is_empty() {
        (_, taken) = step(&mut dialer).await;
    }
    // Both dials would have succeeded.
    assert_eq!(taken.len(), 1);
    assert!(!dialer.is_dialing());

    policy.set(deny(1));
    let mut closed = Vec::new();
    while taken.len() < 2 {
        let orders;
        (orders, taken) = step(&mut dialer).await;
        closed.extend(orders);
    }
    let first = taken[0].0;
    let is_close = |order: &&Order| matches!(order.action, Action::Close { .. });
    let closed: Vec<_> = closed.iter().filter(is_close).collect();
    assert_eq!(closed.len(), 1, "{closed:?}");
    assert_eq!(
        (closed[0].subflow, closed[0].path),
        (first, path(1).fingerprint())
    );
}

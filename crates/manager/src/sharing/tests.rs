use std::time::{Duration, Instant};

use hawser_path::{Decision, Fingerprint, Interface, Metadata, Path, Verdict};

use super::*;

/// A path out of AS 99 by `out`, over AS 98 by `middle` to AS 97, and into AS `to` by `into`.
pub(super) fn path(out: u16, middle: u16, into: u16, to: u16) -> Path {
    let isd_as = |n: u16| format!("1-ff00:0:{n}").parse().unwrap();
    let interface = |n: u16, id: u16| Interface {
        isd_as: isd_as(n),
        id,
    };
    let interfaces = vec![
        interface(99, out),
        interface(98, 100 + out),
        interface(98, middle),
        interface(97, middle),
        interface(97, 1000 * to + into),
        interface(to, into),
    ];
    Path::new(isd_as(99), isd_as(to), interfaces, Metadata::default()).unwrap()
}

/// Two downloaders, each with one path over each of two links that both cross (001, Fig. 9).
struct Figure {
    sharing: Sharing<u16, Path>,
    now: Instant,
    live: BTreeMap<SubflowId, (u16, Fingerprint)>,
}

/// The path of a downloader over the first or the second link.
fn over(link: u16, downloader: u16) -> Path {
    path(link, link, link, downloader)
}

impl Figure {
    fn new() -> Self {
        let now = Instant::now();
        let options = PathOptions {
            sensing: false,
            ..PathOptions::default()
        };
        Self {
            sharing: Sharing::new(options, usize::MAX, now),
            now,
            live: BTreeMap::new(),
        }
    }

    fn join(&mut self, downloader: u16) {
        self.sharing.join(downloader, 4, self.now);
        let paths = [over(1, downloader), over(2, downloader)];
        self.sharing.offer(downloader, &paths, |_| Ok(()));
    }

    /// Executes the orders at once, connects what is dialed, and returns the orders.
    fn settle(&mut self) -> Vec<(u16, Order)> {
        let orders = self.sharing.tick(|_, _| Carried::default(), self.now);
        for (downloader, order) in &orders {
            match order.action {
                Action::Dial => {
                    self.sharing.connected(order.subflow);
                    let of = (*downloader, order.path);
                    self.live.insert(order.subflow, of);
                }
                Action::Close { .. } => drop(self.live.remove(&order.subflow)),
                _ => {}
            }
        }
        orders
    }

    fn wait(&mut self, time: Duration) -> Vec<(u16, Order)> {
        self.now += time;
        self.settle()
    }

    fn subflow(&self, of: &Path, downloader: u16) -> SubflowId {
        let of = (downloader, of.fingerprint());
        *self.live.iter().find(|(_, one)| **one == of).unwrap().0
    }

    /// The links of the paths that are assigned to a downloader.
    fn assigned(&self, downloader: u16) -> Vec<u16> {
        let taken = |link: &u16| {
            let path = over(*link, downloader).fingerprint();
            let decision = self.sharing.decision(downloader, path);
            decision.is_some_and(|decision| decision.verdict == Verdict::Taken)
        };
        [1, 2].into_iter().filter(taken).collect()
    }
}

fn actions(orders: &[(u16, Order)]) -> Vec<(u16, Action)> {
    let actions = orders.iter().map(|(key, order)| (*key, order.action));
    actions.collect()
}

#[test]
fn a_downloader_that_joins_gets_a_path_of_the_one_that_has_two() {
    let mut figure = Figure::new();
    figure.join(1);
    assert_eq!(actions(&figure.settle()), [(1, Action::Dial); 2]);
    figure.join(2);
    let orders = figure.settle();
    assert_eq!(actions(&orders), [(1, Action::Hold), (2, Action::Dial)]);
    let taken = orders[0].1.path;
    let cause = orders[0].1.cause.to_string();
    assert!(cause.starts_with("shares 1-ff00:0:99#"), "{cause}");
    assert!(cause.ends_with(" of 2"), "{cause}");
    // It stays connected, and is used again when the other leaves.
    figure.sharing.leave(2);
    let orders = figure.settle();
    assert_eq!(actions(&orders), [(2, CLOSE), (1, Action::Resume)]);
    assert_eq!(orders[1].1.path, taken);
    assert_eq!(figure.assigned(1), [1, 2]);
}

#[test]
fn a_path_that_fails_is_free_for_others_and_retried() {
    let mut figure = Figure::new();
    figure.join(1);
    figure.settle();
    let lost = over(1, 1);
    let id = figure.subflow(&lost, 1);
    figure
        .sharing
        .lost(id, Failure::Closed, "it broke", figure.now);
    assert_eq!(actions(&figure.settle()), []);
    let decision = figure.sharing.decision(1, lost.fingerprint()).unwrap();
    assert_eq!(decision.to_string(), "left: it broke");
    // A path that fails for one downloader may work for another.
    figure.join(2);
    figure.settle();
    assert_eq!((figure.assigned(1), figure.assigned(2)), (vec![2], vec![1]));
    figure.sharing.leave(2);
    figure.settle();
    let due = figure.sharing.next_due().unwrap();
    assert_eq!(due, figure.now + Duration::from_secs(1));
    let orders = figure.wait(Duration::from_secs(1));
    assert_eq!(actions(&orders), [(1, Action::Dial)]);
    assert_eq!(orders[0].1.path, lost.fingerprint());
}

#[test]
fn connections_it_opened_are_used_while_no_assigned_path_is_connected() {
    let mut figure = Figure::new();
    figure.sharing.join(1, 4, figure.now);
    let opened = over(1, 1).fingerprint();
    let id = figure.sharing.accepted(1, opened).unwrap();
    let orders = figure.settle();
    assert_eq!(actions(&orders), [(1, Action::Resume)]);
    assert_eq!(orders[0].1.subflow, id);
    // Its paths are offered: the connection is held unless its path is assigned.
    figure.sharing.offer(1, &[over(2, 1)], |_| Ok(()));
    let orders = figure.sharing.tick(|_, _| Carried::default(), figure.now);
    assert_eq!(actions(&orders), [(1, Action::Hold), (1, Action::Dial)]);
    let dialed = orders[1].1.subflow;
    // The assigned path does not connect.
    assert_eq!(
        figure.sharing.next_due(),
        Some(figure.now + Duration::from_secs(1))
    );
    let orders = figure.wait(Duration::from_secs(1));
    assert_eq!(actions(&orders), [(1, Action::Resume)]);
    assert_eq!(orders[0].1.cause, Cause::NoneConnected);
    figure.sharing.connected(dialed);
    assert_eq!(actions(&figure.settle()), [(1, Action::Hold)]);
}

#[test]
fn a_path_no_longer_offered_is_not_dialed_any_more() {
    let mut figure = Figure::new();
    figure.join(1);
    let orders = figure.sharing.tick(|_, _| Carried::default(), figure.now);
    figure.sharing.offer(1, &[over(2, 1)], |_| Ok(()));
    let closed = figure.settle();
    assert_eq!(actions(&closed), [(1, CLOSE)]);
    assert_eq!(closed[0].1.cause, Cause::NotOffered);
    let gone = orders
        .iter()
        .find(|(_, order)| order.path == over(1, 1).fingerprint());
    assert_eq!(closed[0].1.subflow, gone.unwrap().1.subflow);
    assert_eq!(figure.sharing.decision(1, over(1, 1).fingerprint()), None);
}

#[test]
fn changes_are_reported_once_and_again_for_new_connections() {
    let mut figure = Figure::new();
    figure.join(1);
    assert_eq!(figure.sharing.changes(), []);
    figure.settle();
    let changes = figure.sharing.changes();
    assert_eq!(changes.len(), 2, "{changes:?}");
    let taken = |decision: &Decision| decision.verdict == Verdict::Taken;
    assert!(changes.iter().all(|(_, _, decision)| taken(decision)));
    assert_eq!(figure.sharing.changes(), []);
    figure.sharing.accepted(1, over(1, 1).fingerprint());
    figure.settle();
    assert_eq!(figure.sharing.changes().len(), 1);
    // A changed reason is reported although the path is used as before.
    figure.join(2);
    figure.settle();
    let changes = figure.sharing.changes();
    assert!(changes.iter().any(|(key, ..)| *key == 1), "{changes:?}");
}

#[test]
fn dials_stop_at_the_limit_until_there_is_room() {
    let mut figure = Figure::new();
    figure.sharing.max_dialed = 1;
    figure.join(1);
    assert_eq!(actions(&figure.settle()), [(1, Action::Dial)]);
    assert_eq!(actions(&figure.wait(Duration::from_millis(10))), []);
    let (&id, _) = figure.live.iter().next().unwrap();
    figure
        .sharing
        .lost(id, Failure::Closed, "it broke", figure.now);
    assert_eq!(actions(&figure.settle()), [(1, Action::Dial)]);
}

#[test]
fn denied_paths_are_held_and_resumed_when_allowed_again() {
    let mut figure = Figure::new();
    figure.join(1);
    figure.settle();
    let denied = over(1, 1).fingerprint();
    let policy = |text: &str| Policy::new().with_acl(text.parse().unwrap());
    figure
        .sharing
        .set_policy(Some(policy("- 1-ff00:0:98#1; +")));
    let orders = figure.settle();
    assert_eq!(actions(&orders), [(1, Action::Hold)]);
    assert_eq!(orders[0].1.path, denied);
    let cause = orders[0].1.cause.to_string();
    assert!(cause.starts_with("policy: acl entry"), "{cause}");
    // Denied paths stay held even if no other path is left.
    figure.sharing.set_policy(Some(policy("-")));
    assert_eq!(actions(&figure.settle()), [(1, Action::Hold)]);
    figure.sharing.set_policy(None);
    assert_eq!(actions(&figure.settle()), [(1, Action::Resume); 2]);
}

//! Sessions on virtual time.

use std::time::Duration;

use CarrierKind::{Mptcp, Quic};
use hawser_keys::{PeerKey, ServerKeyError};
use hawser_path::Select;

use super::world::{KEY, MS, World, guess, path};
use super::*;
use crate::choice::CarrierSet;
use crate::protocol::{Message, RefusalCode};

const SECOND: Duration = Duration::from_secs(1);
const OTHER_KEY: PeerKey = PeerKey([2; 32]);

fn connect_to(world: &World) -> Option<Result<Connect, String>> {
    world.answers.values().next_back().cloned().flatten()
}

/// The text of the error with which the session has failed.
fn failure(world: &World) -> &str {
    match &world.end {
        Some((Ending::Failed, reason)) => reason,
        end => panic!("{end:?}"),
    }
}

#[test]
fn a_request_is_answered_once_the_first_path_is_connected() {
    for (carrier, is_it) in [
        (
            Mptcp,
            (|found| matches!(found, Connect::Mptcp(_))) as fn(Connect) -> bool,
        ),
        (Quic, |found| matches!(found, Connect::Quic(_))),
    ] {
        let mut world = World::with_paths(carrier, &[1, 2]);
        world.ask();
        world.pass(SECOND);
        assert_eq!((world.dials.len(), connect_to(&world)), (2, None));
        world.connect(0, KEY, 10 * MS);
        world.settle();
        let found = connect_to(&world).unwrap().unwrap();
        assert!(is_it(found));
        assert_eq!(Some(found.peer()), world.session.block());
        assert_eq!(world.published, [1]);
        // Later ones at once.
        world.ask();
        world.settle();
        assert_eq!(connect_to(&world), Some(Ok(found)));
    }
}

#[test]
fn the_best_slot_is_published_first() {
    let mut world = World::with_paths(Mptcp, &[1, 2, 3]);
    for rtt in [30, 10, 20] {
        world.connect(0, KEY, rtt * MS);
    }
    world.settle();
    assert_eq!(world.published, [2, 3, 1]);
}

#[test]
fn requests_are_refused_when_no_path_is_connected_for_long() {
    let mut world = World::with_paths(Quic, &[1]);
    world.ask();
    world.pass(9 * SECOND);
    assert_eq!(world.end, None);
    world.pass(2 * SECOND);
    assert!(failure(&world).contains("does not answer within 10 s"));
    let refused = connect_to(&world).unwrap().unwrap_err();
    assert_eq!(refused, failure(&world));
}

#[test]
fn a_pause_of_the_process_is_no_silence_of_the_other_host() {
    let mut world = World::with_paths(Quic, &[1]);
    world.ask();
    world.pass(5 * SECOND);
    world.pause(600 * SECOND);
    world.pass(4 * SECOND);
    assert_eq!(world.end, None);
    world.connect_all();
    assert!(connect_to(&world).unwrap().is_ok());
}

#[test]
fn a_wait_counts_only_while_somebody_waits() {
    let mut world = World::with_paths(Quic, &[1]);
    world.pass(60 * SECOND);
    assert_eq!(world.end, None);
}

#[test]
fn without_a_usable_path_the_reason_is_given_at_once() {
    let mut world = World::new(Quic, false);
    world.deny(1);
    world.offer(&[path(&[1])]);
    world.ask();
    world.pass(50 * MS);
    assert!(failure(&world).starts_with("no path to 1-ff00:0:99"));
    // The look-up fails.
    let mut world = World::new(Quic, false);
    world
        .session
        .looked_up(Err("the daemon is not there".to_owned()));
    world.settle();
    assert!(failure(&world).ends_with("works: the daemon is not there"));
    // Another one has found paths.
    let mut world = World::with_paths(Quic, &[1]);
    world.session.looked_up(Ok(()));
    world.settle();
    assert_eq!(world.end, None);
}

#[test]
fn plain_ip_is_tried_once_scion_had_its_head_start() {
    let mut world = World::new(Quic, true);
    world.offer(&[path(&[1])]);
    world.ask();
    world.pass(900 * MS);
    assert_eq!(world.dials.len(), 1);
    world.pass(200 * MS);
    assert_eq!(world.dials.len(), 2);
    assert_eq!(world.dials[1].0, LaneOrigin::PlainIp(guess()));
    world.connect(1, KEY, 5 * MS);
    world.settle();
    assert!(connect_to(&world).unwrap().is_ok());
    // The path joins.
    world.connect_all();
    assert_eq!((world.lanes.len(), world.published.len()), (2, 2));

    // Without paths it is tried at once.
    let mut world = World::new(Quic, true);
    world.session.looked_up(Err("no".to_owned()));
    world.settle();
    assert_eq!(world.dials[0].0, LaneOrigin::PlainIp(guess()));
    // Another host answers there, or none: that ends nothing but the hope.
    world.ask();
    world.fail(0, DialError::Path("no answer".to_owned()));
    world.pass(100 * MS);
    assert!(failure(&world).ends_with("no answer"));
}

#[test]
fn the_announced_address_is_dialed() {
    let mut world = World::new(Quic, true);
    world.offer(&[path(&[1])]);
    world.settle();
    let lanes = world.connect_all();
    let announced = "192.0.2.9:30800".parse().unwrap();
    world.message(
        lanes[0],
        Message::Announce {
            address: "0.0.0.0:1".parse().unwrap(),
        },
    );
    world.settle();
    assert!(world.dials.is_empty());
    world.message(lanes[0], Message::Announce { address: announced });
    world.settle();
    assert_eq!(world.dials, [(LaneOrigin::PlainIp(announced), None)]);
    // Where it is not allowed, nothing is dialed.
    let mut world = World::with_paths(Quic, &[1]);
    let lanes = world.connect_all();
    world.message(lanes[0], Message::Announce { address: announced });
    world.settle();
    assert!(world.dials.is_empty());
}

/// Two dials were under way when the first key was seen: neither expected any.
#[test]
fn another_key_over_a_second_path_ends_the_session() {
    let mut world = World::with_paths(Quic, &[1, 2]);
    world.ask();
    world.connect(0, KEY, 10 * MS);
    world.connect(0, OTHER_KEY, 10 * MS);
    world.settle();
    assert!(
        failure(&world).contains("man-in-the-middle"),
        "{:?}",
        world.end
    );
    // Over plain IP there may be another host: it has no part in the session.
    let mut world = World::new(Quic, true);
    world.offer(&[path(&[1])]);
    world.pass(1100 * MS);
    assert_eq!(world.dials.len(), 2);
    world.connect(0, KEY, 10 * MS);
    world.connect(0, OTHER_KEY, 10 * MS);
    world.settle();
    assert_eq!((&world.end, world.lanes.len()), (&None, 1));
    let error = world.session.facts().last_error.clone();
    assert!(error.unwrap().contains("another host answers"));
}

#[test]
fn a_host_that_is_not_trusted_ends_the_session() {
    let mut world = World::with_paths(Quic, &[1, 2]);
    world.ask();
    let peer = "1-ff00:0:99,192.0.2.1:31800".parse().unwrap();
    let error = SessionError::OtherKey { peer, key: KEY };
    world.fail(0, DialError::Peer(error));
    world.settle();
    assert!(failure(&world).contains("shows the key"));
}

/// The file of keys is just written, or the key is revoked: the watch over it finds out, and says goodbye.
#[test]
fn a_key_that_one_dial_does_not_find_ends_nothing_by_itself() {
    let mut world = World::with_paths(Quic, &[1, 2]);
    world.connect(0, KEY, 10 * MS);
    world.settle();
    let server = "1-ff00:0:99,192.0.2.1:31800".parse().unwrap();
    let file = "known_hosts".into();
    let unknown = |key| {
        DialError::Peer(SessionError::Key(ServerKeyError::Unknown {
            server,
            key,
            file,
        }))
    };
    world.fail(0, unknown(KEY));
    world.settle();
    assert_eq!((&world.end, world.lanes.len()), (&None, 1));
    let error = world.session.facts().last_error.clone();
    assert!(error.unwrap().contains("not known here"));
    world.session.distrust();
    world.settle();
    assert!(matches!(&world.end, Some((Ending::Revoked, _))));
}

/// All paths stall, as when a cable is pulled; one is connected anew.
#[test]
fn a_new_lane_takes_the_slot_of_one_that_does_not_deliver() {
    let mut world = World::with_paths(Mptcp, &[1, 2]);
    let lanes = world.connect_all();
    assert_eq!(world.published, [1, 2]);
    world
        .session
        .on_failed(lanes[0], "it failed".to_owned(), world.now);
    world.settle();
    assert_eq!(world.published, [2]);
    assert_eq!(world.failovers, [(1, "it failed".to_owned())]);
    world.session.on_stalled(lanes[1], world.now);
    world.settle();
    // It keeps its slot as long as there is nothing better.
    assert_eq!(world.published, [2]);
    let again = world.dials.iter().position(|(_, over)| {
        let over = over.as_ref().unwrap().fingerprint();
        over == world.lanes[&lanes[1]].path.fingerprint()
    });
    let fresh = world.connect(again.expect("a dial beside it"), KEY, 15 * MS);
    world.settle();
    // Though slot 1 is free: the subflows over slot 2 go on.
    assert_eq!(world.table[&2].0, fresh);
    assert_eq!(world.published, [2]);
    assert_eq!(world.failovers.len(), 2);
    assert_eq!(world.failovers[1].0, 2);
}

#[test]
fn a_lane_that_delivers_after_all_gets_a_slot_again() {
    let mut world = World::with_paths(Mptcp, &[1, 2]);
    let lanes = world.connect_all();
    world.session.on_stalled(lanes[0], world.now);
    world.session.on_stalled(lanes[1], world.now);
    world.settle();
    // The path of the second one is dialed beside it, and is connected.
    let path = world.lanes[&lanes[1]].path.fingerprint();
    let dial = world
        .dials
        .iter()
        .position(|(_, over)| over.as_ref().unwrap().fingerprint() == path);
    let fresh = world.connect(dial.unwrap(), KEY, 20 * MS);
    world.settle();
    assert_eq!(world.table[&1].0, fresh);
    assert!(world.lanes.contains_key(&lanes[0]));
    world.session.on_recovered(lanes[0]);
    world.settle();
    assert!(world.table.values().any(|(lane, _)| *lane == lanes[0]));
    assert_eq!(world.end, None);
}

#[test]
fn a_lane_that_is_denied_is_closed_and_the_other_side_learns_of_it() {
    let mut world = World::new(Mptcp, false);
    world.offer(&[path(&[1, 1]), path(&[2])]);
    world.settle();
    world.connect_all();
    assert_eq!(world.lanes.len(), 2);
    world.deny(2);
    world.settle();
    assert_eq!(world.lanes.len(), 1);
    let [(_, Message::Down { .. })] = &world.sent[..] else {
        panic!("{:?}", world.sent);
    };
    assert_eq!(world.published.len(), 1);
    world.deny(0);
    world.settle();
    world.connect_all();
    assert_eq!(world.published.len(), 2);
}

/// The path manager has replaced a lane over one path while it dials another one: what it denies next is
/// closed without waiting for that.
#[test]
fn a_lane_that_waits_to_be_replaced_is_closed_when_the_policy_changes() {
    let mut world = World::with_paths(Mptcp, &[1, 2]);
    let stalled = world.connect(0, KEY, 10 * MS);
    world.settle();
    world.session.on_stalled(stalled, world.now);
    world.settle();
    let over = world.lanes[&stalled].path.fingerprint();
    let mut dials = world.dials.iter();
    let again = dials.position(|(_, path)| path.as_ref().unwrap().fingerprint() == over);
    world.connect(again.expect("a dial beside it"), KEY, 10 * MS);
    world.settle();
    assert!(world.lanes.contains_key(&stalled) && !world.dials.is_empty());
    world.deny(1);
    world.settle();
    assert!(world.lanes.is_empty());
}

/// The path manager judges only paths that are offered, and keeps others as long as they deliver.
#[test]
fn a_lane_over_a_path_that_is_no_longer_offered_is_closed_when_it_is_denied() {
    let mut world = World::with_paths(Mptcp, &[1, 2]);
    let lanes = world.connect_all();
    let kept = world.lanes[&lanes[1]].path.clone();
    world.offer(&[kept]);
    world.settle();
    assert_eq!(world.lanes.len(), 2);
    world.deny(1);
    world.settle();
    assert!(world.lanes.is_empty());
}

#[test]
fn down_ends_the_lane_under_a_slot_but_not_a_later_one() {
    let mut world = World::with_paths(Mptcp, &[1, 2]);
    let lanes = world.connect_all();
    let (lane, epoch) = world.table[&1];
    assert_eq!(lane, lanes[0]);
    let down = |epoch| Message::Down { slot: 1, epoch };
    world.message(lanes[1], down(epoch.next()));
    world.settle();
    assert!(world.lanes.contains_key(&lanes[0]));
    world.message(lanes[1], down(epoch));
    world.settle();
    assert!(!world.lanes.contains_key(&lanes[0]));
    let reason = "the other side receives nothing over it".to_owned();
    assert_eq!(world.failovers, [(1, reason)]);
}

#[test]
fn a_refusal_ends_the_session_unless_it_may_pass() {
    let refused = |code| {
        let mut world = World::with_paths(Quic, &[1, 2]);
        let lanes = world.connect_all();
        world.refuse(lanes[0], code);
        world.settle();
        (world.lanes.len(), world.end.map(|(ending, _)| ending))
    };
    assert_eq!(refused(RefusalCode::TOO_MANY.0), (1, None));
    assert_eq!(refused(RefusalCode::KEY.0), (0, Some(Ending::Revoked)));
    assert_eq!(refused(RefusalCode::CARRIER.0), (0, Some(Ending::Failed)));
    // A host at a guessed address need not be the peer.
    let mut world = World::new(Quic, true);
    world.offer(&[path(&[1])]);
    world.pass(1100 * MS);
    world.connect(0, KEY, 10 * MS);
    let plain = world.connect(0, KEY, 10 * MS);
    world.settle();
    world.refuse(plain, RefusalCode::NOT_SERVING.0);
    world.settle();
    assert_eq!((&world.end, world.lanes.len()), (&None, 1));
}

#[test]
fn a_message_at_the_wrong_time_ends_the_session() {
    let mut world = World::with_paths(Quic, &[1]);
    let lanes = world.connect_all();
    let accept = |port| Message::Accept {
        port,
        carriers: CarrierSet(2),
    };
    world.message(lanes[0], accept(5));
    world.settle();
    assert_eq!(world.end, None);
    world.message(lanes[0], accept(6));
    world.settle();
    assert!(failure(&world).contains("breaks the protocol"));
    // Nothing is expected of a lane that has ended.
    let mut world = World::with_paths(Quic, &[1]);
    world.message(LaneKey(77), Message::Bye);
    world.settle();
    assert_eq!(world.end, None);
}

#[test]
fn a_carrier_that_the_other_side_lacks_is_an_error() {
    let mut world = World::with_paths(Mptcp, &[1]);
    let lanes = world.connect_all();
    let carriers = CarrierSet::of(Quic);
    world.message(lanes[0], Message::Accept { port: 5, carriers });
    world.ask();
    world.settle();
    let error = connect_to(&world).unwrap().unwrap_err();
    assert_eq!(error, "--carrier mptcp cannot be used here");
}

/// One of two paths loses a third of what is sent.
fn lossy(carrier: CarrierKind) -> World {
    let mut world = World::with_paths(carrier, &[1, 2]);
    let lanes = world.connect_all();
    for _ in 0..40 {
        for (lane, lost) in [(lanes[0], 1), (lanes[1], 0)] {
            let figures = &mut world.lanes.get_mut(&lane).unwrap().figures;
            figures.sent += 300;
            figures.arrived += 300 - 100 * lost;
            figures.carried += 100_000;
        }
        world.pass(50 * MS);
    }
    world
}

#[test]
fn mptcp_does_not_use_a_lossy_lane_until_probes_have_shown_that_it_is_better() {
    let mut world = lossy(Mptcp);
    assert_eq!((&world.published[..], world.lanes.len()), (&[2][..], 2));
    assert_eq!(world.probes, 0);
    // Held for 4 s, then tried.
    let mut tried = Duration::ZERO;
    while world.published.len() == 1 {
        world.pass(50 * MS);
        tried += 50 * MS;
        assert!(tried < 10 * SECOND);
    }
    assert!(
        world.probes > 100 && tried > 2 * SECOND,
        "{tried:?} {}",
        world.probes
    );
    // Streams judge a path for each block.
    assert_eq!(lossy(Quic).published.len(), 2);
}

#[test]
fn paths_that_share_an_interface_are_warned_of_once() {
    let paths = PathOptions {
        select: Select::shortest(),
        ..PathOptions::default()
    };
    let mut world = World::choosing(Quic, false, paths);
    world.offer(&[path(&[1, 5, 9]), path(&[2, 5, 8]), path(&[3, 3, 3])]);
    world.settle();
    world.connect_all();
    let shared = world.session.shared();
    assert!(!shared.is_empty());
    let warned: Vec<_> = world.warnings.concat();
    assert_eq!(shared, warned);
    world.pass(SECOND);
    assert_eq!(world.warnings.concat(), warned);
}

#[test]
fn the_end_of_trust_refuses_who_waits() {
    let mut world = World::with_paths(Quic, &[1]);
    world.session.distrust();
    world.settle();
    // Nobody has shown a key.
    assert_eq!(world.end, None);
    world.connect_all();
    world.session.distrust();
    let late = world.ask();
    world.settle();
    assert!(
        matches!(&world.end, Some((Ending::Revoked, _))),
        "{:?}",
        world.end
    );
    let refused = world.answers[&late].clone().unwrap().unwrap_err();
    assert_eq!(refused, "the session has ended");
}

#[test]
fn nothing_happens_after_an_end_in_order() {
    let mut world = World::with_paths(Quic, &[1, 2]);
    world.ask();
    world.session.release();
    world.settle();
    let reason = "it was unused, or the shim has ended".to_owned();
    assert_eq!(world.end, Some((Ending::InOrder, reason.clone())));
    assert_eq!(connect_to(&world), Some(Err(reason)));
    world.offer(&[path(&[3])]);
    world.deny(1);
    world.session.release();
    world.pause(100 * SECOND);
    assert!(world.dials.is_empty());
}

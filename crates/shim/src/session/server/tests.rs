//! Sessions of other hosts on virtual time.

use super::world::{MS, World, key, open, session};
use super::*;
use crate::choice::CarrierKind::{Mptcp, Quic};

const SECOND: Duration = Duration::from_secs(1);

fn down(slot: Slot, epoch: u8) -> Message {
    let epoch = Epoch(epoch);
    Message::Down { slot, epoch }
}

fn reasons(world: &World) -> Vec<&str> {
    let ended = world.ended.iter();
    ended.map(|(_, reason, _)| &reason[..]).collect()
}

#[test]
fn a_lane_is_accepted_and_its_slot_published() {
    let mut world = World::new();
    let lane = world.open(1, open(7, 3, 1));
    let driven = &world.lanes[&lane];
    let carriers = CarrierSet::of(Quic).with(Mptcp);
    let accept = Message::Accept {
        port: 31900,
        carriers,
    };
    assert_eq!(driven.sent, [accept]);
    assert_eq!(
        (driven.session, driven.cipher),
        (session(1, 7), Cipher::Aes128Gcm)
    );
    assert_eq!(world.published[&session(1, 7)], [3]);
    assert_eq!(world.sessions.next_due(), None);
}

#[test]
fn lanes_of_one_host_are_of_one_session_for_each_tag() {
    let mut world = World::new();
    let first = world.open(1, open(7, 1, 1));
    let second = world.open(1, open(7, 2, 1));
    let other_tag = world.open(1, open(8, 1, 1));
    let other_host = world.open(2, open(7, 1, 1));
    let session_of = |lane| world.lanes[&lane].session;
    assert_eq!(session_of(first), session_of(second));
    assert_eq!(world.tables.len(), 3);
    assert_eq!(session_of(other_tag), session(1, 8));
    assert_eq!(session_of(other_host), session(2, 7));
    assert_eq!(world.published[&session(1, 7)], [1, 2]);
}

#[test]
fn the_address_on_plain_ip_is_announced_after_the_answer() {
    let announced = "192.0.2.9:30800".parse().unwrap();
    let mut world = World::with(ServerSettings {
        carriers: CarrierSet::of(Quic).with(Mptcp),
        cipher: Cipher::Aes128Gcm,
        announced: Some(announced),
    });
    let lane = world.open(1, open(7, 1, 1));
    let [Message::Accept { .. }, announce] = &world.lanes[&lane].sent[..] else {
        panic!("{:?}", world.lanes);
    };
    assert_eq!(*announce, Message::Announce { address: announced });
}

#[test]
fn what_is_refused_makes_no_session() {
    let settings = |carriers, cipher| ServerSettings {
        carriers,
        cipher,
        announced: None,
    };
    let refusal = |settings, open| {
        let mut world = World::with(settings);
        world.open(1, open);
        assert_eq!(world.lanes.len() + world.refused.len(), 1);
        assert_eq!(world.lanes.len(), world.tables.len());
        let refused = world.refused.pop();
        refused.map(|refusal| (refusal.code, refusal.text))
    };
    let (quic, sealed) = (CarrierSet::of(Quic), Cipher::ChaCha20Poly1305);
    let both = quic.with(Mptcp);
    assert_eq!(
        refusal(settings(quic, sealed), open(7, 1, 1)),
        Some((
            RefusalCode::CARRIER,
            "its shim carries no connections by MPTCP: use --carrier quic".to_owned()
        ))
    );
    let unsealed = Open {
        cipher: Cipher::Null.to_u8(),
        ..open(7, 1, 1)
    };
    let unknown = Open {
        cipher: 200,
        ..open(7, 1, 1)
    };
    let not_accepted = Some((
        RefusalCode::PROTOCOL,
        "the cipher is not accepted here".to_owned(),
    ));
    assert_eq!(refusal(settings(both, sealed), unsealed), not_accepted);
    assert_eq!(refusal(settings(both, sealed), unknown), not_accepted);
    // The other host chooses among those that seal; both must want none.
    assert_eq!(refusal(settings(both, sealed), open(7, 1, 1)), None);
    assert_eq!(refusal(settings(both, Cipher::Null), unsealed), None);
}

#[test]
fn there_are_at_most_so_many_sessions_but_lanes_join_those_there_are() {
    let mut world = World::new();
    for tag in 0..MAX_SESSIONS as u64 {
        world.open(1, open(tag, 1, 1));
    }
    assert!(world.refused.is_empty());
    world.open(2, open(0, 1, 1));
    let refusal = world.refused.pop().unwrap();
    assert_eq!(refusal.code, RefusalCode::TOO_MANY);
    assert_eq!(refusal.text, "there are too many sessions");
    let lane = world.open(1, open(5, 2, 1));
    assert_eq!(world.lanes[&lane].session, session(1, 5));
    // One ends: there is room again.
    world.message(lane, Message::Bye);
    world.open(2, open(0, 1, 1));
    assert!(world.refused.is_empty());
}

#[test]
fn a_failed_lane_is_reported_over_the_others() {
    let mut world = World::new();
    let lanes = [1, 2, 3].map(|slot| world.open(1, open(7, slot, 4)));
    let other = world.open(2, open(7, 1, 1));
    world.fail(lanes[1]);
    assert_eq!(world.closed, [(lanes[1], "it failed".to_owned())]);
    for lane in [lanes[0], lanes[2]] {
        assert_eq!(world.lanes[&lane].sent[1..], [down(2, 4)]);
    }
    assert_eq!(world.lanes[&other].sent.len(), 1);
    assert_eq!(world.published[&session(1, 7)], [1, 3]);
    // A second report of the same changes nothing.
    world.fail(lanes[1]);
    assert_eq!(world.closed.len(), 1);
}

#[test]
fn down_closes_the_lane_under_a_slot_but_not_a_later_or_earlier_one() {
    let mut world = World::new();
    let first = world.open(1, open(7, 1, 1));
    let second = world.open(1, open(7, 2, 1));
    let third = world.open(1, open(7, 1, 2));
    for (slot, epoch) in [(1, 1), (1, 3), (3, 1), (0, 1)] {
        world.message(second, down(slot, epoch));
    }
    assert!(world.closed.is_empty());
    world.message(second, down(1, 2));
    let reason = "the other side receives nothing over it".to_owned();
    assert_eq!(world.closed, [(third, reason)]);
    // The slot goes to whoever shows a packet with it next.
    assert_eq!(world.published[&session(1, 7)], [2]);
    world.packet(first, 1, Epoch(3));
    assert_eq!(world.published[&session(1, 7)], [1, 2]);
}

#[test]
fn slots_of_another_session_are_out_of_reach() {
    let mut world = World::new();
    world.open(1, open(7, 1, 1));
    let other = world.open(2, open(7, 2, 1));
    world.message(other, down(1, 1));
    assert!(world.closed.is_empty());
}

#[test]
fn the_holder_learns_which_slots_are_live_once() {
    let mut world = World::new();
    let lane = world.open(1, open(7, 1, 1));
    // Asserts that it is not published again.
    world.packet(lane, 1, Epoch(1));
    world.packet(lane, 4, Epoch(1));
    assert_eq!(world.published[&session(1, 7)], [1, 4]);
    world.fail(lane);
    assert_eq!(world.published[&session(1, 7)], [0; 0]);
}

#[test]
fn a_lane_that_breaks_the_protocol_is_closed_and_its_session_stays() {
    let mut world = World::new();
    let messages = [
        Message::Open(open(7, 1, 1)),
        Message::Accept {
            port: 1,
            carriers: CarrierSet::of(Quic),
        },
        Message::Announce {
            address: "192.0.2.1:1".parse().unwrap(),
        },
        Message::Refuse {
            code: RefusalCode::KEY,
            text: String::new(),
        },
    ];
    let other = world.open(1, open(7, 2, 1));
    for (at, message) in messages.into_iter().enumerate() {
        let lane = world.open(1, open(7, 1, at as u8 + 1));
        world.message(lane, message);
        let violation = (lane, "it breaks the protocol".to_owned());
        assert_eq!(world.closed.last(), Some(&violation));
    }
    assert!(world.lanes.contains_key(&other) && world.ended.is_empty());
}

#[test]
fn a_session_without_a_lane_ends_after_ten_minutes() {
    let mut world = World::new();
    let lanes = [1, 2].map(|slot| world.open(1, open(7, slot, 1)));
    world.fail(lanes[0]);
    world.pass(700 * SECOND);
    world.fail(lanes[1]);
    let due = world.sessions.next_due();
    assert_eq!(due, Some(world.now + 600 * SECOND));
    world.pass(600 * SECOND - MS);
    assert!(world.ended.is_empty());
    world.pass(MS);
    assert_eq!(reasons(&world), ["the other host has gone"]);
    assert_eq!(world.ended[0].2, None);
    assert_eq!(world.sessions.next_due(), None);
}

#[test]
fn a_host_that_comes_back_has_its_session_again() {
    let mut world = World::new();
    let lane = world.open(1, open(7, 1, 1));
    world.fail(lane);
    world.pass(599 * SECOND);
    let again = world.open(1, open(7, 1, 1));
    assert_eq!(world.sessions.next_due(), None);
    world.pass(3600 * SECOND);
    assert!(world.ended.is_empty());
    world.fail(again);
    world.pass(599 * SECOND);
    assert!(world.ended.is_empty());
    world.pass(SECOND);
    assert_eq!(world.ended.len(), 1);
}

#[test]
fn a_host_that_was_started_again_may_have_another_carrier() {
    let mut world = World::new();
    world.open(1, open(7, 1, 1));
    let carriers = |world: &World| world.sessions.get(session(1, 7)).unwrap().carriers();
    assert_eq!(carriers(&world), CarrierSet::of(Mptcp));
    let by_quic = Open {
        carriers: CarrierSet::of(Quic),
        ..open(7, 2, 1)
    };
    world.open(1, by_quic);
    assert_eq!(carriers(&world), CarrierSet::of(Quic));
}

#[test]
fn a_host_is_named_by_its_scion_address_once_that_is_known() {
    let mut world = World::new();
    let peer = |world: &World| world.sessions.get(session(1, 7)).unwrap().peer();
    let plain_ip = hawser_endhost::plain_ip("192.0.2.1:4000".parse().unwrap()).to_string();
    world.open_from(&plain_ip, 1, open(7, 1, 1));
    assert_eq!(peer(&world).to_string(), plain_ip);
    world.open(1, open(7, 2, 1));
    let scion = "1-ff00:0:1,192.0.2.1:4000";
    assert_eq!(peer(&world).to_string(), scion);
    world.open_from(&plain_ip, 1, open(7, 3, 1));
    assert_eq!(peer(&world).to_string(), scion);
}

#[test]
fn bye_ends_the_session_and_what_comes_later_is_of_none() {
    let mut world = World::new();
    let lanes = [1, 2].map(|slot| world.open(1, open(7, slot, 1)));
    let other = world.open(1, open(8, 1, 1));
    world.message(lanes[0], Message::Bye);
    assert_eq!(reasons(&world), ["the other host has ended it"]);
    assert_eq!(world.ended[0].2, None);
    world.message(lanes[1], Message::Bye);
    world.message(lanes[1], down(1, 1));
    world.fail(lanes[0]);
    world.sessions.on_stalled(lanes[0]);
    world.settle();
    assert_eq!((world.ended.len(), world.closed.len()), (1, 0));
    assert!(world.lanes.keys().eq([&other]));
}

#[test]
fn streams_do_not_use_a_lane_that_stalls() {
    let mut world = World::new();
    let lane = world.open(1, open(7, 1, 1));
    world.sessions.on_stalled(lane);
    world.settle();
    assert!(world.lanes[&lane].is_suspended && world.closed.is_empty());
    world.sessions.on_recovered(lane);
    world.settle();
    assert!(!world.lanes[&lane].is_suspended);
}

#[test]
fn sessions_of_a_key_that_two_looks_miss_end_at_once() {
    let mut world = World::new();
    for tag in [7, 8] {
        world.open(1, open(tag, 1, 1));
    }
    world.open(2, open(7, 1, 1));
    world.look(&[1, 2]);
    // The file was empty for a moment.
    world.look(&[]);
    world.look(&[1, 2]);
    assert!(world.ended.is_empty());
    world.look(&[2]);
    assert!(world.ended.is_empty());
    world.look(&[2]);
    let mut ended: Vec<SessionId> = world.ended.iter().map(|(id, ..)| *id).collect();
    ended.sort_unstable();
    assert_eq!(ended, [session(1, 7), session(1, 8)]);
    let reason = format!("the key {} is no longer allowed", key(1));
    for (_, text, refusal) in &world.ended {
        let refusal = refusal.as_ref().unwrap();
        assert_eq!(*text, reason);
        assert_eq!(refusal.code, RefusalCode::KEY);
        assert_eq!(refusal.text, format!("{reason} here"));
    }
    assert!(world.tables.contains_key(&session(2, 7)));
}

#[test]
fn sessions_without_a_lane_are_revoked_as_well() {
    let mut world = World::new();
    let lane = world.open(1, open(7, 1, 1));
    world.fail(lane);
    world.look(&[]);
    world.look(&[]);
    assert_eq!(world.ended.len(), 1);
    assert_eq!(world.sessions.next_due(), None);
}

/// The other host ends its session when it is refused: had this one not ended it before, that would look
/// like its own wish.
#[test]
fn a_refused_key_ends_its_sessions_first() {
    let mut world = World::new();
    world.open(1, open(7, 1, 1));
    world.open(2, open(7, 1, 1));
    world.stranger(1);
    let [(id, _, Some(_))] = &world.ended[..] else {
        panic!("{:?}", world.ended);
    };
    assert_eq!(*id, session(1, 7));
    let refusal = world.refused.pop().unwrap();
    assert_eq!(refusal.code, RefusalCode::KEY);
    assert_eq!(
        refusal.text,
        format!("the key {} is not allowed here", key(1))
    );
    // A stranger ends nobody's.
    world.stranger(3);
    assert_eq!((world.ended.len(), world.refused.len()), (1, 1));
}

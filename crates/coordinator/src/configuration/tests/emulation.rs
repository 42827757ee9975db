//! Delay, jitter and loss of links.

use super::*;
use crate::coordinator::LinkEdit;
use crate::emulation::EmulationEdit;

const EDIT: EmulationEdit = EmulationEdit {
    delay_us: Some(20_000),
    jitter_us: Some(2_000),
    loss: Some(0.01),
};

#[test]
fn both_ends_of_a_link_emulate_it_and_nothing_restarts() {
    let bed = Bed::new();
    let program = Actor::program();
    let link = {
        let state = bed.coordinator().state();
        state.links.values().next().unwrap().clone()
    };
    let ends = [link.attachment_point, link.user_as];
    let bundles = || ends.map(|end| bed.bundle(&end.isd_as.to_string()));
    let before = bundles();
    let other = bed.bundle(USER[1]);
    for bundle in &before {
        assert!(bundle.get("links.json").is_none());
    }
    let segments = || bed.configurations.segments().unwrap().tag.clone();
    let announced = segments();

    let edit = LinkEdit {
        emulation: EDIT,
        ..LinkEdit::default()
    };
    bed.coordinator()
        .edit_link(&program, link.id, &edit)
        .unwrap();
    let after = bundles();
    for (at, end) in ends.iter().enumerate() {
        let states = after[at].link_states().unwrap();
        let state = states[&end.interface.unwrap()];
        assert_eq!(states.len(), 1);
        assert!(state.up);
        assert_eq!(state.shape.delay, Duration::from_millis(20));
        assert_eq!(state.shape.jitter, Duration::from_millis(2));
        assert_eq!(state.shape.loss, 0.01);
        after[at].check().unwrap();
        assert_eq!(after[at].change_from(&before[at]), ServiceChange::Links);
        let changed = after[at].changed_link_states(&before[at]).unwrap();
        assert_eq!(changed, states);
        let version = |bundle: &Bundle| bundle.manifest().unwrap().version;
        assert!(version(&after[at]) > version(&before[at]));
    }
    assert_eq!(bed.bundle(USER[1]), other);
    assert_ne!(segments(), announced);

    // Taken back, the routers are to set the link as it was.
    let none = EmulationEdit {
        delay_us: Some(0),
        jitter_us: Some(0),
        loss: Some(0.0),
    };
    let edit = LinkEdit {
        emulation: none,
        ..LinkEdit::default()
    };
    bed.coordinator()
        .edit_link(&program, link.id, &edit)
        .unwrap();
    for ((again, after), end) in bundles().iter().zip(&after).zip(&ends) {
        assert!(again.get("links.json").is_none());
        assert_eq!(again.change_from(after), ServiceChange::Links);
        let changed = again.changed_link_states(after).unwrap();
        let plain = changed[&end.interface.unwrap()];
        assert!(plain.up && !plain.shape.is_emulated() && changed.len() == 1);
    }
}

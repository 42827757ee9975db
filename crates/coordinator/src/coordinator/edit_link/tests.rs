use serde_json::json;
use tempfile::tempdir;

use super::*;
use crate::coordinator::tests::network;
use crate::coordinator::{NewAttachmentPoint, NewCoreLink};
use crate::user::Role;

const EDIT: EmulationEdit = EmulationEdit {
    delay_us: Some(20_000),
    jitter_us: None,
    loss: Some(0.01),
};

/// A change of delay, jitter and loss alone.
fn emulated(emulation: EmulationEdit) -> LinkEdit {
    LinkEdit {
        emulation,
        ..LinkEdit::default()
    }
}

#[test]
fn properties_of_a_link_are_kept_and_recorded() {
    let folder = tempdir().unwrap();
    let program = Actor::program();
    let (id, before) = {
        let coordinator = Coordinator::open(folder.path()).unwrap();
        let id = network(&coordinator);
        let before = coordinator.state().links[&id].clone();
        assert!(before.emulation.is_none());
        let edit = LinkEdit {
            queue_us: Some(Some(7_000)),
            emulation: EDIT,
            ..LinkEdit::default()
        };
        coordinator.edit_link(&program, id, &edit).unwrap();
        (id, before)
    };
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let link = coordinator.state().links[&id].clone();
    let emulation = Emulation {
        delay_us: 20_000,
        jitter_us: 0,
        loss: 0.01,
    };
    let expected = Link {
        queue_us: Some(7_000),
        emulation,
        ..before
    };
    assert_eq!(link, expected);
    let page = coordinator.changes(&program, None, 3, Some(id)).unwrap();
    let kinds: Vec<_> = page.changes.into_iter().map(|one| one.kind).collect();
    let (link, from) = (id, 0);
    assert_eq!(
        kinds,
        [
            ChangeKind::Loss {
                link,
                from: 0.0,
                to: 0.01
            },
            ChangeKind::Delay {
                link,
                from,
                to: 20_000
            },
            ChangeKind::Queue {
                link,
                from: None,
                to: Some(7_000)
            },
        ]
    );
    // The usual queue again; the rest stays.
    let edit = LinkEdit {
        queue_us: Some(None),
        ..LinkEdit::default()
    };
    let link = coordinator.edit_link(&program, id, &edit).unwrap();
    assert_eq!((link.queue_us, link.emulation), (None, emulation));
}

#[test]
fn properties_out_of_bounds_change_nothing_and_are_for_administrators() {
    let folder = tempdir().unwrap();
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let id = network(&coordinator);
    let program = Actor::program();
    let none = EmulationEdit::default();
    let too_long = Some(3_600_000_001);
    let wrong = [
        (
            LinkEdit {
                queue_us: Some(too_long),
                ..LinkEdit::default()
            },
            "a queue of",
        ),
        (
            emulated(EmulationEdit {
                delay_us: too_long,
                ..none
            }),
            "a delay of",
        ),
        (
            emulated(EmulationEdit {
                jitter_us: too_long,
                ..none
            }),
            "a jitter of",
        ),
        (
            emulated(EmulationEdit {
                loss: Some(1.5),
                ..none
            }),
            "1.5 is not a loss",
        ),
        (
            emulated(EmulationEdit {
                loss: Some(f64::NAN),
                ..none
            }),
            "NaN is not a loss",
        ),
    ];
    let before = coordinator.state().links[&id].clone();
    for (edit, text) in wrong {
        let refused = coordinator.edit_link(&program, id, &edit).unwrap_err();
        assert!(refused.to_string().contains(text), "{refused}");
    }
    let user = coordinator.add_user(&program, "alice", Role::User).unwrap();
    let user = Actor::of(&user.0);
    let refused = coordinator.edit_link(&user, id, &emulated(EDIT));
    assert!(matches!(refused, Err(ChangeError::Denied(_))));
    assert_eq!(coordinator.state().links[&id], before);
    let new = json!({
        "attachment_point": "1-ff00:0:110", "user_as": "1-ff00:0:111", "loss": 2,
    });
    let new = serde_json::from_value(new).unwrap();
    let refused = coordinator.add_link(&program, new).unwrap_err().to_string();
    assert!(refused.contains("2 is not a loss"), "{refused}");
}

#[test]
fn links_between_attachment_points_have_them_too() {
    let folder = tempdir().unwrap();
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let other = network(&coordinator);
    let program = Actor::program();
    let new = json!({"isd_as": "1-ff00:0:120", "label": "B", "addresses": ["10.0.1.1"]});
    let new: NewAttachmentPoint = serde_json::from_value(new).unwrap();
    coordinator.add_attachment_point(&program, new).unwrap();
    let new = json!({"ends": ["1-ff00:0:110", "1-ff00:0:120"], "jitter_us": 3000});
    let new: NewCoreLink = serde_json::from_value(new).unwrap();
    let id = coordinator.add_core_link(&program, &new).unwrap().id;
    let versions = || {
        let state = coordinator.state();
        ["1-ff00:0:110", "1-ff00:0:120", "1-ff00:0:111"]
            .map(|isd_as| state.host(isd_as.parse().unwrap()).unwrap().version)
    };
    let before = versions();
    let link = coordinator
        .edit_core_link(&program, id, &emulated(EDIT))
        .unwrap();
    let emulation = Emulation {
        delay_us: 20_000,
        jitter_us: 3000,
        loss: 0.01,
    };
    assert_eq!(link.emulation, emulation);
    let after = versions();
    assert!(
        after[0] > before[0] && after[1] > before[1] && after[2] == before[2],
        "{before:?} {after:?}"
    );
    let unknown = coordinator.edit_core_link(&program, other, &emulated(EDIT));
    assert!(matches!(unknown, Err(ChangeError::Unknown(_))));
    // It has no limits.
    let limited = LinkEdit {
        queue_us: Some(None),
        ..emulated(EDIT)
    };
    let refused = coordinator.edit_core_link(&program, id, &limited);
    assert!(matches!(refused, Err(ChangeError::Invalid(_))));
    assert_eq!(versions(), after);
}

//! Every end of trust counts at once: for tokens, for archives, and for machines that wait.

use std::time::{Duration, Instant};

use hawser_bundle::Bundle;
use serde_json::{Value, json};

use super::bed::{Bed, POINTS, USERS, address};
use crate::support::eventually;

/// Longest time from a change until a running machine is refused. Its open request is answered after
/// 30 s without a change, so an earlier answer was caused by the change.
const TOLD: Duration = Duration::from_secs(25);

/// What an archive of an AS gives its machine.
struct Archive {
    /// The machine's name, and its secret.
    host: String,
    secret: String,
    /// Its keys, by the names of their files.
    keys: Vec<(String, Vec<u8>)>,
}

fn archive(bed: &Bed, isd_as: &str) -> Archive {
    let file = std::fs::read(bed.archive(isd_as, None)).unwrap();
    let bundle = Bundle::unpack(&file).unwrap();
    let coordinator = bundle.manifest().unwrap().coordinator.unwrap();
    let is_key = |name: &str| name.starts_with("keys/") || name.ends_with(".key");
    let keys = bundle.files().filter(|(name, _)| is_key(name));
    let keys: Vec<_> = keys
        .map(|(name, bytes)| (name.to_owned(), bytes.to_vec()))
        .collect();
    assert!(!keys.is_empty());
    Archive {
        host: coordinator.host,
        secret: coordinator.token,
        keys,
    }
}

impl Archive {
    /// The status of a request of the machine.
    fn status(&self, bed: &Bed, what: &str) -> u16 {
        let path = format!("/api/host/{}/{what}", self.host);
        bed.ask("GET", &path, &self.secret, &Value::Null).0
    }
}

/// Whether a status refuses a token: 401, or 429 once ten wrong ones have come from the address.
const fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 429)
}

/// Ends the trust in the machine of a user AS by calling `end`. Measures how long the old archive is
/// accepted after that. Asserts that the running machine is told, and that a new archive has new keys.
fn ends(bed: &Bed, what: &str, at: usize, end: impl FnOnce(&str)) {
    let isd_as = USERS[at].0;
    let old = archive(bed, isd_as);
    assert_eq!(
        (old.status(bed, "config"), old.status(bed, "segments")),
        (200, 200),
        "{what}"
    );
    bed.node(isd_as).events();
    let begun = Instant::now();
    end(isd_as);
    // Each of them on its own.
    let statuses = ["config", "segments"].map(|path| old.status(bed, path));
    let refused = begun.elapsed();
    assert!(statuses.into_iter().all(is_refusal), "{what}: {statuses:?}");
    // The running machine has a request open that waits for changes: it is answered at once.
    bed.node(isd_as)
        .wait_for(&format!("{what}: the machine is refused"), |event| {
            let reason = event["reason"].as_str().unwrap_or_default();
            event["event"] == "coordinator" && reason.contains("fetch")
        });
    let told = begun.elapsed();
    println!(
        "{what}: the archive of before was refused after {:.0} ms, its machine told after {:.0} ms",
        refused.as_secs_f64() * 1e3,
        told.as_secs_f64() * 1e3
    );
    assert!(told < TOLD, "{what}");
    let new = archive(bed, isd_as);
    assert_ne!(new.secret, old.secret, "{what}");
    for (name, key) in &old.keys {
        let same = new.keys.iter().find(|(of, _)| of == name);
        assert!(
            same.is_none_or(|(_, other)| other != key),
            "{what}: {name} is the same"
        );
    }
    assert_eq!(new.status(bed, "segments"), 200, "{what}");
    assert!(is_refusal(old.status(bed, "config")), "{what}");
}

/// All ends of trust in an AS, and in a user.
pub fn each_end_of_trust_counts_at_once(bed: &mut Bed) {
    all(bed);
    // With its new archive an AS is back.
    let (isd_as, other) = (USERS[5].0, USERS[0].0);
    bed.leave(isd_as).terminate();
    let archive = bed.archive(isd_as, None);
    bed.join(isd_as, &archive);
    bed.wait_ready(isd_as);
    let host = format!("{isd_as},127.0.0.1");
    eventually("the AS is reached again", || {
        let ping = bed.hawser(other, &["ping", &host, "-c", "1"]);
        ping.status.success()
    });
}

fn all(bed: &Bed) {
    let new_as = |isd_as: &str, owner: &Value| json!({"isd_as": isd_as, "label": isd_as, "owner": owner, "addresses": [address(isd_as)]});
    let path = |isd_as: &str| format!("/api/v1/ases/{isd_as}");
    ends(bed, "secret rotated", 5, |isd_as| {
        bed.admin("DELETE", &format!("{}/secret", path(isd_as)), &Value::Null);
    });
    ends(bed, "owner changed", 6, |isd_as| {
        bed.admin("PUT", &path(isd_as), &new_as(isd_as, &Value::Null));
    });
    ends(bed, "AS removed and added", 7, |isd_as| {
        bed.admin("DELETE", &path(isd_as), &Value::Null);
        bed.admin("POST", "/api/v1/ases", &new_as(isd_as, &Value::Null));
        let link = json!({"attachment_point": POINTS[USERS[7].1], "user_as": isd_as});
        bed.admin("POST", "/api/v1/links", &link);
    });
    let before = bed.admin("GET", &path(USERS[8].0), &Value::Null);
    let owner = before["owner"]["id"].as_u64().unwrap();
    let token = bed.admin(
        "POST",
        &format!("/api/v1/users/{owner}/token"),
        &Value::Null,
    );
    let token = token["token"].as_str().unwrap();
    let archive = format!("{}/archive", path(USERS[8].0));
    let of_user = || bed.ask("GET", &archive, token, &Value::Null).0;
    assert_eq!(of_user(), 200);
    ends(bed, "user removed", 8, |_| {
        bed.admin("DELETE", &format!("/api/v1/users/{owner}"), &Value::Null);
        assert!(is_refusal(of_user()));
    });
    // The token of a user that is replaced or revoked.
    let before = bed.admin("GET", &path(USERS[9].0), &Value::Null);
    let owner = before["owner"]["id"].as_u64().unwrap();
    let replace = || {
        let made = bed.admin(
            "POST",
            &format!("/api/v1/users/{owner}/token"),
            &Value::Null,
        );
        made["token"].as_str().unwrap().to_owned()
    };
    let status = |token: &str| bed.ask("GET", "/api/v1/links", token, &Value::Null).0;
    let first = replace();
    assert_eq!(status(&first), 200);
    let second = replace();
    assert!(is_refusal(status(&first)));
    assert_eq!(status(&second), 200);
    bed.admin(
        "DELETE",
        &format!("/api/v1/users/{owner}/token"),
        &Value::Null,
    );
    assert!(is_refusal(status(&second)));
}

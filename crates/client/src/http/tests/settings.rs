//! What Transmission's RPC does with each of its arguments: none is taken and does nothing, but for those that
//! Transmission itself ignores.

use std::collections::BTreeSet;

use super::transmission::{Rpc, content};
use super::*;

/// What becomes of an argument with another value than the one that is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Effect {
    /// It is shown then.
    Works,
    /// It is refused, as not supported yet, while the value that is shown is taken.
    OneValue,
    /// Nothing: it cannot be set in Transmission either.
    Ignored,
}

use Effect::{Ignored, OneValue, Works};

/// All fields of `session-get`, with another value than at first.
fn session_fields() -> Vec<(&'static str, Value, Effect)> {
    vec![
        ("alt-speed-down", json!(7), Works),
        ("alt-speed-enabled", json!(true), Works),
        ("alt-speed-time-begin", json!(7), Works),
        ("alt-speed-time-day", json!(7), Works),
        ("alt-speed-time-enabled", json!(true), Works),
        ("alt-speed-time-end", json!(8), Works),
        ("alt-speed-up", json!(7), Works),
        ("anti-brute-force-enabled", json!(true), OneValue),
        ("anti-brute-force-threshold", json!(7), OneValue),
        ("blocklist-enabled", json!(true), OneValue),
        ("blocklist-size", json!(7), Ignored),
        ("blocklist-url", json!("http://a.example/"), OneValue),
        ("cache-size-mb", json!(7), OneValue),
        ("config-dir", json!("/x"), Ignored),
        ("default-trackers", json!("http://a.example/"), OneValue),
        ("dht-enabled", json!(true), Works),
        ("download-dir", json!("/x"), Works),
        ("download-dir-free-space", json!(7), Ignored),
        ("download-queue-enabled", json!(false), Works),
        ("download-queue-size", json!(7), Works),
        ("encryption", json!("required"), Works),
        ("idle-seeding-limit", json!(7), Works),
        ("idle-seeding-limit-enabled", json!(true), Works),
        ("incomplete-dir", json!("/y"), Works),
        ("incomplete-dir-enabled", json!(true), Works),
        ("lpd-enabled", json!(true), Works),
        ("peer-limit-global", json!(7), Works),
        ("peer-limit-per-torrent", json!(7), Works),
        ("peer-port", json!(7), OneValue),
        ("peer-port-random-on-start", json!(true), OneValue),
        ("pex-enabled", json!(true), Works),
        ("port-forwarding-enabled", json!(true), OneValue),
        ("preferred_transports", json!(["tcp", "utp"]), Works),
        ("queue-stalled-enabled", json!(true), OneValue),
        ("queue-stalled-minutes", json!(7), OneValue),
        ("rename-partial-files", json!(true), OneValue),
        ("reqq", json!(7), OneValue),
        ("rpc-version", json!(7), Ignored),
        ("rpc-version-minimum", json!(7), Ignored),
        ("rpc-version-semver", json!("7"), Ignored),
        ("script-torrent-added-enabled", json!(true), OneValue),
        ("script-torrent-added-filename", json!("/x"), OneValue),
        ("script-torrent-done-enabled", json!(true), OneValue),
        ("script-torrent-done-filename", json!("/x"), OneValue),
        ("script-torrent-done-seeding-enabled", json!(true), OneValue),
        (
            "script-torrent-done-seeding-filename",
            json!("/x"),
            OneValue,
        ),
        ("seed-queue-enabled", json!(false), Works),
        ("seed-queue-size", json!(7), Works),
        ("seedRatioLimit", json!(7.5), Works),
        ("seedRatioLimited", json!(true), Works),
        ("sequential_download", json!(true), OneValue),
        ("session-id", json!("x"), Ignored),
        ("speed-limit-down", json!(7), Works),
        ("speed-limit-down-enabled", json!(true), Works),
        ("speed-limit-up", json!(7), Works),
        ("speed-limit-up-enabled", json!(true), Works),
        ("start-added-torrents", json!(false), Works),
        ("tcp-enabled", json!(false), Ignored),
        ("trash-original-torrent-files", json!(true), OneValue),
        ("units", json!({}), Ignored),
        // After the list of transports.
        ("utp-enabled", json!(false), Works),
        ("version", json!("x"), Ignored),
    ]
}

fn is_refused(answer: &Value) -> bool {
    let result = answer["result"].as_str();
    result.is_some_and(|result| result.ends_with("is not supported yet"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_setting_of_the_session_works_or_is_refused() {
    let rpc = Rpc::start().await;
    let shown = async || rpc.works("session-get", json!({})).await;
    let (all, table) = (shown().await, session_fields());
    let names: BTreeSet<&str> = table.iter().map(|(name, ..)| *name).collect();
    let fields: BTreeSet<&str> = all
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(names, fields);
    for (name, value, effect) in table {
        let before = shown().await[name].clone();
        assert_ne!(before, value, "{name}");
        rpc.works("session-set", json!({name: before})).await;
        let answer = rpc.call("session-set", json!({name: value})).await;
        let after = shown().await[name].clone();
        let came = match (is_refused(&answer), answer["result"] == "success") {
            (true, _) if after == before => OneValue,
            (_, true) if after == value => Works,
            // The free space may be another one.
            (_, true) => Ignored,
            _ => panic!("{name}: {answer}, {after}"),
        };
        assert_eq!(came, effect, "{name}: {answer}");
    }
    // All at once, as programs send them.
    rpc.works("session-set", shown().await).await;
}

/// All arguments of `torrent-set`, each with the fields that show it, and what these show then.
fn torrent_arguments() -> Vec<(Value, Value)> {
    let (one, two) = ("http://one.example/announce", "http://two.example/announce");
    let shows_itself = [
        json!({"bandwidthPriority": -1}),
        json!({"bandwidthPriority": 1}),
        json!({"bandwidthPriority": 0}),
        json!({"downloadLimit": 7}),
        json!({"downloadLimited": true}),
        json!({"group": "g"}),
        json!({"honorsSessionLimits": false}),
        json!({"labels": ["x"]}),
        json!({"peer-limit": 7}),
        json!({"queuePosition": 1}),
        json!({"seedIdleMode": 2}),
        json!({"seedIdleLimit": 7, "seedIdleMode": 1}),
        json!({"seedRatioMode": 2}),
        json!({"seedRatioLimit": 7.5, "seedRatioMode": 1}),
        json!({"sequential_download": true}),
        json!({"sequential_download_from_piece": 0}),
        json!({"uploadLimit": 7}),
        json!({"uploadLimited": true}),
        json!({"trackerList": format!("{two}\n")}),
    ];
    let mut all: Vec<_> = shows_itself.map(|one| (one.clone(), one)).into();
    let tier = |urls: &[&str]| json!({"trackerList": urls.join("\n\n") + "\n"});
    let id = |url| crate::trackers::number(url);
    all.extend([
        (json!({"files-unwanted": [0]}), json!({"wanted": [0, 1, 1]})),
        (json!({"files-wanted": [0]}), json!({"wanted": [1, 1, 1]})),
        (
            json!({"priority-high": [0]}),
            json!({"priorities": [1, 0, 0]}),
        ),
        (
            json!({"priority-low": [0]}),
            json!({"priorities": [-1, 0, 0]}),
        ),
        (
            json!({"priority-normal": [0]}),
            json!({"priorities": [0, 0, 0]}),
        ),
        (json!({"trackerAdd": [one]}), tier(&[two, one])),
        (json!({"trackerRemove": [id(two)]}), tier(&[one])),
        (json!({"trackerReplace": [id(one), two]}), tier(&[two])),
    ]);
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn each_setting_of_a_torrent_works_or_is_refused() {
    let rpc = Rpc::start().await;
    let folder = content(&rpc);
    rpc.add(&folder).await;
    rpc.add(&folder.join("a")).await;
    for (arguments, shown) in torrent_arguments() {
        let mut call = arguments.clone();
        call["ids"] = json!([1]);
        rpc.works("torrent-set", call).await;
        let fields: Vec<&str> = shown
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let found = json!({"ids": [1], "fields": fields});
        let found = rpc.works("torrent-get", found).await;
        assert_eq!(found["torrents"][0], shown, "{arguments}");
    }
    let refused = json!({"ids": [1], "sequential_download_from_piece": 1});
    let answer = rpc.call("torrent-set", refused).await;
    assert!(is_refused(&answer), "{answer}");
    // Transmission ignores it, too, though its description has it.
    rpc.works("torrent-set", json!({"ids": [1], "location": "/x"}))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ways_to_find_peers_are_switched_by_the_api() {
    let rpc = Rpc::start().await;
    let switch = async |way: &str, is_on: bool| {
        let change = json!({"network": {way: is_on}});
        let (status, about) = rpc.api.json("PATCH /api/v1/daemon", &change).await;
        (status, about["network"][way].clone())
    };
    for way in ["dht", "local", "pex"] {
        for is_on in [false, true, false] {
            assert_eq!(switch(way, is_on).await, (200, json!(is_on)), "{way}");
            let network = rpc.api.client.bounds().await.unwrap().all.network;
            let kept = match way {
                "dht" => network.dht,
                "local" => network.local,
                _ => network.exchange,
            };
            assert_eq!(kept, Some(is_on), "{way}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn torrents_go_to_the_folder_for_downloads_of_now() {
    let rpc = Rpc::start().await;
    let folder = content(&rpc);
    let other = rpc.api.dir.path().join("others").display().to_string();
    rpc.works("session-set", json!({"download-dir": other}))
        .await;
    rpc.add(&folder).await;
    assert_eq!(rpc.fields(&["downloadDir"]).await["downloadDir"], other);
    let (_, about) = rpc.api.json("GET /api/v1/daemon", &Value::Null).await;
    assert_eq!(about["download_dir"], other);
    let change = json!({"download_dir": "relative"});
    let (status, _) = rpc.api.json("PATCH /api/v1/daemon", &change).await;
    assert_eq!(status, 400);
}

/// All arguments of `torrent-add` but what it is added from, each with the fields that show it, and what these
/// show then.
fn added() -> Vec<(Value, Value)> {
    vec![
        (
            json!({"bandwidthPriority": 1}),
            json!({"bandwidthPriority": 1}),
        ),
        (json!({"cookies": ""}), json!({"status": 0})),
        (json!({"download-dir": "/x"}), json!({"downloadDir": "/x"})),
        (json!({"files-unwanted": [0]}), json!({"wanted": [0, 1, 1]})),
        (
            json!({"files-unwanted": [0, 1, 2], "files-wanted": [0]}),
            json!({"wanted": [1, 0, 0]}),
        ),
        (json!({"labels": ["x"]}), json!({"labels": ["x"]})),
        (json!({"paused": true}), json!({"status": 0})),
        (json!({"peer-limit": 7}), json!({"peer-limit": 7})),
        (
            json!({"priority-high": [0]}),
            json!({"priorities": [1, 0, 0]}),
        ),
        (
            json!({"priority-low": [0]}),
            json!({"priorities": [-1, 0, 0]}),
        ),
        (
            json!({"priority-normal": [0]}),
            json!({"priorities": [0, 0, 0]}),
        ),
        (
            json!({"sequential_download": true}),
            json!({"sequential_download": true}),
        ),
        (
            json!({"sequential_download_from_piece": 0}),
            json!({"sequential_download_from_piece": 0}),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_setting_of_an_added_torrent_works_or_is_refused() {
    let rpc = Rpc::start().await;
    let folder = content(&rpc);
    let new = |number: usize, arguments: &Value| {
        // Each time another torrent.
        std::fs::write(folder.join("a"), number.to_string()).unwrap();
        let options = CreateOptions::default();
        let bytes = create(&folder, &options, |_, _| {}).unwrap();
        let mut new = arguments.clone();
        new["metainfo"] = json!(BASE64.encode(&bytes));
        new["paused"] = json!(true);
        new
    };
    for (number, (arguments, shown)) in added().into_iter().enumerate() {
        let answer = rpc.works("torrent-add", new(number, &arguments)).await;
        let id = &answer["torrent-added"]["id"];
        let fields: Vec<&str> = shown
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let found = json!({"ids": [id], "fields": fields});
        let found = rpc.works("torrent-get", found).await;
        assert_eq!(found["torrents"][0], shown, "{arguments}");
    }
    let refused = new(99, &json!({"sequential_download_from_piece": 1}));
    let answer = rpc.call("torrent-add", refused).await;
    assert!(is_refused(&answer), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_settings_of_a_call_are_made_or_none() {
    let rpc = Rpc::start().await;
    let folder = content(&rpc);
    rpc.add(&folder).await;
    let hash = rpc.fields(&["hashString"]).await["hashString"].clone();
    let torrent = format!("/api/v1/torrents/{}", hash.as_str().unwrap());
    // What shows all settings, but for numbers that change by themselves.
    let shown = async || {
        let mut session = rpc.works("session-get", json!({})).await;
        session["download-dir-free-space"] = json!(0);
        let fields = [
            "labels",
            "downloadLimit",
            "downloadLimited",
            "wanted",
            "group",
            "trackerList",
        ];
        let groups = rpc.works("group-get", json!({})).await;
        json!([session, rpc.fields(&fields).await, groups])
    };
    let before = shown().await;
    let long = "x".repeat(1000);
    for (method, arguments) in [
        (
            "session-set",
            json!({"encryption": "required", "speed-limit-down": 7, "download-queue-size": 7,
                "alt-speed-enabled": true, "incomplete-dir-enabled": true}),
        ),
        (
            "session-set",
            json!({"encryption": "required", "peer-limit-global": 7, "cache-size-mb": 7}),
        ),
        (
            "torrent-set",
            json!({"ids": [1], "labels": ["x"], "downloadLimit": 7, "group": long}),
        ),
        (
            "torrent-set",
            json!({"ids": [1], "labels": ["x"], "group": "new", "files-unwanted": [0],
                "trackerAdd": ["nothing"]}),
        ),
        ("group-set", json!({"name": long, "speed-limit-down": 7})),
    ] {
        let answer = rpc.call(method, arguments.clone()).await;
        assert_ne!(answer["result"], "success", "{arguments}");
        assert_eq!(shown().await, before, "{arguments}");
    }
    let rename = json!({"path": "nothing", "name": "x"});
    for (path, change) in [
        (
            "/api/v1/daemon",
            json!({"network": {"encryption": "require"}, "max_peers": 7, "download_rate": 7,
                "groups": [{"name": "g", "download_rate": 7}, {"name": long}]}),
        ),
        (
            "/api/v1/daemon",
            json!({"network": {"encryption": "require"}, "max_peers": 7, "download_dir": "x"}),
        ),
        (
            &torrent,
            json!({"labels": ["x"], "group": "g", "folder": "x"}),
        ),
        (
            &torrent,
            json!({"labels": ["x"], "download_rate": 7, "group": long}),
        ),
        (&torrent, json!({"labels": ["x"], "rename": rename})),
        (
            &torrent,
            json!({"labels": ["x"], "rename": rename, "folder": "/x"}),
        ),
    ] {
        let (status, answer) = rpc.api.json(&format!("PATCH {path}"), &change).await;
        assert_eq!(status, 400, "{change}: {answer}");
        assert_eq!(shown().await, before, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn torrents_are_added_stopped_where_that_is_set_and_not_said_otherwise() {
    let rpc = Rpc::start().await;
    let folder = content(&rpc);
    rpc.works("session-set", json!({"start-added-torrents": false}))
        .await;
    let (_, about) = rpc.api.json("GET /api/v1/daemon", &Value::Null).await;
    assert_eq!(about["queue"]["starts_added"], false);
    let starts = async |content: &Path, more: Value| {
        let bytes = create(content, &CreateOptions::default(), |_, _| {}).unwrap();
        let mut new = json!({"metainfo": BASE64.encode(&bytes)});
        new.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let (status, added) = rpc.api.json("POST /api/v1/torrents", &new).await;
        assert_eq!(status, 201, "{added}");
        let hash = added["info_hash"].as_str().unwrap();
        rpc.wait(hash, |_| true).await.record.started
    };
    assert!(!starts(&folder, json!({})).await);
    assert!(starts(&folder.join("a"), json!({"stopped": false})).await);
}

//! What front ends of Transmission do with its RPC, as Flood, TrguiNG, Sonarr and transmission-rpc for Python.

use super::transmission::{Rpc, content};
use super::*;
use crate::torrents::Status;

#[tokio::test(flavor = "multi_thread")]
async fn flood_sets_rates_with_fractions_and_finds_the_metainfo() {
    let rpc = Rpc::start().await;
    let hash = rpc.add(&content(&rpc)).await;
    // A million bytes a second, as Flood sends it.
    let rate = json!({"speed-limit-down": 976.5625, "speed-limit-down-enabled": true});
    rpc.works("session-set", rate).await;
    let session = rpc.works("session-get", json!({})).await;
    assert_eq!(session["speed-limit-down"], 977);
    let folder = Path::new(session["config-dir"].as_str().unwrap());
    let metainfo = folder.join("torrents").join(format!("{hash}.torrent"));
    let kept = Metainfo::parse(&std::fs::read(&metainfo).unwrap()).unwrap();
    assert_eq!(kept.info_hash.to_string(), hash);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_seeding_and_their_modes_are_set_one_by_one() {
    let rpc = Rpc::start().await;
    rpc.add(&content(&rpc)).await;
    let names = [
        "seedRatioLimit",
        "seedRatioMode",
        "seedIdleLimit",
        "seedIdleMode",
    ];
    let set = |arguments| rpc.works("torrent-set", arguments);
    assert_eq!(rpc.fields(&names).await["seedRatioMode"], 0);
    set(json!({"seedRatioLimit": 1.5, "seedIdleLimit": 7})).await;
    let (kept, shown) = (rpc.fields(&names).await, [1.5, 7.0]);
    let numbers =
        |fields: &Value| ["seedRatioLimit", "seedIdleLimit"].map(|it| fields[it].as_f64());
    assert_eq!(
        (numbers(&kept), &kept["seedRatioMode"]),
        (shown.map(Some), &json!(0))
    );
    set(json!({"seedRatioMode": 1, "seedIdleMode": 1})).await;
    let own = rpc.fields(&names).await;
    assert_eq!(
        (numbers(&own), &own["seedIdleMode"]),
        (shown.map(Some), &json!(1))
    );
    let wrong = rpc.call("torrent-set", json!({"seedRatioLimit": -1})).await;
    assert!(
        wrong["result"].as_str().unwrap().contains("not a ratio"),
        "{wrong}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn content_of_a_torrent_that_runs_is_found_elsewhere() {
    let rpc = Rpc::start().await;
    let folder = content(&rpc);
    let hash = rpc.add(&folder).await;
    rpc.works("torrent-start", json!({})).await;
    rpc.wait(&hash, |view| view.status == Status::Seeding).await;
    let other = rpc.api.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::rename(&folder, other.join("set")).unwrap();
    let find = json!({"ids": [1], "location": other, "move": false});
    rpc.works("torrent-set-location", find).await;
    rpc.wait(&hash, |view| {
        view.status == Status::Seeding && view.record.folder == other
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torrent_that_is_removed_is_shown_no_more() {
    let rpc = Rpc::start().await;
    rpc.add(&content(&rpc)).await;
    rpc.works("torrent-start", json!({})).await;
    let remove = json!({"ids": [1], "delete-local-data": true});
    rpc.works("torrent-remove", remove).await;
    assert_eq!(rpc.fields(&["id"]).await, Value::Null);
    let stats = rpc.works("session-stats", json!({})).await;
    assert_eq!(stats["torrentCount"], 0);
    assert_eq!(stats["cumulative-stats"]["sessionCount"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torrent_is_added_again_while_it_is_being_removed() {
    let rpc = Rpc::start().await;
    let folder = content(&rpc);
    // It runs, so that its removal takes a while.
    for number in 1..20 {
        let hash = rpc.add(&folder).await;
        assert_eq!(rpc.fields(&["id"]).await["id"], number);
        rpc.works("torrent-start", json!({})).await;
        rpc.wait(&hash, |view| view.status == Status::Seeding).await;
        rpc.works("torrent-remove", json!({"ids": [hash]})).await;
    }
}

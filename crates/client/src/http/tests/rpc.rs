//! Transmission's RPC, as a client that knows its methods calls it.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn transmissions_rpc_is_answered() {
    let api = Api::start().await;
    let (bytes, hash) = torrent(api.dir.path());
    let add = json!({"method": "torrent-add", "arguments": {
        "metainfo": BASE64.encode(&bytes), "paused": true, "labels": ["x"]}});
    let (status, head, _) = api.rpc("", &add).await;
    assert_eq!(status, 409);
    let id = head
        .lines()
        .find_map(|line| line.strip_prefix("x-transmission-session-id: "))
        .unwrap();
    let call = async |body: Value| {
        let (status, _, body) = api.rpc(id, &body).await;
        assert_eq!(status, 200);
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let added = call(add).await;
    assert_eq!(
        added["arguments"]["torrent-added"]["hashString"],
        json!(hash)
    );
    let fields = [
        "id",
        "name",
        "status",
        "labels",
        "sizeWhenDone",
        "files",
        "trackers",
        "peers",
        "magnetLink",
    ];
    let get = json!({"method": "torrent-get", "arguments": {"fields": fields}});
    let torrents = call(get.clone()).await["arguments"]["torrents"].clone();
    assert_eq!(torrents[0]["name"], "content");
    assert_eq!(
        (&torrents[0]["sizeWhenDone"], &torrents[0]["status"]),
        (&json!(50_000), &json!(0))
    );
    let limited = json!({"method": "torrent-set",
        "arguments": {"ids": [1], "downloadLimit": 50, "downloadLimited": true}});
    assert_eq!(call(limited).await["result"], "success");
    let fields = ["downloadLimit", "downloadLimited", "uploadLimited"];
    let get_limits = json!({"method": "torrent-get", "arguments": {"fields": fields}});
    assert_eq!(
        call(get_limits).await["arguments"]["torrents"][0],
        json!({"downloadLimit": 50, "downloadLimited": true, "uploadLimited": false})
    );
    let one = format!("/api/v1/torrents/{hash}");
    let shown = api.json(&format!("GET {one}"), &Value::Null).await.1;
    assert_eq!(shown["torrent"]["limits"]["download_rate"], 400_000);
    let rates = json!({"download_rate": "unlimited", "upload_rate": 16_000});
    let (_, changed) = api.json(&format!("PATCH {one}"), &rates).await;
    assert_eq!(
        (
            &changed["limits"]["download_rate"],
            &changed["limits"]["upload_rate"]
        ),
        (&json!("unlimited"), &json!(16_000))
    );
    let chosen = json!({"ids": [1], "files-unwanted": [0], "priority-high": [0, 9],
        "sequential_download": true});
    let chosen = json!({"method": "torrent-set", "arguments": chosen});
    assert_eq!(call(chosen).await["result"], "success");
    let get_files = json!({"method": "torrent-get",
        "arguments": {"fields": ["wanted", "priorities", "fileStats", "leftUntilDone"]}});
    let shown = call(get_files).await["arguments"]["torrents"][0].clone();
    assert_eq!(shown["fileStats"][0]["wanted"], false, "{shown}");
    assert_eq!(
        (&shown["priorities"], &shown["leftUntilDone"]),
        (&json!([1]), &json!(0))
    );
    let detail = api.json(&format!("GET {one}"), &Value::Null).await.1;
    let file = &detail["files"][0];
    assert_eq!(
        (&file["wanted"], &file["priority"]),
        (&json!(false), &json!("high"))
    );
    let wanted = json!({"files": [{"wanted": true}, {"indices": [0], "priority": "low"}],
        "sequential": false});
    assert_eq!(api.json(&format!("PATCH {one}"), &wanted).await.0, 200);
    let detail = api.json(&format!("GET {one}"), &Value::Null).await.1;
    let file = &detail["files"][0];
    assert_eq!(
        (&file["wanted"], &file["priority"]),
        (&json!(true), &json!("low"))
    );
    let all = json!({"speed-limit-up": 20, "speed-limit-up-enabled": true});
    let set = json!({"method": "session-set", "arguments": all});
    assert_eq!(call(set).await["result"], "success");
    let session = call(json!({"method": "session-get"})).await["arguments"].clone();
    assert_eq!(
        (
            &session["speed-limit-up"],
            &session["speed-limit-up-enabled"]
        ),
        (&json!(20), &json!(true))
    );
    let all_rates = api.client.bounds().await.unwrap().all.rates;
    assert_eq!(all_rates.upload.in_force(), Some(160_000));
    let slow = json!({"alt-speed-down": 7, "alt-speed-enabled": true, "alt-speed-time-begin": 60,
        "alt-speed-time-day": 65});
    let set = json!({"jsonrpc": "2.0", "id": 1, "method": "session_set", "params":
        {"alt_speed_up": 8}});
    assert_eq!(
        call(json!({"method": "session-set", "arguments": slow})).await["result"],
        "success"
    );
    assert!(call(set).await["error"].is_null());
    let session = call(json!({"method": "session-get"})).await["arguments"].clone();
    for (name, value) in [
        ("alt-speed-down", json!(7)),
        ("alt-speed-up", json!(8)),
        ("alt-speed-enabled", json!(true)),
        ("alt-speed-time-enabled", json!(false)),
        ("alt-speed-time-begin", json!(60)),
        ("alt-speed-time-end", json!(1020)),
        ("alt-speed-time-day", json!(65)),
    ] {
        assert_eq!(session[name], value, "{name}");
    }
    let wrong = json!({"alternative": {"schedule": {"end": 1440}}});
    assert_eq!(api.json("PATCH /api/v1/daemon", &wrong).await.0, 400);
    let usual = json!({"alternative": {"active": false, "schedule": {"days": ["monday"]}}});
    let (_, about) = api.json("PATCH /api/v1/daemon", &usual).await;
    assert_eq!(
        about["alternative"],
        json!({"active": false, "download_rate": 56_000, "upload_rate": 64_000,
            "schedule": {"enabled": false, "begin": 60, "end": 1020, "days": ["monday"]}})
    );
    let rates = json!({"download_rate": 8_000, "upload_rate": "unlimited"});
    let (status, about) = api.json("PATCH /api/v1/daemon", &rates).await;
    assert_eq!(
        (status, &about["download_rate"], &about["upload_rate"]),
        (200, &json!(8_000), &json!("unlimited"))
    );
    let all_rates = api.client.bounds().await.unwrap().all.rates;
    assert_eq!(all_rates.download.in_force(), Some(8_000));
    let group = json!({"name": "slow", "speed-limit-down": 6, "speed-limit-down-enabled": true});
    for (method, arguments) in [
        ("group-set", group),
        (
            "group-set",
            json!({"name": "slow", "honorsSessionLimits": false}),
        ),
        (
            "torrent-set",
            json!({"ids": [1], "group": "slow", "honorsSessionLimits": false}),
        ),
    ] {
        let set = json!({"method": method, "arguments": arguments});
        assert_eq!(call(set).await["result"], "success");
    }
    let groups = call(json!({"method": "group-get", "arguments": {"group": ["slow"]}})).await;
    assert_eq!(
        groups["arguments"]["group"],
        json!([{"name": "slow", "honorsSessionLimits": false, "speed-limit-down": 6,
            "speed-limit-down-enabled": true, "speed-limit-up": 100, "speed-limit-up-enabled": false}])
    );
    let fields = json!({"ids": [1], "fields": ["group", "honorsSessionLimits"]});
    let shown = call(json!({"method": "torrent-get", "arguments": fields})).await;
    assert_eq!(
        shown["arguments"]["torrents"][0],
        json!({"group": "slow", "honorsSessionLimits": false})
    );
    let change =
        json!({"groups": [{"name": "slow", "download_rate": "unlimited", "exempt": false}]});
    let (status, about) = api.json("PATCH /api/v1/daemon", &change).await;
    assert_eq!(
        (status, &about["groups"]),
        (
            200,
            &json!([{"name": "slow", "download_rate": "unlimited", "upload_rate": "unlimited",
            "exempt": false}])
        )
    );
    let change = json!({"group": "", "exempt": false});
    assert_eq!(api.json(&format!("PATCH {one}"), &change).await.0, 200);
    let detail = api.json(&format!("GET {one}"), &Value::Null).await.1;
    let limits = &detail["torrent"]["limits"];
    assert_eq!(
        (&limits["group"], &limits["exempt"]),
        (&Value::Null, &json!(false))
    );
    for (method, arguments) in [
        (
            "session-set",
            json!({"peer-limit-global": 60, "peer-limit-per-torrent": 20}),
        ),
        ("torrent-set", json!({"ids": [1], "peer-limit": 7})),
    ] {
        let set = json!({"method": method, "arguments": arguments});
        assert_eq!(call(set).await["result"], "success");
    }
    let session = call(json!({"method": "session-get"})).await["arguments"].clone();
    assert_eq!(
        (
            &session["peer-limit-global"],
            &session["peer-limit-per-torrent"]
        ),
        (&json!(60), &json!(20))
    );
    let fields = json!({"ids": [1], "fields": ["maxConnectedPeers", "peer-limit"]});
    let shown = call(json!({"method": "torrent-get", "arguments": fields.clone()})).await;
    assert_eq!(
        shown["arguments"]["torrents"][0],
        json!({"maxConnectedPeers": 7, "peer-limit": 7})
    );
    let change = json!({"max_peers": "default"});
    assert_eq!(api.json(&format!("PATCH {one}"), &change).await.0, 200);
    let shown = call(json!({"method": "torrent-get", "arguments": fields})).await;
    assert_eq!(shown["arguments"]["torrents"][0]["peer-limit"], 20);
    let change = json!({"max_peers": 50, "max_torrent_peers": 10});
    let (_, about) = api.json("PATCH /api/v1/daemon", &change).await;
    assert_eq!(
        (&about["max_peers"], &about["max_torrent_peers"]),
        (&json!(50), &json!(10))
    );
    let refused = json!({"method": "torrent-set", "arguments": {"ids": [1], "sequential_download_from_piece": 1}});
    let refused = call(refused).await;
    assert!(
        refused["result"]
            .as_str()
            .unwrap()
            .ends_with("is not supported yet"),
        "{refused}"
    );
    for method in ["session-get", "session-stats"] {
        assert_eq!(call(json!({"method": method})).await["result"], "success");
    }
    let folder = api.dir.path().display().to_string();
    let space = call(json!({"method": "free-space", "arguments": {"path": folder}})).await;
    assert_eq!(space["result"], "success");
    let missing = json!({"path": format!("{folder}/missing")});
    let space = call(json!({"method": "free-space", "arguments": missing})).await;
    let result = space["result"].as_str().unwrap();
    assert!(result.contains("No such file or directory"), "{result}");
    let remove = json!({"method": "torrent-remove", "arguments": {"ids": [hash]}});
    assert_eq!(call(remove).await["result"], "success");
    // The numbers of those that were removed are told.
    let mut changes = api.client.changes();
    while !api.client.views().await.unwrap().is_empty() {
        let waited = tokio::time::timeout(PATIENCE, changes.changed()).await;
        waited.expect("it is removed").unwrap();
    }
    let recent =
        json!({"method": "torrent-get", "arguments": {"ids": "recently-active", "fields": ["id"]}});
    assert_eq!(call(recent).await["arguments"]["removed"], json!([1]));
    assert_eq!(
        call(json!({"method": "session-close"})).await["result"],
        "success"
    );
    api.stop.cancelled().await;
    api.task.await.unwrap();
}

//! Requests of the shapes that known clients send, and what these read of the answers.

use hawser_transmission::{Change, Files, Parts, Source, State, answer};
use serde_json::{Value, json};

use self::memory::{Memory, SESSION_ID};

mod memory;

const HASH: &str = "000102030405060708090a0b0c0d0e0f10111213";

/// The answer to a request.
fn ask(client: &mut Memory, request: &Value) -> Value {
    let body = request.to_string();
    let answer = answer(body.as_bytes(), SESSION_ID, client).expect("an answer");
    serde_json::from_slice(&answer).expect("an answer in JSON")
}

/// The arguments of the answer to a request of the old form, which must succeed.
fn call(client: &mut Memory, method: &str, arguments: Value) -> Value {
    let request = json!({"method": method, "arguments": arguments, "tag": 9});
    let answer = ask(client, &request);
    assert_eq!(answer["result"], "success", "{request}");
    assert_eq!(answer["tag"], 9);
    answer["arguments"].clone()
}

/// The text of the error that is the answer to a request of the old form.
fn fail(client: &mut Memory, method: &str, arguments: Value) -> String {
    let answer = ask(client, &json!({"method": method, "arguments": arguments}));
    assert_eq!(answer["arguments"], json!({}));
    let result = answer["result"].as_str().unwrap().to_owned();
    assert_ne!(result, "success");
    result
}

#[test]
fn transmission_remote_lists_torrents() {
    let mut client = Memory::sample();
    // -l of 3.00 and, in the new form, of 4.1.
    let fields = json!([
        "error",
        "errorString",
        "eta",
        "id",
        "isFinished",
        "leftUntilDone",
        "name",
        "peersGettingFromUs",
        "peersSendingToUs",
        "rateDownload",
        "rateUpload",
        "sizeWhenDone",
        "status",
        "uploadRatio",
    ]);
    let listed = call(&mut client, "torrent-get", json!({ "fields": fields }));
    let expected = json!([
        {
            "error": 0, "errorString": "", "eta": 90, "id": 1, "isFinished": false,
            "leftUntilDone": 1_500_000, "name": "data set", "peersGettingFromUs": 1,
            "peersSendingToUs": 1, "rateDownload": 16_000, "rateUpload": 8_000,
            "sizeWhenDone": 3_000_000, "status": 4, "uploadRatio": 0.5,
        },
        {
            "error": 3, "errorString": "no room", "eta": -1, "id": 2, "isFinished": false,
            "leftUntilDone": 0, "name": "magnet", "peersGettingFromUs": 0, "peersSendingToUs": 0,
            "rateDownload": 0, "rateUpload": 0, "sizeWhenDone": 0, "status": 0,
            "uploadRatio": -1.0,
        },
    ]);
    assert_eq!(listed, json!({ "torrents": expected }));
    assert_eq!(client.parts.get(), Parts::NONE);
    let request = json!({
        "id": 3, "jsonrpc": "2.0", "method": "torrent_get", "params": {
            "fields": ["added_date", "error_string", "is_finished", "left_until_done"], "ids": [1],
        },
    });
    let row = json!({
        "added_date": 1_700_000_100, "error_string": "", "is_finished": false,
        "left_until_done": 1_500_000,
    });
    let expected = json!({"jsonrpc": "2.0", "id": 3, "result": {"torrents": [row]}});
    assert_eq!(ask(&mut client, &request), expected);
}

#[test]
fn transmission_remote_shows_details_of_a_torrent() {
    let mut client = Memory::sample();
    // -t 1 -i
    let fields = [
        "activityDate",
        "addedDate",
        "bandwidthPriority",
        "comment",
        "corruptEver",
        "creator",
        "dateCreated",
        "desiredAvailable",
        "doneDate",
        "downloadDir",
        "downloadedEver",
        "downloadLimit",
        "downloadLimited",
        "error",
        "errorString",
        "eta",
        "group",
        "hashString",
        "haveUnchecked",
        "haveValid",
        "honorsSessionLimits",
        "id",
        "isFinished",
        "isPrivate",
        "labels",
        "leftUntilDone",
        "magnetLink",
        "name",
        "peersConnected",
        "peersGettingFromUs",
        "peersSendingToUs",
        "peer-limit",
        "percentDone",
        "pieceCount",
        "pieceSize",
        "rateDownload",
        "rateUpload",
        "recheckProgress",
        "secondsDownloading",
        "secondsSeeding",
        "seedIdleMode",
        "seedIdleLimit",
        "seedRatioMode",
        "seedRatioLimit",
        "sizeWhenDone",
        "source",
        "startDate",
        "status",
        "totalSize",
        "uploadedEver",
        "uploadLimit",
        "uploadLimited",
        "webseeds",
        "webseedsSendingToUs",
    ];
    let torrent = call(
        &mut client,
        "torrent-get",
        json!({"fields": fields[..], "ids": [1]}),
    );
    let torrent = &torrent["torrents"][0];
    for field in fields {
        assert!(torrent.get(field).is_some(), "{field}");
    }
    assert_eq!(torrent["hashString"], HASH);
    assert_eq!(torrent["percentDone"], 0.5);
    assert_eq!(torrent["comment"], "measured \"today\"");
    assert_eq!(torrent["labels"], json!(["linux", "sets"]));
    assert_eq!(torrent["downloadLimit"], 500);
    assert_eq!(client.parts.get(), Parts::TEXTS);
    // -if, -ip, -ic, -it
    let fields = json!([
        "id",
        "name",
        "files",
        "priorities",
        "wanted",
        "fileStats",
        "peers",
        "pieces",
        "pieceCount",
        "trackerStats",
        "trackers",
        "trackerList",
        "availability",
    ]);
    let lists = call(
        &mut client,
        "torrent-get",
        json!({"fields": fields, "ids": HASH}),
    );
    let lists = &lists["torrents"][0];
    assert_eq!(lists["files"][1]["name"], "data set/b");
    assert_eq!(lists["files"][0]["bytesCompleted"], 1_500_000);
    assert_eq!(lists["files"][0]["end_piece"], 3);
    assert_eq!(lists["priorities"], json!([1, 1]));
    assert_eq!(lists["wanted"], json!([1, 0]));
    assert_eq!(lists["fileStats"][1]["wanted"], false);
    assert_eq!(lists["pieces"], "gA==");
    assert_eq!(lists["availability"], json!([-1, 2, 1, 0]));
    let peer = &lists["peers"][0];
    assert_eq!(
        (&peer["address"], &peer["port"]),
        (&json!("1-ff00:0:110,10.0.0.1"), &json!(6881))
    );
    assert_eq!(
        (&peer["flagStr"], &peer["isUTP"]),
        (&json!("D?E"), &json!(false))
    );
    let tracker = &lists["trackerStats"][0];
    assert_eq!(tracker["host"], "tracker.example.org:6969");
    assert_eq!(tracker["lastAnnounceResult"], "Success");
    assert_eq!(tracker["downloadCount"], -1);
    assert_eq!(lists["trackers"][0]["sitename"], "example");
    assert_eq!(
        lists["trackerList"],
        "udp://tracker.example.org:6969/announce\n"
    );
    assert!(!client.parts.get().contains(Parts::TEXTS));
}

#[test]
fn recently_active_torrents_come_with_removed_ones() {
    let mut client = Memory::sample();
    let arguments = json!({"ids": "recently-active", "fields": ["id"]});
    call(
        &mut client,
        "torrent-remove",
        json!({"ids": [2], "delete-local-data": true}),
    );
    let listed = call(&mut client, "torrent-get", arguments);
    assert_eq!(listed, json!({"torrents": [{"id": 1}], "removed": [2]}));
    let listed = call(
        &mut client,
        "torrent-get",
        json!({"ids": [1], "fields": ["id"]}),
    );
    assert_eq!(listed, json!({"torrents": [{"id": 1}]}));
    assert_eq!(client.log, ["remove [2] true"]);
}

#[test]
fn a_table_has_a_row_of_names_and_one_for_each_torrent() {
    let mut client = Memory::sample();
    let fields = json!(["id", "no such field", "downloadDir", "file-count", "id"]);
    let arguments = json!({"fields": fields, "format": "table"});
    let listed = call(&mut client, "torrent-get", arguments);
    let expected = json!([
        ["id", "downloadDir", "file-count"],
        [1, "/srv/data", 2],
        [2, "/srv", 0]
    ]);
    assert_eq!(listed["torrents"], expected);
    let none = json!({"fields": ["no such field"]});
    assert_eq!(
        fail(&mut client, "torrent-get", none),
        "no fields specified"
    );
}

#[test]
fn torrents_are_added_from_links_urls_paths_and_metainfo() {
    let mut client = Memory::sample();
    // transmission-remote --add FILE -w /srv/new -L a,b -p, in base64.
    let added = call(
        &mut client,
        "torrent-add",
        json!({
            "metainfo": "ZGU=\n", "download-dir": "/srv/new", "paused": true, "labels": [" a ", "b"],
            "files-unwanted": [1], "files-wanted": [], "peer-limit": 9, "bandwidthPriority": 1,
        }),
    );
    let hash = "03".repeat(20);
    let expected = json!({"torrent-added": {"id": 3, "name": "metainfo", "hashString": hash}});
    assert_eq!(added, expected);
    let add = &client.added[0];
    assert_eq!(add.source, Source::Metainfo(b"de".to_vec()));
    assert_eq!(add.download_dir.as_deref(), Some("/srv/new"));
    assert_eq!(add.is_paused, Some(true));
    let expected = [
        Change::Priority(hawser_transmission::Priority::High),
        Change::Labels(vec!["a".to_owned(), "b".to_owned()]),
        Change::PeerLimit(9),
        Change::Wanted(Files::Some(vec![1]), false),
    ];
    assert_eq!(add.changes, expected);
    let magnet = "MAGNET:?xt=urn:btih:abc";
    for (name, source) in [
        (magnet, Source::Magnet(magnet.to_owned())),
        ("/srv/x.torrent", Source::Path("/srv/x.torrent".to_owned())),
        (
            &*"AB".repeat(20),
            Source::Magnet(format!("magnet:?xt=urn:btih:{}", "ab".repeat(20))),
        ),
    ] {
        call(
            &mut client,
            "torrent-add",
            json!({"filename": name, "download-dir": ""}),
        );
        assert_eq!(client.added.last().unwrap().source, source);
    }
    let url = json!({"filename": "https://example.org/x", "cookies": "a=b;"});
    call(&mut client, "torrent-add", url);
    let (url, cookies) = ("https://example.org/x".to_owned(), Some("a=b;".to_owned()));
    assert_eq!(
        client.added.last().unwrap().source,
        Source::Url { url, cookies }
    );
    // One that is there already.
    let again = call(&mut client, "torrent-add", json!({"filename": HASH}));
    assert_eq!(again["torrent-duplicate"]["name"], "data set");
    for (arguments, error) in [
        (json!({}), "no filename or metainfo specified"),
        (json!({"metainfo": "*"}), "unrecognized info"),
        (
            json!({"metainfo": "eHg="}),
            "invalid or corrupt torrent file",
        ),
        (
            json!({"filename": "x", "download-dir": "y"}),
            "download directory path is not absolute",
        ),
        (
            json!({"filename": "x", "labels": ["a,b"]}),
            "labels cannot contain comma (,) character",
        ),
        (
            json!({"filename": "x", "labels": [" "]}),
            "labels cannot be empty",
        ),
    ] {
        assert_eq!(fail(&mut client, "torrent-add", arguments), error);
    }
}

#[test]
fn torrents_are_started_stopped_and_moved_in_the_queue() {
    let mut client = Memory::sample();
    for (method, logged) in [
        ("torrent-start", "Start"),
        ("torrent-start-now", "StartNow"),
        ("torrent-verify", "Verify"),
        ("torrent-reannounce", "Reannounce"),
        ("queue-move-top", "QueueTop"),
        ("queue-move-up", "QueueUp"),
        ("queue-move-down", "QueueDown"),
        ("queue-move-bottom", "QueueBottom"),
        ("torrent-stop", "Stop"),
    ] {
        assert_eq!(
            call(&mut client, method, json!({"ids": [2, HASH, 2]})),
            json!({})
        );
        assert_eq!(client.log.pop().unwrap(), format!("{logged} [2, 1]"));
        call(&mut client, method, json!({}));
        assert_eq!(client.log.pop().unwrap(), format!("{logged} [1, 2]"));
        call(&mut client, method, json!({"ids": []}));
        assert_eq!(client.log.pop().unwrap(), format!("{logged} []"));
    }
    assert_eq!(client.torrent(1).state, State::Stopped);
    let error = fail(&mut client, "torrent-stop", json!({"ids": null}));
    assert!(error.starts_with("ids must be"));
}

#[test]
fn settings_of_torrents_change() {
    let mut client = Memory::sample();
    // transmission-remote -t 1 -L a -d 100 -G 0 -tr 7, Flood's labels, Sonarr's limits of seeding.
    let changes = json!({
        "ids": [1], "labels": ["a"], "downloadLimit": 100, "downloadLimited": true,
        "files-unwanted": [0], "trackerRemove": [7],
    });
    call(&mut client, "torrent-set", changes);
    let torrent = client.torrent(1);
    assert_eq!(torrent.options.labels, ["a"]);
    assert_eq!(torrent.options.down.kilobytes, 100);
    assert!(!torrent.detail.files[0].is_wanted);
    assert!(torrent.detail.trackers.is_empty());
    client.log.clear();
    let limits = json!({
        "ids": [HASH], "seedRatioLimit": 1.5, "seedRatioMode": 1, "seedIdleLimit": 30,
        "seedIdleMode": 1, "trackerList": "udp://a:1\n\nudp://b:2", "queuePosition": 0,
    });
    call(&mut client, "torrent-set", limits);
    let logged = "change 1 [IdleLimit(30), IdleMode(Own), RatioLimit(1.5), RatioMode(Own), \
                  QueuePosition(0), Trackers([[\"udp://a:1\"], [\"udp://b:2\"]])]";
    assert_eq!(client.log, [logged]);
    call(
        &mut client,
        "torrent-set",
        json!({"ids": 1, "files-wanted": [], "priority-low": []}),
    );
    let logged = "change 1 [Wanted(All, true), FilePriority(All, Low)]";
    assert_eq!(client.log.last().unwrap(), logged);
    for (arguments, error) in [
        (
            json!({"ids": 1, "files-wanted": [2]}),
            "file index out of range",
        ),
        (
            json!({"ids": 1, "trackerRemove": [8]}),
            "error setting announce list",
        ),
        (
            json!({"ids": 1, "trackerAdd": ["x"]}),
            "error setting announce list",
        ),
        (
            json!({"ids": 1, "trackerList": "x"}),
            "Invalid tracker list",
        ),
        (
            json!({"ids": 1, "sequential_download_from_piece": 4}),
            "piece index out of range",
        ),
        (
            json!({"ids": 1, "seedRatioMode": 3}),
            "seed_ratio_mode must be 0, 1 or 2",
        ),
        (
            json!({"ids": 1, "bandwidthPriority": 2}),
            "bandwidth_priority must be -1, 0 or 1",
        ),
        (
            json!({"ids": 1, "downloadLimited": "maybe"}),
            "download_limited must be a boolean",
        ),
    ] {
        assert_eq!(fail(&mut client, "torrent-set", arguments), error);
    }
}

#[test]
fn an_error_for_one_torrent_does_not_keep_others_from_changing() {
    let mut client = Memory::sample();
    let arguments = json!({"ids": [2, 1], "files-wanted": [1]});
    assert_eq!(
        fail(&mut client, "torrent-set", arguments),
        "file index out of range"
    );
    assert!(client.torrent(1).detail.files[1].is_wanted);
}

#[test]
fn content_is_moved_and_renamed() {
    let mut client = Memory::sample();
    // transmission-remote -t 1 --move /new and --find /old.
    let arguments = json!({"ids": [1], "location": "/new", "move": true});
    call(&mut client, "torrent-set-location", arguments);
    call(
        &mut client,
        "torrent-set-location",
        json!({"ids": [1], "location": "/old"}),
    );
    assert_eq!(
        client.log,
        ["relocate [1] /new true", "relocate [1] /old false"]
    );
    let relative = json!({"ids": [1], "location": "new"});
    let error = fail(&mut client, "torrent-set-location", relative);
    assert_eq!(error, "new location path is not absolute");
    let error = fail(&mut client, "torrent-set-location", json!({"ids": [1]}));
    assert_eq!(error, "no location");
    let arguments = json!({"ids": [1], "path": "data set", "name": "set"});
    let renamed = call(&mut client, "torrent-rename-path", arguments);
    assert_eq!(renamed, json!({"id": 1, "path": "data set", "name": "set"}));
    for (path, name, error) in [
        ("", "x", "invalid path"),
        ("/set", "x", "invalid path"),
        ("set/../x", "x", "invalid path"),
        ("set", "", "invalid name"),
        ("set", "..", "invalid name"),
        ("set", "a/b", "invalid name"),
        ("other", "x", "other is not there"),
    ] {
        let arguments = json!({"ids": [1], "path": path, "name": name});
        assert_eq!(fail(&mut client, "torrent-rename-path", arguments), error);
    }
    let arguments = json!({"path": "set", "name": "x"});
    let error = fail(&mut client, "torrent-rename-path", arguments);
    assert_eq!(error, "torrent-rename-path requires 1 torrent");
}

#[test]
fn the_session_is_shown_and_set() {
    let mut client = Memory::sample();
    // transmission-remote -si, Sonarr: everything.
    let session = call(&mut client, "session-get", json!({}));
    assert_eq!(session["version"], "4.1.0 (hawser 0.1.0)");
    assert_eq!(session["rpc-version"], 18);
    assert_eq!(session["rpc-version-minimum"], 14);
    assert_eq!(session["rpc-version-semver"], "6.0.0");
    assert_eq!(session["session-id"], SESSION_ID);
    assert_eq!(session["download-dir"], "/srv/data");
    assert_eq!(session["download-dir-free-space"], 5000);
    assert_eq!(session["seedRatioLimit"], 2.0);
    assert_eq!(session["units"]["speed-bytes"], 1000);
    assert_eq!(session["encryption"], "preferred");
    // Flood.
    let fields = json!([
        "dht-enabled",
        "peer-port",
        "seed-queue-size",
        "cache-size-mb",
        "none"
    ]);
    let session = call(&mut client, "session-get", json!({ "fields": fields }));
    let expected = json!({
        "dht-enabled": true, "peer-port": 6881, "seed-queue-size": 0, "cache-size-mb": 0,
    });
    assert_eq!(session, expected);
    // transmission-remote -d 50.
    let limits = json!({"speed-limit-down": 50, "speed-limit-down-enabled": true});
    assert_eq!(call(&mut client, "session-set", limits), json!({}));
    assert_eq!(client.log, ["session [DownLimit(50), DownLimited(true)]"]);
    let relative = json!({"download-dir": "x"});
    let error = fail(&mut client, "session-set", relative);
    assert_eq!(error, "download directory path is not absolute");
    let stats = call(&mut client, "session-stats", json!(null));
    assert_eq!(stats["activeTorrentCount"], 1);
    assert_eq!(stats["pausedTorrentCount"], 1);
    assert_eq!(stats["current-stats"]["uploadedBytes"], 800_000);
    assert_eq!(stats["cumulative-stats"]["sessionCount"], 3);
    call(&mut client, "session-close", json!({}));
    assert_eq!(client.log.last().unwrap(), "close");
}

#[test]
fn the_host_is_asked_about() {
    let mut client = Memory::sample();
    let space = call(&mut client, "free-space", json!({"path": "/srv"}));
    assert_eq!(
        space,
        json!({"path": "/srv", "size-bytes": 5000, "total_size": 9000})
    );
    for (arguments, error) in [
        (json!({}), "directory path argument is missing"),
        (json!({"path": "x"}), "directory path is not absolute"),
        (json!({"path": "/none"}), "No such file or directory"),
    ] {
        assert_eq!(fail(&mut client, "free-space", arguments), error);
    }
    let open = call(&mut client, "port-test", json!({}));
    assert_eq!(open, json!({"port-is-open": true}));
    let open = call(&mut client, "port-test", json!({"ip_protocol": "ipv4"}));
    assert_eq!(open, json!({"port-is-open": true, "ip_protocol": "ipv4"}));
    let error = fail(&mut client, "port-test", json!({"ip_protocol": "ipv5"}));
    assert_eq!(error, "invalid ip protocol string");
    let error = fail(&mut client, "blocklist-update", json!({}));
    assert_eq!(error, "block lists are not supported");
    let error = fail(&mut client, "torrent-dance", json!({}));
    assert_eq!(error, "method name not recognized");
}

#[test]
fn groups_are_made_and_shown() {
    let mut client = Memory::sample();
    for name in ["a", "b"] {
        let group = json!({
            "name": name, "speed-limit-down": 10, "speed-limit-down-enabled": true,
            "honorsSessionLimits": true,
        });
        call(&mut client, "group-set", group);
    }
    let error = fail(&mut client, "group-set", json!({"name": " "}));
    assert_eq!(error, "No group name given");
    let groups = call(&mut client, "group-get", json!({"name": "b"}));
    let expected = json!([{
        "name": "b", "honorsSessionLimits": true, "speed-limit-down": 10,
        "speed-limit-down-enabled": true, "speed-limit-up": 0, "speed-limit-up-enabled": false,
    }]);
    assert_eq!(groups["group"], expected);
    for all in [json!({}), json!({"name": ["a", "b"]})] {
        let groups = call(&mut client, "group-get", all);
        assert_eq!(groups["group"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn json_rpc_has_codes_and_notifications() {
    let mut client = Memory::sample();
    let mut error = |method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": params});
        let answer = ask(&mut client, &request);
        assert_eq!(answer["id"], "x");
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(answer.get("result").is_none());
        answer["error"].clone()
    };
    for (method, params, code, message) in [
        ("torrent_dance", json!({}), -32601, "Method not found"),
        ("torrent_get", json!({}), -32602, "Invalid params"),
        (
            "torrent_set",
            json!({"tracker_remove": [8]}),
            1,
            "error setting announce list",
        ),
        (
            "torrent_set",
            json!({"tracker_list": "x"}),
            2,
            "Invalid tracker list",
        ),
        (
            "free_space",
            json!({"path": "x"}),
            3,
            "path is not absolute",
        ),
        (
            "torrent_add",
            json!({"metainfo": "*"}),
            4,
            "unrecognized info",
        ),
        ("blocklist_update", json!({}), 5, "system error"),
        (
            "torrent_set",
            json!({"files_wanted": [9]}),
            6,
            "file index out of range",
        ),
        (
            "torrent_set",
            json!({"ids": [1], "sequential_download_from_piece": 9}),
            7,
            "piece index out of range",
        ),
        (
            "port_test",
            json!({"ip_protocol": "ipv6"}),
            8,
            "HTTP error from backend service",
        ),
        (
            "torrent_add",
            json!({"metainfo": "eHg="}),
            9,
            "invalid or corrupt torrent file",
        ),
    ] {
        let error = error(method, params);
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(code), &json!(message))
        );
        let text = &error["data"]["error_string"];
        assert!(text.is_null() || text.as_str().is_some_and(|text| text != message));
    }
    let mut notify = |method: &str| {
        let request = json!({"jsonrpc": "2.0", "method": method, "params": {"ids": [1]}});
        answer(request.to_string().as_bytes(), SESSION_ID, &mut client)
    };
    assert_eq!(notify("torrent_stop"), None);
    assert_eq!(notify("torrent_get"), None);
    assert_eq!(notify("torrent_dance"), None);
    assert_eq!(client.torrent(1).state, State::Stopped);
    // JSON-RPC has booleans where the old form has 0 and 1.
    let request = json!({
        "jsonrpc": "2.0", "id": null, "method": "torrent_get",
        "params": {"fields": ["wanted"], "ids": [1]},
    });
    let shown = ask(&mut client, &request);
    let expected = json!({
        "jsonrpc": "2.0", "id": null, "result": {"torrents": [{"wanted": [true, false]}]},
    });
    assert_eq!(shown, expected);
}

#[test]
fn what_is_no_request_is_answered_too() {
    let mut client = Memory::sample();
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"{"jsonrpc":"1.0","method":"session_get","id":1}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","method":"session_get","id":{}}"#,
            -32600,
        ),
    ] {
        let answer = answer(body.as_bytes(), SESSION_ID, &mut client).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["error"]["code"], code, "{body}");
        assert_eq!(answer["id"], Value::Null);
    }
    let answer = ask(&mut client, &json!({"tag": 1}));
    assert_eq!(
        answer,
        json!({"arguments": {}, "result": "no method name", "tag": 1})
    );
}

#[test]
fn fields_of_flood_trguing_and_sonarr_exist() {
    let mut client = Memory::sample();
    let flood = [
        "hashString",
        "downloadDir",
        "name",
        "haveValid",
        "addedDate",
        "dateCreated",
        "rateDownload",
        "rateUpload",
        "downloadedEver",
        "uploadedEver",
        "eta",
        "isPrivate",
        "error",
        "errorString",
        "peersGettingFromUs",
        "peersSendingToUs",
        "status",
        "totalSize",
        "trackers",
        "labels",
        "files",
        "fileStats",
        "peers",
        "trackerStats",
    ];
    let sonarr = [
        "id",
        "hashString",
        "name",
        "downloadDir",
        "totalSize",
        "leftUntilDone",
        "isFinished",
        "eta",
        "status",
        "secondsDownloading",
        "secondsSeeding",
        "errorString",
        "uploadedEver",
        "downloadedEver",
        "seedRatioLimit",
        "seedRatioMode",
        "seedIdleLimit",
        "seedIdleMode",
        "file-count",
        "labels",
    ];
    let trguing = [
        "activityDate",
        "addedDate",
        "bandwidthPriority",
        "corruptEver",
        "dateCreated",
        "desiredAvailable",
        "doneDate",
        "downloadLimit",
        "downloadLimited",
        "editDate",
        "etaIdle",
        "file-count",
        "group",
        "haveUnchecked",
        "haveValid",
        "honorsSessionLimits",
        "isStalled",
        "manualAnnounceTime",
        "maxConnectedPeers",
        "metadataPercentComplete",
        "peer-limit",
        "peersConnected",
        "percentComplete",
        "percentDone",
        "pieceCount",
        "pieceSize",
        "queuePosition",
        "recheckProgress",
        "sizeWhenDone",
        "startDate",
        "torrentFile",
        "trackerStats",
        "uploadLimit",
        "uploadLimited",
        "uploadRatio",
        "webseedsSendingToUs",
        "comment",
        "creator",
        "magnetLink",
        "peersFrom",
        "pieces",
        "priorities",
        "primary-mime-type",
        "trackerList",
        "wanted",
        "webseeds",
        "availability",
    ];
    for fields in [&flood[..], &sonarr, &trguing] {
        let listed = call(&mut client, "torrent-get", json!({ "fields": fields }));
        for torrent in listed["torrents"].as_array().unwrap() {
            for field in fields {
                assert!(
                    torrent.get(field).is_some_and(|value| !value.is_null()),
                    "{field}"
                );
            }
        }
    }
}

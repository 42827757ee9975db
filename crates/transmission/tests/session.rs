//! Requests about the session and the host, and what is no request.

use hawser_transmission::{State, answer};
use serde_json::{Value, json};

use self::memory::{Memory, SESSION_ID, ask, call, fail};

mod memory;

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

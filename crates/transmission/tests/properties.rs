//! What holds for any request.

use std::collections::BTreeSet;

use hawser_fuzz::fuzz;
use hawser_transmission::answer;
use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

use self::memory::{Memory, SESSION_ID};

mod memory;

const METHODS: [&str; 25] = [
    "blocklist-update",
    "free-space",
    "group-get",
    "group-set",
    "port-test",
    "queue-move-bottom",
    "queue-move-down",
    "queue-move-top",
    "queue-move-up",
    "session-close",
    "session-get",
    "session-set",
    "session-stats",
    "torrent-add",
    "torrent-get",
    "torrent-reannounce",
    "torrent-remove",
    "torrent-rename-path",
    "torrent-set",
    "torrent-set-location",
    "torrent-start",
    "torrent-start-now",
    "torrent-stop",
    "torrent-verify",
    "nothing",
];

const NAMES: [&str; 24] = [
    "ids",
    "fields",
    "format",
    "filename",
    "metainfo",
    "download-dir",
    "paused",
    "labels",
    "files-wanted",
    "priority-high",
    "location",
    "move",
    "path",
    "name",
    "seedRatioLimit",
    "seedIdleMode",
    "trackerAdd",
    "trackerReplace",
    "trackerList",
    "encryption",
    "peer-port",
    "speed-limit-down",
    "preferred_transports",
    "delete-local-data",
];

const TEXTS: [&str; 12] = [
    "",
    "table",
    "recently-active",
    "id",
    "peers",
    "/srv",
    "magnet:?xt=urn:btih:x",
    "ZGU=",
    "000102030405060708090a0b0c0d0e0f10111213",
    "udp://a:1",
    "data set",
    "tolerated",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(&TEXTS[..]).prop_map(str::to_owned),
        ".{0,8}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        (-2_i64..5).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-4_i32..9).prop_map(|quarters| json!(f64::from(quarters) / 4.0)),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((text(), inner), 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    let name = proptest::sample::select(&NAMES[..]);
    let fields = proptest::collection::vec((name, value()), 0..5);
    let object = fields.prop_map(|fields| {
        let named = |(name, value): (&str, Value)| (name.to_owned(), value);
        Value::Object(fields.into_iter().map(named).collect::<Map<_, _>>())
    });
    prop_oneof![9 => object, 1 => value()]
}

fn method() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&METHODS[..])
}

fn run(client: &mut Memory, request: &Value) -> Option<Value> {
    let answer = answer(request.to_string().as_bytes(), SESSION_ID, client)?;
    Some(serde_json::from_slice(&answer).expect("an answer in JSON"))
}

proptest! {
    #[test]
    fn any_json_is_answered_in_json(request in value()) {
        let answer = run(&mut Memory::sample(), &request).expect("an answer");
        prop_assert!(answer.is_object());
    }

    #[test]
    fn answers_of_the_old_form_have_the_tag(
        method in method(),
        arguments in arguments(),
        tag in proptest::option::of(value()),
    ) {
        let mut request = json!({"method": method, "arguments": arguments});
        if let Some(tag) = &tag {
            request["tag"] = tag.clone();
        }
        let answer = run(&mut Memory::sample(), &request).expect("an answer");
        prop_assert!(answer["result"].is_string());
        prop_assert!(answer["arguments"].is_object());
        let repeated = tag.filter(|tag| tag.is_number() || tag.is_string());
        prop_assert_eq!(answer.get("tag"), repeated.as_ref());
    }

    #[test]
    fn answers_of_json_rpc_have_the_id(
        method in method(),
        params in arguments(),
        id in proptest::option::of(value()),
    ) {
        let mut request = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if let Some(id) = &id {
            request["id"] = id.clone();
        }
        let answer = run(&mut Memory::sample(), &request);
        let Some(id) = id else {
            prop_assert_eq!(answer, None);
            return Ok(());
        };
        let answer = answer.expect("an answer");
        prop_assert_eq!(&answer["jsonrpc"], "2.0");
        prop_assert!(answer["error"].is_object() ^ answer["result"].is_object());
        let is_valid = matches!(id, Value::Null | Value::Number(_) | Value::String(_));
        let expected = if is_valid { id } else { Value::Null };
        prop_assert_eq!(&answer["id"], &expected);
    }

    #[test]
    fn both_forms_do_the_same(method in method(), arguments in arguments()) {
        let mut clients = [Memory::sample(), Memory::sample()];
        let old = json!({"method": method, "arguments": arguments});
        let new = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": arguments});
        let old = run(&mut clients[0], &old).expect("an answer");
        let new = run(&mut clients[1], &new).expect("an answer");
        prop_assert_eq!(old["result"] == "success", new["result"].is_object());
        prop_assert_eq!(&clients[0].log, &clients[1].log);
        prop_assert_eq!(&clients[0].torrents, &clients[1].torrents);
        prop_assert_eq!(&clients[0].added, &clients[1].added);
    }

    #[test]
    fn a_table_agrees_with_objects(
        seed in any::<u64>(),
        is_new in any::<bool>(),
    ) {
        let fields = some_fields(seed);
        let mut client = Memory::sample();
        let mut torrents = |format: &str| {
            let arguments = json!({"fields": fields, "format": format});
            if is_new {
                let request = json!({
                    "jsonrpc": "2.0", "id": 0, "method": "torrent_get", "params": arguments,
                });
                run(&mut client, &request).expect("an answer")["result"]["torrents"].clone()
            } else {
                let request = json!({"method": "torrent-get", "arguments": arguments});
                run(&mut client, &request).expect("an answer")["arguments"]["torrents"].clone()
            }
        };
        let (table, objects) = (torrents("table"), torrents("objects"));
        let (table, objects) = (table.as_array().expect("an array or text"), objects.as_array().expect("an array or text"));
        let names: Vec<_> = table[0].as_array().expect("an array or text").iter().collect();
        prop_assert_eq!(names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>().len(), names.len());
        prop_assert_eq!(table.len(), objects.len() + 1);
        for (row, object) in table[1..].iter().zip(objects) {
            let row = row.as_array().expect("an array or text");
            prop_assert_eq!(row.len(), names.len());
            prop_assert_eq!(object.as_object().expect("an array or text").len(), names.len());
            for (name, value) in names.iter().zip(row) {
                prop_assert_eq!(&object[name.as_str().expect("an array or text")], value);
            }
        }
    }
}

/// Names of fields in any spelling, some of them twice, some of them of no field.
fn some_fields(seed: u64) -> Vec<&'static str> {
    const FIELDS: [&str; 16] = [
        "id",
        "name",
        "hash_string",
        "hashString",
        "files",
        "file-count",
        "peers",
        "tracker_stats",
        "trackerList",
        "wanted",
        "labels",
        "units",
        "peersFrom",
        "availability",
        "percentDone",
        "webseeds_ex",
    ];
    let mut random = fastrand::Rng::with_seed(seed);
    let count = random.usize(1..10);
    let mut fields = vec!["status"];
    fields.extend((0..count).map(|_| FIELDS[random.usize(..FIELDS.len())]));
    random.shuffle(&mut fields);
    fields
}

#[test]
fn any_bytes_are_answered_in_json() {
    let valid = [
        json!({"method": "torrent-get", "arguments": {"fields": ["id", "files"], "ids": [1]}, "tag": 4}),
        json!({"method": "torrent-set", "arguments": {"ids": 1, "labels": ["a"], "seedRatioLimit": 2.5}}),
        json!({"method": "torrent-add", "arguments": {"metainfo": "ZGU=", "paused": true}}),
        json!({"method": "session-set", "arguments": {"encryption": "required", "peer-port": 1}}),
        json!({"jsonrpc": "2.0", "method": "free_space", "params": {"path": "/a\u{e9}"}, "id": "b"}),
        json!({"jsonrpc": "2.0", "method": "torrent_stop", "params": {"ids": "recently_active"}}),
    ];
    let valid: Vec<_> = valid
        .iter()
        .map(|request| request.to_string().into_bytes())
        .collect();
    let mut client = Memory::sample();
    fuzz(&valid, |input| {
        // What was added and done before is of no interest, and would grow.
        client.torrents.truncate(2);
        client.added.clear();
        client.log.clear();
        if let Some(answer) = answer(input, SESSION_ID, &mut client) {
            let answer: Value = serde_json::from_slice(&answer).expect("an answer in JSON");
            assert!(answer.is_object());
        }
    });
}

#[test]
fn numbers_of_requests_are_repeated_as_they_are() {
    for id in [
        Number::from(i64::MIN),
        Number::from(u64::MAX),
        Number::from_f64(0.1).unwrap(),
    ] {
        let request = json!({"method": "session-stats", "tag": id});
        let answer = run(&mut Memory::sample(), &request).unwrap();
        assert_eq!(answer["tag"], Value::Number(id));
    }
}

#[test]
fn a_list_of_ten_thousand_torrents_is_one_pass() {
    let mut client = Memory::sample();
    let sample = client.torrents[0].clone();
    client.torrents = (1..=10_000)
        .map(|id| hawser_transmission::TorrentView {
            id,
            ..sample.clone()
        })
        .collect();
    let request = json!({"method": "torrent-get", "arguments": {"fields": ["id", "status"]}});
    let body = request.to_string();
    let answer = answer(body.as_bytes(), SESSION_ID, &mut client).unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let torrents = answer["arguments"]["torrents"].as_array().unwrap();
    assert_eq!(torrents.len(), 10_000);
    assert_eq!(torrents[9_999], json!({"id": 10_000, "status": 4}));
}

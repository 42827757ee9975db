//! How many torrents run at once, and when seeding ends, by the API.

use super::*;

const DAEMON: &str = "/api/v1/daemon";

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_and_the_limits_of_seeding_change_and_wrong_ones_do_not() {
    let api = Api::start().await;
    let queue = async || api.json(&format!("GET {DAEMON}"), &Value::Null).await.1["queue"].clone();
    assert_eq!(
        queue().await,
        json!({"downloads": 5.0, "seeds": 50.0, "ratio": "unlimited", "seconds": "unlimited",
            "idle_seconds": "unlimited", "starts_added": true})
    );
    let change =
        json!({"queue": {"downloads": 2, "seeds": "unlimited", "ratio": 1.5, "idle_seconds": 600}});
    let (status, about) = api.json(&format!("PATCH {DAEMON}"), &change).await;
    let expected = json!({"downloads": 2.0, "seeds": "unlimited", "ratio": 1.5,
        "seconds": "unlimited", "idle_seconds": 600.0, "starts_added": true});
    assert_eq!((status, &about["queue"]), (200, &expected));
    for (change, text) in [
        (json!({"downloads": 0}), "from 1 up"),
        (json!({"seeds": 0.5}), "from 1 up"),
        (
            json!({"seeds": "default"}),
            "seeds: write a number or \"unlimited\"",
        ),
        (json!({"ratio": -1}), "not a ratio"),
        (
            json!({"idle_seconds": -1}),
            "idle_seconds: -1 is not a time",
        ),
        (json!({"peers": 1}), "peers"),
    ] {
        let body = json!({ "queue": change });
        let (status, answer) = api.json(&format!("PATCH {DAEMON}"), &body).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(status == 400 && error.contains(text), "{body}: {answer}");
        assert_eq!(queue().await, expected, "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torrent_has_its_own_time_without_an_upload() {
    let api = Api::start().await;
    let (bytes, hash) = torrent(api.dir.path());
    let add = json!({"metainfo": BASE64.encode(&bytes), "stopped": true, "sequential": true});
    let (_, added) = api.json("POST /api/v1/torrents", &add).await;
    assert_eq!(added["sequential"], true);
    assert_eq!(added["content"]["left_bytes"], 50_000);
    let one = format!("PATCH /api/v1/torrents/{hash}");
    let change = json!({"idle_seconds": 90, "seconds": 60, "sequential": false});
    let (status, changed) = api.json(&one, &change).await;
    assert_eq!((status, &changed["sequential"]), (200, &json!(false)));
    let limits = |of: &Value| {
        (
            of["limits"]["seconds"].clone(),
            of["limits"]["idle_seconds"].clone(),
        )
    };
    assert_eq!(limits(&changed), (json!(60.0), json!(90.0)));
    // Each stays while another one changes.
    let (_, changed) = api.json(&one, &json!({"seconds": "default"})).await;
    assert_eq!(limits(&changed), (json!("default"), json!(90.0)));
    let (status, answer) = api.json(&one, &json!({"idle_seconds": -2})).await;
    assert_eq!(status, 400, "{answer}");
}

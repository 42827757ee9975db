//! Changes of links, and links of each type.

use serde_json::{Value, json};

use crate::common::{HERE, Server};

#[tokio::test]
async fn administrators_set_queue_delay_jitter_and_loss_of_a_link() {
    let server = Server::start().await;
    let links = server.of("eve", "GET /api/v1/links", "").await.json();
    let link = &links["links"][0];
    assert_eq!((&link["delay_us"], &link["loss"]), (&json!(0), &json!(0.0)));
    let path = format!("/api/v1/links/{}", link["id"]);
    let body = json!({"queue_us": 7000, "delay_us": 20000, "jitter_us": 500, "loss": 0.01});
    let patch = format!("PATCH {path}");
    let refused = server.of("eve", &patch, &body.to_string()).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let set = server.of("root", &patch, &body.to_string()).await;
    assert_eq!(set.status, 200, "{set:?}");
    let shown = server.of("eve", &format!("GET {path}"), "").await.json();
    for (name, value) in body.as_object().unwrap() {
        assert_eq!(&shown[name], value, "{name}");
    }
    assert_eq!(shown["maximum"], link["maximum"]);
    let set = server.of("root", &patch, r#"{"queue_us": null}"#).await;
    let set = set.json();
    assert_eq!(
        (&set["queue_us"], &set["delay_us"]),
        (&Value::Null, &json!(20000))
    );
    for body in [
        r#"{"loss": 2}"#,
        r#"{"delay_us": null}"#,
        r#"{"delay_us": 3600000001}"#,
        "{}",
    ] {
        let refused = server.of("root", &patch, body).await;
        assert_eq!(refused.status, 400, "{body}: {refused:?}");
    }
}

#[tokio::test]
async fn a_number_removes_only_a_link_of_its_type() {
    let server = Server::start().await;
    let second = json!({ "isd_as": "1-ff00:0:120", "label": "B", "addresses": ["10.0.1.1"] });
    let path = "POST /api/v1/attachment-points";
    let added = server.of("root", path, &second.to_string()).await;
    assert_eq!(added.status, 201, "{added:?}");
    let ends = json!({ "ends": [HERE, "1-ff00:0:120"] });
    let path = "POST /api/v1/core-links";
    let core = server.of("root", path, &ends.to_string()).await.json();
    let core = &core["id"];

    let numbers = async |path: &str, key: &str| {
        let list = server.of("eve", path, "").await.json();
        let links = list[key].as_array().unwrap().iter();
        links.map(|link| link["id"].clone()).collect::<Vec<_>>()
    };
    let user_links = numbers("GET /api/v1/links", "links").await;
    let core_links = numbers("GET /api/v1/core-links", "core_links").await;
    assert!(!user_links.is_empty() && core_links == [core.clone()]);
    for (route, id) in user_links
        .iter()
        .map(|id| ("core-links", id))
        .chain([("links", core)])
    {
        let path = format!("DELETE /api/v1/{route}/{id}");
        let refused = server.of("root", &path, "").await;
        assert_eq!(refused.status, 404, "{path}: {refused:?}");
    }
    assert_eq!(numbers("GET /api/v1/links", "links").await, user_links);
    assert_eq!(
        numbers("GET /api/v1/core-links", "core_links").await,
        core_links
    );
    let path = format!("DELETE /api/v1/core-links/{core}");
    assert_eq!(server.of("root", &path, "").await.status, 204);
}

#[tokio::test]
async fn administrators_link_user_ases_and_peers() {
    let server = Server::start().await;
    let path = "/api/v1/as-links";
    let new = json!({"isd_as": "1-ff00:0:199", "label": "child", "addresses": ["10.0.9.1"]});
    let post = "POST /api/v1/ases";
    let added = server.of("root", post, &new.to_string()).await;
    assert_eq!(added.status, 201, "{added:?}");
    let links = server.of("eve", "GET /api/v1/links", "").await.json();
    let parent = &links["links"][0]["user_as"]["isd_as"];
    let new = json!({"kind": "child", "ends": [parent, "1-ff00:0:199"], "loss": 0.1});
    let post = format!("POST {path}");
    let refused = server.of("eve", &post, &new.to_string()).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let link = server.of("root", &post, &new.to_string()).await;
    assert_eq!(link.status, 201, "{link:?}");
    let link = link.json();
    assert_eq!(
        (&link["kind"], &link["loss"]),
        (&json!("child"), &json!(0.1))
    );
    let peers = json!({"kind": "peer", "ends": [HERE, "1-ff00:0:199"]});
    let peers = server.of("root", &post, &peers.to_string()).await;
    assert_eq!(peers.status, 201, "{peers:?}");
    let core = json!({"kind": "core", "ends": [HERE, "1-ff00:0:199"]});
    let core = server.of("root", &post, &core.to_string()).await;
    assert_eq!(core.status, 400, "{core:?}");

    let patch = format!("PATCH {path}/{}", link["id"]);
    let body = r#"{"limit": {"egress": 1000000}, "queue_us": 7000}"#;
    let set = server.of("root", &patch, body).await.json();
    assert_eq!(set["limit"], json!({"egress": 1_000_000, "ingress": null}));
    assert_eq!(
        (&set["queue_us"], &set["loss"]),
        (&json!(7000), &json!(0.1))
    );
    for (user, body, status) in [
        ("root", "{}", 400),
        ("root", r#"{"limit": {}}"#, 400),
        ("root", r#"{"maximum": {"egress": 1000000}}"#, 400),
        ("eve", r#"{"loss": 0.2}"#, 403),
    ] {
        let refused = server.of(user, &patch, body).await;
        assert_eq!(refused.status, status, "{user} {body}: {refused:?}");
    }
    let list = server.of("eve", &format!("GET {path}"), "").await.json();
    assert_eq!(list["as_links"][0], set);
    let all = server.of("eve", "GET /api/v1/links", "").await.json();
    assert_eq!(all["as_links"], list["as_links"]);
    let history = format!("GET /api/v1/links/{}/history", link["id"]);
    assert_eq!(server.of("eve", &history, "").await.status, 200);
    let delete = format!("DELETE {path}/{}", link["id"]);
    assert_eq!(server.of("root", &delete, "").await.status, 204);
    assert_eq!(server.of("root", &delete, "").await.status, 404);
}

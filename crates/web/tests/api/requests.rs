//! What requests may be, and what they change.

use hawser_fuzz::Description;

use super::*;

#[tokio::test]
async fn requests_that_read_change_nothing() {
    let server = Server::start().await;
    server.kernel.until(1, Some(4_000_000)).await;
    let wait = "PATCH /api/v1/links/1?wait=10";
    server
        .of("root", wait, r#"{"limit":{"egress":5000000}}"#)
        .await;
    let file = server.folder.path().join("state.redb");
    let look = || {
        let state = format!("{:?}", server.coordinator.state());
        let revision = *server.coordinator.subscribe().borrow();
        (state, revision, std::fs::read(&file).unwrap())
    };
    let before = look();
    let description = Description::read(hawser_web::description());
    let mut asked = 0;
    for (path, method) in description.operations() {
        // A stream of events has no end.
        if method != "get" || path.ends_with("/live") {
            continue;
        }
        let path = path.replace("{id}", "1").replace("{isd_as}", HERE);
        for method in ["GET", "HEAD"] {
            let answer = server.of("root", &format!("{method} {path}"), "").await;
            assert!(answer.status < 500, "{path}: {answer:?}");
            assert!(look() == before, "{method} {path} changed the state");
        }
        asked += 1;
    }
    assert!(asked >= 15, "{asked} requests");
}

#[tokio::test]
async fn lists_are_not_taken_for_objects_and_whole_numbers_are_integers() {
    let server = Server::start().await;
    for (first, body) in [
        ("PATCH /api/v1/links/1", r#"{"limit":[1000000,1000000]}"#),
        ("PATCH /api/v1/links/1", "[[1000000],[]]"),
        ("POST /api/v1/users", r#"["mallory","admin"]"#),
        (
            "POST /api/v1/attachment-points",
            r#"["1-ff00:0:120","here"]"#,
        ),
        (
            "POST /api/v1/attachment-points",
            r#"{"isd_as":"1-ff00:0:120","label":"here","place":[1,2]}"#,
        ),
        (
            "POST /api/v1/core-links",
            r#"[["1-ff00:0:110","1-ff00:0:120"]]"#,
        ),
    ] {
        let answer = server.of("root", first, body).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(answer.body.contains("not a list"), "{body}: {answer:?}");
    }
    // As JSON Schema has it, and as some programs write numbers.
    let body = r#"{"limit":{"egress":1e6,"ingress":2000000.0}}"#;
    let answer = server.of("root", "PATCH /api/v1/links/1", body).await;
    let limit = json!({ "egress": 1_000_000, "ingress": 2_000_000 });
    assert_eq!(answer.json()["limit"], limit, "{answer:?}");
}

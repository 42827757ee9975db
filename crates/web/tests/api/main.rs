//! The API on loopback, request by request.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod links;
mod load;
mod requests;
mod usage;

use serde_json::{Value, json};

use common::{HERE, Server};

const LIMIT: &str = r#"{"limit":{"egress":1000000}}"#;

#[tokio::test]
async fn a_user_sets_limits_of_own_links_and_they_get_into_force() {
    let server = Server::start().await;
    let set = server
        .of("alice", "PATCH /api/v1/links/1?wait=10", LIMIT)
        .await;
    assert_eq!(set.status, 200, "{set:?}");
    let link = set.json();
    assert_eq!(
        link["limit"],
        json!({ "egress": 1_000_000, "ingress": 2_000_000 })
    );
    assert_eq!(
        (&link["in_force"], &link["error"]),
        (&json!(true), &Value::Null)
    );
    server.kernel.until(1, Some(1_000_000)).await;

    for (user, first, body, status, reason) in [
        (
            "bob",
            "PATCH /api/v1/links/1",
            LIMIT,
            403,
            "another user's AS",
        ),
        (
            "alice",
            "PATCH /api/v1/links/2",
            LIMIT,
            403,
            "another user's AS",
        ),
        ("eve", "PATCH /api/v1/links/1", LIMIT, 403, "reader"),
        (
            "alice",
            "PATCH /api/v1/links/1",
            r#"{"maximum":{"egress":20000000}}"#,
            403,
            "administrators",
        ),
        (
            "alice",
            "PATCH /api/v1/links/1",
            r#"{"limit":{"egress":10000001}}"#,
            400,
            "above the maximum of 10mbit",
        ),
        (
            "root",
            "PATCH /api/v1/links/1",
            r#"{"limit":{"egress":10000001}}"#,
            400,
            "above the maximum",
        ),
        (
            "alice",
            "PATCH /api/v1/links/1",
            r#"{"limit":{"egress":-1}}"#,
            400,
            "`limit.egress`: ",
        ),
        (
            "alice",
            "PATCH /api/v1/links/1",
            r#"{"limit":{"egress":1e99}}"#,
            400,
            "`limit.egress`: ",
        ),
        (
            "alice",
            "PATCH /api/v1/links/1",
            r#"{"limit":{"egress":"fast"}}"#,
            400,
            "`limit.egress`: ",
        ),
        (
            "alice",
            "PATCH /api/v1/links/1",
            r#"{"limit":{"egress":7999}}"#,
            400,
            "8 kbit/s",
        ),
        (
            "alice",
            "PATCH /api/v1/links/1",
            r#"{"limit":{"egres":9000}}"#,
            400,
            "`egres` is not known: write ",
        ),
        (
            "alice",
            "PATCH /api/v1/links/1",
            r#"{"limit":"#,
            400,
            "it is not JSON: ",
        ),
        (
            "alice",
            "PATCH /api/v1/links/1",
            "{}",
            400,
            "nothing to set",
        ),
        (
            "alice",
            "PATCH /api/v1/links/1",
            r#"{"limit":{},"maximum":{"egress":9000}}"#,
            400,
            "nothing to set",
        ),
        (
            "alice",
            "PATCH /api/v1/links/1?wiat=1",
            LIMIT,
            400,
            "no parameter",
        ),
        (
            "alice",
            "PATCH /api/v1/links/1?wait=x",
            LIMIT,
            400,
            "not a number",
        ),
        ("alice", "PATCH /api/v1/links/9", LIMIT, 404, "no link 9"),
        ("alice", "PATCH /api/v1/links/x", LIMIT, 404, "no link"),
        ("alice", "POST /api/v1/links", "{}", 403, "administrators"),
        ("alice", "DELETE /api/v1/links/1", "", 403, "administrators"),
        (
            "alice",
            "PATCH /api/v1/users/2",
            r#"{"role":"admin"}"#,
            403,
            "administrators",
        ),
        (
            "alice",
            "POST /api/v1/users/3/token",
            "",
            403,
            "administrators",
        ),
        ("alice", "GET /api/v1/users", "", 403, "administrators"),
        ("alice", "PUT /api/v1/links/1", LIMIT, 405, "method"),
        (
            "alice",
            "GET /api/v2/links",
            "",
            404,
            "nothing at this path",
        ),
    ] {
        let answer = server.of(user, first, body).await;
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert_eq!(answer.status, status, "{user} {first} {body}: {error}");
        assert!(
            error.contains(reason) && !error.contains('\n'),
            "{user} {first} {body}: {error}"
        );
    }
    let link = server.of("eve", "GET /api/v1/links/1", "").await.json();
    assert_eq!(link["limit"]["egress"], 1_000_000);
    assert_eq!(link["maximum"]["egress"], 10_000_000);

    let changes = server
        .of("eve", "GET /api/v1/changes?link=1&count=1", "")
        .await
        .json();
    let change = &changes["changes"][0];
    assert_eq!(
        (
            &change["who"],
            &change["what"],
            &change["from"],
            &change["to"]
        ),
        (
            &json!("alice"),
            &json!("limit"),
            &json!(4_000_000),
            &json!(1_000_000)
        )
    );
    let next = format!("GET /api/v1/changes?link=1&before={}", changes["next"]);
    let older = server.of("eve", &next, "").await.json();
    assert!(older["changes"].as_array().unwrap().len() >= 5, "{older}");
}

#[tokio::test]
async fn administrators_keep_links_ases_and_maxima() {
    let server = Server::start().await;
    let new = json!({ "isd_as": "1-ff00:0:113", "label": "New", "addresses": ["10.0.0.9"] });
    let added = server
        .of("root", "POST /api/v1/ases", &new.to_string())
        .await;
    assert_eq!(added.status, 201, "{added:?}");
    assert_eq!(
        server
            .of("root", "POST /api/v1/ases", &new.to_string())
            .await
            .status,
        409
    );
    let link = json!({ "attachment_point": HERE, "user_as": "1-ff00:0:113" });
    let link = server
        .of("root", "POST /api/v1/links", &link.to_string())
        .await;
    assert_eq!(link.status, 201, "{link:?}");
    let id = &link.json()["id"];
    let patch = format!("PATCH /api/v1/links/{id}?wait=10");
    let both = r#"{"maximum":{"egress":5000000},"limit":{"egress":3000000}}"#;
    let set = server.of("root", &patch, both).await.json();
    assert_eq!(
        (&set["limit"]["egress"], &set["in_force"]),
        (&json!(3_000_000), &json!(true))
    );
    // A lower maximum takes the limit with it.
    let set = server
        .of("root", &patch, r#"{"maximum":{"egress":1000000}}"#)
        .await
        .json();
    assert_eq!(set["limit"]["egress"], 1_000_000);

    let new = json!({ "isd_as": "1-ff00:0:113", "label": "Moved", "addresses": [] });
    let path = "PUT /api/v1/ases/1-ff00:0:113";
    let refused = server.of("root", path, &new.to_string()).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    let other = server
        .of("root", "PUT /api/v1/ases/1-ff00:0:114", &new.to_string())
        .await;
    assert_eq!(other.status, 400, "{other:?}");
    let path = format!("DELETE /api/v1/links/{id}");
    assert_eq!(server.of("root", &path, "").await.status, 204);
    assert_eq!(server.of("root", &path, "").await.status, 404);
    let gone = server
        .of("root", "DELETE /api/v1/ases/1-ff00:0:113", "")
        .await;
    assert_eq!(gone.status, 204, "{gone:?}");
    let here = server
        .of("eve", &format!("GET /api/v1/attachment-points/{HERE}"), "")
        .await;
    assert_eq!(here.json()["host"]["error"], Value::Null);
    let second = json!({ "isd_as": "1-ff00:0:120", "label": "B", "addresses": ["10.0.1.1"] });
    let added = server
        .of(
            "root",
            "POST /api/v1/attachment-points",
            &second.to_string(),
        )
        .await;
    assert_eq!(added.status, 201, "{added:?}");
    let ends = json!({ "ends": [HERE, "1-ff00:0:120"] });
    let core = server
        .of("root", "POST /api/v1/core-links", &ends.to_string())
        .await;
    assert_eq!(core.status, 201, "{core:?}");
    let list = server.of("eve", "GET /api/v1/core-links", "").await.json();
    assert_eq!(list["core_links"][0]["ends"][1]["isd_as"], "1-ff00:0:120");
    let path = format!("PATCH /api/v1/core-links/{}", core.json()["id"]);
    let set = server.of("root", &path, r#"{"delay_us": 9000}"#).await;
    assert_eq!((set.status, &set.json()["delay_us"]), (200, &json!(9000)));
    for (user, body, status) in [
        ("root", "{}", 400),
        ("root", r#"{"loss": null}"#, 400),
        ("root", r#"{"queue_us": 1}"#, 400),
        ("eve", r#"{"loss": 0.1}"#, 403),
    ] {
        let refused = server.of(user, &path, body).await;
        assert_eq!(refused.status, status, "{user} {body}: {refused:?}");
    }
}

#[tokio::test]
async fn nobody_reads_tokens() {
    let server = Server::start().await;
    let added = server
        .of(
            "root",
            "POST /api/v1/users",
            r#"{"name":"carol","role":"user"}"#,
        )
        .await;
    let token = added.json()["token"].as_str().unwrap().to_owned();
    assert_eq!((added.status, token.len()), (201, 64));
    let hash = hawser_http::TokenHash::of(&token).to_string();
    for user in ["root", "alice", "bob", "eve"] {
        for path in [
            "users",
            "links",
            "ases",
            "attachment-points",
            "changes?count=500",
            "session",
            "usage",
        ] {
            let answer = server.of(user, &format!("GET /api/v1/{path}"), "").await;
            let body = &answer.body;
            assert!(
                !body.contains(&token) && !body.contains(&hash),
                "{user} {path}: {body}"
            );
            assert!(!body.contains("token\":\""), "{user} {path}: {body}");
        }
    }
    // Nor by reading the files.
    for file in std::fs::read_dir(server.folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(64).any(|some| some == token.as_bytes()));
    }

    // One's own token is replaced, which ends the one before.
    let head = format!("Authorization: Bearer {token}\r\n");
    let id = added.json()["user"]["id"].clone();
    let replaced = server
        .ask(&format!("POST /api/v1/users/{id}/token"), &head, "")
        .await;
    assert_eq!(replaced.status, 200, "{replaced:?}");
    assert_eq!(
        server.ask("GET /api/v1/session", &head, "").await.status,
        401
    );
    let revoke = server
        .of("root", &format!("DELETE /api/v1/users/{id}/token"), "")
        .await;
    assert_eq!(revoke.status, 204, "{revoke:?}");
    let token = replaced.json()["token"].as_str().unwrap().to_owned();
    let head = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(
        server.ask("GET /api/v1/session", &head, "").await.status,
        401
    );
}

#[tokio::test]
async fn wrong_tokens_are_rate_limited() {
    let server = Server::start().await;
    let wrong = "Authorization: Bearer wrong\r\n";
    for _ in 0..10 {
        assert_eq!(server.ask("GET /api/v1/links", wrong, "").await.status, 401);
    }
    let answer = server.ask("GET /api/v1/links", wrong, "").await;
    assert_eq!(answer.status, 429, "{answer:?}");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=6).contains(&wait));
    // Others behind the same address are answered all the same.
    assert_eq!(server.of("root", "GET /api/v1/links", "").await.status, 200);
    let origin = format!("Origin: http://{}\r\nX-Hawser-Page: 1\r\n", server.address);
    let login = server
        .ask("POST /api/v1/session", &origin, r#"{"token":"a"}"#)
        .await;
    assert_eq!(login.status, 429, "{login:?}");
}

#[tokio::test]
async fn a_session_is_for_the_page_alone() {
    let server = Server::start().await;
    let own = format!("Origin: http://{}\r\nX-Hawser-Page: 1\r\n", server.address);
    let body = json!({ "token": server.token("alice") }).to_string();
    // Another page can neither log in nor use a session.
    for head in [
        "",
        "X-Hawser-Page: 1\r\n",
        "Origin: http://evil.example\r\nX-Hawser-Page: 1\r\n",
    ] {
        let refused = server.ask("POST /api/v1/session", head, &body).await;
        assert_eq!(refused.status, 403, "{head}: {refused:?}");
    }
    let begun = server.ask("POST /api/v1/session", &own, &body).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    let set = begun.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(set.contains(part), "{set}");
    }
    // Over plain HTTP a browser would not send it back.
    assert!(!set.contains("Secure"), "{set}");
    let cookie = format!("Cookie: other=1; {}\r\n", set.split(';').next().unwrap());

    let me = server.ask("GET /api/v1/session", &cookie, "").await.json();
    assert_eq!(
        (&me["name"], &me["role"]),
        (&json!("alice"), &json!("user"))
    );
    let foreign = format!("{cookie}Origin: http://evil.example\r\n");
    for head in [
        cookie.clone(),
        format!("{cookie}X-Hawser-Page: 1\r\n"),
        foreign.clone(),
        format!("{foreign}X-Hawser-Page: 1\r\n"),
        format!("{cookie}Origin: http://{}\r\n", server.address),
    ] {
        let refused = server.ask("PATCH /api/v1/links/1", &head, LIMIT).await;
        assert_eq!(refused.status, 403, "{head}: {refused:?}");
    }
    let page = format!("{cookie}{own}");
    let set = server.ask("PATCH /api/v1/links/1", &page, LIMIT).await;
    assert_eq!(set.status, 200, "{set:?}");
    assert_eq!(
        server.ask("DELETE /api/v1/session", &page, "").await.status,
        204
    );
    assert_eq!(
        server.ask("GET /api/v1/session", &cookie, "").await.status,
        401
    );

    // A replaced token ends the sessions that it began.
    let begun = server.ask("POST /api/v1/session", &own, &body).await;
    let cookie = format!(
        "Cookie: {}\r\n",
        begun
            .header("set-cookie")
            .unwrap()
            .split(';')
            .next()
            .unwrap()
    );
    assert_eq!(
        server.ask("GET /api/v1/session", &cookie, "").await.status,
        200
    );
    server.of("root", "POST /api/v1/users/2/token", "").await;
    assert_eq!(
        server.ask("GET /api/v1/session", &cookie, "").await.status,
        401
    );
}

#[tokio::test]
async fn behind_a_proxy_its_address_and_its_clients_count() {
    let server = Server::behind("https://limits.example.org").await;
    let login = |client: &str, token: &str| {
        let head = format!(
            "Origin: https://limits.example.org\r\nX-Hawser-Page: 1\r\n\
             X-Forwarded-For: 192.0.2.99, {client}\r\n"
        );
        (head, json!({ "token": token }).to_string())
    };
    for _ in 0..10 {
        let (head, body) = login("192.0.2.1", "wrong");
        assert_eq!(
            server
                .ask("POST /api/v1/session", &head, &body)
                .await
                .status,
            401
        );
    }
    let (head, body) = login("192.0.2.1", "wrong");
    assert_eq!(
        server
            .ask("POST /api/v1/session", &head, &body)
            .await
            .status,
        429
    );
    let (head, body) = login("192.0.2.2", "wrong");
    assert_eq!(
        server
            .ask("POST /api/v1/session", &head, &body)
            .await
            .status,
        401
    );
    let (head, body) = login("192.0.2.2", server.token("alice"));
    let begun = server.ask("POST /api/v1/session", &head, &body).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    assert!(
        begun.header("set-cookie").unwrap().ends_with("; Secure"),
        "{begun:?}"
    );
    let own = format!("Origin: http://{}\r\nX-Hawser-Page: 1\r\n", server.address);
    assert_eq!(
        server.ask("POST /api/v1/session", &own, &body).await.status,
        403
    );
}

#[tokio::test]
async fn bodies_and_requests_have_bounds() {
    let server = Server::start().await;
    let long = format!("{{\"limit\":{{}}}}{}", " ".repeat(70_000));
    let answer = server.of("alice", "PATCH /api/v1/links/1", &long).await;
    assert_eq!(answer.status, 413, "{answer:?}");
    for body in [
        "",
        "[]",
        "null",
        "\u{fffd}",
        "{\"limit\":{},\"limit\":{}}",
        "{\"limits\":{}}",
    ] {
        let answer = server.of("alice", "PATCH /api/v1/links/1", body).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(answer.json()["error"].is_string());
    }
    let answer = server.ask("GET /api/v1/links", "", "").await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    for head in [
        "Authorization: Basic YTpi\r\n",
        "Cookie: hawser_session=x\r\n",
    ] {
        assert_eq!(
            server.ask("GET /api/v1/links", head, "").await.status,
            401,
            "{head}"
        );
    }
}

#[tokio::test]
async fn the_page_runs_nothing_of_others() {
    let server = Server::start().await;
    let page = server.ask("GET /", "", "").await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(page.body.contains("<!doctype html>"), "{}", page.body);
    for part in page
        .body
        .split(['"', '\''])
        .filter(|part| part.starts_with("/assets/"))
    {
        let file = server.ask(&format!("GET {part}"), "", "").await;
        assert_eq!(file.status, 200, "{part}");
        assert!(
            !file.body.contains("http://") || file.body.contains("www.w3.org"),
            "{part}"
        );
        let tag = format!("If-None-Match: {}\r\n", file.header("etag").unwrap());
        assert_eq!(
            server.ask(&format!("GET {part}"), &tag, "").await.status,
            304,
            "{part}"
        );
    }
    assert!(!page.body.contains("<script>") && !page.body.contains("style="));
    assert_eq!(server.ask("GET /assets/none.js", "", "").await.status, 404);
    assert_eq!(
        server.ask("GET /assets/..%2fpage.rs", "", "").await.status,
        404
    );
}

//! Requests of machines, without a network.

use std::net::SocketAddr;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hawser_bundle::Bundle;
use hawser_control::Publication;
use hawser_coordinator::{
    Access, Actor, Configurations, Coordinator, Direction, Limits, LinkId, NewAttachmentPoint,
    NewLink, NewUserAs, Role,
};
use hawser_fuzz::{Answered, Description};
use hawser_http::Peer;
use hawser_topology::IsdAsn;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{App, AppOptions, router};

mod links;

const AP: &str = "1-ff00:0:110";
const AP_HOST: &str = "1-ff00_0_110";
const USER: &str = "1-ff00:0:1";
const USER_HOST: &str = "1-ff00_0_1";

/// Requests of these tests come without TLS.
fn options() -> AppOptions {
    AppOptions {
        may_send_keys_unencrypted: true,
        ..AppOptions::default()
    }
}

/// A coordinator with an attachment point and a user's AS at it.
struct Bed {
    _folder: tempfile::TempDir,
    coordinator: Coordinator,
    router: axum::Router,
    link: LinkId,
    /// Tokens of an administrator, the owner of the AS, another user, and a reader.
    tokens: [String; 4],
}

/// An answer.
struct Answer {
    status: u16,
    tag: Option<String>,
    /// The address of another machine that runs the AS.
    other_machine: Option<String>,
    body: Vec<u8>,
}

impl Answer {
    async fn read(response: Response<Body>) -> Self {
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        let (tag, other_machine) = (header("etag"), header("hawser-other-machine"));
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap();
        let body = body.to_bytes().to_vec();
        Self {
            status,
            tag,
            other_machine,
            body,
        }
    }

    fn error(&self) -> String {
        let value: Value = serde_json::from_slice(&self.body).unwrap();
        value["error"].as_str().unwrap().to_owned()
    }
}

fn ia(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

impl Bed {
    fn new() -> Self {
        Self::with_options(options())
    }

    fn with_options(options: AppOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = Coordinator::open(folder.path()).unwrap();
        let program = Actor::program();
        let users = [
            ("root", Role::Admin),
            ("owner", Role::User),
            ("other", Role::User),
            ("reader", Role::Reader),
        ];
        let users = users.map(|(name, role)| coordinator.add_user(&program, name, role).unwrap());
        let owner = Some(users[1].0.id);
        let tokens = users.map(|(_, token)| token.reveal().to_owned());
        let new = NewAttachmentPoint {
            isd_as: ia(AP),
            label: "here".to_owned(),
            place: None,
            addresses: vec!["192.0.2.1".parse().unwrap()],
            first_port: 50000,
            device: None,
        };
        coordinator.add_attachment_point(&program, new).unwrap();
        let new = NewUserAs {
            isd_as: ia(USER),
            owner,
            label: "there".to_owned(),
            place: None,
            addresses: vec!["198.51.100.1".parse().unwrap()],
            first_port: 50000,
        };
        coordinator.add_user_as(&program, new).unwrap();
        let new = NewLink {
            attachment_point: ia(AP),
            user_as: ia(USER),
            ip: None,
            port: None,
            device: None,
            queue_us: None,
            delay_us: 0,
            jitter_us: 0,
            loss: 0.0,
            maximum: Limits::both(Some(10_000_000)),
            limit: Limits::default(),
        };
        let link = coordinator.add_link(&program, new).unwrap().id;
        let access = Access {
            url: "https://coordinator.example".to_owned(),
            ca: None,
        };
        let path = folder.path();
        let made = Configurations::open(coordinator.clone(), path, access).unwrap();
        let app = App::with_configurations(made, options);
        Self {
            _folder: folder,
            coordinator,
            router: router(app),
            link,
            tokens,
        }
    }

    async fn send(&self, request: axum::http::request::Builder, body: Body) -> Answer {
        self.send_from("192.0.2.9:1", request, body).await
    }

    async fn send_from(
        &self,
        address: &str,
        request: axum::http::request::Builder,
        body: Body,
    ) -> Answer {
        let mut request = request.body(body).unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let peer = Peer {
            address,
            tls: false,
            certificate: None,
        };
        request.extensions_mut().insert(peer);
        let (method, path) = (request.method().to_string(), request.uri().to_string());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let kind = response.headers().get("content-type").cloned();
        let answer = Answer::read(response).await;
        // The description of the API says that the request is answered so.
        let described = Description::read(crate::description()).check(&Answered {
            method: &method,
            path: &path,
            status: answer.status,
            content_type: kind.as_ref().map(|kind| kind.to_str().unwrap()),
            body: &answer.body,
        });
        described.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        answer
    }

    async fn get(&self, path: &str, token: &str, tag: Option<&str>) -> Answer {
        let bearer = format!("Bearer {token}");
        let mut request = Request::get(path).header("authorization", bearer);
        if let Some(tag) = tag {
            request = request.header("if-none-match", tag);
        }
        self.send(request, Body::empty()).await
    }

    async fn post(&self, path: &str, token: &str, body: &Value) -> Answer {
        let request = Request::post(path).header("authorization", format!("Bearer {token}"));
        self.send(request, Body::from(body.to_string())).await
    }

    /// The secret of an AS's machine, from its archive.
    async fn secret(&self, isd_as: &str) -> String {
        let path = format!("/api/v1/ases/{isd_as}/archive");
        let answer = self.get(&path, &self.tokens[0], None).await;
        assert_eq!(
            answer.status,
            200,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        let manifest = Bundle::unpack(&answer.body).unwrap().manifest().unwrap();
        manifest.coordinator.unwrap().token
    }

    fn limit(&self, rate: u64) {
        let limit = [(Direction::Egress, Some(rate))];
        let program = Actor::program();
        self.coordinator
            .set_limit(&program, self.link, &limit)
            .unwrap();
    }
}

#[tokio::test]
async fn archives_are_for_owners_and_administrators() {
    let bed = Bed::new();
    let status = async |isd_as: &str, token: &str| {
        let path = format!("/api/v1/ases/{isd_as}/archive");
        bed.get(&path, token, None).await.status
    };
    let [admin, owner, other, reader] = &bed.tokens;
    let expected = [
        (admin, [200, 200]),
        (owner, [200, 403]),
        (other, [403; 2]),
        (reader, [403; 2]),
    ];
    for (token, statuses) in expected {
        let found = [status(USER, token).await, status(AP, token).await];
        assert_eq!(found, statuses);
    }
    assert_eq!(status("1-ff00:0:99", admin).await, 404);
    assert_eq!(status("x", admin).await, 404);
    assert_eq!(status(USER, "wrong").await, 401);
}

#[tokio::test]
async fn a_machine_gets_what_it_does_not_have() {
    let bed = Bed::new();
    let secret = bed.secret(AP).await;
    let path = format!("/api/host/{AP_HOST}/config");
    let first = bed.get(&path, &secret, None).await;
    assert_eq!(first.status, 200);
    let bundle = Bundle::unpack(&first.body).unwrap();
    let tag = first.tag.unwrap();
    assert_eq!(tag, bundle.tag());
    let version = bundle.manifest().unwrap().version;
    let same = bed.get(&path, &secret, Some(&tag)).await;
    assert_eq!((same.status, same.body.len()), (304, 0));
    // As SCIONLab's machines ask.
    for (known, status) in [(version, 304), (version - 1, 200)] {
        let answer = bed
            .get(&format!("{path}?version={known}"), &secret, None)
            .await;
        assert_eq!(answer.status, status);
    }
    bed.limit(500_000);
    let next = bed.get(&path, &secret, Some(&tag)).await;
    assert_eq!(next.status, 200);
    let next = Bundle::unpack(&next.body).unwrap();
    assert!(next.manifest().unwrap().version > version);
    let limited = next.link_info().unwrap().0[&bed.link.to_string()].clone();
    assert_eq!(limited.egress, Some(500));
}

#[tokio::test]
async fn a_machine_may_wait_for_a_change() {
    let bed = Bed::new();
    let secret = bed.secret(AP).await;
    let path = format!("/api/host/{AP_HOST}/config?wait=50");
    let tag = bed.get(&path, &secret, None).await.tag.unwrap();
    let segments = format!("/api/host/{AP_HOST}/segments?wait=50");
    let known = bed.get(&segments, &secret, None).await.tag.unwrap();
    let waiting = bed.get(&path, &secret, Some(&tag));
    let of_segments = bed.get(&segments, &secret, Some(&known));
    let change = async {
        tokio::task::yield_now().await;
        bed.limit(700_000);
        // Limits change no segments, but links do.
        bed.coordinator
            .remove_link(&Actor::program(), bed.link)
            .unwrap();
    };
    let (answer, segments, ()) = tokio::join!(waiting, of_segments, change);
    assert_eq!(answer.status, 200);
    assert_eq!(segments.status, 200);
    let publication = Publication::from_json(&segments.body).unwrap();
    assert_eq!(publication.network().links.len(), 0);
}

#[tokio::test]
async fn a_machine_that_waits_is_refused_once_its_secret_is_replaced() {
    let bed = Bed::new();
    for what in ["config", "segments"] {
        let secret = bed.secret(AP).await;
        let path = format!("/api/host/{AP_HOST}/{what}?wait=50");
        let known = bed.get(&path, &secret, None).await.tag.unwrap();
        let waiting = bed.get(&path, &secret, Some(&known));
        let replace = async {
            tokio::task::yield_now().await;
            let program = Actor::program();
            bed.coordinator.rotate_secret(&program, ia(AP)).unwrap();
        };
        let (answer, ()) = tokio::join!(waiting, replace);
        assert_eq!(answer.status, 401, "{what}");
        assert!(answer.error().contains("was replaced"), "{what}");
    }
}

#[tokio::test]
async fn owners_and_administrators_replace_secrets() {
    let bed = Bed::new();
    let [admin, owner, other, reader] = &bed.tokens;
    for (isd_as, host, expected) in [
        (
            USER,
            USER_HOST,
            [(other, 403), (reader, 403), (owner, 204), (admin, 204)],
        ),
        (
            AP,
            AP_HOST,
            [(other, 403), (reader, 403), (owner, 403), (admin, 204)],
        ),
    ] {
        for (token, status) in expected {
            let secret = bed.secret(isd_as).await;
            let path = format!("/api/v1/ases/{isd_as}/secret");
            let request = Request::delete(path).header("authorization", format!("Bearer {token}"));
            assert_eq!(bed.send(request, Body::empty()).await.status, status);
            let config = format!("/api/host/{host}/config");
            let machine = bed.get(&config, &secret, None).await.status;
            assert_eq!(machine == 401, status == 204, "{isd_as}: {machine}");
        }
    }
}

#[tokio::test]
async fn without_links_a_user_as_has_nothing() {
    let bed = Bed::new();
    let secret = bed.secret(USER).await;
    bed.coordinator
        .remove_link(&Actor::program(), bed.link)
        .unwrap();
    let path = format!("/api/host/{USER_HOST}/config");
    let nothing = bed.get(&path, &secret, None).await;
    assert_eq!(nothing.status, 204);
    let again = bed.get(&path, &secret, nothing.tag.as_deref()).await;
    assert_eq!(again.status, 204);
    let version = bed.get(&format!("{path}?version=0"), &secret, None).await;
    assert_eq!(version.status, 204);
}

#[tokio::test]
async fn only_the_machine_itself_is_answered() {
    let bed = Bed::new();
    let (ap, user) = (bed.secret(AP).await, bed.secret(USER).await);
    let status = async |host: &str, token: &str| {
        bed.get(&format!("/api/host/{host}/config"), token, None)
            .await
            .status
    };
    assert_eq!(status(AP_HOST, &ap).await, 200);
    assert_eq!(status(USER_HOST, &user).await, 200);
    for (host, token) in [
        (AP_HOST, user.as_str()),
        (USER_HOST, ap.as_str()),
        (AP_HOST, bed.tokens[0].as_str()),
        ("1-ff00_0_99", ap.as_str()),
        ("x", ap.as_str()),
    ] {
        assert_eq!(status(host, token).await, 401, "{host}");
    }
    // Authenticated as SCIONLab's machines are.
    let basic = BASE64_STANDARD.encode(format!("{AP_HOST}:{ap}"));
    for (path, expected) in [(AP_HOST, 200), (USER_HOST, 401)] {
        let request = Request::get(format!("/api/host/{path}/config"));
        let request = request.header("authorization", format!("Basic {basic}"));
        assert_eq!(bed.send(request, Body::empty()).await.status, expected);
    }
    let request = Request::get(format!("/api/host/{AP_HOST}/config"));
    assert_eq!(bed.send(request, Body::empty()).await.status, 401);
    // A secret that has been replaced is refused, for waiting requests, too.
    let path = format!("/api/host/{AP_HOST}/config?wait=50");
    let tag = bed.get(&path, &ap, None).await.tag.unwrap();
    let waiting = bed.get(&path, &ap, Some(&tag));
    let replace = async {
        tokio::task::yield_now().await;
        bed.coordinator
            .rotate_secret(&Actor::program(), ia(AP))
            .unwrap();
    };
    let (answer, ()) = tokio::join!(waiting, replace);
    assert_eq!(answer.status, 401);
    assert!(answer.error().contains("was replaced"));
}

#[tokio::test]
async fn guesses_are_slowed_down() {
    let bed = Bed::new();
    let secret = bed.secret(AP).await;
    let path = format!("/api/host/{AP_HOST}/config");
    let mut statuses = Vec::new();
    for guess in 0..12 {
        statuses.push(bed.get(&path, &guess.to_string(), None).await.status);
    }
    assert_eq!(statuses[0], 401);
    assert_eq!(statuses[11], 429);
    // The machine itself, and users behind the same address, are answered all the same.
    assert_eq!(bed.get(&path, &secret, None).await.status, 200);
    let links = bed.get("/api/v1/links", &bed.tokens[3], None).await;
    assert_eq!(links.status, 200);
}

#[tokio::test]
async fn reports_reach_the_state() {
    let bed = Bed::new();
    let secret = bed.secret(AP).await;
    let path = format!("/api/host/{AP_HOST}/deployed_config_version");
    let host = || bed.coordinator.state().host(ia(AP)).unwrap().clone();
    let version = host().version;
    let failure = json!({"version": version, "error": "no permission"});
    assert_eq!(bed.post(&path, &secret, &failure).await.status, 200);
    let reason = bed.coordinator.deployed(ia(AP), version).await;
    assert_eq!(reason, Err("no permission".to_owned()));
    let report = json!({"version": version});
    assert_eq!(bed.post(&path, &secret, &report).await.status, 200);
    assert_eq!(host().deployed, Some(version));
    let refused = [
        json!({"version": version + 1}),
        json!({"version": -1}),
        json!({}),
        json!([]),
    ];
    for wrong in refused {
        let answer = bed.post(&path, &secret, &wrong).await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
    let path = format!("/api/host/{AP_HOST}/usage");
    let counters = json!({"bytes": 1000, "packets": 2, "drops": 1, "backlog": 0});
    let links = [
        json!({"link": bed.link, "egress": counters, "ingress": null}),
        // Not a link of this machine.
        json!({"link": 999, "egress": counters}),
    ];
    let report = json!({ "links": links });
    assert_eq!(bed.post(&path, &secret, &report).await.status, 200);
    let (_, usage) = bed.coordinator.usage()[&ia(AP)].clone();
    assert_eq!(usage.len(), 1);
    assert_eq!(usage[0].egress.unwrap().bytes, 1000);
    assert_eq!(usage[0].ingress, None);
}

#[tokio::test]
async fn a_server_of_limits_alone_configures_no_ases() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let router = router(App::new(coordinator, options()));
    let request = Request::get(format!("/api/host/{AP_HOST}/config"));
    let response = router
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn private_keys_are_not_sent_without_tls_unless_that_is_allowed() {
    let peer = |address: &str, tls| Peer {
        address: address.parse().unwrap(),
        tls,
        certificate: None,
    };
    let (near, far) = ("127.0.0.1:9", "10.0.0.9:9");
    let proxy = |url: &str| AppOptions {
        proxy: Some(url.parse().unwrap()),
        ..AppOptions::default()
    };
    let may_send = |options, peer: Option<&Peer>| {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = Coordinator::open(folder.path()).unwrap();
        App::new(coordinator, options).may_send_keys(peer)
    };
    let none = AppOptions::default;
    assert!(may_send(none(), Some(&peer(near, false))));
    assert!(may_send(none(), Some(&peer(far, true))));
    assert!(!may_send(none(), Some(&peer(far, false))));
    assert!(!may_send(none(), None));
    // What a proxy passes on comes from this host, and is as safe as the way to the proxy.
    let (safe, plain) = (proxy("https://a.example"), proxy("http://a.example"));
    assert!(may_send(safe, Some(&peer(near, false))));
    assert!(!may_send(plain, Some(&peer(near, false))));
    assert!(may_send(options(), Some(&peer(far, false))));

    let bed = Bed::with_options(none());
    let path = format!("/api/v1/ases/{USER}/archive");
    let refused = bed.get(&path, &bed.tokens[0], None).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.error().contains("--tls-cert"),
        "{}",
        refused.error()
    );
}

/// Two machines with one archive learn of each other, by requests that wait; a machine that starts
/// again is one.
#[tokio::test]
async fn a_second_machine_of_an_as_is_noticed() {
    let bed = Bed::new();
    let secret = bed.secret(USER).await;
    let path = format!("/api/host/{USER_HOST}/config?wait=50");
    let first = bed.get(&path, &secret, None).await;
    let tag = first.tag.unwrap();
    let ask = |address: &'static str, instance: &'static str, secret: &str| {
        let request = Request::get(&path)
            .header("authorization", format!("Bearer {secret}"))
            .header("hawser-instance", instance)
            .header("if-none-match", &tag);
        bed.send_from(address, request, Body::empty())
    };
    let shown = async || {
        let path = format!("/api/v1/ases/{USER}");
        let answer = bed.get(&path, &bed.tokens[0], None).await;
        let value: Value = serde_json::from_slice(&answer.body).unwrap();
        value["host"]["duplicates"].clone()
    };
    let (a, b) = ("192.0.2.1:1", "192.0.2.2:1");
    // The request of a machine that has ended since ends when the machine asks under another number.
    let (waiting, again) = tokio::join!(ask(a, "1", &secret), async {
        tokio::task::yield_now().await;
        tokio::time::timeout(std::time::Duration::from_millis(200), ask(a, "2", &secret)).await
    });
    assert_eq!((waiting.status, waiting.other_machine), (304, None));
    assert!(again.is_err(), "it waits");
    assert_eq!(shown().await, json!([]));
    // Another machine; the first one is still there, and asks again.
    let (second, third, fourth) = tokio::join!(
        ask(a, "2", &secret),
        async {
            tokio::task::yield_now().await;
            ask(b, "3", &secret).await
        },
        async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            let waits = ask(a, "2", &secret);
            tokio::time::timeout(std::time::Duration::from_millis(200), waits).await
        }
    );
    assert_eq!((second.status, third.status), (304, 304));
    assert_eq!(third.other_machine.as_deref(), Some("192.0.2.1"));
    assert!(fourth.is_err());
    assert_eq!(shown().await, json!(["192.0.2.1", "192.0.2.2"]));
    // Who does not have the secret neither learns nor changes anything.
    let wrong = ask("192.0.2.3:1", "3", "wrong").await;
    assert_eq!((wrong.status, wrong.other_machine), (401, None));
    assert_eq!(shown().await, json!(["192.0.2.1", "192.0.2.2"]));
}

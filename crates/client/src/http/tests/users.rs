//! Users that may command the torrents, and others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::RwLock;
use std::time::Duration;

use hawser_http::TokenHash;

use super::*;

/// Users by their tokens, which are changed while the daemon runs.
#[derive(Default)]
struct Table(RwLock<HashMap<[u8; 32], Access>>);

impl Table {
    fn set(&self, token: &str, access: Option<Access>) {
        let (mut all, key) = (self.0.write().unwrap(), TokenHash::of(token).0);
        match access {
            Some(access) => all.insert(key, access),
            None => all.remove(&key),
        };
    }
}

impl Callers for Table {
    fn by_token(&self, token: &TokenHash) -> Option<Access> {
        self.0.read().unwrap().get(&token.0).copied()
    }

    fn by_certificate(&self, _: &str) -> Option<Access> {
        None
    }

    fn count_wrong(&self, _: IpAddr) -> Option<Duration> {
        None
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_command_the_torrents_if_they_may() {
    let (token, table) = (Token::random().unwrap(), Arc::new(Table::default()));
    table.set("alice", Some(Access::Command));
    table.set("bob", Some(Access::Refused));
    let api = Api::start_for(token, Arc::clone(&table) as _).await;
    let list = "GET /api/v1/torrents";
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let page = "Origin: http://localhost\r\nX-Hawser-Page: 1\r\n";
    let sign_in = async |token: &str| {
        let body = json!({ "token": token }).to_string();
        api.ask("POST /api/v1/session", page, &body).await
    };

    assert_eq!(api.ask(list, &bearer("alice"), "").await.0, 200);
    let (status, _, body) = api.ask(list, &bearer("bob"), "").await;
    assert!(status == 403 && body.contains("torrents = true"), "{body}");
    assert_eq!(api.ask(list, &bearer("eve"), "").await.0, 401);
    let basic = format!("Authorization: Basic {}\r\n", BASE64.encode(b"any:bob"));
    let rpc = api.ask("POST /transmission/rpc", &basic, "{}").await;
    assert_eq!(rpc.0, 403);

    assert_eq!(sign_in("bob").await.0, 403);
    assert_eq!(sign_in("eve").await.0, 401);
    let (status, head, _) = sign_in("alice").await;
    assert_eq!(status, 200);
    let cookie = head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.unwrap().split(';').next().unwrap();
    let cookie = format!("Cookie: {cookie}\r\n");
    assert_eq!(api.ask(list, &cookie, "").await.0, 200);
    // What is taken from a user is taken from the user's sessions.
    table.set("alice", Some(Access::Refused));
    assert_eq!(api.ask(list, &cookie, "").await.0, 403);
    table.set("alice", None);
    assert_eq!(api.ask(list, &cookie, "").await.0, 401);
}

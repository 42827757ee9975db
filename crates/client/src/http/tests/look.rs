//! What is looked at while a torrent runs, and sessions of pages.

use hawser_torrent::{Listener as Peers, PeerAddr, Seed, SeedOptions};

use super::*;

/// A torrent of 50,000 bytes, a seeder of it, and the seeder's address.
async fn seeded(dir: &Path) -> (Vec<u8>, String, PeerAddr, Seed) {
    let (bytes, hash) = torrent(dir);
    let listener = Peers::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let peer = PeerAddr::Ip(listener.local_addr());
    let network = Network::ip().with_listener(listener);
    let metainfo = Metainfo::parse(&bytes).unwrap();
    let options = SeedOptions::default();
    let seed = Seed::start(metainfo, dir.join("content"), network, options, |_, _| {});
    (bytes, hash, peer, seed.await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_pieces_and_rates_of_a_torrent_that_runs() {
    let api = Api::start().await;
    let (bytes, hash, peer, _seed) = seeded(api.dir.path()).await;
    let one = format!("GET /api/v1/torrents/{hash}");
    let add =
        json!({"metainfo": BASE64.encode(&bytes), "peers": [peer.to_string()], "stopped": true});
    assert_eq!(api.json("POST /api/v1/torrents", &add).await.0, 201);
    // Of one that does not run the pieces are counted.
    let (_, pieces) = api.json(&format!("{one}/pieces"), &Value::Null).await;
    let metainfo = Metainfo::parse(&bytes).unwrap();
    let (count, length) = (metainfo.pieces.count(), metainfo.pieces.length);
    assert_eq!(
        pieces,
        json!({"count": count, "length": length, "verified": null})
    );
    let (_, peers) = api.json(&format!("{one}/peers"), &Value::Null).await;
    assert_eq!(peers, json!({"peers": []}));
    let (_, rates) = api.json(&format!("{one}/rates"), &Value::Null).await;
    assert_eq!(
        rates,
        json!({"age_ms": [], "download_rate": [], "upload_rate": []})
    );

    // Slow enough to be seen at work.
    let slow = json!({"download_rate": 80_000});
    let change = format!("PATCH /api/v1/torrents/{hash}");
    assert_eq!(api.json(&change, &slow).await.0, 200);
    let start = format!("POST /api/v1/torrents/{hash}/start");
    assert_eq!(api.json(&start, &Value::Null).await.0, 200);
    let found = loop {
        let (status, peers) = api.json(&format!("{one}/peers"), &Value::Null).await;
        assert_eq!(status, 200);
        if peers["peers"][0]["flags"]["serves"] == true {
            break peers["peers"][0].clone();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(found["address"], peer.to_string());
    assert_eq!(found["flags"]["incoming"], false);
    assert_eq!(found["done"], 1.0);
    assert!(
        found["client"]
            .as_str()
            .is_some_and(|it| it.starts_with("hawser")),
        "{found}"
    );
    assert_eq!(found["paths"][0]["hops"], json!([]));
    let fast = json!({"download_rate": "unlimited"});
    assert_eq!(api.json(&change, &fast).await.0, 200);
    let settled = api.json(&format!("{one}/settled"), &Value::Null).await.1;
    assert_eq!(settled["status"], "seeding");
    let (_, pieces) = api.json(&format!("{one}/pieces"), &Value::Null).await;
    let verified = BASE64
        .decode(pieces["verified"].as_str().unwrap().as_bytes())
        .unwrap();
    assert_eq!(
        verified.iter().map(|it| it.count_ones()).sum::<u32>(),
        count
    );
    let rates = loop {
        let (_, rates) = api.json(&format!("{one}/rates"), &Value::Null).await;
        if rates["age_ms"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
        {
            break rates;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(
        rates["upload_rate"].as_array().unwrap().len(),
        rates["age_ms"].as_array().unwrap().len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_sent_by_difference() {
    let api = Api::start().await;
    let changes = async |since: &str| {
        api.json(&format!("GET /api/v1/changes{since}"), &Value::Null)
            .await
    };
    let (status, first) = changes("").await;
    assert_eq!(
        (status, &first["whole"], &first["torrents"]),
        (200, &json!(true), &json!([]))
    );
    let (bytes, hash) = torrent(api.dir.path());
    let add = json!({"metainfo": BASE64.encode(&bytes), "stopped": true});
    assert_eq!(api.json("POST /api/v1/torrents", &add).await.0, 201);
    let mut cursor = first["cursor"].as_str().unwrap().to_owned();
    let found = loop {
        let (_, next) = changes(&format!("?since={cursor}")).await;
        assert_eq!(next["whole"], false);
        cursor = next["cursor"].as_str().unwrap().to_owned();
        if next["torrents"] != json!([]) {
            break next;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(found["torrents"][0]["info_hash"], hash);
    assert_eq!(
        changes(&format!("?since={cursor}")).await.1["torrents"],
        json!([])
    );
    assert_eq!(
        api.json(&format!("DELETE /api/v1/torrents/{hash}"), &Value::Null)
            .await
            .0,
        204
    );
    loop {
        let (_, next) = changes(&format!("?since={cursor}")).await;
        if next["removed"] == json!([hash]) {
            break;
        }
        tokio::task::yield_now().await;
    }
    for wrong in ["?since=x", "?since=1-g", "?until=1-1"] {
        assert_eq!(changes(wrong).await.0, 400, "{wrong}");
    }
    assert_eq!(changes("?since=1-1").await.1["whole"], true);
    api.end_empty().await;
}

/// The cookie of an answer.
fn cookie(head: &str) -> String {
    let line = head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = line.unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_signs_in_with_the_token_and_works_by_a_cookie() {
    let api = Api::start().await;
    let sign_in = "POST /api/v1/session";
    // `Host` is sent by `ask`.
    let page = "Origin: http://localhost\r\nX-Hawser-Page: 1\r\nSec-Fetch-Site: same-origin\r\n";
    let token = |text: &str| json!({"token": text}).to_string();
    assert_eq!(api.ask(sign_in, page, &token("wrong")).await.0, 401);
    assert_eq!(api.ask(sign_in, page, "{}").await.0, 400);
    let own = token(api.token.reveal());
    let foreign = "Origin: http://attacker.example\r\nX-Hawser-Page: 1\r\n";
    assert_eq!(api.ask(sign_in, foreign, &own).await.0, 403);
    assert_eq!(
        api.ask(sign_in, "Origin: http://localhost\r\n", &own)
            .await
            .0,
        403
    );
    let (status, head, _) = api.ask(sign_in, page, &own).await;
    assert_eq!(status, 200);
    let cookie = format!("Cookie: {}\r\n", cookie(&head));
    let look = format!("{cookie}Sec-Fetch-Site: same-origin\r\n");
    assert_eq!(api.ask("GET /api/v1/session", &look, "").await.0, 200);
    assert_eq!(api.ask("GET /api/v1/torrents", &look, "").await.0, 200);
    // Another server on this host is the same site for browsers.
    for site in ["same-site", "cross-site"] {
        let other = format!("{cookie}Sec-Fetch-Site: {site}\r\n");
        assert_eq!(
            api.ask("GET /api/v1/torrents", &other, "").await.0,
            403,
            "{site}"
        );
    }
    let (bytes, hash) = torrent(api.dir.path());
    let add = json!({"metainfo": BASE64.encode(&bytes), "stopped": true}).to_string();
    let change = format!("{cookie}{page}");
    assert_eq!(api.ask("POST /api/v1/torrents", &cookie, &add).await.0, 401);
    assert_eq!(api.ask("POST /api/v1/torrents", &change, &add).await.0, 201);
    let remove = format!("DELETE /api/v1/torrents/{hash}");
    assert_eq!(api.ask(&remove, &cookie, "").await.0, 401);
    assert_eq!(api.ask(&remove, &change, "").await.0, 204);
    assert_eq!(api.ask("DELETE /api/v1/session", &change, "").await.0, 204);
    assert_eq!(api.ask("GET /api/v1/session", &look, "").await.0, 401);
    api.end_empty().await;
}

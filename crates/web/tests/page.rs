//! The page in headless Chromium.
//!
//! Pictures of it are written to `tmp/screenshots` in the target directory. Those of the docs are
//! replaced by `HAWSER_SCREENSHOTS=docs/screenshots cargo test -p hawser-web --test page`.

#![allow(clippy::unwrap_used)]

#[path = "common/browser.rs"]
mod browser;
mod common;

use std::sync::Arc;

use hawser_coordinator::{Actor, enforce_locally};
use serde_json::json;
use tokio::task::JoinSet;

use browser::Browser;
use common::{Kernel, Server};

/// A browser at the page of a server, if there is one.
async fn browse(server: &Server) -> Option<Browser> {
    let Some(program) = browser::program() else {
        eprintln!("skipped: Chromium is not installed");
        return None;
    };
    let address = format!("http://{}/", server.address);
    let started = tokio::task::spawn_blocking(move || {
        let mut browser = Browser::start(&program);
        browser.screen(1280, 860, "light");
        browser.open(&address);
        browser.until("document.activeElement?.type === 'password'");
        browser
    });
    Some(started.await.unwrap())
}

fn log_in(browser: &mut Browser, token: &str) {
    browser.until("document.activeElement?.type === 'password'");
    browser.type_text(token);
    browser.press("Enter", 13, 1);
}

/// Presses Tab until an element is focused.
fn tab_to(browser: &mut Browser, selector: &str) {
    for _ in 0..80 {
        if browser.evaluate(&format!("document.activeElement?.matches({selector:?})")) == true {
            // Whoever works by keyboard sees where.
            let outline = "['tr', '*'].map((one) => document.activeElement.closest(one)).map((one) => one ? getComputedStyle(one).outlineStyle : '').find((one) => one === 'solid')";
            assert_eq!(browser.evaluate(outline), "solid", "{selector}");
            return;
        }
        browser.press("Tab", 9, 1);
    }
    panic!("{selector} cannot be reached by keyboard");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_set_by_keyboard_and_gets_into_force() {
    let server = Server::start().await;
    let Some(mut browser) = browse(&server).await else {
        return;
    };
    let kernel = Arc::clone(&server.kernel);
    let token = server.token("alice").to_owned();
    let steps = tokio::task::spawn_blocking(move || {
        log_in(&mut browser, "wrong");
        browser.until("document.querySelector('[role=alert]').textContent.includes('wrong')");
        log_in(&mut browser, &token);
        browser.until("document.querySelectorAll('.links tbody tr').length === 2");
        // Nothing that scripts can read says who is logged in.
        assert_eq!(browser.evaluate("document.cookie"), "");
        tab_to(&mut browser, "a[href='#/link/1']");
        browser.press("Enter", 13, 1);
        browser.until("document.querySelectorAll('input[type=range]').length === 2");
        tab_to(&mut browser, ".egress input[type=range]");
        assert_eq!(
            browser.evaluate("document.activeElement.ariaValueText"),
            "4 Mbit/s"
        );
        // Each key is a hundredth of the maximum.
        browser.press("ArrowLeft", 37, 15);
        assert_eq!(
            browser.evaluate("document.activeElement.ariaValueText"),
            "2.5 Mbit/s"
        );
        assert_eq!(
            browser.evaluate("document.querySelector('.egress .maximum-text').textContent"),
            "maximum 10 Mbit/s"
        );
        browser.press("Enter", 13, 1);
        browser.until(
            "document.querySelector('.egress .result').textContent.includes('2.5 Mbit/s in force')",
        );
        browser
    });
    let mut browser = steps.await.unwrap();
    kernel.until(1, Some(2_500_000)).await;
    let steps = tokio::task::spawn_blocking(move || {
        browser.until(
            "document.querySelector('.changes li').textContent.includes('4 Mbit/s → 2.5 Mbit/s')",
        );
        // By the number: too much is refused before it is sent.
        tab_to(&mut browser, ".ingress input[type=number]");
        browser.evaluate("document.activeElement.select()");
        browser.type_text("11");
        browser.until("document.querySelector('.ingress .result').textContent.includes('maximum is 10 Mbit/s')");
        assert_eq!(
            browser.evaluate("document.querySelector('.ingress button[type=submit]').disabled"),
            true
        );
        browser.evaluate("document.activeElement.select()");
        browser.type_text("0.064");
        browser.press("Enter", 13, 1);
        browser.until(
            "document.querySelector('.ingress .result').textContent.includes('64 kbit/s in force')",
        );
        // What belongs to others can be seen, and not changed.
        browser.evaluate("location.hash = '#/link/2'");
        browser.until("document.querySelector('h1').textContent.includes('Telescope')");
        assert_eq!(
            browser
                .evaluate("[...document.querySelectorAll('input')].every((one) => one.disabled)"),
            true
        );
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    let link = server.of("eve", "GET /api/v1/links/1", "").await.json();
    assert_eq!(
        link["limit"],
        json!({ "egress": 2_500_000, "ingress": 64_000 })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_adds_users_and_links() {
    let server = Server::start().await;
    let Some(mut browser) = browse(&server).await else {
        return;
    };
    let token = server.token("root").to_owned();
    let steps = tokio::task::spawn_blocking(move || {
        log_in(&mut browser, &token);
        browser.until("document.querySelector('a[href=\"#/admin\"]')");
        browser.evaluate("location.hash = '#/admin'");
        browser.until("document.querySelectorAll('.card').length === 5");
        tab_to(&mut browser, "input[maxlength='64']");
        browser.type_text("carol <b>");
        browser.press("Enter", 13, 1);
        browser.until("document.querySelector('dialog code').textContent.length === 64");
        browser.press("Escape", 27, 1);
        browser.until("!document.querySelector('dialog')");
        browser.until(
            "[...document.querySelectorAll('td b')].some((one) => one.textContent === 'carol <b>')",
        );
        browser.evaluate("location.hash = '#/link/2'");
        browser.until("document.querySelector('.fields input')");
        browser.evaluate("document.querySelector('.fields input').select(); document.querySelector('.fields input').focus()");
        browser.type_text("3");
        browser.press("Enter", 13, 1);
        browser.until(
            "document.querySelector('.egress .maximum-text').textContent === 'maximum 3 Mbit/s'",
        );
        browser.until("document.querySelector('.egress output').textContent === '3 Mbit/s'");
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    server.kernel.until(2, Some(3_000_000)).await;
}

/// The secret of an AS's machine is replaced on the page, and its new archive fetched: by an
/// administrator, and by its owner.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_replaced_and_the_new_archive_fetched() {
    let server = Server::with_archives().await;
    let path = "GET /api/v1/ases/1-ff00:0:111/archive";
    assert_eq!(server.status_of("alice", path).await, 200);
    let secret = || {
        let state = server.coordinator.state();
        state.user_ases.values().next().unwrap().host.secret
    };
    for (user, view, shot) in [
        ("root", "admin", "secret-admin"),
        ("alice", "link/1", "secret-owner"),
    ] {
        let Some(mut browser) = browse(&server).await else {
            return;
        };
        let before = secret().unwrap();
        let token = server.token(user).to_owned();
        let downloads = server.folder.path().join(user);
        let folder = downloads.clone();
        let steps = tokio::task::spawn_blocking(move || {
            let allowed = json!({ "behavior": "allow", "downloadPath": folder });
            browser.call("Page.setDownloadBehavior", allowed);
            log_in(&mut browser, &token);
            browser.until("document.querySelector('.links tbody tr')");
            browser.evaluate(&format!("location.hash = '#/{view}'"));
            let button = |text: &str| {
                format!(
                    "[...document.querySelectorAll('button')].find((one) => one.textContent === '{text}')"
                )
            };
            browser.until(&button("New secret"));
            browser.shot(&format!("{shot}-before"), false);
            browser.evaluate(&format!("{}.click()", button("New secret")));
            browser.until(
                "document.querySelector('dialog').textContent.includes('are refused at once')",
            );
            browser.shot(&format!("{shot}-question"), false);
            browser.evaluate("document.querySelector('dialog .danger').click()");
            browser.until(
                "document.querySelector('dialog code')?.textContent === 'hawser as join ARCHIVE'",
            );
            browser.shot(&format!("{shot}-replaced"), false);
            browser.evaluate("document.querySelector('dialog button').click()");
            browser.until("document.querySelector('dialog .result').textContent === 'Saved as 1-ff00_0_111.tar.gz'");
            browser.shot(&format!("{shot}-saved"), false);
            browser.evaluate("document.querySelector('dialog .primary').click()");
            browser.until("!document.querySelector('dialog')");
            // It has one again, which can be replaced again.
            browser.until(&button("New secret"));
            assert_eq!(browser.problems, Vec::<String>::new());
            let file = folder.join("1-ff00_0_111.tar.gz");
            let begun = std::time::Instant::now();
            while !file.exists() && begun.elapsed() < common::PATIENCE {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            std::fs::read(file).unwrap()
        });
        assert!(steps.await.unwrap().starts_with(&[0x1f, 0x8b]));
        assert!(secret().is_some_and(|now| now != before), "{user}");
    }
}

/// Whether all tabs are seen whole, also if there is one more of the widest.
const TABS_FIT: &str = "(() => {
    const nav = document.querySelector('.tabs');
    const one_more = nav.lastElementChild.cloneNode(true);
    nav.append(one_more);
    const fit = [...nav.children].every((tab) => {
        const at = tab.getBoundingClientRect();
        return at.left >= 0 && at.right <= innerWidth && tab.scrollWidth <= tab.clientWidth;
    });
    one_more.remove();
    return fit;
})()";

#[tokio::test(flavor = "multi_thread")]
async fn every_view_fits_phones_in_light_and_dark() {
    let server = Server::start().await;
    let _others = scene(&server);
    let Some(mut browser) = browse(&server).await else {
        return;
    };
    let token = server.token("root").to_owned();
    let steps = tokio::task::spawn_blocking(move || {
        browser.shot("login", false);
        log_in(&mut browser, &token);
        browser.until("document.querySelectorAll('.links tbody tr').length > 2");
        if browser::documented().is_some() {
            // Pictures are better with some history.
            std::thread::sleep(std::time::Duration::from_secs(75));
        }
        for (name, width, height, colours) in [
            ("light", 1280, 860, "light"),
            ("dark", 1280, 860, "dark"),
            ("phone", 360, 740, "light"),
            ("phone-dark", 360, 740, "dark"),
        ] {
            browser.screen(width, height, colours);
            for view in ["links", "map", "link/1", "changes", "admin"] {
                browser.evaluate(&format!("location.hash = '#/{view}'"));
                browser.until(match view {
                    "links" => "document.querySelector('.links tbody tr')",
                    "map" => "document.querySelector('.map .link')",
                    "link/1" => "document.querySelector('.egress .area') && document.querySelector('.changes li')",
                    "changes" => "document.querySelector('.changes li')",
                    _ => "document.querySelectorAll('.card').length === 5",
                });
                let wide = "document.documentElement.scrollWidth <= innerWidth";
                assert_eq!(browser.evaluate(wide), true, "{view} at {width}");
                assert_eq!(browser.evaluate(TABS_FIT), true, "{view} at {width}");
                let back = browser.evaluate("getComputedStyle(document.body).backgroundColor");
                let expected = if colours == "dark" {
                    "rgb(14, 19, 24)"
                } else {
                    "rgb(245, 246, 248)"
                };
                assert_eq!(back, expected);
                let file = format!("{}-{name}", view.replace('/', "-"));
                browser.shot(&file, width < 500);
            }
        }
        // The switch overrules the system, also after the page is loaded anew.
        browser
            .evaluate("document.querySelector('button[aria-label=\"Use light colours\"]').click()");
        let back = "getComputedStyle(document.body).backgroundColor";
        assert_eq!(browser.evaluate(back), "rgb(245, 246, 248)");
        browser.call("Page.reload", json!({}));
        browser.until("document.querySelector('button[aria-label=\"Use dark colours\"]')");
        assert_eq!(browser.evaluate(back), "rgb(245, 246, 248)");
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
}

#[tokio::test]
async fn a_peering_link_is_shown_with_what_its_ends_send() {
    let server = Server::start().await;
    let Some(mut browser) = browse(&server).await else {
        return;
    };
    let new = json!({
        "kind": "peer", "ends": ["1-ff00:0:111", "1-ff00:0:112"],
        "limit": {"egress": 3_000_000}, "delay_us": 20_000, "loss": 0.001,
    });
    let path = "POST /api/v1/as-links";
    let added = server.of("root", path, &new.to_string()).await;
    assert_eq!(added.status, 201, "{added:?}");
    let expected = format!(
        "Data lab – Telescopelink {} · peers · Data lab sends up to 3 Mbit/s · delay 20 ms, loss 0.1 %",
        added.json()["id"]
    );
    let token = server.token("eve").to_owned();
    let steps = tokio::task::spawn_blocking(move || {
        log_in(&mut browser, &token);
        let row = "document.querySelector('[aria-label^=Peering] tbody tr').textContent";
        browser.until(row);
        assert_eq!(browser.evaluate(row), *expected);
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
}

/// More attachment points and user ASes, as a small network has them.
fn scene(server: &Server) -> JoinSet<()> {
    let coordinator = &server.coordinator;
    let program = Actor::program();
    let mut tasks = JoinSet::new();
    for (isd_as, label, latitude, longitude) in [
        ("1-ff00:0:120", "Amsterdam", 52.37, 4.90),
        ("1-ff00:0:130", "Vienna", 48.21, 16.37),
    ] {
        let new = json!({
            "isd_as": isd_as, "label": label, "addresses": [format!("10.1.0.{}", latitude as u8)],
            "place": { "latitude": latitude, "longitude": longitude },
        });
        let new = serde_json::from_value(new).unwrap();
        coordinator.add_attachment_point(&program, new).unwrap();
        let enforcing = enforce_locally(
            coordinator.clone(),
            isd_as.parse().unwrap(),
            Arc::new(Kernel::default()),
        );
        tasks.spawn(enforcing);
    }
    for ends in [
        ["1-ff00:0:110", "1-ff00:0:120"],
        ["1-ff00:0:110", "1-ff00:0:130"],
        ["1-ff00:0:120", "1-ff00:0:130"],
    ] {
        let new = serde_json::from_value(json!({ "ends": ends })).unwrap();
        coordinator.add_core_link(&program, &new).unwrap();
    }
    let bob = coordinator.state().user("bob").unwrap().id;
    for (number, label, at, latitude, longitude, maximum, limit) in [
        (
            3,
            "Genome centre",
            "1-ff00:0:120",
            51.44,
            5.48,
            100_000_000_u64,
            Some(80_000_000_u64),
        ),
        (
            4,
            "Climate model",
            "1-ff00:0:120",
            53.55,
            9.99,
            1_000_000_000,
            None,
        ),
        (
            5,
            "University",
            "1-ff00:0:130",
            47.07,
            15.44,
            20_000_000,
            Some(500_000),
        ),
        (
            6,
            "Observatory",
            "1-ff00:0:130",
            50.08,
            14.43,
            50_000_000,
            Some(0),
        ),
    ] {
        let isd_as = format!("1-ff00:0:11{number}");
        let new = json!({
            "isd_as": isd_as, "label": label, "owner": bob, "addresses": [format!("10.2.0.{number}")],
            "place": { "latitude": latitude, "longitude": longitude },
        });
        coordinator
            .add_user_as(&program, serde_json::from_value(new).unwrap())
            .unwrap();
        let link = json!({
            "attachment_point": at, "user_as": isd_as,
            "maximum": { "egress": maximum, "ingress": maximum },
            "limit": { "egress": limit, "ingress": limit },
        });
        coordinator
            .add_link(&program, serde_json::from_value(link).unwrap())
            .unwrap();
    }
    tasks
}

/// The boxes of all labels and shapes of the map that is shown, in pixels.
const BOXES: &str = "(() => {
    const boxes = (what) => [...document.querySelectorAll(what)].map((one) => {
        const { left, top, right, bottom } = one.getBoundingClientRect();
        return { text: one.textContent, left, top, right, bottom };
    });
    const picture = boxes('.map svg')[0];
    const all = [...boxes('.map .node text'), ...boxes('.map .node rect, .map .node circle')];
    const out = all.filter((one) => one.left < picture.left || one.top < picture.top
        || one.right > picture.right || one.bottom > picture.bottom);
    const pairs = all.flatMap((a, i) => all.slice(i + 1)
        .filter((b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
        .map((b) => `${a.text} / ${b.text}`));
    return { all: all.length, out: out.map((one) => one.text), pairs };
})()";

/// Three attachment points and twenty ASes, with places or without: no label is over another one, a
/// shape, or the edge.
#[tokio::test(flavor = "multi_thread")]
async fn labels_of_the_map_do_not_overlap() {
    let server = Server::start().await;
    let program = Actor::program();
    let isd_as = |number: usize| format!("1-ff00:0:{number:x}");
    let place = |index: usize| {
        // As the campuses of a city: near one another, some at one place.
        let around = [(0.0, 0.0), (0.2, 0.5), (-0.3, 0.2), (0.25, -0.4)][index % 4];
        json!({
            "latitude": 47.0 + around.0 + (index / 4) as f64 * 0.15,
            "longitude": 8.3 + around.1 + (index / 8) as f64 * 0.3,
        })
    };
    for (index, label) in ["Geneva University", "Basel"].into_iter().enumerate() {
        let new = json!({
            "isd_as": isd_as(0x200 + index), "label": label,
            "addresses": [format!("10.0.1.{}", index + 1)], "place": place(index * 3),
        });
        let new = serde_json::from_value(new).unwrap();
        server
            .coordinator
            .add_attachment_point(&program, new)
            .unwrap();
    }
    let points = ["1-ff00:0:110".to_owned(), isd_as(0x200), isd_as(0x201)];
    for index in 0..18 {
        let mut new = json!({
            "isd_as": isd_as(0x300 + index), "label": format!("Department of Physics {index}"),
            "addresses": [format!("10.0.2.{}", index + 1)],
        });
        if index % 3 > 0 {
            new["place"] = place(index);
        }
        let new = serde_json::from_value(new).unwrap();
        server.coordinator.add_user_as(&program, new).unwrap();
        let link =
            json!({ "attachment_point": points[index % 3], "user_as": isd_as(0x300 + index) });
        let link = serde_json::from_value(link).unwrap();
        server.coordinator.add_link(&program, link).unwrap();
    }
    let Some(mut browser) = browse(&server).await else {
        return;
    };
    let token = server.token("root").to_owned();
    let steps = tokio::task::spawn_blocking(move || {
        log_in(&mut browser, &token);
        browser.until("document.querySelector('.links')");
        browser.evaluate("location.hash = '#/map'");
        browser.until("document.querySelectorAll('.map .node').length === 23");
        browser.shot("map-labels", true);
        let found = browser.evaluate(BOXES);
        // A label has two lines.
        assert_eq!(found["all"], 23 * 3, "{found}");
        assert_eq!((&found["out"], &found["pairs"]), (&json!([]), &json!([])));
        // As pure geometry, for other networks.
        let random = "(async () => {
            const { overlaps, placeLabels } = await import('/assets/labels.js');
            let seed = 1;
            const random = () => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed / 2147483648; };
            let wrong = 0;
            for (let network = 0; network < 50; network += 1) {
                const nodes = [];
                while (nodes.length < 23) {
                    const [x, y] = [70 + random() * 860, 50 + random() * 450];
                    if (nodes.some((one) => Math.hypot(one.x - x, (one.y - y) * 1.4) < 60)) continue;
                    nodes.push({ x, y, radius: 10, width: 60 + random() * 120, height: 31, above: random() < 0.5 });
                }
                const links = nodes.slice(3).map(({ x, y }, index) => ({ x1: x, y1: y, x2: nodes[index % 3].x, y2: nodes[index % 3].y }));
                const labels = placeLabels(nodes, links, { width: 1000, height: 560 }).map(({ left, top }, index) =>
                    ({ left, top, right: left + nodes[index].width, bottom: top + nodes[index].height }));
                const shapes = nodes.map(({ x, y, radius }) => ({ left: x - radius, top: y - radius, right: x + radius, bottom: y + radius }));
                const out = labels.some((one) => one.left < 0 || one.top < 0 || one.right > 1000 || one.bottom > 560);
                if (out || overlaps([...labels, ...shapes]).length) wrong += 1;
            }
            return wrong;
        })()";
        assert_eq!(browser.evaluate(random), 0);
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
}

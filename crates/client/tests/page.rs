//! The page of the daemon in headless Chromium.
//!
//! Pictures of it are written to `tmp/screenshots` in the target directory. Those of the docs are
//! replaced by `HAWSER_SCREENSHOTS=docs/screenshots cargo test -p hawser-client --test page`. With the
//! variable `HAWSER_AXE`, the path of `axe.min.js` of axe-core, every view is examined by that.

#![allow(clippy::unwrap_used)]

#[path = "../../web/tests/common/browser.rs"]
mod browser;
#[path = "page/daemon.rs"]
mod daemon;
#[path = "page/files.rs"]
mod files;
#[path = "page/limits.rs"]
mod limits;
#[path = "page/queue.rs"]
mod queue;
#[path = "page/settings.rs"]
mod settings;
#[path = "page/trackers.rs"]
mod trackers;
#[path = "page/trend.rs"]
mod trend;

use std::fs;
use std::path::Path;

use serde_json::json;

use browser::Browser;
use daemon::{Running, Seeder};

/// A browser at the page of a daemon, if there is one.
async fn browse(running: &Running) -> Option<Browser> {
    let Some(program) = browser::program() else {
        eprintln!("skipped: Chromium is not installed");
        return None;
    };
    let address = format!("http://{}/", running.address);
    let token = running.token.clone();
    let started = tokio::task::spawn_blocking(move || {
        let mut browser = Browser::start(&program);
        browser.screen(1280, 860, "light");
        browser.open(&address);
        browser.until("document.activeElement?.type === 'password'");
        examine(&mut browser, "the login");
        browser.type_text("wrong");
        browser.press("Enter", 13, 1);
        browser.until("document.querySelector('[role=alert]').textContent.includes('wrong')");
        browser.evaluate("document.activeElement.select()");
        browser.type_text(&token);
        browser.press("Enter", 13, 1);
        browser.until("document.querySelector('[role=grid]')");
        // Scripts cannot read which user is signed in.
        assert_eq!(browser.evaluate("document.cookie"), "");
        browser
    });
    Some(started.await.unwrap())
}

/// Examines what is shown with axe-core, if that is given.
fn examine(browser: &mut Browser, view: &str) {
    let Some(path) = std::env::var_os("HAWSER_AXE") else {
        return;
    };
    if browser.evaluate("typeof axe") == "undefined" {
        let script = fs::read_to_string(&path).unwrap();
        browser.evaluate(&format!("{script}\n;0"));
    }
    let faults = browser.evaluate(
        "axe.run().then(({ violations }) => violations.map(({ id, nodes }) =>
            `${id}: ${nodes.map((node) => node.html).slice(0, 3).join(' ')}`))",
    );
    assert_eq!(faults, json!([]), "{view}");
}

/// A button with this text.
fn button(text: &str) -> String {
    format!(
        "[...document.querySelectorAll('button')].findLast((one) => one.textContent === {text:?})"
    )
}

fn click(browser: &mut Browser, text: &str) {
    let button = button(text);
    browser.until(&format!("{button} && !{button}.disabled"));
    browser.evaluate(&format!("{button}.click()"));
}

/// Chooses the option with this value of the select element that `select` finds.
fn choose(browser: &mut Browser, select: &str, value: &str) {
    browser.until(&format!("{select} && !{select}.disabled"));
    browser.evaluate(&format!(
        "(() => {{ const one = {select}; one.value = {value:?}; one.dispatchEvent(new Event('change')); }})()"
    ));
}

/// The field with this label.
fn labelled(label: &str) -> String {
    format!(
        "[...document.querySelectorAll('label')].find((one) => one.textContent === {label:?}).control"
    )
}

/// Whether nothing is wider than the screen.
const FITS: &str = "document.documentElement.scrollWidth <= innerWidth";

/// Drops a file on the page.
fn drop_file(browser: &mut Browser, bytes: &[u8]) {
    let bytes: Vec<String> = bytes.iter().map(ToString::to_string).collect();
    browser.evaluate(&format!(
        "(() => {{
            const files = new DataTransfer();
            files.items.add(new File([new Uint8Array([{}])], 'a.torrent'));
            document.body.dispatchEvent(new DragEvent('drop', {{ dataTransfer: files, bubbles: true, cancelable: true }}));
        }})()",
        bytes.join(",")
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torrent_is_added_by_the_page_completes_and_is_removed() {
    let running = Running::start(Vec::new()).await;
    // Names from other hosts are shown as text, also those with markup.
    let seeder = Seeder::start(
        running.dir.path(),
        "<b>name",
        &[
            ("<img src=x onerror=throw(1)>.txt", 300_000),
            ("b.bin", 200_000),
        ],
    )
    .await;
    let Some(mut browser) = browse(&running).await else {
        return;
    };
    let (metainfo, downloads) = (seeder.metainfo.clone(), running.downloads());
    let steps = tokio::task::spawn_blocking(move || {
        examine(&mut browser, "the empty list");
        drop_file(&mut browser, &metainfo);
        browser.until("document.querySelector('dialog[open] .names')?.textContent === 'a.torrent'");
        examine(&mut browser, "the dialog");
        browser.evaluate("document.querySelector('dialog .check input').click()");
        browser.evaluate("document.querySelector('dialog [type=submit]').click()");
        browser.until("document.querySelectorAll('.rows-body [role=row]').length === 1");
        browser.until_said("Added <b>name");

        // The list is worked by keyboard.
        browser.evaluate("document.querySelector('[role=grid]').focus()");
        browser.press("ArrowDown", 40, 1);
        browser.until(
            "document.querySelector('[aria-selected=true] .c-name').textContent === '<b>name'",
        );
        browser.press("Enter", 13, 1);
        browser.until("document.querySelector('h1').textContent === '<b>name'");

        // One file is left out, the other one comes first.
        browser.evaluate("document.querySelector('.tabs a[href$=files]').click()");
        browser.until("document.querySelectorAll('.files tbody tr').length === 2");
        browser.until("document.querySelector('.files .path').textContent === '<b>name/<img src=x onerror=throw(1)>.txt'");
        examine(&mut browser, "the files");
        let files = "[...document.querySelectorAll('.files tbody tr')]";
        browser.evaluate(&format!("{files}[1].querySelector('input').click()"));
        browser.until("document.querySelector('.card header p').textContent.startsWith('1 of 2 files are downloaded: 300 kB')");
        choose(
            &mut browser,
            &format!("{files}[0].querySelector('select')"),
            "high",
        );
        browser.until_said("<b>name/<img src=x onerror=throw(1)>.txt: high");

        // A limit by slider: steps of a sixteenth of a factor of ten.
        browser.evaluate("document.querySelector('.tabs a[href$=overview]').click()");
        browser.until("document.querySelectorAll('input[type=range]').length === 2");
        browser.until("document.querySelector('.limit-slider output').textContent === 'no limit'");
        browser.evaluate("document.querySelector('input[type=range]').focus()");
        browser.press("ArrowLeft", 37, 1);
        browser
            .until("document.querySelector('.limit-slider output').textContent === '6.9 Gbit/s'");
        browser.until_said("Received: 6.9 Gbit/s");

        // Limits of seeding, and labels.
        let seeding = "[...document.querySelectorAll('main select')]";
        choose(&mut browser, &format!("{seeding}[0]"), "own");
        browser.until_said("Seed up to a ratio: 2 × its size");
        choose(&mut browser, &format!("{seeding}[1]"), "unlimited");
        browser.until_said("Seed for a time: no limit");
        click(&mut browser, "Labels …");
        browser.until("document.querySelector('dialog[open] input')");
        examine(&mut browser, "the dialog of labels");
        browser.evaluate("document.querySelector('dialog input').value = ' <i>, maps '");
        click(&mut browser, "Set");
        browser.until_said("<b>name: labels <i>, maps");
        browser.until("document.querySelector('.facts').textContent.includes('<i>, maps')");

        click(&mut browser, "Start");
        browser.until("document.querySelector('.detail .pill').textContent === 'seeding'");
        browser.until("document.querySelector('.pieces .whole')");
        browser.until("document.querySelector('.graph path.down').getAttribute('d').length > 4");
        browser.until("document.querySelector('.detail .number').textContent === '100 %'");
        examine(&mut browser, "the overview");
        browser.evaluate("document.querySelector('.tabs a[href$=trackers]').click()");
        browser.until("document.querySelector('.table .pill')?.textContent === 'working'");
        examine(&mut browser, "the trackers");
        browser.evaluate("document.querySelector('.tabs a[href$=peers]').click()");
        browser.until("document.querySelector('.card header p').textContent.includes('peer')");
        examine(&mut browser, "the peers");
        assert_eq!(
            browser.evaluate("document.querySelectorAll('img[src=x], main b:not([class])').length"),
            0
        );
        let file = downloads.join("<b>name/<img src=x onerror=throw(1)>.txt");
        assert_eq!(fs::metadata(&file).unwrap().len(), 300_000);
        assert!(!downloads.join("<b>name/b.bin").exists());

        // Escape leads back; Delete removes.
        browser.press("Escape", 27, 1);
        browser.until("document.querySelector('[aria-selected=true]')");
        let labels = "[...document.querySelectorAll('.find select')][1]";
        assert_eq!(
            browser.evaluate(&format!("[...{labels}.options].map((one) => one.value)")),
            json!(["", "<i>", "maps"])
        );
        choose(&mut browser, labels, "maps");
        browser.until("document.querySelectorAll('.rows-body [role=row]').length === 1");
        browser.evaluate("document.querySelector('[role=grid]').focus()");
        browser.press("Delete", 46, 1);
        browser.until("document.querySelector('dialog[open]')?.textContent.includes('<b>name')");
        browser.evaluate("document.querySelector('dialog input').click()");
        click(&mut browser, "Remove");
        browser.until("document.querySelector('.rows + .empty:not([hidden])')");
        assert!(!file.exists());
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_pasted_and_all_torrents_limited() {
    let running = Running::start(Vec::new()).await;
    let Some(mut browser) = browse(&running).await else {
        return;
    };
    let steps = tokio::task::spawn_blocking(move || {
        let link = format!("magnet:?xt=urn:btih:{}&dn=one", "1".repeat(40));
        browser.evaluate(&format!(
            "(() => {{
                const data = new DataTransfer();
                data.setData('text/plain', {link:?});
                document.body.dispatchEvent(new ClipboardEvent('paste', {{ clipboardData: data, bubbles: true, cancelable: true }}));
            }})()"
        ));
        browser
            .until("document.querySelector('dialog[open] textarea').value.startsWith('magnet:')");
        browser.evaluate("document.querySelector('dialog textarea').value += '\\nftp://no.link/'");
        browser.evaluate("document.querySelector('dialog [type=submit]').click()");
        // What is wrong is said; what was right is there.
        browser.until("document.querySelector('dialog [role=alert]').textContent.includes('ftp')");
        click(&mut browser, "Cancel");
        browser.until("document.querySelector('.rows-body .c-name')?.textContent === 'one'");
        click(&mut browser, "Limits");
        browser.until("document.querySelector('dialog output').textContent === 'no limit'");
        examine(&mut browser, "the limits");
        browser.evaluate("document.querySelectorAll('dialog input[type=range]')[1].focus()");
        browser.press("Home", 36, 1);
        browser.until_said("Sent: 80 kbit/s");
        browser.until(
            "document.querySelector('dialog .check').textContent.includes('400 kbit/s received')",
        );
        browser.evaluate("document.querySelector('dialog input[type=checkbox]').click()");
        browser.until_said("The alternative limits hold");
        assert_eq!(browser.problems, Vec::<String>::new());
        browser
    });
    let _browser = steps.await.unwrap();
    let bounds = running.client.bounds().await.unwrap();
    assert_eq!(bounds.all.rates.upload.in_force(), Some(80_000));
    assert_eq!(bounds.all.rates.download.in_force(), None);
    assert!(bounds.all.alternative.holds);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_torrents_are_listed_by_few_elements() {
    let running = Running::start(daemon::stopped(10_000)).await;
    let Some(mut browser) = browse(&running).await else {
        return;
    };
    let steps = tokio::task::spawn_blocking(move || {
        let rows = "document.querySelectorAll('.rows-body [role=row]').length";
        browser.until(&format!("{rows} > 5"));
        let few = format!("{rows} < 60");
        assert_eq!(browser.evaluate(&few), true);
        assert_eq!(
            browser.evaluate("document.querySelector('[role=grid]').ariaRowCount"),
            "10001"
        );
        examine(&mut browser, "the list");
        browser.evaluate("document.querySelector('[role=grid]').focus()");
        let current = "document.getElementById(document.querySelector('[role=grid]').getAttribute('aria-activedescendant')).querySelector('.c-name').textContent";
        for (key, code, expected) in [
            ("End", 35, "torrent 9999"),
            ("ArrowUp", 38, "torrent 9998"),
            ("Home", 36, "torrent 0"),
            ("ArrowDown", 40, "torrent 1"),
        ] {
            browser.press(key, code, 1);
            browser.until(&format!("{current} === {expected:?}"));
            assert_eq!(browser.evaluate(&few), true, "{key}");
        }
        // Wherever it is scrolled to, the rows that are seen are there, and no others.
        let filled = "(async () => {
            const grid = document.querySelector('[role=grid]');
            for (let turn = 0; turn < 40; turn += 1) {
                grid.scrollTop = (turn * 7919 * 44) % grid.scrollHeight;
                await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
                const box = grid.getBoundingClientRect();
                for (const y of [box.top + 60, (box.top + box.bottom) / 2, box.bottom - 20]) {
                    if (!document.elementFromPoint(box.left + 200, y).closest('[role=row]')) return `no row at ${grid.scrollTop}`;
                }
                if (document.querySelectorAll('.rows-body [role=row]').length > 60) return 'too many rows';
            }
            return '';
        })()";
        assert_eq!(browser.evaluate(filled), "");
        // Search from anywhere.
        browser.press("/", 191, 1);
        browser.until("document.activeElement.type === 'search'");
        browser.type_text("torrent 777");
        browser.until(
            "document.querySelector('.head [role=status]').textContent === '19 of 10,000 torrents'",
        );
        assert_eq!(browser.evaluate(rows), 19);
        choose(
            &mut browser,
            "document.querySelectorAll('.find select')[0]",
            "seeding",
        );
        browser.until("document.querySelector('.empty:not([hidden])')?.textContent === 'No torrent is as searched.'");
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    running.end().await;
}

/// What the API says of a peer with two paths, and of one by IP.
const PEERS: &str = r#"{ "peers": [
    { "address": "1-ff00:0:112,10.0.2.2:6881", "client": "hawser/0.1.0", "done": 0.755, "trouble": null,
      "flags": { "incoming": false, "interested": false, "served": false, "interesting": true, "serves": true, "upload_only": true },
      "download_rate": 31400000, "upload_rate": 0, "paths": [
        { "fingerprint": "aa", "state": "active", "reason": "disjoint from all others", "error": null,
          "hops": [ { "isd_as": "1-ff00:0:111", "ingress": null, "egress": 1 }, { "isd_as": "1-ff00:0:110", "ingress": 2, "egress": 3 },
                    { "isd_as": "1-ff00:0:112", "ingress": 4, "egress": null } ],
          "download_rate": 21400000, "upload_rate": 0, "downloaded_bytes": 48000000, "uploaded_bytes": 0, "rtt_ms": 12.3 },
        { "fingerprint": "bb", "state": "active", "reason": "disjoint from all others", "error": null,
          "hops": [ { "isd_as": "1-ff00:0:111", "ingress": null, "egress": 5 }, { "isd_as": "1-ff00:0:120", "ingress": 6, "egress": 7 },
                    { "isd_as": "1-ff00:0:130", "ingress": 8, "egress": 9 }, { "isd_as": "1-ff00:0:112", "ingress": 10, "egress": null } ],
          "download_rate": 10000000, "upload_rate": 0, "downloaded_bytes": 21000000, "uploaded_bytes": 0, "rtt_ms": 20.1 } ] },
    { "address": "192.0.2.7:6881", "client": null, "done": null, "flags": null, "trouble": "no answer",
      "download_rate": 0, "upload_rate": 0, "paths": [] } ] }"#;

/// What the API of a daemon says of transfers.
const TRANSFERS: &str = r#"{ "transfers": [
    { "id": 12, "user": "alice", "source": "/data/telescope/night-0411", "server": "1-ff00:0:112,10.0.2.1:31000", "destination": "2026/night-0411", "priority": 0,
      "state": "done", "failed_attempts": 0, "progress": { "bytes": 1190000000000, "verified_bytes": 1190000000000, "existing_bytes": 0, "files": 4120 },
      "submitted": 1790000000, "started": 1790000005, "ended": 1790011200 },
    { "id": 13, "user": "alice", "source": "/data/telescope/night-0412", "server": "1-ff00:0:112,10.0.2.1:31000", "destination": "2026/night-0412", "priority": 0,
      "state": "running", "failed_attempts": 0, "progress": { "bytes": 1204000000000, "verified_bytes": 511700000000, "existing_bytes": 0, "files": 4388 },
      "submitted": 1790020000, "started": 1790020002 },
    { "id": 14, "user": "bob", "source": "/data/genome/assembly-v4.tar", "server": "2-ff00:0:210,[fd00::2]:31000", "destination": "", "priority": 5,
      "state": "waiting", "until": 1790021300, "failed_attempts": 2, "failing_since": 1790021000, "error": { "kind": "timeout", "text": "2-ff00:0:210,[fd00::2]:31000 does not answer" },
      "progress": { "bytes": 96400000000, "verified_bytes": 8600000000, "existing_bytes": 0, "files": 1 }, "submitted": 1790020400, "started": 1790020401 },
    { "id": 15, "user": "bob", "source": "/data/genome/raw", "server": "2-ff00:0:210,[fd00::2]:31000", "destination": "", "priority": 0,
      "state": "queued", "failed_attempts": 0, "progress": { "bytes": 0, "verified_bytes": 0, "existing_bytes": 0, "files": 0 }, "submitted": 1790020500 },
    { "id": 11, "user": "bob", "source": "/data/genome/<b>old", "server": "1-ff00:0:112,10.0.2.1:31000", "destination": "", "priority": 0,
      "state": "failed", "failed_attempts": 1, "error": { "kind": "refused", "text": "the server does not allow the key of this host" },
      "progress": { "bytes": 0, "verified_bytes": 0, "existing_bytes": 0, "files": 0 }, "submitted": 1789990000, "started": 1789990001, "ended": 1789990002 } ] }"#;

#[tokio::test(flavor = "multi_thread")]
async fn every_view_fits_phones_in_light_and_dark() {
    let running = Running::start(daemon::scene()).await;
    let Some(mut browser) = browse(&running).await else {
        return;
    };
    let steps = tokio::task::spawn_blocking(move || {
        // Paths need a network of several ASes: what the page makes of them does not. Their rates change, and
        // the clock that they are drawn by runs fast.
        browser.evaluate(&format!(
            "(() => {{
                const real = window.fetch;
                let turn = 0;
                performance.now = () => 4000 * turn;
                const peers = () => {{
                    turn += 1;
                    const all = JSON.parse({PEERS:?});
                    const [first] = all.peers;
                    first.paths.forEach((path, at) => {{ path.download_rate *= 0.7 + 0.3 * Math.sin(turn / (2 + at)); }});
                    first.download_rate = first.paths.reduce((sum, path) => sum + path.download_rate, 0);
                    return JSON.stringify(all);
                }};
                window.fetch = (path, options) => String(path).endsWith('/peers')
                    ? Promise.resolve(new Response(peers())) : String(path).endsWith('/transfers')
                    ? Promise.resolve(new Response({TRANSFERS:?})) : real(path, options);
            }})()"
        ));
        let hash = daemon::hash(3);
        for (name, width, height, colours) in [
            ("light", 1280, 860, "light"),
            ("dark", 1280, 860, "dark"),
            ("phone", 360, 740, "light"),
            ("phone-dark", 360, 740, "dark"),
        ] {
            browser.screen(width, height, colours);
            for (view, shown) in [
                ("", "document.querySelector('.rows-body [role=row]')"),
                ("overview", "document.querySelector('.graph path')"),
                ("files", "document.querySelector('.files')"),
                // Of the peer and of both paths to it, once they were asked for some times.
                (
                    "peers",
                    "document.querySelectorAll('.hops').length === 2 && document.querySelectorAll('.trend').length === 3
                        && document.querySelector('.trend .down').getAttribute('d').split('L').length > 6",
                ),
                ("trackers", "document.querySelector('.table')"),
                ("settings", "document.querySelector('[type=time]').value"),
                (
                    "transfers",
                    "document.querySelectorAll('.transfers tbody tr').length === 5",
                ),
            ] {
                let address = match view {
                    "" | "settings" | "transfers" => format!("#/{view}"),
                    view => format!("#/torrent/{hash}/{view}"),
                };
                browser.evaluate(&format!("location.hash = {address:?}"));
                browser.until(shown);
                assert_eq!(browser.evaluate(FITS), true, "{view} at {width}");
                examine(&mut browser, &format!("{view} in {name}"));
                let view = if view.is_empty() { "list" } else { view };
                browser.shot(&format!("torrents-{view}-{name}"), width < 500);
            }
        }
        browser.evaluate("location.hash = '#/transfers'");
        let ids = "[...document.querySelectorAll('.transfers tbody tr')].map((one) => one.firstChild.textContent)";
        browser.until(&format!("{ids}.length === 5"));
        assert_eq!(browser.evaluate(ids), json!(["13", "14", "15", "12", "11"]));
        browser.evaluate(&format!("location.hash = '#/torrent/{hash}/peers'"));
        browser.until("document.querySelector('.hops')");
        let hops = "[...document.querySelector('.hops').children].map((one) => [...one.children].map((it) => it.textContent).join(' '))";
        assert_eq!(
            browser.evaluate(hops),
            json!(["1-ff00:0:111 1", "2 1-ff00:0:110 3", "4 1-ff00:0:112"])
        );
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    running.end().await;
}

#[test]
fn files_of_the_page_are_short() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/assets");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < 600, "{}: {lines} lines", path.display());
    }
}

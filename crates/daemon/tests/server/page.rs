//! The page in headless Chromium: transfers beside torrents, by one session.

#[allow(dead_code, reason = "other pages need more of it")]
#[path = "../../../web/tests/common/browser.rs"]
mod browser;

use serde_json::Value;

use super::{CONFIG, SUBMISSION, folder, start};
use browser::Browser;

#[tokio::test(flavor = "multi_thread")]
async fn transfers_are_submitted_changed_and_cancelled_by_the_page() {
    let Some(program) = browser::program() else {
        eprintln!("skipped: Chromium is not installed");
        return;
    };
    let folder = folder();
    let daemon = start(folder.path(), CONFIG).await;
    let (status, _) = daemon
        .ask("POST /api/v1/transfers", "alice", SUBMISSION)
        .await;
    assert_eq!(status, 201);
    let address = format!("http://{}/#/transfers", daemon.address);
    let token = std::fs::read_to_string(folder.path().join("state/token")).unwrap();
    let source = folder.path().join("data/run").display().to_string();
    let steps = tokio::task::spawn_blocking(move || {
        let mut browser = Browser::start(&program);
        browser.open(&address);
        browser.until("document.activeElement?.type === 'password'");
        browser.type_text(token.trim());
        browser.press("Enter", 13, 1);
        // The owner sees the transfers of all users.
        browser.until("document.querySelectorAll('.transfers tbody tr').length === 1");
        browser.until("document.querySelector('.transfers tbody').textContent.includes('to 1-ff00:0:111,10.0.2.1:31000')");
        browser.until("document.querySelector('[aria-current=page]').textContent === 'Transfers'");

        // What the daemon refuses is said in the dialog.
        let fields = "[...document.querySelectorAll('dialog input')]";
        browser.evaluate("document.querySelector('.head button').click()");
        browser.until("document.querySelector('dialog[open]')");
        browser.evaluate(&format!(
            "(() => {{ {fields}[0].value = {source:?}; {fields}[1].value = 'nowhere'; }})()"
        ));
        browser.evaluate("document.querySelector('dialog [type=submit]').click()");
        browser
            .until("document.querySelector('dialog [role=alert]').textContent.includes('server')");
        browser.evaluate(&format!(
            "(() => {{ {fields}[1].value = '1-ff00:0:111,[10.0.2.1]:31000'; {fields}[2].value = '<b>there'; {fields}[3].value = '5'; }})()"
        ));
        browser.evaluate("document.querySelector('dialog [type=submit]').click()");
        browser.until_said("Transfer 2 is queued");
        browser.until("document.querySelectorAll('.transfers tbody tr').length === 2");
        let rows = "[...document.querySelectorAll('.transfers tbody tr')]";
        browser.until(&format!(
            "{rows}[0].textContent.includes('owner,') && {rows}[0].textContent.includes('as <b>there')"
        ));

        // A priority, and the end of one.
        browser.evaluate(&format!(
            "(() => {{ const one = {rows}[1].querySelector('input'); one.value = '-7'; one.dispatchEvent(new Event('change')); }})()"
        ));
        browser.until_said("Transfer 1: priority -7");
        browser.until(&format!("{rows}[1].firstChild.textContent === '1'"));
        browser.evaluate(&format!("{rows}[0].querySelector('button').click()"));
        browser.until("document.querySelector('dialog[open]')");
        browser.evaluate("document.querySelector('dialog .danger').click()");
        browser.until(&format!(
            "{rows}[1].querySelector('.pill').textContent === 'cancelled'"
        ));
        assert_eq!(
            browser.evaluate(&format!("{rows}[1].querySelector('button').hidden")),
            true
        );
        browser.evaluate("location.hash = '#/'");
        browser.until("document.querySelector('[role=grid]')");
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    let (_, answer) = daemon.ask("GET /api/v1/transfers", "alice", "").await;
    let transfers: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(transfers["transfers"][0]["priority"], -7);
    daemon.end().await;
}

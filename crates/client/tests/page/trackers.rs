//! Trackers on the page of a torrent.

use super::*;

const ROWS: &str = "[...document.querySelectorAll('.table tbody tr')]";

#[tokio::test(flavor = "multi_thread")]
async fn trackers_are_added_changed_asked_again_and_removed() {
    let running = Running::start(Vec::new()).await;
    let seeder = Seeder::start(running.dir.path(), "one", &[("a", 50_000)]).await;
    let Some(mut browser) = browse(&running).await else {
        return;
    };
    let metainfo = seeder.metainfo.clone();
    let steps = tokio::task::spawn_blocking(move || {
        drop_file(&mut browser, &metainfo);
        browser.until("document.querySelector('dialog[open] .names')");
        browser.evaluate("document.querySelector('dialog .check input').click()");
        browser.evaluate("document.querySelector('dialog [type=submit]').click()");
        browser.until("document.querySelector('.rows-body a')");
        browser
            .evaluate("location.hash = document.querySelector('.rows-body a').hash + '/trackers'");
        browser.until(&format!("{ROWS}.length === 1"));
        let text = |row: usize| format!("{ROWS}[{row}].textContent");
        browser.until(&format!("{}.includes('none yet')", text(0)));
        // One that does not run cannot be announced.
        let ask = button("Ask again");
        assert_eq!(browser.evaluate(&format!("{ask}.disabled")), true);
        click(&mut browser, "Start");
        browser.until(&format!("/working.* s ago.*in \\d+ min/.test({})", text(0)));
        click(&mut browser, "Ask again");
        browser.until_said("The trackers are asked again as soon as they allow it");

        // What is wrong with a URL is said by the API, and the dialog stays.
        click(&mut browser, "Add trackers …");
        browser.until("document.activeElement.localName === 'textarea'");
        examine(&mut browser, "the dialog of trackers");
        browser.type_text("ftp://no.tracker/");
        browser.evaluate("document.querySelector('dialog [type=submit]').click()");
        browser.until("document.querySelector('dialog [role=alert]').textContent.includes('ftp')");
        let refused = "http://127.0.0.1:1/announce";
        browser.evaluate(&format!(
            "document.querySelector('dialog textarea').value = {refused:?}"
        ));
        browser.evaluate("document.querySelector('dialog [type=submit]').click()");
        browser.until_said(&format!("Added {refused}"));
        browser.until(&format!("{ROWS}.length === 2"));
        browser.until(&format!("/failing.*failed \\d+ s ago/.test({})", text(1)));
        browser.until(&format!(
            "{ROWS}[1].querySelector('.sub.bad').textContent.length > 10"
        ));
        browser.screen(390, 800, "light");
        assert_eq!(browser.evaluate(FITS), true);
        examine(&mut browser, "trackers that fail");
        browser.screen(1280, 860, "light");

        // Both in one tier, then one alone.
        let urls = browser.evaluate(&format!(
            "{ROWS}.map((row) => row.querySelector('.path').firstChild.textContent)"
        ));
        let working = urls[0].as_str().unwrap().to_owned();
        click(&mut browser, "Change tiers …");
        browser.until(&format!(
            "document.querySelector('dialog textarea').value === {:?}",
            format!("{working}\n\n{refused}")
        ));
        browser.evaluate(&format!(
            "document.querySelector('dialog textarea').value = {:?}",
            format!("{refused}\n{working}\n")
        ));
        browser.evaluate("document.querySelector('dialog [type=submit]').click()");
        browser.until_said("The trackers are changed");
        let tier =
            |row: usize| format!("{ROWS}[{row}].querySelector('[data-name=Tier]').textContent");
        browser.until(&format!("{} === '0' && {} === '0'", tier(0), tier(1)));
        browser.evaluate(&format!(
            "document.querySelector('[aria-label={:?}]').click()",
            format!("Remove {refused}")
        ));
        click(&mut browser, "Remove the tracker");
        browser.until_said(&format!("Removed {refused}"));
        browser.until(&format!("{ROWS}.length === 1"));
        assert_eq!(browser.problems, Vec::<String>::new());
        working
    });
    let working = steps.await.unwrap();
    let views = running.client.views().await.unwrap();
    assert_eq!(views[0].record.settings.trackers, Some(vec![vec![working]]));
    running.end().await;
}

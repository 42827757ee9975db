//! Files of a torrent on the page.

use super::*;

const ROWS: &str = "[...document.querySelectorAll('.files tbody tr')]";

#[tokio::test(flavor = "multi_thread")]
async fn files_are_found_chosen_together_and_renamed() {
    let running = Running::start(Vec::new()).await;
    let files = [("a.txt", 1000), ("b.bin", 20_000), ("c.bin", 30_000)];
    let seeder = Seeder::start(running.dir.path(), "set", &files).await;
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
        browser.evaluate("location.hash = document.querySelector('.rows-body a').hash + '/files'");
        browser.until(&format!("{ROWS}.length === 3"));

        // What is done with all is done with those that are found.
        browser.evaluate(&format!("{}.focus()", labelled("Search")));
        browser.type_text("SET bin");
        browser.until(&format!("{ROWS}.length === 2"));
        choose(&mut browser, &labelled("Priority of all"), "low");
        browser.until_said("The 2 files have the priority low");
        click(&mut browser, "Skip all");
        browser.until_said("The 2 files are skipped");
        browser.until("document.querySelector('.card header p').textContent === '1 of 3 files are downloaded: 1 kB'");
        browser.type_text(" nothing");
        browser.until("document.querySelector('.files + .empty:not([hidden])')");
        browser.evaluate(&format!(
            "(() => {{ const one = {}; one.value = ''; one.dispatchEvent(new Event('input')); }})()",
            labelled("Search")
        ));
        browser.until(&format!("{ROWS}.length === 3"));
        click(&mut browser, "Download all");
        browser.until_said("All files are downloaded");
        browser.evaluate(&format!(
            "{}.click()",
            labelled("Fetch in the order of the content")
        ));
        browser.until_said("The content is fetched from its beginning to its end");

        // A file, then the folder that it is in; what is refused is said in the dialog.
        browser.evaluate("document.querySelector('[aria-label=\"Rename set/b.bin\"]').click()");
        browser.until("document.querySelector('dialog[open]')");
        examine(&mut browser, "the dialog of renaming");
        browser.until(
            "getSelection().toString() === 'b.bin' || document.activeElement.value === 'b.bin'",
        );
        browser.type_text("c.bin");
        browser.press("Enter", 13, 1);
        browser.until("document.querySelector('dialog [role=alert]').textContent.length > 10");
        let name = "[...document.querySelectorAll('dialog input')].at(-1)";
        browser.evaluate(&format!("{name}.value = '<b>d'"));
        browser.evaluate("document.querySelector('dialog [type=submit]').click()");
        browser.until_said("set/b.bin: renamed to <b>d");
        browser.until(&format!(
            "{ROWS}[1].querySelector('.path').textContent === 'set/<b>d'"
        ));
        browser.evaluate("document.querySelector('[aria-label=\"Rename set/a.txt\"]').click()");
        browser.until("document.querySelector('dialog[open]')");
        choose(
            &mut browser,
            "document.querySelector('dialog select')",
            "set",
        );
        browser.until(&format!("{name}.value === 'set'"));
        browser.evaluate(&format!("{name}.value = 'other'"));
        browser.evaluate("document.querySelector('dialog [type=submit]').click()");
        browser.until_said("set: renamed to other");
        browser.until(&format!(
            "{ROWS}.every((row) => row.querySelector('.path').textContent.startsWith('other/'))"
        ));
        browser.screen(390, 800, "light");
        assert_eq!(browser.evaluate(FITS), true);
        examine(&mut browser, "the files that are renamed");
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    let views = running.client.views().await.unwrap();
    let choice = &views[0].record.settings.files;
    let low = hawser_client::FilePriority::Low;
    assert!(choice.is_sequential && choice.wish(1).is_wanted && choice.wish(2).priority == low);
    running.end().await;
}

//! Limits of a torrent on the page.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_torrent_has_limits_of_seeding_and_peers_and_is_put_into_a_group() {
    let running = Running::start(daemon::stopped(2)).await;
    let Some(mut browser) = browse(&running).await else {
        return;
    };
    let hash = daemon::hash(1);
    let steps = tokio::task::spawn_blocking(move || {
        browser.evaluate(&format!("location.hash = '#/torrent/{hash}'"));
        let group = labelled("Bandwidth group");
        browser.until(&group);
        choose(
            &mut browser,
            &labelled("Seed until nothing was sent for"),
            "own",
        );
        browser.until_said("Seed until nothing was sent for: 30 minutes");
        choose(&mut browser, &labelled("Peers at most"), "own");
        browser.until_said("Peers at most: 50 peers");
        // A wrong number is not sent, and one that is refused is not shown as if it held.
        let number = "document.querySelector('[aria-label=\"Peers at most: peers\"]')";
        browser.evaluate(&format!(
            "{number}.value = '-1'; {number}.dispatchEvent(new Event('change'))"
        ));
        assert_eq!(browser.evaluate(&format!("{number}.validity.valid")), false);

        // A group is made here, and chosen from then on.
        browser.evaluate(&format!(
            "(() => {{ const one = {group}; one.selectedIndex = one.options.length - 1; one.dispatchEvent(new Event('change')); }})()"
        ));
        browser.until("document.querySelector('dialog[open] input')");
        examine(&mut browser, "the dialog of a new group");
        browser.type_text("<i>slow");
        browser.press("Enter", 13, 1);
        browser.until_said("Bandwidth group: <i>slow");
        browser.until(&format!("{group}.value === '<i>slow'"));
        browser.evaluate(&format!(
            "{}.click()",
            labelled("Neither the limits of its group nor those of all torrents hold for it")
        ));
        browser.until_said("Only its own limits hold");
        choose(
            &mut browser,
            &labelled("Share of rates that are limited"),
            "high",
        );
        browser.until_said("Share of rates: more than others");
        examine(&mut browser, "the limits of a torrent");
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    let views = running.client.views().await.unwrap();
    let settings = &views[1].record.settings;
    assert_eq!(settings.seeding.idle, hawser_client::Choice::Own(1800));
    assert_eq!(format!("{:?}", settings.priority), "High");
    assert_eq!(
        (settings.max_peers, &*settings.group, settings.is_exempt),
        (Some(50), "<i>slow", true)
    );
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_torrents_get_limits_together_and_rates_are_set_exactly() {
    let running = Running::start(daemon::stopped(6)).await;
    let Some(mut browser) = browse(&running).await else {
        return;
    };
    let steps = tokio::task::spawn_blocking(move || {
        browser.until("document.querySelectorAll('.rows-body [role=row]').length === 6");
        let limits = button("Limits …");
        assert_eq!(browser.evaluate(&format!("{limits}.disabled")), true);
        browser.evaluate("document.querySelector('[role=grid]').focus()");
        let select = json!({ "type": "rawKeyDown", "key": "a", "code": "KeyA", "windowsVirtualKeyCode": 65, "modifiers": 2 });
        browser.call("Input.dispatchKeyEvent", select);
        browser.until("document.querySelectorAll('[aria-selected=true]').length === 6");
        click(&mut browser, "Limits …");
        browser.until(
            "document.querySelector('dialog[open] h2').textContent === 'Limits of 6 torrents'",
        );
        examine(&mut browser, "the limits of several");
        browser.evaluate("document.querySelector('[aria-label=\"Exact … (Received)\"]').click()");
        browser.until("document.querySelectorAll('dialog[open]').length === 2");
        browser.type_text("12.5");
        browser.press("Enter", 13, 1);
        browser.until_said("Received: 12.5 Mbit/s");
        browser.until("document.querySelectorAll('dialog[open]').length === 1");
        browser.until("document.querySelector('dialog output').textContent === '12.5 Mbit/s'");
        choose(&mut browser, &labelled("Seed up to a ratio"), "own");
        browser.until_said("Seed up to a ratio: 2 × its size");
        browser.screen(390, 800, "light");
        assert_eq!(browser.evaluate(FITS), true);
        assert_eq!(
            browser.evaluate("(() => { const box = document.querySelector('dialog'); return box.scrollWidth <= box.clientWidth; })()"),
            true
        );
        click(&mut browser, "Close");
        browser.until("!document.querySelector('dialog')");
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    for view in running.client.views().await.unwrap() {
        let settings = &view.record.settings;
        assert_eq!(settings.rates.download.in_force(), Some(12_500_000));
        assert_eq!(settings.seeding.ratio, hawser_client::Choice::Own(2.0));
    }
    running.end().await;
}

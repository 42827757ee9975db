//! Settings of all torrents on the page.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_all_torrents_hold_at_once_and_refusals_are_explained() {
    let running = Running::start(daemon::stopped(1)).await;
    let Some(mut browser) = browse(&running).await else {
        return;
    };
    let folder = running.dir.path().join("other").display().to_string();
    let other = folder.clone();
    let steps = tokio::task::spawn_blocking(move || {
        browser.evaluate("location.hash = '#/settings'");
        browser.until("document.querySelector('h1').textContent === 'Settings'");
        browser.until(&format!(
            "{}.value === '1500'",
            labelled("Peers of each torrent at most")
        ));

        // A group, and its limits.
        click(&mut browser, "New group …");
        browser.until("document.querySelector('dialog[open] input')");
        browser.type_text("night");
        browser.press("Enter", 13, 1);
        browser.until_said("Made the group night");
        browser.until("document.querySelector('.group h3').textContent === 'night'");
        browser.evaluate("document.querySelector('.group input[type=range]').focus()");
        browser.press("Home", 36, 1);
        browser.until_said("night, received: 80 kbit/s");

        // Alternative limits by the clock.
        browser.evaluate(&format!(
            "{}.click()",
            labelled("Switch them at these times")
        ));
        browser.until_said("The alternative limits are switched by the clock");
        let begin = labelled("On from");
        browser.evaluate(&format!(
            "(() => {{ const one = {begin}; one.value = '21:30'; one.dispatchEvent(new Event('change')); }})()"
        ));
        browser.until_said("On from: 21:30");
        browser.evaluate(&format!("{}.click()", labelled("Sunday")));
        browser.until_said("Switched on: monday, tuesday, wednesday, thursday, friday, saturday");

        // The queue, and how peers are reached.
        let downloads = "document.querySelector('[aria-label=\"Downloads at once: torrents\"]')";
        browser.until(&format!("{downloads}.value === '5'"));
        browser.evaluate(&format!(
            "{downloads}.value = '2'; {downloads}.dispatchEvent(new Event('change'))"
        ));
        browser.until_said("Downloads at once: 2 torrents");
        choose(
            &mut browser,
            &labelled("Encrypt connections with IP peers"),
            "require",
        );
        browser.until_said("Encryption: Always: peers that cannot are refused");
        choose(&mut browser, &labelled("Reach IP peers over"), "tcp");
        browser.until_said("IP peers: TCP alone");

        // What is refused is said beside the field, in the words of the API, and is not shown as if it held.
        let dht = labelled("Search the DHT");
        browser.evaluate(&format!("{dht}.click()"));
        browser.until(&format!(
            "{dht}.closest('.field').querySelector('[role=alert]').textContent === 'dht: the daemon was started without: start it with --find ...,dht' && !{dht}.checked"
        ));
        let field = labelled("Folder for downloads");
        let write = |browser: &mut Browser, text: &str| {
            browser.evaluate(&format!(
                "(() => {{ const one = {field}; one.value = {text:?}; one.dispatchEvent(new Event('change')); }})()"
            ));
        };
        write(&mut browser, "relative");
        browser.until(&format!(
            "{field}.closest('.main-part').querySelector('[role=alert]').textContent.includes('not absolute') && {field}.value !== 'relative'"
        ));
        write(&mut browser, &other);
        browser.until_said(&format!("Folder for downloads: {other}"));
        let unfinished = labelled("Folder for unfinished content");
        browser.evaluate(&format!(
            "(() => {{ const one = {unfinished}; one.value = '/unfinished'; one.dispatchEvent(new Event('change')); }})()"
        ));
        browser.until_said("Folder for unfinished content: /unfinished");
        browser.until("document.querySelector('.facts').textContent.includes('--tcp')");
        examine(&mut browser, "the settings");
        browser.screen(390, 800, "dark");
        assert_eq!(browser.evaluate(FITS), true);
        examine(&mut browser, "the settings on a phone");
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    let all = running.client.bounds().await.unwrap().all;
    assert_eq!(all.queue.downloads.in_force(), Some(2));
    assert_eq!(all.download_dir, Some(folder.into()));
    assert_eq!(
        all.incomplete.folder.as_deref(),
        Some("/unfinished".as_ref())
    );
    let schedule = all.alternative.schedule;
    // The bit of Sunday is the lowest one.
    assert_eq!(
        (schedule.is_on, schedule.begin, schedule.days),
        (true, 21 * 60 + 30, 0b111_1110)
    );
    let groups: Vec<_> = all.groups.iter().collect();
    assert_eq!(groups.len(), 1);
    assert_eq!(
        (&**groups[0].0, groups[0].1.rates.download.in_force()),
        ("night", Some(80_000))
    );
    let network = &all.network;
    assert_eq!(network.transports.unwrap().to_string(), "tcp");
    assert_eq!(network.encryption.unwrap().to_string(), "require");
    running.end().await;
}

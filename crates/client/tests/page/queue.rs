//! The queue on the page.

use super::*;

/// Moves every choice of six torrents in every way, and returns what is wrong with where they are then.
const MOVES: &str = "(async () => {
    const { moves } = await import('/assets/queue.js');
    const total = 6;
    for (let bits = 1; bits < 1 << total; bits += 1) {
        const chosen = [...Array(total).keys()].filter((at) => bits >> at & 1);
        const rest = [...Array(total).keys()].filter((at) => !chosen.includes(at));
        for (const to of ['top', 'up', 'down', 'bottom']) {
            const queue = [...Array(total).keys()];
            for (const step of moves(chosen, total, to)) {
                queue.splice(queue.indexOf(chosen[step.at]), 1);
                queue.splice(step.to, 0, chosen[step.at]);
            }
            const place = (at) => queue.indexOf(at);
            const ordered = (all) => all.every((at, i) => i === 0 || place(all[i - 1]) < place(at));
            const far = { top: (at, i) => place(at) === i, bottom: (at, i) => place(at) === total - chosen.length + i,
                up: (at, i) => place(at) === Math.max(i, at - 1), down: (at, i) => place(at) === Math.min(total - chosen.length + i, at + 1) }[to];
            if (!ordered(chosen) || !ordered(rest) || !chosen.every(far)) return `${chosen} ${to}: ${queue}`;
        }
    }
    return '';
})()";

#[tokio::test(flavor = "multi_thread")]
async fn torrents_are_moved_in_the_queue_and_started_beside_it() {
    let running = Running::start(daemon::stopped(5)).await;
    let Some(mut browser) = browse(&running).await else {
        return;
    };
    let steps = tokio::task::spawn_blocking(move || {
        assert_eq!(browser.evaluate(MOVES), "");
        let names = "[...document.querySelectorAll('.rows-body .c-name')].map((one) => one.textContent.slice(-1)).join('')";
        let are = |browser: &mut Browser, order: &str| {
            browser.until(&format!("{names} === {order:?}"));
        };
        are(&mut browser, "01234");
        // Without a selection there is nothing to move.
        let queue = button("Queue");
        assert_eq!(browser.evaluate(&format!("{queue}.disabled")), true);
        browser.evaluate("document.querySelector('[role=grid]').focus()");
        browser.press("End", 35, 1);
        // Alt and arrows move what is selected.
        let event = json!({ "type": "rawKeyDown", "key": "ArrowUp", "code": "ArrowUp", "windowsVirtualKeyCode": 38, "modifiers": 1 });
        browser.call("Input.dispatchKeyEvent", event);
        browser.until_said("torrent 4: place 4 of 5 in the queue");
        are(&mut browser, "01243");

        // The menu is worked by keyboard, too.
        browser.evaluate(&format!("{queue}.focus()"));
        browser.press("Enter", 13, 1);
        browser.until("document.activeElement.textContent.startsWith('Start now')");
        examine(&mut browser, "the menu of the queue");
        browser.press("ArrowDown", 40, 1);
        browser.until("document.activeElement.textContent === 'To the top'");
        browser.press("Enter", 13, 1);
        browser.until_said("torrent 4: place 1 of 5 in the queue");
        are(&mut browser, "40123");
        assert_eq!(
            browser.evaluate("document.querySelectorAll('.menu:popover-open').length"),
            0
        );
        browser.evaluate(&format!("{queue}.focus()"));
        browser.press("Enter", 13, 1);
        browser.until("document.querySelector('.menu:popover-open')");
        browser.press("Escape", 27, 1);
        browser.until("!document.querySelector('.menu:popover-open')");
        browser.until("document.activeElement.textContent === 'Queue'");

        // On a phone the menu is on the screen.
        browser.screen(390, 800, "light");
        click(&mut browser, "Queue");
        browser.until("document.querySelector('.menu:popover-open')");
        assert_eq!(browser.evaluate("(() => { const box = document.querySelector('.menu:popover-open').getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth; })()"), true);
        assert_eq!(browser.evaluate(FITS), true);
        click(&mut browser, "To the end");
        browser.until_said("torrent 4: place 5 of 5 in the queue");
        are(&mut browser, "01234");
        click(&mut browser, "Start now, beside the queue");
        browser.until_said("torrent 4: started");
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    let views = running.client.views().await.unwrap();
    let started: Vec<_> = views.iter().map(|view| view.record.started).collect();
    assert_eq!(started, [false, false, false, false, true]);
    running.end().await;
}

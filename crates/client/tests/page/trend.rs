//! Rates over time of peers and of the paths to them.

use super::*;

/// Draws the rates of a peer and its path over two minutes and more, and returns what is wrong.
const DRAWN: &str = "(async () => {
    const { trends } = await import('/assets/trend.js');
    const rates = trends();
    const peer = (down, up) => ({ name: 'peer', download_rate: down, upload_rate: up });
    const path = (down) => ({ name: 'path', download_rate: down, upload_rate: 0 });
    if (rates.draw('peer', 1, 0) !== null) return 'lines of nothing';
    rates.add([peer(0, 0), path(0)], 0);
    rates.add([peer(0, 0), path(0)], 1000);
    if (rates.draw('peer', rates.top('peer'), 1000) !== null) return 'lines without traffic';
    rates.add([peer(8e6, 2e6), path(4e6)], 2000);
    // The page was not seen for a while.
    rates.add([peer(0, 0), path(0)], 60000);
    const top = rates.top('peer');
    if (top !== 8e6) return `the highest rate is ${top}`;
    const drawn = (name, now) => [...rates.draw(name, top, now).querySelectorAll('path')].map((line) => line.getAttribute('d'));
    const points = (line) => [...line.matchAll(/([ML])([-\\d.]+) ([-\\d.]+)/g)].map(([, kind, x, y]) => [kind, Number(x), Number(y)]);
    const [down, up] = drawn('peer', 60000).map(points);
    if (down.map(([kind]) => kind).join('') !== 'MLLM') return `a line over the gap: ${down}`;
    if (down[2][2] !== 2 || down[3][1] !== 160 || down[3][2] !== 26) return `down: ${down}`;
    // The path has half of the peer's rate, at the same scale; so has a quarter what is sent.
    if (points(drawn('path', 60000)[0])[2][2] !== 14 || up[2][2] !== 20) return `path or up: ${up}`;
    const label = rates.draw('peer', top, 60000).getAttribute('aria-label');
    if (!label.endsWith('received up to 8 Mbit/s, sent up to 2 Mbit/s')) return label;
    // What is old, and what is not there any more, is forgotten.
    rates.add([peer(1, 1)], 121500);
    if (points(drawn('peer', 121500)[0]).length !== 3) return 'old samples';
    if (rates.draw('path', top, 121500) !== null) return 'a path that is not there';
    return '';
})()";

#[tokio::test(flavor = "multi_thread")]
async fn rates_over_time_have_gaps_one_scale_and_an_end() {
    let running = Running::start(Vec::new()).await;
    let Some(mut browser) = browse(&running).await else {
        return;
    };
    let steps = tokio::task::spawn_blocking(move || {
        assert_eq!(browser.evaluate(DRAWN), "");
        assert_eq!(browser.problems, Vec::<String>::new());
    });
    steps.await.unwrap();
    running.end().await;
}

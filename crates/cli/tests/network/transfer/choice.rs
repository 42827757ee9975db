//! The side that chooses the paths of a transfer.

use super::*;

const SEEDER: &str = "1-ff00:0:5";
const LEECHERS: [&str; 2] = ["1-ff00:0:1", "1-ff00:0:4"];

/// The interface of the seeder's AS over which most of a download came.
fn most_over(report: &Value) -> &str {
    let paths = report["paths"].as_array().unwrap();
    let most = paths.iter().max_by_key(|path| path["bytes"].as_u64());
    let interfaces = most.unwrap()["interfaces"].as_array().unwrap();
    let last = interfaces.last().unwrap().as_str().unwrap();
    assert!(last.starts_with(SEEDER), "{report}");
    last
}

#[test]
fn an_uploader_keeps_two_downloaders_apart() {
    let Some(lab) = As::default().up("fig9", "choice") else {
        return;
    };
    // Without the uploader's choice both would take the faster path.
    for id in ["#1", "#2", "#3"] {
        lab.set(&format!("1-ff00:0:3{id}"), &["--delay", "2ms"]);
    }
    let files = Files::new(&[("data", 6 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, SEEDER, &files.torrent(), &files.content());
    let running = LEECHERS.map(|leecher| {
        let into = files.folder.path().join(leecher);
        let mut args = files.get_args(&peer);
        args[3] = into.to_str().unwrap().to_owned();
        args.extend(["--paths", "1"].map(str::to_owned));
        (into, Running::start(&lab, leecher, &args))
    });
    let reports = running.map(|(into, leecher)| {
        let report = leecher.end().0;
        let content = fs::read(files.content()).unwrap();
        assert!(fs::read(into.join("data")).unwrap() == content);
        report
    });
    assert_ne!(most_over(&reports[0]), most_over(&reports[1]));
}

#[test]
fn a_seeder_may_leave_the_choice_to_downloaders() {
    let Some(lab) = As::default().up("fig4", "leave") else {
        return;
    };
    let files = Files::new(&[("data", 2 << 20)]);
    let more = ["--select-by", "downloader"];
    let (_seeder, peer) = Running::seed_with(&lab, B, &files.torrent(), &files.content(), &more);
    let report = get(&lab, A, &files, &peer, &["--paths", "2"]);
    assert!(files.same("data"));
    assert_eq!(report["paths"].as_array().unwrap().len(), 2, "{report}");
}

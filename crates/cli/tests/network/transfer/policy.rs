//! Policies of both sides.

use super::*;

// ASes of fig7a: paths lead from A to D over B, over B and C, and over E, F and G.
const A: &str = "1-ff00:0:1";
const D: &str = "1-ff00:0:4";

/// The hops of the paths that carried blocks, and the reason why the long path did not.
fn paths(report: &Value) -> (Vec<u64>, String) {
    let used = report["paths"].as_array().unwrap();
    let mut hops: Vec<u64> = used.iter().map(|p| p["hops"].as_u64().unwrap()).collect();
    hops.sort_unstable();
    for path in used {
        // The uploader may have taken back one that it gave out first.
        let is_taken_back = path["reason"] == "by the uploader: not chosen";
        assert!(path["verdict"] == "taken" || is_taken_back, "{report}");
    }
    let unused = report["unused_paths"].as_array().unwrap();
    let long = unused.iter().find(|path| path["hops"] == 5);
    let why = long.map(|path| {
        // A path without a connection has no verdict.
        let verdict = path["verdict"].as_str().unwrap_or("none");
        format!("{verdict}: {}", path["reason"].as_str().unwrap())
    });
    (hops, why.unwrap_or_default())
}

#[test]
fn paths_that_an_acl_denies_carry_nothing_and_have_a_reason() {
    let Some(lab) = As::default().up("fig7a", "policy") else {
        return;
    };
    let files = Files::new(&[("data", 3 << 20)]);
    let (_seeder, peer) = Running::seed(&lab, D, &files.torrent(), &files.content());
    let run = |more: &[&str]| {
        let _ = fs::remove_dir_all(files.downloads());
        let report = get(&lab, A, &files, &peer, more);
        assert!(files.same("data"));
        paths(&report)
    };
    let disjoint = ["--select", "disjoint"];
    assert_eq!(run(&disjoint), (vec![3, 5], String::new()));
    let acl = ["--acl", "- 1-ff00:0:6", "--acl", "+"];
    let why = "left: policy: acl entry \"- 1-ff00:0:6\" at 1-ff00:0:6#1";
    let chosen_here = run(&[&disjoint[..], &acl].concat());
    // The two other paths share their first link, because there is no alternative.
    assert_eq!(chosen_here, (vec![3, 4], why.to_owned()));
    // The seeder would use the path, and is refused.
    let (hops, said) = run(&acl);
    assert!(!hops.contains(&5), "{hops:?}");
    assert_eq!(said, why);

    let policy = files.folder.path().join("policy.yml");
    fs::write(
        &policy,
        "long: {sequence: '0 0 0 0 0'}\nshort: {sequence: '0 0 0'}",
    )
    .unwrap();
    let named = format!("{}:long", policy.display());
    assert_eq!(run(&["--policy", &named]).0, [5]);

    let mut args = files.get_args(&peer);
    args.extend(["--acl", "-"].map(str::to_owned));
    fs::remove_dir_all(files.downloads()).unwrap();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = lab.hawser(A, &args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("policy: acl entry \"-\""), "{error}");
}

#[test]
fn paths_that_a_seeder_denies_are_refused() {
    let Some(lab) = As::default().up("fig7a", "seed-policy") else {
        return;
    };
    let files = Files::new(&[("data", 3 << 20)]);
    let acl = ["--acl", "- 1-ff00:0:6", "--acl", "+"];
    let (torrent, content) = (files.torrent(), files.content());
    let (_seeder, peer) = Running::seed_with(&lab, D, &torrent, &content, &acl);
    let refused = "a policy at the other end does not keep this path";
    let cases = [(&["--select", "disjoint"][..], refused), (&[], "uploader")];
    for (more, told) in cases {
        let _ = fs::remove_dir_all(files.downloads());
        let report = get(&lab, A, &files, &peer, &[more, &["--explain"]].concat());
        assert!(files.same("data"));
        let (hops, why) = paths(&report);
        assert!(!hops.contains(&5) && why.contains(told), "{report}");
    }
}

#[test]
fn a_file_of_a_policy_that_changes_moves_a_download_that_runs() {
    let Some(lab) = As::default().up("fig7a", "policy-file") else {
        return;
    };
    let files = Files::new(&[("data", 12 << 20)]);
    let policy = files.folder.path().join("policy.yml");
    fs::write(&policy, "only: {sequence: '0 0 0'}").unwrap();
    let (_seeder, peer) = Running::seed(&lab, D, &files.torrent(), &files.content());
    let mut args = files.get_args(&peer);
    args.extend(["--policy", policy.to_str().unwrap()].map(str::to_owned));
    let mut download = Running::start(&lab, A, &args);
    eventually("some of it has come", || {
        sent(&lab).iter().sum::<u64>() > 512 << 10
    });
    // What is invalid changes nothing.
    fs::write(&policy, "only: {sequence: '0'").unwrap();
    let mut log = BufReader::new(download.0.stderr.take().unwrap());
    let mut before = String::new();
    while !before.contains("the former policy stays in force") {
        let read = log.read_line(&mut before).unwrap();
        assert!(read > 0, "the download has ended: {before}");
    }
    fs::write(&policy, "only: {sequence: '0 0 0 0 0'}").unwrap();
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        log.read_to_string(&mut rest).unwrap();
        rest
    });
    let mut text = String::new();
    let stdout = download.0.stdout.as_mut().unwrap();
    stdout.read_to_string(&mut text).unwrap();
    let log = rest.join().unwrap();
    assert!(download.0.wait().unwrap().success(), "{log}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(files.same("data"));
    assert!(log.contains("is in force now"), "{log}");
    let used = report["paths"].as_array().unwrap();
    let mut hops: Vec<u64> = used.iter().map(|p| p["hops"].as_u64().unwrap()).collect();
    hops.sort_unstable();
    assert_eq!(hops, [3, 5], "{report}");
}

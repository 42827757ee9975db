//! `hawser paths`, `ping` and `traceroute` in whole networks.

use std::collections::BTreeSet;
use std::process::Output;

use serde_json::Value;

use crate::support::{As, TestLab, eventually};

/// D of fig7a, from which three paths lead to A.
const D: &str = "1-ff00:0:4";
const A: &str = "1-ff00:0:1";
const A_HOST: &str = "1-ff00:0:1,10.0.1.1";

/// Waits for answers that come, however busy the machine is.
const PATIENT: [&str; 2] = ["--timeout", "60s"];

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn error(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The JSON report of a command in D, whatever its exit code.
fn report(lab: &TestLab, args: &[&str], code: i32) -> Value {
    let output = lab.hawser(D, args);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sequences(listing: &Value) -> Vec<&str> {
    let paths = listing["paths"].as_array().into_iter().flatten();
    paths.map(|p| p["sequence"].as_str().unwrap()).collect()
}

#[test]
fn paths_are_listed_chosen_and_probed() {
    let Some(lab) = As::default().up("fig7a", "paths") else {
        return;
    };
    let list = ["paths", A, "--format", "json"];
    let all = report(&lab, &[&list[..], &PATIENT].concat(), 0);
    assert_eq!(
        (&all["local_isd_as"], &all["destination"]),
        (&D.into(), &A.into())
    );
    let short = "1-ff00:0:4#0,1 1-ff00:0:2#2,1 1-ff00:0:1#1,0";
    let middle = "1-ff00:0:4#0,2 1-ff00:0:3#2,1 1-ff00:0:2#3,1 1-ff00:0:1#1,0";
    let long = "1-ff00:0:4#0,3 1-ff00:0:7#2,1 1-ff00:0:6#2,1 1-ff00:0:5#2,1 1-ff00:0:1#2,0";
    assert_eq!(sequences(&all), [short, middle, long]);
    for path in all["paths"].as_array().unwrap() {
        assert_eq!(path["status"], "alive");
        assert_eq!(path["local_ip"], "10.0.4.1");
        assert_eq!(path["fingerprint"].as_str().unwrap().len(), 16);
        let interfaces = path["hops"].as_array().unwrap().len();
        assert_eq!(path["latency"].as_array().unwrap().len(), interfaces - 1);
        assert_eq!(path["notes"].as_array().unwrap().len(), interfaces / 2 + 1);
    }

    let unprobed = report(&lab, &["paths", A, "-j", "--no-probe", "-m", "1", "-r"], 0);
    assert_eq!(sequences(&unprobed), [short]);
    assert_eq!(unprobed["paths"][0].get("status"), None);
    let over = ["paths", A, "-j", "--sequence", "0* 1-ff00:0:3 0*"];
    let over = report(&lab, &[&over[..], &PATIENT].concat(), 0);
    assert_eq!(sequences(&over), [middle]);
    let none = ["paths", A, "-j", "--sequence", "0"];
    assert!(sequences(&report(&lab, &none, 0)).is_empty());

    let yaml = ["paths", A, "--format", "yaml"];
    let yaml = text(&lab.hawser(D, &[&yaml[..], &PATIENT].concat()));
    for line in ["local_isd_as: 1-ff00:0:4", "  mtu: 1472", "  status: alive"] {
        assert!(yaml.lines().any(|l| l == line), "{line:?} is not in {yaml}");
    }

    let human = ["paths", A, "--extended"];
    let human = text(&lab.hawser(D, &[&human[..], &PATIENT].concat()));
    assert!(
        human.starts_with("Available paths to 1-ff00:0:1\n3 Hops:\n[0] Hops: ["),
        "{human}"
    );
    assert!(human.contains("Status: alive\n"), "{human}");
    assert!(!human.contains('\x1b'), "colours in a pipe: {human}");
    let here = lab.hawser(D, &["paths", D]);
    assert!(
        here.status.success() && text(&here).contains("local AS"),
        "{here:?}"
    );
    let unknown = lab.hawser(D, &["paths", "1-ff00:0:99"]);
    assert_ne!(unknown.status.code(), Some(0), "{unknown:?}");
}

#[test]
fn every_path_has_a_verdict() {
    let Some(lab) = As::default().up("fig7a", "explain") else {
        return;
    };
    let verdicts = |listing: &Value| -> Vec<(usize, String, Option<u64>)> {
        let told = listing["paths"].as_array().unwrap().iter().map(|path| {
            let explanation = &path["explanation"];
            let verdict = explanation["verdict"].as_str().unwrap().to_owned();
            let hops = path["hops"].as_array().unwrap().len() / 2;
            (hops, verdict, explanation["rank"].as_u64())
        });
        told.collect()
    };
    let of = |hops, verdict: &str, rank| (hops, verdict.to_owned(), rank);
    let disjoint = ["paths", A, "-j", "--explain"];
    let disjoint = report(&lab, &[&disjoint[..], &PATIENT].concat(), 0);
    let expected = [
        of(2, "taken", Some(1)),
        of(4, "taken", Some(3)),
        of(3, "left", Some(2)),
    ];
    assert_eq!(verdicts(&disjoint), expected);
    assert_eq!(disjoint["selection"]["select"], "disjoint");
    assert_eq!(disjoint["selection"]["max_paths"], 4);
    let reason = &disjoint["paths"][2]["explanation"]["reason"];
    let reason = reason.as_str().unwrap();
    assert!(
        reason.starts_with("shares 1-ff00:0:2#1 with path "),
        "{reason}"
    );

    let acl = ["--acl", "- 1-ff00:0:3", "--acl", "+"];
    let denied = [
        "paths",
        A,
        "-j",
        "--explain",
        "--select",
        "shortest",
        "-n",
        "1",
    ];
    let denied = report(&lab, &[&denied[..], &acl, &PATIENT].concat(), 0);
    let expected = [
        of(2, "taken", Some(1)),
        of(4, "left", Some(2)),
        of(3, "left", None),
    ];
    assert_eq!(verdicts(&denied), expected);
    // Paths that the ACL denies are not probed.
    let status: Vec<_> = (0..3).map(|at| &denied["paths"][at]["status"]).collect();
    assert_eq!(
        status,
        ["alive".into(), "alive".into(), Value::Null].each_ref()
    );

    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("carbon.yml");
    let values = "1-ff00:0:1: 1\n1-ff00:0:2: 90\n1-ff00:0:4: 2\n1-ff00:0:5: 3\n1-ff00:0:6: 4\n\
                  1-ff00:0:7#1: 5\n1-ff00:0:7#2: 6\n";
    std::fs::write(&table, values).unwrap();
    let carbon = ["--select", "carbon", "--carbon", table.to_str().unwrap()];
    let explain = ["paths", A, "--explain"];
    let human = lab.hawser(D, &[&explain, &carbon[..], &PATIENT].concat());
    assert!(human.status.success(), "{human:?}");
    let human = text(&human);
    let green = "Rank: 1 (carbon 21 g/GB: 2 from 1-ff00:0:4 (file), 11 from 1-ff00:0:7 (file), \
                 4 from 1-ff00:0:6 (file), 3 from 1-ff00:0:5 (file), 1 from 1-ff00:0:1 (file); \
                 5 hops)";
    for words in [
        "Picked by carbon, at most 4 paths",
        green,
        "nothing known of 1-ff00:0:3",
    ] {
        assert!(human.contains(words), "{words:?} is not in {human}");
    }

    let nothing = lab.hawser(D, &["paths", A, "--explain", "--acl", "-"]);
    assert_eq!(nothing.status.code(), Some(1), "{nothing:?}");
    assert!(
        error(&nothing).contains("3 left, the first by policy"),
        "{nothing:?}"
    );
    assert_eq!(
        text(&nothing).matches("    Left: policy: ").count(),
        3,
        "{nothing:?}"
    );
}

#[test]
fn dead_paths_are_distinguished_from_working_ones() {
    let Some(lab) = As::default().up("fig7a", "dead") else {
        return;
    };
    // The link between A and B, which the two shorter paths share.
    lab.set("1-ff00:0:1#1", &["--loss", "100%"]);
    let list = ["paths", A, "-j", "--timeout", "1s"];
    // Either a timeout, or the SCMP error of a router that has detected the failure. On a busy
    // machine, the answer of a path that works may be late.
    eventually("one path is alive", || {
        let listing = lab.hawser(D, &list);
        let listing: Value = serde_json::from_slice(&listing.stdout).unwrap();
        let paths = listing["paths"].as_array().unwrap();
        let alive: Vec<bool> = paths.iter().map(|p| p["status"] == "alive").collect();
        assert!(alive.len() == 3 && !alive[0] && !alive[1], "{listing}");
        alive[2]
    });
    eventually("that is a success", || {
        lab.hawser(D, &["paths", A, "--timeout", "1s"])
            .status
            .success()
    });
    let dead = ["paths", A, "--timeout", "1s", "-m", "2"];
    let none = lab.hawser(D, &dead);
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    assert!(error(&none).contains("no path alive"), "{none:?}");
    let unprobed = lab.hawser(D, &[&dead[..], &["--no-probe"]].concat());
    assert_eq!(unprobed.status.code(), Some(0), "{unprobed:?}");

    let lost = [
        "ping",
        A_HOST,
        "-c",
        "2",
        "--interval",
        "50ms",
        "--timeout",
        "200ms",
    ];
    let lost = report(&lab, &[&lost[..], &["--format", "json"]].concat(), 1);
    assert_eq!(lost["statistics"]["packet_loss"], 100);
    eventually("the healthy path answers", || {
        let healthy = ["ping", A_HOST, "-c", "1", "--healthy-only"];
        lab.hawser(D, &healthy).status.success()
    });
    let trace = [
        "traceroute",
        A_HOST,
        "--timeout",
        "100ms",
        "--format",
        "json",
    ];
    // D's and B's routers are on this side of the link, also B's router towards A.
    eventually("three routers answer", || {
        let trace = report(&lab, &trace, 1);
        let hops = trace["hops"].as_array().unwrap();
        let is_answered = |hop: &Value| hop["round_trip_times"][0].is_number();
        assert!(!is_answered(&hops[3]) && hops[3]["ip"] == "", "{trace}");
        hops.len() == 4 && hops[..3].iter().all(is_answered)
    });
}

#[test]
fn hosts_are_pinged_and_routes_traced() {
    let Some(lab) = As::default().up("fig7a", "ping") else {
        return;
    };
    let ping = ["ping", A_HOST, "-c", "3", "--interval", "20ms", "-s", "100"];
    let json = report(
        &lab,
        &[&ping[..], &PATIENT, &["--format", "json"]].concat(),
        0,
    );
    assert_eq!(json["payload_size"], 100);
    assert_eq!(json["scion_packet_size"], 192);
    let statistics = &json["statistics"];
    assert_eq!(
        (&statistics["sent"], &statistics["received"]),
        (&3.into(), &3.into())
    );
    let replies = json["replies"].as_array().unwrap();
    let numbers = replies.iter().map(|reply| reply["scmp_seq"].as_u64());
    // A network may swap packets.
    assert_eq!(BTreeSet::from_iter(numbers), [0, 1, 2].map(Some).into());
    for reply in replies {
        assert_eq!(reply["source"], A_HOST);
        assert_eq!(reply["state"], "success");
        assert_eq!(reply["scion_packet_size"], 192);
    }
    let fingerprint = json["path"]["fingerprint"].as_str().unwrap();
    assert_eq!(fingerprint.len(), 64);

    let again = ["ping", A_HOST, "-c", "1", "--path", &fingerprint[..8]];
    let human = text(&lab.hawser(D, &[&again[..], &PATIENT].concat()));
    assert!(
        human.contains("1 packets transmitted, 1 received, 0% packet loss"),
        "{human}"
    );
    for (size, bytes) in [(&["--max-mtu"][..], 1472), (&["--packet-size", "200"], 200)] {
        let args = [&["ping", A_HOST, "-c", "1", "-j"], &PATIENT[..], size].concat();
        assert_eq!(report(&lab, &args, 0)["scion_packet_size"], bytes);
    }
    for (args, what) in [
        (&["--packet-size", "20"][..], "headers"),
        (&["-s", "1500"], "the path takes 1472"),
        (&["--path", "0000000000"], "hawser paths"),
        (&["--sequence", "0"], "'0'"),
    ] {
        let output = lab.hawser(D, &[&["ping", A_HOST, "-c", "1"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(error(&output).contains(what), "{output:?}");
    }

    let long = "0 0 0 0 0";
    let trace = ["traceroute", A_HOST, "--sequence", long, "--format", "json"];
    let trace = report(&lab, &[&trace[..], &PATIENT].concat(), 0);
    let hops = trace["hops"].as_array().unwrap();
    let seen: Vec<_> = hops
        .iter()
        .map(|hop| (hop["isd_as"].clone(), hop["interface_id"].clone()))
        .collect();
    let expected = trace["path"]["hops"].as_array().unwrap().iter();
    let expected: Vec<_> = expected
        .map(|hop| (hop["isd_as"].clone(), hop["interface"].clone()))
        .collect();
    assert_eq!(seen.len(), 8);
    assert_eq!(seen, expected);
    for hop in hops {
        let times = hop["round_trip_times"].as_array().unwrap();
        assert!(
            times.len() == 3 && times.iter().all(Value::is_number),
            "{hop}"
        );
    }
    let trace = ["traceroute", A_HOST];
    let human = text(&lab.hawser(D, &[&trace[..], &PATIENT].concat()));
    let routers = human.lines().filter(|line| line.contains(" IfID="));
    assert_eq!(routers.count(), 4, "{human}");
    let here = lab.hawser(D, &["traceroute", "1-ff00:0:4,10.0.4.1"]);
    assert_eq!(here.status.code(), Some(2), "{here:?}");
}

#[test]
fn a_ping_outlives_its_path() {
    let flags = ["--segment-lifetime", "2s"];
    let Some(lab) = As::default().up_with("fig7a", "ping-renewed", &flags) else {
        return;
    };
    // The path that it begins with expires long before the last request.
    let ping = ["ping", A_HOST, "-c", "40", "--interval", "200ms"];
    let report = report(
        &lab,
        &[&ping[..], &PATIENT, &["--format", "json"]].concat(),
        0,
    );
    let replies = report["replies"].as_array().unwrap();
    let late = replies
        .iter()
        .filter(|reply| reply["scmp_seq"].as_u64() >= Some(25));
    assert!(late.count() > 0, "{report}");
}

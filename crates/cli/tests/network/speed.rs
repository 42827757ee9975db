//! Measurements of speed: carriers and axes run, and report what they carried.

use serde_json::Value;

use crate::support::As;
use crate::transfer::report;

/// The median goodput and the processor time of all processes of a row, which must be there.
fn figures(row: &Value) -> (f64, f64) {
    assert_eq!(row["failure"], Value::Null, "{row}");
    let cpu = &row["cpu_per_gb"];
    let all = ["sender", "receiver"].map(|side| cpu[side].as_f64().unwrap());
    (row["gbit"].as_f64().unwrap(), all.iter().sum())
}

#[test]
fn carriers_are_compared_on_a_course() {
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("throughput.svg");
    let mut args = vec!["bench", "throughput", "--repeat", "1", "--size", "8MiB"];
    args.extend(["--no-offload", "--json", "--plot", figure.to_str().unwrap()]);
    let carriers = "udp,tls,torrent-ip,scion,quic,torrent-1,torrent-2";
    args.extend(["--only", carriers]);
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    let rows = table["rows"].as_array().unwrap();
    let names: Vec<_> = rows
        .iter()
        .map(|r| r["carrier"].as_str().unwrap())
        .collect();
    assert_eq!(names.join(","), carriers);
    for row in rows {
        assert_eq!(
            (&row["routers"], &row["offload"]),
            (&2.into(), &false.into())
        );
        let (gbit, cpu) = figures(row);
        assert!(gbit > 0.0 && cpu > 0.0, "{row}");
    }
    assert_eq!(rows[6]["paths"], 2);
    assert!(std::fs::read_to_string(figure).unwrap().starts_with("<svg"));
}

#[test]
fn downloads_are_compared_as_they_grow() {
    let mut args = vec![
        "bench", "scale", "--repeat", "1", "--size", "8MiB", "--json",
    ];
    args.extend(["--only", "peers"]);
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    let rows = table["rows"].as_array().unwrap();
    let peers: Vec<_> = rows
        .iter()
        .map(|row| row["peers"].as_u64().unwrap())
        .collect();
    assert_eq!(peers, [4, 16]);
    let (_, base) = figures(&table["base"]);
    for row in rows {
        let ratio = row["ratio"].as_f64().unwrap();
        assert!((ratio - figures(row).1 / base).abs() < 1e-9, "{row}");
        assert_eq!(row["flat"], (ratio - 1.0).abs() <= 0.15, "{row}");
    }
}

#[test]
fn what_moves_at_once_is_compared_as_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("growth.svg");
    let mut args = vec![
        "bench", "scale", "--repeat", "1", "--size", "8MiB", "--json",
    ];
    args.extend(["--plot", figure.to_str().unwrap()]);
    args.extend(["--only", "flows,senders,shim,tcp-peers", "--time", "1s"]);
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    assert_eq!(table["base"], Value::Null, "{table}");
    let rows = table["rows"].as_array().unwrap();
    for axis in ["flows", "senders", "shim", "tcp-peers"] {
        let own = |row: &&Value| {
            let others = ["libtorrent", "rqbit"];
            let is_other = others.iter().any(|other| row["client"] == *other);
            row["axis"] == axis && !is_other
        };
        let rows: Vec<_> = rows.iter().filter(own).collect();
        let values: Vec<_> = rows.iter().map(|row| row["value"].as_u64()).collect();
        assert_eq!(values, [1, 4, 16].map(Some), "{axis}");
        let base = figures(rows[0]);
        for row in &rows[1..] {
            let ratios = ["ratio", "ratio_gbit"].map(|name| row[name].as_f64().unwrap());
            let (gbit, cost) = figures(row);
            assert!((ratios[0] - cost / base.1).abs() < 1e-9, "{row}");
            assert!((ratios[1] - gbit / base.0).abs() < 1e-9, "{row}");
        }
    }
    assert!(std::fs::read_to_string(figure).unwrap().starts_with("<svg"));
}

#[test]
fn bulk_transfer_is_measured_over_time() {
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("distance.svg");
    let mut args = vec!["bench", "bulk-distance", "--repeat", "1", "--time", "2s"];
    args.extend(["--rate", "50mbit", "--loss", "0.1%", "--json"]);
    args.extend(["--only", "hawser-send,hawser-quic"]);
    args.extend(["--plot", figure.to_str().unwrap()]);
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{table}");
    for row in rows {
        assert_eq!(row["failure"], Value::Null, "{row}");
        let share = row["share"].as_f64().unwrap();
        assert!(share > 0.0 && share < 1.05, "{row}");
        assert_eq!(row["over_time_mbit"].as_array().unwrap().len(), 4);
    }
    assert!(std::fs::read_to_string(figure).unwrap().starts_with("<svg"));
}

#[test]
fn bulk_transfer_is_measured_beside_congestion() {
    let mut args = vec!["bench", "bulk-congested", "--repeat", "1", "--time", "3s"];
    args.extend(["--rate", "50mbit", "--json"]);
    args.extend(["--only", "hawser-beside-udp"]);
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    let row = &table["rows"][0];
    assert_eq!(row["failure"], Value::Null, "{row}");
    let run = &row["runs"][0];
    let load = run["load_mbit"].as_f64().unwrap();
    assert!((load - 0.82 * 50.0).abs() < 0.5, "{run}");
    let share = run["overall_share"].as_f64().unwrap();
    assert!(share > 0.0 && share < 1.05, "{run}");
    let over_time = &row["over_time"]["total_mbit"];
    assert_eq!(over_time.as_array().unwrap().len(), 15);
}

#[test]
fn tcp_programs_are_measured_over_several_paths() {
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("mptcp.svg");
    let measure = |time: &str| {
        let mut args = vec!["bench", "mptcp", "--repeat", "1", "--time", time, "--json"];
        args.extend(["--only", "mptcp,quic", "--paths", "2"]);
        args.extend(["--plot", figure.to_str().unwrap()]);
        report(&As::default(), &args)
    };
    // On a busy machine a path may come too late for a short measurement.
    let is_late = |table: &Value| {
        let mut rows = table["rows"].as_array().into_iter().flatten();
        rows.any(|row| row["failure"] == "the shim used 1 of 2 paths")
    };
    let mut measured = measure("2s");
    for time in ["10s", "40s"] {
        if measured.as_ref().is_some_and(is_late) {
            measured = measure(time);
        }
    }
    let Some(table) = measured else {
        return;
    };
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{table}");
    for row in rows {
        let is_shim = row["carrier"] == "mptcp";
        if is_shim && !rustix::process::geteuid().is_root() {
            assert_ne!(row["failure"], Value::Null, "{row}");
            continue;
        }
        assert_eq!(row["failure"], Value::Null, "{row}");
        let share = row["share"].as_f64().unwrap();
        assert!(share > 0.0 && share < 1.05, "{row}");
        // Both links carried frames: one alone has 20 Mbit/s.
        assert!(row["throughput_mbit"].as_f64().unwrap() < 42.0, "{row}");
        assert!(row["overhead"].as_f64().unwrap() > 0.0, "{row}");
    }
    let headers = table["headers"].as_array().unwrap();
    let frames = headers.iter().map(|row| &row["frame"]);
    assert!(frames.into_iter().all(|frame| *frame == 1514), "{table}");
    assert!(std::fs::read_to_string(figure).unwrap().starts_with("<svg"));
}

#[test]
fn transfers_are_measured_over_a_bad_path() {
    let mut args = vec!["bench", "bad-path", "--repeat", "1", "--time", "2s"];
    args.extend(["--only", "get,send", "--condition", "asymmetric"]);
    args.extend(["--rate", "10mbit", "--json"]);
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    let cells = table["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4, "{table}");
    for cell in cells {
        assert_eq!(cell["failure"], Value::Null, "{cell}");
        // What three links carry at most, and two.
        let most = match cell["condition"].is_null() {
            true => 20.0,
            false => 30.0,
        };
        let mbit = cell["mbit"].as_f64().unwrap();
        assert!(mbit > 0.0 && mbit < 1.05 * most, "{cell}");
        assert!(cell["pause_seconds"].as_f64().unwrap() > 0.0, "{cell}");
        assert!(cell["ratio"].as_f64().unwrap() > 0.0, "{cell}");
    }
}

/// Runs `hawser bench limit` on a few points.
fn limits(args: &[&str]) -> Option<Value> {
    let common = ["bench", "limit", "--ip", "4", "--only", "hawser", "--json"];
    report(&As::default(), &[&common, args].concat())
}

#[test]
fn limits_are_measured_by_the_size_of_datagrams() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().to_str().unwrap();
    let args = [
        "--part",
        "size",
        "--every",
        "9",
        "--readings",
        "2",
        "--plot",
        plot,
    ];
    let Some(table) = limits(&args) else { return };
    let rows = table["size"].as_array().unwrap();
    let points: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["datagram"].as_u64().unwrap(),
                row["direction"].as_str().unwrap(),
            )
        })
        .collect();
    let sizes = [1000, 10_000];
    let expected = sizes.map(|size| [(size, "egress"), (size, "ingress")]);
    assert_eq!(points, expected.concat());
    for row in rows {
        let frames = row["frames_kbit"].as_f64().unwrap();
        // What a busy machine sends too little in a short time.
        assert!(frames > 0.0 && frames < 600.0, "{row}");
        assert_eq!(row["samples_kbit"].as_array().unwrap().len(), 2);
        if row["datagram"] == 1000 {
            assert!(row["mean_kbit"].as_f64().unwrap() > 0.0, "{row}");
        }
    }
    let drawn = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(drawn, 3);
}

#[test]
fn the_error_of_limits_is_measured() {
    let args = [
        "--part", "accuracy", "--limit", "10mbit", "--repeat", "1", "--time", "500ms",
    ];
    let Some(table) = limits(&args) else { return };
    let rows = table["accuracy"].as_array().unwrap();
    assert_eq!(rows.len(), 6, "{table}");
    for row in rows {
        assert_eq!(row["failure"], Value::Null, "{row}");
        let goodput = row["goodput_percent"].as_f64().unwrap();
        assert!(goodput > 0.0, "{row}");
        assert!(row["percent"].as_f64().unwrap() < 20.0, "{row}");
    }
}

#[test]
fn what_many_links_cost_is_measured() {
    let args = [
        "--part",
        "links",
        "--link-counts",
        "10,300",
        "--repeat",
        "1",
        "--time",
        "300ms",
    ];
    // On a busy machine nothing may arrive in a shorter time.
    let Some(table) = limits(&args) else { return };
    let rows = table["links"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2 * 3, "{table}");
    for row in rows {
        assert!(row["gbit"].as_f64().unwrap() > 0.0, "{row}");
    }
    let set: Vec<_> = table["program"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["links"])
        .collect();
    assert_eq!(set, [10, 300]);
    let changes = table["change"].as_array().unwrap();
    let times = |row: &Value| row["changes"].as_u64().unwrap();
    assert_eq!(
        changes.iter().map(times).collect::<Vec<_>>(),
        [0, 100, 0, 100]
    );
    for row in changes {
        assert!(row["sent"].as_u64().unwrap() > 0, "{row}");
        assert_eq!(row["ms"].is_null(), times(row) == 0, "{row}");
    }
}

#[test]
fn round_trips_through_the_shim_are_measured_with_their_wake_ups() {
    let mut args = vec!["bench", "round-trips", "--repeat", "1", "--count", "300"];
    args.push("--json");
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    let rows = table["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| &row["carrier"]).collect();
    assert_eq!(names, ["ping", "tcp", "mptcp", "shim-quic"]);
    for row in rows {
        let is_shim = row["carrier"] == "mptcp" || row["carrier"] == "shim-quic";
        if is_shim && !rustix::process::geteuid().is_root() {
            assert_ne!(row["failure"], Value::Null, "{row}");
            continue;
        }
        assert_eq!(row["failure"], Value::Null, "{row}");
        assert!(row["us"].as_f64().unwrap() > 0.0, "{row}");
        let wake_ups = row["wake_ups"].as_f64();
        assert_eq!(is_shim, wake_ups.is_some_and(|count| count > 0.0), "{row}");
    }
}

//! Labs, their tools, and simulated networks.

use super::*;

#[test]
fn commands_on_a_missing_lab_name_it() {
    let name = format!("absent-{}", std::process::id());
    for args in [
        vec!["lab", "status", "--name", &name],
        vec!["lab", "exec", "1-ff00:0:1", "--name", &name, "--", "true"],
        vec![
            "lab",
            "link",
            "set",
            "1-ff00:0:1#1",
            "--down",
            "--name",
            &name,
        ],
        vec!["lab", "logs", "--name", &name],
        vec!["lab", "shell", "1-ff00:0:1", "--name", &name],
        vec!["lab", "graph", "--name", &name],
        vec!["lab", "save", "x.topo", "--name", &name],
        vec!["lab", "capture", "1-ff00:0:1#1", "-w", "-", "--name", &name],
    ] {
        refused(&hawser(&args), 1, &[&name]);
    }
    let output = hawser(&["lab", "link", "set", "1-ff00:0:1#1", "--name", &name]);
    refused(&output, 2, &["--rate"]);
    let output = hawser(&["lab", "up", "fig99", "--name", &name]);
    refused(&output, 2, &["fig99", "fig7a"]);
}

#[test]
fn invalid_lab_names_are_wrong_use() {
    for name in ["../x", "", "a/b", ".hidden"] {
        for command in [&["up", "fig4"][..], &["down"], &["status"]] {
            let output = hawser(&[&["lab"], command, &["--name", name]].concat());
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{name:?}: {error}");
            assert!(error.contains("not a name for a lab"), "{error}");
        }
    }
}

#[test]
fn invalid_simulations_are_refused() {
    wrong(&["simulate"], &["TOPO", "--generate"]);
    wrong(
        &["simulate", "fig9", "--generate", "9"],
        &["cannot be used with"],
    );
    wrong(&["simulate", "--generate", "0"], &["1..=2000"]);
    wrong(&["simulate", "fig9", "--leechers", "0"], &["--leechers"]);
    wrong(&["simulate", "fig9", "--arrive", "5"], &["20ms"]);
    wrong(&["simulate", "fig9", "--select", "best"], &["disjoint"]);
    refused(&hawser(&["simulate", "fig99"]), 2, &["fig99", "fig7a"]);
    let nowhere = ["simulate", "fig9", "--seeder-in", "1-ff00:0:99"];
    refused(&hawser(&nowhere), 2, &["1-ff00:0:99"]);
    let riders = ["simulate", "fig9", "--free-riders", "101"];
    refused(&hawser(&riders), 2, &["101", "100 leechers"]);
}

#[test]
fn invalid_flags_of_lab_tools_are_wrong_use() {
    let capture = ["lab", "capture", "1-ff00:0:1#1"];
    wrong(&capture, &["--write"]);
    wrong(&[&capture[..], &["-w", "x", "-c", "0"]].concat(), &["-c"]);
    let time = [&capture[..], &["-w", "x", "--time", "5"]].concat();
    wrong(&time, &["20ms"]);
    wrong(
        &["lab", "capture", "1-ff00:0:1", "-w", "x"],
        &["1-ff00:0:1"],
    );
    wrong(
        &["lab", "graph", "--json", "--svg", "x"],
        &["--json", "--svg"],
    );
    wrong(&["lab", "graph", "--force"], &["--svg"]);
    wrong(&["lab", "shell"], &["<AS>"]);
    for command in ["shell", "logs"] {
        wrong(&["lab", command, "1-ff00:0:11x"], &["1-ff00:0:110"]);
    }
    wrong(&["lab", "save"], &["FILE"]);
    wrong(&["lab", "logs", "-n", "few"], &["--tail", "few"]);
    wrong(&["completions", "tcsh"], &["bash", "fish", "zsh"]);
    wrong(&["man", "--force"], &["--output"]);
}

#[test]
fn iperf3_is_refused_if_it_would_measure_several_links() {
    let output = hawser(&["demo", "--iperf3"]);
    refused(&output, 2, &["--iperf3", "fig7a", "--topology fig4"]);
}

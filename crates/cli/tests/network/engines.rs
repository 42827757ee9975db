//! One network of 20 ASes on engines of others: two Docker engines, whose containers are started and linked
//! as containerlab does from the exported files, and podman, which runs the exported pods. Its paths are
//! those of a lab.

mod compare;
mod containerlab;
mod docker;
mod pods;
mod rates;
mod updates;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use hawser_topology::Network;
use serde_json::Value;

use self::compare::{Paths, wait_pair, wait_paths, wait_same};
use self::containerlab::Hosts;
use self::pods::Pods;
use crate::machine::{Machine, can_run, end_pings};
use crate::support::{As, TestLab, eventually, topology};

/// 20 ASes in two ISDs: core ASes, children of one and of several parents, peers; links with rates and
/// delays.
const NETWORK: &str = include_str!("engines/network.topo");
/// An AS all of whose links have [`LEAF_RATE`], and its parent.
const LEAF: &str = "1-ff00:0:133";
const LEAF_PARENT: &str = "1-ff00:0:132";
const LEAF_RATE: f64 = 8.0;

/// With this variable, a host is cut off for [`LONG_CUT`], and all pods get another image; without it less,
/// as this takes minutes.
const SLOW: &str = "HAWSER_ENGINES_SLOW";
/// How long a host is cut off.
const CUT: Duration = Duration::from_secs(15);
const LONG_CUT: Duration = Duration::from_secs(60);

/// Whether what takes minutes is tested, too.
fn is_slow() -> bool {
    std::env::var_os(SLOW).is_some()
}

/// The machines of ASes.
type Machines = BTreeMap<String, Machine>;

/// The names of the ASes in exports, by ISD-AS.
fn names() -> BTreeMap<String, String> {
    let network = Network::parse(NETWORK).unwrap();
    let ases = network.ases.iter().map(|as_| as_.isd_as.to_string());
    ases.map(|isd_as| (isd_as.clone(), format!("as{}", isd_as.replace(':', "-"))))
        .collect()
}

/// The network in a lab; `None` where there are no labs.
fn lab(what: &str) -> Option<TestLab> {
    let folder = tempfile::tempdir().unwrap();
    As::default().up(&topology(folder.path(), NETWORK), what)
}

/// The paths of the network in a lab; `None` where there are no labs.
fn paths_of_lab() -> Option<&'static Paths> {
    static PATHS: OnceLock<Option<Paths>> = OnceLock::new();
    let paths = PATHS.get_or_init(|| {
        let lab = lab("engines")?;
        let paths = wait_paths(&|isd_as, args| lab.hawser(isd_as, args));
        lab.down();
        Some(paths)
    });
    paths.as_ref()
}

/// Waits until the machines have the paths that are expected.
fn wait_machines(expected: &Paths, machines: &Machines) {
    wait_same(expected, &|isd_as, args| machines[isd_as].hawser(args));
}

#[test]
fn two_docker_engines_run_what_is_exported_for_containerlab() {
    if !can_run() {
        return;
    }
    let Some(hosts) = Hosts::start() else {
        return;
    };
    let Some(expected) = paths_of_lab() else {
        return;
    };
    let begun = Instant::now();
    let machines = hosts.deploy(NETWORK, &names());
    let sizes = hosts.sizes();
    assert_eq!(sizes, [10, 10]);
    println!(
        "20 containers were started and linked in {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    wait_machines(expected, &machines);
    println!("all paths after {:.1} s", begun.elapsed().as_secs_f64());

    // No more than the limit, however slow this machine is.
    for (from, to) in [(LEAF, LEAF_PARENT), (LEAF_PARENT, LEAF)] {
        let start = |isd_as: &str, args: &[&str]| machines[isd_as].command(args);
        let rate = rates::rate(&start, from, to, &["--time", "2s"]).mbit;
        assert!(rate > 0.0 && rate < LEAF_RATE, "{from} to {to}: {rate}");
    }

    // A host is cut off: the ASes of the other one do not notice.
    let (near, same, far) = hosts.neighbours(NETWORK, &names());
    let pings = machines[&near].start_pings(&same);
    hosts.cut();
    let cut = Instant::now();
    let args = ["paths", &far, "--timeout", "60s", "--json", "-m", "0"];
    eventually("the link between hosts is seen to be down", || {
        let output = machines[&near].hawser(&args);
        let listing: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let all = listing["paths"].as_array().into_iter().flatten();
        all.clone().count() > 0 && all.clone().all(|path| path["status"] != "alive")
    });
    println!("down was seen after {:.1} s", cut.elapsed().as_secs_f64());
    // How long it is cut off is what is tested.
    let whole = if is_slow() { LONG_CUT } else { CUT };
    std::thread::sleep(whole.saturating_sub(cut.elapsed()));
    // Hosts that report the outage until the end have it withheld the longest.
    machines[&near].hawser(&args);
    hosts.join();
    let begun = Instant::now();
    let ask = |isd_as: &str, args: &[&str]| machines[isd_as].hawser(args);
    for pair in [(&near, &far), (&far, &near)] {
        let (from, to) = pair;
        let expected = &expected[&(from.clone(), to.clone())];
        wait_pair(&ask, from, to, Some(expected));
    }
    println!(
        "the paths between two ASes again {:.1} s after the hosts were joined",
        begun.elapsed().as_secs_f64()
    );
    wait_machines(expected, &machines);
    println!(
        "all paths were seen {:.1} s after that",
        begun.elapsed().as_secs_f64()
    );
    let (answered, lost) = end_pings(pings);
    assert!(
        answered > 0 && lost == 0,
        "{answered} answered, {lost} lost on the host {near} is on"
    );
}

#[test]
fn podman_runs_what_is_exported_for_it() {
    let Some(pods) = Pods::start(NETWORK) else {
        return;
    };
    let Some(expected) = paths_of_lab() else {
        return;
    };
    let names = names();
    let begun = Instant::now();
    let mut machines = pods.play_all(&names);
    println!(
        "20 pods were started in {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    wait_machines(expected, &machines);
    println!("all paths after {:.1} s", begun.elapsed().as_secs_f64());

    updates::a_pod_comes_back_at_another_address(&pods, &mut machines, expected);
    updates::images_are_updated_while_transfers_run(&pods, &mut machines, expected);
    for name in [&names[LEAF], &names[LEAF_PARENT]] {
        pods.stop(name);
    }
}

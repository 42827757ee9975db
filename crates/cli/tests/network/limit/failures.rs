//! What fails of one device or link stays with it: the others have their limits.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use super::*;

/// A link by `ens33`, one by a device that does not exist, and one without a route.
const THREE: &str = "[[link]]\naddress = '192.168.17.129'\nrate = '500kbit'\n\
    [[link]]\naddress = '10.7.0.1'\ndevice = 'gone'\nrate = '1mbit'\n\
    [[link]]\naddress = '203.0.113.9'\nrate = '2mbit'\n";

const NO_DEVICE: &str = "no device gone in this network namespace";
const NO_ROUTE: &str = "link 3: no device leads to 203.0.113.9: name its device";

impl Bed {
    /// What the program prints, in JSON, its errors, and its exit code.
    fn outcome(&self, args: &[&str]) -> (Value, String, Option<i32>) {
        let output = self.run(self.command(args));
        let printed = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let errors = String::from_utf8(output.stderr).unwrap();
        (printed, errors, output.status.code())
    }

    fn rates(&self) -> Vec<u64> {
        let (printed, _, _) = self.outcome(&["show", "--json"]);
        let rows = printed.as_array().cloned().unwrap_or_default();
        rows.iter()
            .filter_map(|row| row["limit"].as_u64())
            .collect()
    }
}

#[test]
fn a_missing_device_and_a_missing_route_stop_no_other_limit() {
    let Some(bed) = Bed::new() else { return };
    let file = bed.file("links.toml", THREE);
    let args = ["apply", "--links", &file, "--json"];
    let (printed, errors, code) = bed.outcome(&args);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains(NO_DEVICE), "{errors}");
    assert!(errors.contains(NO_ROUTE), "{errors}");
    let failed = json!([
        { "device": "gone", "error": NO_DEVICE },
        { "link": "link 3", "error": "no device leads to 203.0.113.9: name its device" },
    ]);
    assert_eq!(
        (&printed["added"], &printed["failed"]),
        (&json!(2), &failed)
    );
    assert_eq!(bed.rates(), [500_000; 2]);
    let (_, errors, code) = bed.outcome(&["apply", "--links", &file, "--dry-run"]);
    assert!(errors.contains(NO_DEVICE) && code == Some(1), "{errors}");
    // What a link has stays while the route to it is away.
    bed.sh("ip addr add 203.0.113.1/24 dev ens33");
    bed.outcome(&args);
    assert_eq!(bed.rates(), [500_000, 500_000, 2_000_000, 2_000_000]);
    bed.sh("ip addr del 203.0.113.1/24 dev ens33");
    let (_, errors, code) = bed.outcome(&args);
    assert!(errors.contains(NO_ROUTE) && code == Some(1), "{errors}");
    assert_eq!(bed.rates(), [500_000, 500_000, 2_000_000, 2_000_000]);
    bed.limit(&["reset"]);
    assert_eq!(bed.rates(), [0; 0]);
}

#[test]
fn a_device_whose_limits_cannot_be_read_or_removed_keeps_no_other_from_it() {
    let Some(bed) = Bed::new() else { return };
    bed.sh("ip link add name b type veth peer name bfar; ip link set dev b up");
    let file = bed.file(
        "links.toml",
        "[[link]]\naddress = '192.168.17.129'\nrate = '500kbit'\n\
         [[link]]\naddress = '10.7.0.1'\ndevice = 'b'\nrate = '1mbit'\n",
    );
    bed.limit(&["apply", "--links", &file]);
    // Limits that are set up only in part cannot be shown.
    bed.sh("tc filter del dev b parent 4857: pref 18523");
    let (printed, errors, code) = bed.outcome(&["show", "--json"]);
    assert_eq!(code, Some(1), "{errors}");
    let error = "the limits of b are set up only in part: apply them again";
    assert!(errors.contains(error), "{errors}");
    let rows = printed.as_array().unwrap();
    assert!(
        rows.contains(&json!({ "device": "b", "error": error })),
        "{printed}"
    );
    assert_eq!(bed.rates(), [500_000; 2]);
    let (_, errors, code) = bed.outcome(&["reset", "--device", "gone", "--device", "ens33"]);
    assert!(errors.contains(NO_DEVICE) && code == Some(1), "{errors}");
    bed.limit(&["reset", "--device", "b"]);
    assert_eq!(bed.rates(), [0; 0]);
}

#[test]
fn what_remains_of_a_device_and_stays_keeps_no_other_from_its_limits() {
    let Some(bed) = Bed::new() else { return };
    bed.sh("ip link add name b type veth peer name bfar; ip link set dev b up");
    let one = "[[link]]\naddress = '192.168.17.129'\nrate = '500kbit'\n";
    let two = format!("{one}[[link]]\naddress = '10.7.0.1'\ndevice = 'b'\nrate = '1mbit'\n");
    bed.limit(&["apply", "--links", &bed.file("links.toml", &two)]);
    let index = bed.sh("ip -o link show dev b | cut -d: -f1");
    let name = format!("hawser{}-1", index.trim());
    bed.sh("ip link del dev b");
    // Without the capability the kernel refuses to remove what remains. No limit has to change.
    let weak = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command
            .args(["--bounding-set", "-net_admin", "--inh-caps", "-net_admin"])
            .args([env!("CARGO_BIN_EXE_hawser"), "limit"])
            .args(args);
        let output = bed.run(command);
        let text = String::from_utf8(output.stdout).unwrap() + "\n";
        let text = text + &String::from_utf8(output.stderr).unwrap();
        (text, output.status.code())
    };
    let remains =
        format!("cannot remove {name}, which is left of the limits of a device that is gone");
    let (text, code) = weak(&["apply", "--links", &bed.file("links.toml", one)]);
    assert!(
        text.contains(&remains) && text.contains("no changes needed"),
        "{text}"
    );
    assert_eq!(code, Some(0), "{text}");
    // A reset does the rest, and says what it could not do.
    let (text, code) = weak(&["reset"]);
    assert!(
        text.contains(&remains) && text.contains("not allowed to limit ens33"),
        "{text}"
    );
    assert_eq!(code, Some(1), "{text}");
    bed.limit(&["reset"]);
    assert!(!bed.printed().contains(&name));
}

#[test]
fn a_device_that_appears_gets_its_limits() {
    let Some(bed) = Bed::new() else { return };
    let file = bed.file("links.toml", THREE);
    let mut command = bed.command(&["watch", "--links", &file]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut service = bed.namespace.run(|| command.spawn()).unwrap().unwrap();
    let errors = BufReader::new(service.stderr.take().unwrap()).lines();
    let mut errors = errors.map(Result::unwrap);
    let mut said = BufReader::new(service.stdout.take().unwrap()).lines();
    assert!(errors.any(|line| line.contains(NO_DEVICE)));
    assert!(errors.any(|line| line.contains(NO_ROUTE)));
    assert_eq!(
        said.next().unwrap().unwrap(),
        "limits: 2 added, 0 changed, 0 removed"
    );
    bed.sh(
        "ip link add name gone type veth peer name gfar; ip link set dev gone up; \
         ip addr add 203.0.113.1/24 dev gone",
    );
    let start = Instant::now();
    while bed.rates().len() < 6 {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{:?}",
            bed.rates()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = rustix::process::Pid::from_child(&service);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(service.wait().unwrap().success());
}

//! A port mapped by miniupnpd, where it is installed: by NAT-PMP, and by UPnP where the gateway knows no
//! NAT-PMP. Host and gateway are network namespaces of their own.

#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hawser_client::{PortMapper, PortMapping};

const PORT: u16 = 6881;

/// Longest time for a mapping.
const PATIENCE: Duration = Duration::from_secs(300);

#[test]
fn a_port_is_mapped_by_nat_pmp() {
    behind_a_gateway("yes");
}

#[test]
fn a_port_is_mapped_by_upnp_where_the_gateway_knows_no_nat_pmp() {
    behind_a_gateway("no");
}

/// Runs [`the_port_is_mapped_and_unmapped`] behind a gateway.
fn behind_a_gateway(natpmp: &str) {
    let Some(daemon) = installed("miniupnpd") else {
        return println!("skipped: miniupnpd is not installed");
    };
    for program in ["unshare", "nsenter", "ip", "nft"] {
        if installed(program).is_none() {
            return println!("skipped: {program} is not installed");
        }
    }
    let isolated = ["--user", "--map-root-user", "--net"];
    let allowed = Command::new("unshare").args(isolated).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        return println!("skipped: this user may not make a network namespace");
    }
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/network.sh");
    let output = Command::new("unshare")
        .args(isolated)
        .arg("sh")
        .arg(script)
        .arg(folder.path())
        .arg(daemon)
        .arg(natpmp)
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg("the_port_is_mapped_and_unmapped")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    let log = fs::read(folder.path().join("log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    assert!(output.status.success(), "{said}\n{failed}\n{log}");
    assert!(said.contains("1 passed"), "nothing was run");
}

fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let mut files = folders.map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}

#[tokio::test]
#[ignore = "run by the tests above, behind a gateway"]
async fn the_port_is_mapped_and_unmapped() {
    let mapper = PortMapper::start(PORT, None);
    let mut state = mapper.state();
    let expected = PortMapping::Mapped {
        address: Some([93, 184, 216, 34].into()),
        tcp: Some(PORT),
        udp: Some(PORT),
    };
    let mapped = state.wait_for(|state| *state == expected);
    let mapped = tokio::time::timeout(PATIENCE, mapped).await.is_ok();
    assert!(mapped, "{:?}", *mapper.state().borrow());
    assert_eq!(rules(), 2);
    mapper.stop().await;
    assert_eq!(rules(), 0);
}

/// Number of rules of the gateway that lead the port to this host: one for each protocol.
fn rules() -> usize {
    let folder = PathBuf::from(std::env::var_os("GATEWAY_FOLDER").unwrap());
    let at_gateway = fs::read_to_string(folder.join("at_gateway")).unwrap();
    let script = format!("{} nft list ruleset", at_gateway.trim());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed = String::from_utf8(output.stdout).unwrap();
    let to_here = format!("10.9.0.2:{PORT}");
    let rules = listed.lines();
    rules
        .filter(|line| line.contains("dnat") && line.contains(&to_here))
        .count()
}

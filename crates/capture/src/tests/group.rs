//! Tests of control groups.

use std::io;
use std::net::TcpStream;

use super::network::{Arrived, Network, PORT, captured, through};
use super::process;
use crate::group::Version;
use crate::{Group, GroupError, Redirect, Wanted};

const MARK: u32 = 0x4857;
const TO: &str = "10.1.0.7";

/// Connects in a new process, in the group if there is one.
fn connect(network: &Network, group: Option<&Group>) -> Arrived {
    let mut command = process::command("tests::group::connects_when_started_inside");
    if let Some(group) = group {
        group.entry().unwrap().enter_by(&mut command);
    }
    let run = || command.output();
    let output: io::Result<std::process::Output> = network.host.run(run).unwrap();
    let output = output.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("1 passed"), "{printed}");
    network.accept()
}

#[test]
fn connects_when_started_inside() {
    if process::is_inside() {
        TcpStream::connect((TO, PORT)).unwrap();
    }
}

#[test]
fn only_processes_of_the_group_are_captured() {
    let Some(network) = Network::create() else {
        return;
    };
    let create = |group: &Group| {
        let wanted = Wanted::new(network.port(), MARK)
            .with_prefixes(["10.1.0.0/16".parse().unwrap()])
            .with_scope(group.scope());
        let create = || Redirect::create("hawser-test", &wanted).unwrap();
        network.host.run(create).unwrap()
    };
    let versions = [Version::Two, Version::NetCls];
    let groups = versions
        .map(Group::create_of)
        .into_iter()
        .filter_map(|group| match group {
            Ok(group) => Some(group),
            Err(GroupError::Unsupported) => None,
            Err(error) => panic!("{error}"),
        });
    let groups: Vec<_> = groups.collect();
    assert!(!groups.is_empty());
    for group in &groups {
        let redirect = create(group);
        assert_eq!(connect(&network, Some(group)), captured(TO));
        assert_eq!(connect(&network, None), through(TO));
        for other in groups.iter().filter(|other| other.scope() != group.scope()) {
            assert_eq!(connect(&network, Some(other)), through(TO));
        }
        drop(redirect);
        assert_eq!(connect(&network, Some(group)), through(TO));
    }
}

//! Tests of the life of groups.

use hawser_kernel::namespace::is_privileged;

use super::*;
use crate::tests::process;

/// Whether the group's directory still exists.
fn exists(directory: &OwnedFd) -> bool {
    // A directory that was removed has no entries.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    openat(directory, "cgroup.procs", flags, Mode::empty()).is_ok()
}

fn privileged() -> bool {
    let privileged = is_privileged();
    if !privileged {
        eprintln!("skipped: needs root");
    }
    privileged
}

#[test]
fn waits_when_started_inside() {
    if process::is_inside() {
        println!("started");
        std::io::stdin().read_line(&mut String::new()).unwrap();
    }
}

#[test]
fn a_group_in_use_stays_until_its_process_ends() {
    if !privileged() {
        return;
    }
    for version in [Version::Two, Version::NetCls] {
        let group = match Group::create_of(version) {
            Err(GroupError::Unsupported) => continue,
            other => other.unwrap(),
        };
        let mut command = process::command("group::tests::waits_when_started_inside");
        group.entry().unwrap().enter_by(&mut command);
        let mut child = command.spawn().unwrap();
        process::read_until(&mut child, "started");
        let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
        assert!(groups.contains(&group.name), "{groups}");

        // As if the program that made the group had been killed.
        let directory = directory(group.hierarchy.own.as_fd(), &group.name).unwrap();
        drop(group);
        Group::remove_leftovers();
        assert!(exists(&directory));
        child.kill().unwrap();
        child.wait().unwrap();
        Group::remove_leftovers();
        assert!(!exists(&directory));
    }
}

#[test]
fn an_empty_group_stays_until_it_is_dropped() {
    if !privileged() {
        return;
    }
    let groups = [Group::create().unwrap(), Group::create().unwrap()];
    assert_ne!(groups[0].scope(), groups[1].scope());
    let opened = groups.each_ref().map(|group| {
        let own = group.hierarchy.own.as_fd();
        directory(own, &group.name).unwrap()
    });
    Group::remove_leftovers();
    assert!(opened.iter().all(exists));
    drop(groups);
    assert!(!opened.iter().any(exists));
}

//! The judgement of facts: pure functions, one for each subject.

mod clock;
mod disk;
mod keys;
mod network;
mod paths;
mod rights;
mod routers;
mod sockets;
#[cfg(test)]
mod tests;
mod trust;

use hawser_topology::rough_duration;

use crate::code::Code;
use crate::facts::Facts;
use crate::finding::Finding;

/// The problems that the facts show, the most severe first.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    clock::check(facts, &mut findings);
    network::check(facts, &mut findings);
    routers::check(facts, &mut findings);
    paths::check(facts, &mut findings);
    sockets::check(facts, &mut findings);
    trust::check(facts, &mut findings);
    keys::check(facts, &mut findings);
    disk::check(facts, &mut findings);
    rights::check(facts, &mut findings);
    for (what, given) in &facts.late {
        findings.push(Finding::warning(
            Code::CheckTimeout,
            format!("looking at {what} did not end within {given:?}"),
            "look whether a file system or service that it needs hangs, or give it longer with \
             --timeout",
        ));
    }
    findings.sort_by_key(|finding| (finding.severity, finding.code));
    findings
}

/// A time before or after now, for people.
fn ago(now: u64, then: u64) -> String {
    rough_duration(now.abs_diff(then))
}

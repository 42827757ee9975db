//! A sequence compiled into the steps of an automaton, so that the time for matching is
//! proportional to the length of the path times that of the sequence.

use crate::path::Crossing;
use crate::predicate::Predicate;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Matches one AS, then continues at the next step.
    Cross(Predicate),
    /// Continues at either of two steps, given as offsets from this one.
    Fork(isize, isize),
}

/// The steps for two alternatives.
pub(super) fn either(one: Vec<Step>, other: Vec<Step>) -> Vec<Step> {
    let (to_other, to_end) = (one.len() as isize + 2, other.len() as isize + 1);
    let mut steps = vec![Step::Fork(1, to_other)];
    steps.extend(one);
    steps.push(Step::Fork(to_end, to_end));
    steps.extend(other);
    steps
}

/// The steps, made optional if `optional` and repeatable if `again`.
pub(super) fn repeat(inner: Vec<Step>, optional: bool, again: bool) -> Vec<Step> {
    let length = inner.len() as isize;
    let mut steps = Vec::with_capacity(inner.len() + 2);
    if optional {
        steps.push(Step::Fork(1, length + 1 + isize::from(again)));
    }
    steps.extend(inner);
    if again {
        steps.push(Step::Fork(-length, 1));
    }
    steps
}

/// Whether the steps match exactly these ASes.
pub(super) fn accept(steps: &[Step], path: &[Crossing]) -> bool {
    let mut places = reach(steps, vec![0]);
    for crossing in path {
        let crossed = steps.iter().enumerate().filter_map(|(at, step)| {
            matches!(step, Step::Cross(hop) if places[at] && hop.is_crossed(crossing))
                .then_some(at + 1)
        });
        places = reach(steps, crossed.collect());
    }
    // One past the last step is the end.
    places[steps.len()]
}

/// The steps that can be reached from those of `open` over forks, and those of `open` themselves.
fn reach(steps: &[Step], mut open: Vec<usize>) -> Vec<bool> {
    let mut places = vec![false; steps.len() + 1];
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut places[at], true) {
            continue;
        }
        if let Some(Step::Fork(one, other)) = steps.get(at) {
            open.extend([one, other].map(|by| at.saturating_add_signed(*by)));
        }
    }
    places
}

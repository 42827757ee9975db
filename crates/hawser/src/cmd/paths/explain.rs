//! `hawser paths --explain`: the verdict on each path, and its reason.

use hawser_endhost::Path;
use hawser_path::show::Chosen;
use hawser_path::{Explanation, Interface, Policy, Reason, Select, explain};

use crate::cmd::choose;

/// Sorts all paths in the order in which they are picked, and returns the verdict on each.
pub fn order(
    paths: &mut Vec<Path>,
    policy: Option<&Policy>,
    select: Select,
    most: usize,
) -> (Vec<Explanation>, Chosen) {
    choose::sort(paths);
    let policies = policy.map_or(&[][..], std::slice::from_ref);
    let explained = explain(paths, policies, &select, most);
    let in_order = |at: &usize| {
        let explanation = explained.explanations.get(*at)?;
        Some((paths.get(*at)?.clone(), explanation.clone()))
    };
    let (ordered, explanations) = explained.order.iter().filter_map(in_order).unzip();
    *paths = ordered;
    let chosen = Chosen {
        select,
        max_paths: most,
        ignored: explained.ignored,
    };
    (explanations, chosen)
}

/// Whether a policy leaves the path.
pub fn is_refused(explanation: &Explanation) -> bool {
    matches!(explanation.reason, Reason::Policy { .. })
}

/// How many paths policies leave, and why the first of them.
pub fn refused(explanations: &[Explanation]) -> Option<(usize, Reason)> {
    let mut left = explanations.iter().filter(|one| is_refused(one));
    let first = left.next()?.reason.clone();
    Some((1 + left.count(), first))
}

/// How paths were chosen.
pub fn heading(chosen: &Chosen) -> Vec<String> {
    let (select, most) = (&chosen.select, chosen.max_paths);
    let plural = if most == 1 { "" } else { "s" };
    let mut lines = vec![format!("Picked by {select}, at most {most} path{plural}")];
    if !chosen.ignored.is_empty() {
        let ignored: Vec<String> = chosen.ignored.iter().map(Interface::to_string).collect();
        lines.push(format!(
            "Not counted, since every path crosses them: {}",
            ignored.join(", ")
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_names_the_strategy_and_the_most_paths() {
        let select: Select = "latency,spread:40%".parse().unwrap();
        let (explanations, chosen) = order(&mut Vec::new(), None, select, 2);
        assert!(explanations.is_empty());
        let expected = ["Picked by latency,spread:40%, at most 2 paths"];
        assert_eq!(heading(&chosen), expected);
    }
}

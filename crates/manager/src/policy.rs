//! Which paths a policy allows.

use std::collections::BTreeMap;

use hawser_path::{Fingerprint, Path, Policy, Reason};

/// The paths among `offered` that `policy` denies, and why. The policy judges all of them together.
pub fn denied<P: AsRef<Path>>(
    policy: Option<&Policy>,
    offered: &[P],
) -> BTreeMap<Fingerprint, Reason> {
    let judged = policy.map_or_else(Vec::new, |policy| policy.filter(offered));
    let left = offered.iter().zip(judged);
    left.filter_map(|(path, judged)| Some((path.as_ref().fingerprint(), judged.err()?)))
        .collect()
}

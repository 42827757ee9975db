//! Interfaces that several paths of a session share. MPTCP's subflows, and QUIC's connections, control
//! their congestion each for itself: over a link that two of them share they get two shares of it.

use std::collections::BTreeMap;

use hawser_path::{Fingerprint, Interface, Path};

/// The interfaces that are on several paths, and the first two of these.
pub(super) fn shared<'a>(
    paths: impl Iterator<Item = &'a Path>,
) -> BTreeMap<Interface, [Fingerprint; 2]> {
    let paths: Vec<&Path> = paths.collect();
    let mut shared = BTreeMap::new();
    for (index, one) in paths.iter().enumerate() {
        for other in &paths[index + 1..] {
            let pair = [one.fingerprint(), other.fingerprint()];
            // A lane takes the place of one over the same path.
            if pair[0] != pair[1] {
                for interface in one.shared(other) {
                    shared.entry(interface).or_insert(pair);
                }
            }
        }
    }
    shared
}

#[cfg(test)]
mod tests {
    use hawser_path::Metadata;

    use super::*;

    fn path(interfaces: &[&str]) -> Path {
        let interfaces: Vec<Interface> =
            interfaces.iter().map(|one| one.parse().unwrap()).collect();
        let ends = [interfaces.first(), interfaces.last()].map(|one| one.unwrap().isd_as);
        Path::new(ends[0], ends[1], interfaces, Metadata::default()).unwrap()
    }

    #[test]
    fn an_interface_is_shared_by_different_paths_only() {
        let one = path(&["1-ff00:0:1#1", "1-ff00:0:2#1"]);
        let other = path(&["1-ff00:0:1#2", "1-ff00:0:2#2"]);
        let third = path(&[
            "1-ff00:0:1#2",
            "1-ff00:0:3#1",
            "1-ff00:0:3#2",
            "1-ff00:0:2#1",
        ]);
        assert!(shared([&one, &other].into_iter()).is_empty());
        assert!(shared([&one, &one].into_iter()).is_empty());
        let all = shared([&one, &other, &third].into_iter());
        let names: Vec<String> = all.keys().map(ToString::to_string).collect();
        assert_eq!(names, ["1-ff00:0:1#2", "1-ff00:0:2#1"]);
        let pairs: Vec<_> = all.into_values().collect();
        let third = third.fingerprint();
        assert_eq!(
            pairs,
            [[other.fingerprint(), third], [one.fingerprint(), third]]
        );
    }
}

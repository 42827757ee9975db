//! The network of scionproto's tests, and its shortest paths.

use std::collections::VecDeque;
use std::sync::Arc;

use hawser_address::IsdAsn;

use crate::{Interface, Metadata, Path};

/// Its ASes, each with the numbers of its routers.
const ASES: [(&str, &[u16]); 16] = [
    ("1-ff00:0:110", &[11]),
    ("1-ff00:0:111", &[14, 27, 28]),
    ("1-ff00:0:112", &[17]),
    ("1-ff00:0:120", &[12, 29, 30, 31]),
    ("1-ff00:0:121", &[15]),
    ("1-ff00:0:122", &[18]),
    ("1-ff00:0:130", &[13, 32]),
    ("1-ff00:0:131", &[16]),
    ("1-ff00:0:132", &[19]),
    ("1-ff00:0:133", &[10]),
    ("2-ff00:0:210", &[21, 33]),
    ("2-ff00:0:211", &[23, 34]),
    ("2-ff00:0:212", &[25]),
    ("2-ff00:0:220", &[22]),
    ("2-ff00:0:221", &[24]),
    ("2-ff00:0:222", &[26]),
];

/// Its links, as the routers at both ends. The number of an interface is that of its router
/// followed by that of the router at the other end.
const LINKS: [(u16, u16); 29] = [
    (11, 29),
    (11, 13),
    (11, 21),
    (29, 32),
    (30, 22),
    (31, 22),
    (30, 15),
    (12, 27),
    (13, 16),
    (32, 14),
    (13, 17),
    (28, 15),
    (27, 23),
    (28, 23),
    (14, 17),
    (15, 16),
    (15, 18),
    (18, 10),
    (16, 19),
    (19, 10),
    (21, 22),
    (21, 23),
    (33, 23),
    (22, 24),
    (23, 24),
    (23, 25),
    (34, 25),
    (23, 26),
    (24, 26),
];

fn of(router: u16) -> IsdAsn {
    let (isd_as, _) = ASES
        .iter()
        .find(|(_, routers)| routers.contains(&router))
        .unwrap();
    isd_as.parse().unwrap()
}

/// The shortest paths from one AS to another, over links of any kind, in a fixed order.
pub fn paths(src: &str, dst: &str) -> Vec<Arc<Path>> {
    let (src, dst): (IsdAsn, IsdAsn) = (src.parse().unwrap(), dst.parse().unwrap());
    let links = || LINKS.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    let interface = |here, there| Interface {
        isd_as: of(here),
        id: 100 * here + there,
    };
    let mut found: Vec<Vec<Interface>> = Vec::new();
    let mut queue = VecDeque::from([(src, Vec::<Interface>::new())]);
    while let Some((at, over)) = queue.pop_front() {
        if found.first().is_some_and(|first| over.len() > first.len()) {
            break;
        }
        if at == dst {
            found.push(over);
            continue;
        }
        for (here, there) in links().filter(|(here, _)| of(*here) == at) {
            let next = of(there);
            if next != src && over.iter().all(|one| one.isd_as != next) {
                let step = [interface(here, there), interface(there, here)];
                queue.push_back((next, [over.clone(), step.to_vec()].concat()));
            }
        }
    }
    let path = |over| Arc::new(Path::new(src, dst, over, Metadata::default()).unwrap());
    found.into_iter().map(path).collect()
}

#[test]
fn paths_are_those_of_scionproto() {
    assert_eq!(paths("2-ff00:0:212", "2-ff00:0:212").len(), 1);
    let one = &paths("1-ff00:0:133", "1-ff00:0:131")[0];
    assert_eq!(
        one.to_string(),
        "1-ff00:0:133 1019>1910 1-ff00:0:132 1916>1619 1-ff00:0:131"
    );
}

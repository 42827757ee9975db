//! Paths for tests, written as they are printed.

use hawser_address::IsdAsn;

use crate::{Interface, Metadata, Path};

/// AS number `n` of ISD 1.
pub(crate) fn isd_as(n: u64) -> IsdAsn {
    IsdAsn(0x0001_ff00_0000_0000 + n)
}

/// A path as it is printed, with plain numbers for ASes: `4 1>2 2 1>1 1`.
pub(crate) fn path(text: &str) -> Path {
    let words: Vec<&str> = text.split(' ').collect();
    let ases: Vec<IsdAsn> = words
        .iter()
        .step_by(2)
        .map(|word| isd_as(word.parse().unwrap()))
        .collect();
    let links = words.iter().skip(1).step_by(2);
    let interfaces = links.zip(ases.windows(2)).flat_map(|(link, ends)| {
        let (out, into) = link.split_once('>').unwrap();
        let interface = |isd_as, id: &str| Interface {
            isd_as,
            id: id.parse().unwrap(),
        };
        [interface(ends[0], out), interface(ends[1], into)]
    });
    let (src, dst) = (ases[0], *ases.last().unwrap());
    Path::new(src, dst, interfaces.collect(), Metadata::default()).unwrap()
}

pub(crate) fn paths(texts: &[&str]) -> Vec<Path> {
    texts.iter().map(|text| path(text)).collect()
}

/// A pseudorandom number from -1 to 1, always the same for the same arguments.
pub(crate) fn noise(seed: u64, at: u64) -> f64 {
    let mixed = fastrand::Rng::with_seed(seed).u64(..) ^ at;
    fastrand::Rng::with_seed(mixed).f64() * 2.0 - 1.0
}

//! A path from one AS to another.

use std::time::Duration;
use std::{fmt, iter};

use hawser_address::IsdAsn;

use crate::{Fingerprint, Interface, Metadata};

/// A path from one AS to another, as the control plane describes it.
///
/// Printed as scionproto prints it: `1-ff00:0:111 1>2 1-ff00:0:110`.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The AS the path begins in.
    pub src: IsdAsn,
    /// The AS the path ends in.
    pub dst: IsdAsn,
    /// The interfaces it crosses: out of `src`, into the next AS, out of that one, and so on, into
    /// `dst`. Their number is even; there are none when `src` is `dst`.
    pub interfaces: Vec<Interface>,
    /// The announcements of the ASes on the path.
    pub metadata: Metadata,
}

/// The error of [`Path::new`]: the parts do not form a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a path from {src} to {dst} {why}")]
pub struct PathError {
    /// Where the path should begin.
    pub src: IsdAsn,
    /// Where the path should end.
    pub dst: IsdAsn,
    /// The fault, such as `has no interfaces`.
    pub why: String,
}

/// An AS on a path with its ingress and egress interface, 0 where an end of the path has none.
/// Printed as `1-ff00:0:110#2,3`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crossing {
    pub isd_as: IsdAsn,
    pub ingress: u16,
    pub egress: u16,
}

impl Path {
    /// Builds a path after checking that the interfaces lead from `src` to `dst`, AS by AS, and
    /// that the lists of `metadata` have the lengths that [`Metadata`] requires, or are empty.
    ///
    /// # Errors
    /// [`PathError`] names the interface or list that does not fit.
    pub fn new(
        src: IsdAsn,
        dst: IsdAsn,
        interfaces: Vec<Interface>,
        metadata: Metadata,
    ) -> Result<Self, PathError> {
        let path = Self {
            src,
            dst,
            interfaces,
            metadata,
        };
        match path.fault() {
            Some(why) => Err(PathError { src, dst, why }),
            None => Ok(path),
        }
    }

    fn fault(&self) -> Option<String> {
        let (count, links) = (self.interfaces.len(), self.links());
        if count == 0 && self.src != self.dst {
            return Some("has no interfaces: only a path inside one AS has none".to_owned());
        }
        if !count.is_multiple_of(2) {
            return Some(format!(
                "has {count} interfaces, an odd number: a link has two ends"
            ));
        }
        let leaving = self.interfaces.iter().step_by(2).zip(self.ases());
        let arriving = self.interfaces.last().map(|last| (last, self.dst));
        let mut ends = leaving.chain(arriving);
        let misplaced = ends.find(|(interface, expected)| interface.isd_as != *expected);
        if let Some((interface, expected)) = misplaced {
            return Some(format!(
                "is broken at {interface}: expected an interface of {expected}"
            ));
        }
        let metadata = &self.metadata;
        let between = count.saturating_sub(1);
        let lists = [
            ("latency", metadata.latency.len(), between),
            ("bandwidth", metadata.bandwidth.len(), between),
            ("geo", metadata.geo.len(), count),
            ("link types", metadata.link_types.len(), links),
            (
                "internal hops",
                metadata.internal_hops.len(),
                links.saturating_sub(1),
            ),
            ("notes", metadata.notes.len(), links + 1),
        ];
        let mut wrong = lists
            .iter()
            .filter(|(_, count, expected)| count != expected);
        let (list, count, expected) = wrong.find(|(_, count, _)| *count != 0)?;
        Some(format!(
            "has {count} entries of {list}: expected {expected} or none"
        ))
    }

    /// The path's fingerprint, the same in every refreshed copy of it.
    pub fn fingerprint(&self) -> Fingerprint {
        if self.interfaces.is_empty() {
            Fingerprint::local(self.src)
        } else {
            Fingerprint::of(&self.interfaces)
        }
    }

    /// The interfaces that both paths cross, in the order of this path. Two paths that cross the
    /// same interface share its link. This is the only rule for what counts as shared; a selection
    /// also ignores links that every path has to use.
    pub fn shared<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = Interface> + 'a {
        let ours = self.interfaces.iter().copied();
        ours.filter(|one| other.interfaces.contains(one))
    }

    /// The ASes on the path, both ends included, in order of travel.
    pub(crate) fn ases(&self) -> impl Iterator<Item = IsdAsn> {
        let entered = self.interfaces.iter().skip(1).step_by(2);
        iter::once(self.src).chain(entered.map(|interface| interface.isd_as))
    }

    /// Number of ASes on the path, both ends included, as `scion showpaths` counts hops.
    pub fn hops(&self) -> usize {
        self.links() + 1
    }

    /// Number of links on the path.
    pub fn links(&self) -> usize {
        self.interfaces.len() / 2
    }

    /// When the path expires, in seconds of Unix time.
    pub fn expiry(&self) -> u64 {
        self.metadata.expiry
    }

    /// The announced one-way delay from the first interface to the last; `None` when a part of it
    /// is not announced.
    pub fn latency(&self) -> Option<Duration> {
        if self.metadata.latency.len() != self.interfaces.len().saturating_sub(1) {
            return None;
        }
        self.metadata.latency.iter().copied().sum()
    }

    /// The path as scionproto's `sequence` policies match it, one `ISD-AS#IN,OUT` for each AS, with
    /// 0 for the missing interface at both ends: `1-ff00:0:111#0,1 1-ff00:0:110#2,3
    /// 1-ff00:0:112#1,0`. Empty for a path inside one AS.
    pub fn sequence(&self) -> String {
        let crossings = self.crossings();
        let texts: Vec<_> = crossings.iter().map(Crossing::to_string).collect();
        texts.join(" ")
    }

    /// The ASes it crosses, in order of travel; empty for a path inside one AS.
    pub(crate) fn crossings(&self) -> Vec<Crossing> {
        let interfaces = self.interfaces.iter().map(Some);
        let ends: Vec<_> = iter::once(None).chain(interfaces).chain([None]).collect();
        let id = |end: Option<&Interface>| end.map_or(0, |interface| interface.id);
        let crossings = ends.chunks_exact(2).filter_map(|ends| {
            Some(Crossing {
                isd_as: ends[0].or(ends[1])?.isd_as,
                ingress: id(ends[0]),
                egress: id(ends[1]),
            })
        });
        crossings.collect()
    }
}

impl fmt::Display for Crossing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{},{}", self.isd_as, self.ingress, self.egress)
    }
}

impl AsRef<Self> for Path {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.src)?;
        for link in self.interfaces.chunks_exact(2) {
            write!(f, " {}>{} {}", link[0].id, link[1].id, link[1].isd_as)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn isd_as(text: &str) -> IsdAsn {
        text.parse().unwrap()
    }

    fn interfaces(text: &str) -> Vec<Interface> {
        text.split_whitespace()
            .map(|one| one.parse().unwrap())
            .collect()
    }

    fn path(src: &str, dst: &str, over: &str) -> Result<Path, PathError> {
        Path::new(
            isd_as(src),
            isd_as(dst),
            interfaces(over),
            Metadata::default(),
        )
    }

    const THREE: &str = "1-ff00:0:111#1 1-ff00:0:110#2 1-ff00:0:110#3 1-ff00:0:112#1";

    #[test]
    fn prints_like_scionproto() {
        let path = path("1-ff00:0:111", "1-ff00:0:112", THREE).unwrap();
        assert_eq!(
            path.sequence(),
            "1-ff00:0:111#0,1 1-ff00:0:110#2,3 1-ff00:0:112#1,0"
        );
        assert_eq!(
            path.to_string(),
            "1-ff00:0:111 1>2 1-ff00:0:110 3>1 1-ff00:0:112"
        );
        assert_eq!((path.hops(), path.links()), (3, 2));
        assert_eq!(path.fingerprint(), Fingerprint::of(&interfaces(THREE)));
    }

    #[test]
    fn a_path_inside_one_as_crosses_nothing() {
        let path = path("1-ff00:0:111", "1-ff00:0:111", "").unwrap();
        assert_eq!((path.hops(), path.links()), (1, 0));
        assert_eq!(path.sequence(), "");
        assert_eq!(path.latency(), Some(Duration::ZERO));
        assert_eq!(path.fingerprint(), Fingerprint::local(path.src));
        assert_ne!(path.fingerprint(), Fingerprint::of(&[]));
    }

    #[test]
    fn rejects_interfaces_that_do_not_lead_from_src_to_dst() {
        let refused = |src, dst, over| path(src, dst, over).unwrap_err().to_string();
        assert_eq!(
            refused("1-ff00:0:111", "1-ff00:0:112", ""),
            "a path from 1-ff00:0:111 to 1-ff00:0:112 has no interfaces: \
             only a path inside one AS has none"
        );
        assert!(refused("1-ff00:0:111", "1-ff00:0:110", "1-ff00:0:111#1").contains("odd"));
        for (src, dst, over, at) in [
            ("1-ff00:0:113", "1-ff00:0:112", THREE, "1-ff00:0:111#1"),
            ("1-ff00:0:111", "1-ff00:0:113", THREE, "1-ff00:0:112#1"),
            (
                "1-ff00:0:111",
                "1-ff00:0:112",
                "1-ff00:0:111#1 1-ff00:0:110#2 1-ff00:0:119#3 1-ff00:0:112#1",
                "1-ff00:0:119#3",
            ),
        ] {
            assert!(refused(src, dst, over).contains(&format!("broken at {at}")));
        }
    }

    #[test]
    fn rejects_metadata_lists_of_wrong_length() {
        let new = |metadata| {
            let (src, dst) = (isd_as("1-ff00:0:111"), isd_as("1-ff00:0:112"));
            Path::new(src, dst, interfaces(THREE), metadata)
        };
        let whole = Metadata {
            latency: vec![None; 3],
            bandwidth: vec![None; 3],
            geo: vec![None; 4],
            link_types: vec![Default::default(); 2],
            internal_hops: vec![0; 1],
            notes: vec![String::new(); 3],
            ..Metadata::default()
        };
        assert!(new(whole.clone()).is_ok());
        let longer: [fn(&mut Metadata); 6] = [
            |m| m.latency.push(None),
            |m| m.bandwidth.push(None),
            |m| m.geo.push(None),
            |m| m.link_types.push(Default::default()),
            |m| m.internal_hops.push(0),
            |m| m.notes.push(String::new()),
        ];
        for lengthen in longer {
            let mut metadata = whole.clone();
            lengthen(&mut metadata);
            let error = new(metadata).unwrap_err().to_string();
            assert!(error.contains(" entries of ") && error.contains("expected"));
        }
    }

    #[test]
    fn latency_is_none_unless_every_part_is_announced() {
        let mut path = path("1-ff00:0:111", "1-ff00:0:112", THREE).unwrap();
        assert_eq!(path.latency(), None);
        let ms = |ms| Some(Duration::from_millis(ms));
        path.metadata.latency = vec![ms(5), ms(0), ms(7)];
        assert_eq!(path.latency(), ms(12));
        path.metadata.latency[1] = None;
        assert_eq!(path.latency(), None);
    }
}

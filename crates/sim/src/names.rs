//! How hosts and path-level peers of a swarm are told apart.

/// A host's number in the swarm; seeders have the lowest.
pub(crate) type HostId = u32;

/// A path-level peer: uploader, leecher, and which of the paths between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowKey {
    pub from: HostId,
    pub to: HostId,
    pub path: usize,
}

/// An uploader and a leecher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub from: HostId,
    pub to: HostId,
}

impl Pair {
    pub fn new(from: HostId, to: HostId) -> Self {
        Self { from, to }
    }

    pub fn flow(self, path: usize) -> FlowKey {
        FlowKey {
            from: self.from,
            to: self.to,
            path,
        }
    }
}

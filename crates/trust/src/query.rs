//! Queries for certificate chains.

use sciparse::identifier::isd_asn::IsdAsn;

use crate::certificate::Validity;

/// A query for the certificate chains that a signature can be checked with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainQuery {
    /// The AS.
    pub isd_as: IsdAsn,
    /// The identifier of the key.
    pub subject_key_id: Vec<u8>,
    /// The first Unix second at which they must be valid.
    pub since: u64,
    /// The last Unix second at which they must be valid.
    pub until: u64,
}

impl ChainQuery {
    /// Whether a chain of that validity is valid during all of the time queried.
    pub(crate) fn fits(&self, validity: Validity) -> bool {
        validity.contains(self.since) && validity.contains(self.until)
    }
}

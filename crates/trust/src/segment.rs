//! Verification of the signatures of a path segment.

use hawser_address::IsdAsn;
use hawser_proto::Message;
use hawser_proto::control_plane::{ASEntry, ASEntrySignedBody, PathSegment, SegmentInformation};

use crate::error::BoxError;
use crate::message::{self, Opened, is_signed_by};
use crate::store::{ChainQuery, Store};
use crate::trc::TrcId;

/// The reason why a segment cannot be verified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentVerifyError {
    /// The segment cannot be read.
    #[error("the segment cannot be read: {0}")]
    Format(String),
    /// The signature of the entry with this index was not made by the key that it names, or does
    /// not match the data.
    #[error("entry {0} of the segment has a wrong signature")]
    Signature(usize),
    /// An entry of one AS is signed by another AS.
    #[error("the segment's entry of AS {named} is signed by {signer}")]
    OtherSigner {
        /// The AS that the entry names.
        named: IsdAsn,
        /// The AS that signed it.
        signer: IsdAsn,
    },
    /// There is no trusted TRC that is valid.
    #[error("no TRC of ISD {0} is valid now: put the newest into the folder certs")]
    NoTrc(u16),
    /// The signature names a newer TRC, or one with another base.
    #[error("{isd_as} signed under {wanted}, but the newest known TRC is {known}: get {wanted}")]
    OtherTrc {
        /// The signer.
        isd_as: IsdAsn,
        /// The TRC that the signature names.
        wanted: TrcId,
        /// The newest known TRC.
        known: TrcId,
    },
    /// There is no certificate chain to verify a signature with.
    #[error("no certificate chain of AS {} is valid and rooted in a TRC: get one from a control service", .0.isd_as)]
    NoChain(ChainQuery),
}

/// The associated data of the signature of entry `at`: the segment information and all previous
/// entries with their signatures (SCION control plane, section "AS entry signature").
pub(crate) fn associated(segment: &PathSegment, at: usize) -> Vec<u8> {
    let mut bytes = segment.segment_info.clone();
    for signed in segment.as_entries[..at]
        .iter()
        .flat_map(|entry| &entry.signed)
    {
        bytes.extend_from_slice(&signed.header_and_body);
        bytes.extend_from_slice(&signed.signature);
    }
    bytes
}

/// The lifetime of a hop field in seconds, rounded down: `exp_time + 1` units of 1/256 day, which is
/// 337.5 s (SCION dataplane specification, "Hop Field").
fn lifetime(exp_time: u8) -> u64 {
    (u64::from(exp_time) + 1) * 675 / 2
}

/// The signed messages of a segment's entries, and the queries for the chains that verify them.
fn entries(segment: &PathSegment) -> Result<Vec<(Opened, ChainQuery)>, SegmentVerifyError> {
    let format = |reason: BoxError| SegmentVerifyError::Format(reason.to_string());
    let info = SegmentInformation::decode(segment.segment_info.as_slice());
    let info = info.map_err(|error| format(error.into()))?;
    let since = u64::try_from(info.timestamp);
    let since = since.map_err(|_| format("its timestamp is negative".into()))?;
    if segment.as_entries.is_empty() {
        return Err(format("it has no AS entries".into()));
    }
    let read = |entry: &ASEntry| -> Result<_, BoxError> {
        let opened = message::open(entry.signed.as_ref().ok_or("it is not signed")?)?;
        let body = ASEntrySignedBody::decode(opened.body.as_slice())?;
        let hop = body
            .hop_entry
            .as_ref()
            .and_then(|hop| hop.hop_field.as_ref());
        let units = u8::try_from(hop.map_or(0, |hop| hop.exp_time));
        Ok((opened, body, units.map_err(|_| "its expiry is above 255")?))
    };
    let entry = |(at, entry): (usize, &ASEntry)| {
        let (opened, body, units) =
            read(entry).map_err(|reason| format(format!("entry {at}: {reason}").into()))?;
        let (named, signer) = (body.isd_as.into(), IsdAsn::from_u64(opened.key.isd_as));
        if named != signer || signer.is_wildcard() {
            return Err(SegmentVerifyError::OtherSigner { named, signer });
        }
        let query = ChainQuery {
            isd_as: signer,
            subject_key_id: opened.key.subject_key_id.clone(),
            since,
            until: since.saturating_add(lifetime(units)),
        };
        Ok((opened, query))
    };
    segment.as_entries.iter().enumerate().map(entry).collect()
}

impl Store {
    /// The chains that [`Store::verify_segment`] needs and the store lacks. The caller requests
    /// them from a control service and passes them to [`Store::add_chain`].
    ///
    /// # Errors
    /// When the segment cannot be read.
    pub fn missing_chains(
        &self,
        segment: &PathSegment,
        now: u64,
    ) -> Result<Vec<ChainQuery>, SegmentVerifyError> {
        let mut missing: Vec<_> = entries(segment)?
            .into_iter()
            .map(|(_, query)| query)
            .filter(|query| self.active_chains(query, now).next().is_none())
            .collect();
        missing.sort();
        missing.dedup();
        Ok(missing)
    }

    /// Checks that each AS of a segment signed its entry and all previous ones with a key whose
    /// certificate is valid as long as the hop field and is rooted in a TRC of the store that is
    /// valid at `now` (Unix seconds). Does the same as scionproto's `segverifier.VerifySegment`.
    ///
    /// # Errors
    /// When a signature is wrong, or the chain or TRC to verify it with is missing.
    pub fn verify_segment(
        &self,
        segment: &PathSegment,
        now: u64,
    ) -> Result<(), SegmentVerifyError> {
        for (at, (opened, query)) in entries(segment)?.into_iter().enumerate() {
            let isd = query.isd_as.isd().to_u16();
            let known = self.newest(isd).filter(|trc| trc.validity().contains(now));
            let known = known.ok_or(SegmentVerifyError::NoTrc(isd))?.id();
            let wanted = TrcId {
                isd,
                base: opened.key.trc_base,
                serial: opened.key.trc_serial,
            };
            if wanted.base != known.base || wanted.serial > known.serial {
                return Err(SegmentVerifyError::OtherTrc {
                    isd_as: query.isd_as,
                    wanted,
                    known,
                });
            }
            let message = segment.as_entries[at].signed.as_ref();
            let message = message.ok_or(SegmentVerifyError::Signature(at))?;
            let before = associated(segment, at);
            let mut chains = self.active_chains(&query, now).peekable();
            if chains.peek().is_none() {
                return Err(SegmentVerifyError::NoChain(query.clone()));
            }
            if !chains.any(|chain| is_signed_by(message, &opened, chain.r#as(), &before)) {
                return Err(SegmentVerifyError::Signature(at));
            }
        }
        Ok(())
    }
}

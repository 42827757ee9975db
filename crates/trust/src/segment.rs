//! Whether a path segment is what its ASes signed.

use scion_protobuf::buffa::Message;
use scion_protobuf::proto::control_plane::v1::{
    ASEntrySignedBody, PathSegment, SegmentInformation,
};
use sciparse::dataplane_path::standard::types::exp_time_to_duration;
use sciparse::identifier::isd_asn::IsdAsn;

use crate::certificate::Validity;
use crate::message::{self, MessageError, Opened};
use crate::store::Store;
use crate::trc::TrcId;

/// The certificate chains that a signature can be checked with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainQuery {
    /// Whose.
    pub isd_as: IsdAsn,
    /// The identifier of the key.
    pub subject_key_id: Vec<u8>,
    /// The first second at which they must hold.
    pub since: u64,
    /// The last.
    pub until: u64,
}

/// Why a segment is not to be believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentVerifyError {
    /// It cannot be read.
    #[error("the segment cannot be read: {0}")]
    Format(String),
    /// A signed message in it cannot be read or believed.
    #[error("entry {at} of the segment: {source}")]
    Message {
        /// The place of the entry, from 0.
        at: usize,
        /// What is wrong.
        source: MessageError,
    },
    /// An entry of one AS is signed by another.
    #[error("the segment's entry of AS {said} is signed by {signed}")]
    OtherSigner {
        /// The AS that the entry names.
        said: IsdAsn,
        /// The AS that signed it.
        signed: IsdAsn,
    },
    /// There is no TRC to trust that holds.
    #[error("no TRC of ISD {0} that holds now: put it into the folder certs")]
    NoTrc(u16),
    /// The signer knows a newer TRC, or one of another base.
    #[error("{isd_as} signed with {wanted} in mind, but the newest known is {known}: get {wanted}")]
    OtherTrc {
        /// The signer.
        isd_as: IsdAsn,
        /// The TRC that the signature names.
        wanted: TrcId,
        /// The newest TRC at hand.
        known: TrcId,
    },
    /// The certificate chain is not at hand.
    #[error("no certificate chain of AS {} that holds and is rooted in a TRC: ask a control service for it", .0.isd_as)]
    NoChain(ChainQuery),
}

/// What a signature of the segment's entry at a place covers besides the entry: the segment's
/// information and all entries before, with their signatures (SCION control plane, section "AS
/// entry signature").
pub(crate) fn associated(segment: &PathSegment, at: usize) -> Vec<u8> {
    let mut bytes = segment.segment_info.clone();
    for entry in &segment.as_entries[..at] {
        bytes.extend_from_slice(&entry.signed.header_and_body);
        bytes.extend_from_slice(&entry.signed.signature);
    }
    bytes
}

/// An entry of a segment taken apart.
struct Entry {
    opened: Opened,
    isd_as: IsdAsn,
    query: ChainQuery,
}

fn entries(segment: &PathSegment) -> Result<Vec<Entry>, SegmentVerifyError> {
    let format = |e: scion_protobuf::buffa::DecodeError| SegmentVerifyError::Format(e.to_string());
    let info = SegmentInformation::decode_from_slice(&segment.segment_info).map_err(format)?;
    let since = u64::try_from(info.timestamp)
        .map_err(|_| SegmentVerifyError::Format("its timestamp is negative".to_owned()))?;
    if segment.as_entries.is_empty() {
        return Err(SegmentVerifyError::Format(
            "it has no AS entries".to_owned(),
        ));
    }
    let entries = segment.as_entries.iter().enumerate();
    let entry = |(at, entry): (usize, &scion_protobuf::proto::control_plane::v1::ASEntry)| {
        let opened = message::open(&entry.signed)
            .map_err(|source| SegmentVerifyError::Message { at, source })?;
        let body = ASEntrySignedBody::decode_from_slice(&opened.body).map_err(format)?;
        let (said, signed) = (body.isd_as.into(), IsdAsn::from_u64(opened.key.isd_as));
        if said != signed || signed.is_wildcard() {
            return Err(SegmentVerifyError::OtherSigner { said, signed });
        }
        let units = u8::try_from(body.hop_entry.hop_field.exp_time)
            .map_err(|_| SegmentVerifyError::Format("an expiry is above 255".to_owned()))?;
        Ok(Entry {
            isd_as: signed,
            query: ChainQuery {
                isd_as: signed,
                subject_key_id: opened.key.subject_key_id.clone(),
                since,
                until: since.saturating_add(exp_time_to_duration(units).as_secs()),
            },
            opened,
        })
    };
    entries.map(entry).collect()
}

impl Store {
    /// The chains that [`Store::verify_segment`] would need and that are not here: to be asked of a
    /// control service and given to [`Store::add_chain`].
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
            .map(|entry| entry.query)
            .filter(|query| self.active_chains(query, now).next().is_none())
            .collect();
        missing.sort();
        missing.dedup();
        Ok(missing)
    }

    /// Checks that each AS of a segment signed its entry and all before it, with a key whose
    /// certificate holds as long as its hop field and is rooted in a TRC here that holds at `now`
    /// (Unix seconds). As scionproto `segverifier.VerifySegment`.
    ///
    /// # Errors
    /// When one did not, or it cannot be told for want of a chain or a TRC.
    pub fn verify_segment(
        &self,
        segment: &PathSegment,
        now: u64,
    ) -> Result<(), SegmentVerifyError> {
        for (at, entry) in entries(segment)?.into_iter().enumerate() {
            let isd = entry.isd_as.isd().to_u16();
            let known = self.newest(isd).filter(|trc| trc.validity().contains(now));
            let known = known.ok_or(SegmentVerifyError::NoTrc(isd))?.id();
            let wanted = TrcId {
                isd,
                base: entry.opened.key.trc_base,
                serial: entry.opened.key.trc_serial,
            };
            if wanted.base != known.base || wanted.serial > known.serial {
                return Err(SegmentVerifyError::OtherTrc {
                    isd_as: entry.isd_as,
                    wanted,
                    known,
                });
            }
            let message = &segment.as_entries[at].signed;
            let before = associated(segment, at);
            let mut verdict = Err(SegmentVerifyError::NoChain(entry.query.clone()));
            for chain in self.active_chains(&entry.query, now) {
                verdict = message::verify(message, &entry.opened, chain.r#as(), &before)
                    .map_err(|source| SegmentVerifyError::Message { at, source });
                if verdict.is_ok() {
                    break;
                }
            }
            verdict?;
        }
        Ok(())
    }
}

/// Whether a chain holds all the time that a query asks for.
pub(crate) fn holds(validity: Validity, query: &ChainQuery) -> bool {
    validity.contains(query.since) && validity.contains(query.until)
}

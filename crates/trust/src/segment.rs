//! Verifying the signatures of a path segment.

use scion_protobuf::buffa::Message;
use scion_protobuf::proto::control_plane::v1::{
    ASEntrySignedBody, PathSegment, SegmentInformation,
};
use sciparse::dataplane_path::standard::types::exp_time_to_duration;
use sciparse::identifier::isd_asn::IsdAsn;

use crate::message::{self, MessageError, Opened};
use crate::query::ChainQuery;
use crate::store::Store;
use crate::trc::TrcId;

/// A segment that cannot be verified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentVerifyError {
    /// It cannot be read.
    #[error("the segment cannot be read: {0}")]
    Format(String),
    /// A signed message in it cannot be read, or its signature is wrong.
    #[error("entry {at} of the segment: {source}")]
    Message {
        /// The index of the entry.
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
    /// There is no trusted TRC that is valid.
    #[error("no TRC of ISD {0} is valid now: put the newest into the folder certs")]
    NoTrc(u16),
    /// The signer knows a newer TRC, or one of another base.
    #[error("{isd_as} signed under {wanted}, but the newest known TRC is {known}: get {wanted}")]
    OtherTrc {
        /// The signer.
        isd_as: IsdAsn,
        /// The TRC that the signature names.
        wanted: TrcId,
        /// The newest known TRC.
        known: TrcId,
    },
    /// The certificate chain is not known.
    #[error("no certificate chain of AS {} is valid and rooted in a TRC: ask a control service for one", .0.isd_as)]
    NoChain(ChainQuery),
}

/// The associated data of the signature of entry `at`: the segment's information and all entries
/// before, with their signatures (SCION control plane, section "AS entry signature").
pub(crate) fn associated(segment: &PathSegment, at: usize) -> Vec<u8> {
    let mut bytes = segment.segment_info.clone();
    for entry in &segment.as_entries[..at] {
        bytes.extend_from_slice(&entry.signed.header_and_body);
        bytes.extend_from_slice(&entry.signed.signature);
    }
    bytes
}

/// The parts of a segment's entry.
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
    /// The chains that [`Store::verify_segment`] needs and the store does not have: to be requested
    /// from a control service and passed to [`Store::add_chain`].
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
    /// certificate is valid as long as its hop field and is rooted in a TRC of the store that is
    /// valid at `now` (Unix seconds). As scionproto `segverifier.VerifySegment`.
    ///
    /// # Errors
    /// When a signature is wrong, or the chain or the TRC to check it with is missing.
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

//! The ASN.1 form of a TRC's payload (SCION CP-PKI, section "TRC format").

use der::asn1::{Any, GeneralizedTime};
use der::{Sequence, Tag, Tagged};
use sciparse::identifier::asn::Asn;
use sciparse::identifier::isd_asn::IsdAsn;

/// What a TRC says, before it is signed.
#[derive(Sequence)]
pub(crate) struct Payload {
    /// 0 is version 1.
    pub version: u8,
    pub id: PayloadId,
    pub validity: PayloadValidity,
    /// Seconds.
    pub grace_period: u64,
    pub no_trust_reset: bool,
    pub votes: Vec<u32>,
    pub quorum: u8,
    /// AS numbers as text.
    pub core: Vec<Any>,
    /// AS numbers as text.
    pub authoritative: Vec<Any>,
    pub description: String,
    pub certificates: Vec<Any>,
}

/// Which TRC it is.
#[derive(Sequence)]
pub(crate) struct PayloadId {
    pub isd: u64,
    pub serial: u64,
    pub base: u64,
}

/// When it holds.
#[derive(Sequence)]
pub(crate) struct PayloadValidity {
    pub not_before: GeneralizedTime,
    pub not_after: GeneralizedTime,
}

/// The AS number of an ISD-AS as a TRC has it.
pub(crate) fn as_text(isd_as: IsdAsn) -> der::Result<Any> {
    Any::new(Tag::PrintableString, isd_as.asn().to_string().into_bytes())
}

/// The AS numbers of a list, none when one is not a number of one AS.
pub(crate) fn as_numbers(texts: &[Any]) -> Option<Vec<Asn>> {
    let number = |text: &Any| {
        if !matches!(text.tag(), Tag::PrintableString | Tag::Utf8String) {
            return None;
        }
        let asn: Asn = std::str::from_utf8(text.value()).ok()?.parse().ok()?;
        (!asn.is_wildcard()).then_some(asn)
    };
    texts.iter().map(number).collect()
}

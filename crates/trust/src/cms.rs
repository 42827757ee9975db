//! Signed data in CMS (RFC 5652), as far as TRCs use it.
//!
//! The structures are written out here because signatures cover the signed
//! attributes in the order in which they stand in the file, which older tools
//! did not sort; a parser that sorts them cannot check such a signature.

use crate::{
    issue::{Holder, SignError, signature_algorithm, utc},
    key::Signs,
    oid,
};
use der::{
    Decode, Encode, Sequence, Tag, TagNumber, Tagged,
    asn1::{Any, ObjectIdentifier, OctetString, OctetStringRef, SetOfVec},
};
use ring::digest;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_cert::{attr::Attribute, name::Name, serial_number::SerialNumber};

/// RFC 5652, section 3.
#[derive(Sequence)]
pub(crate) struct ContentInfo {
    pub content_type: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    pub content: Any,
}

/// RFC 5652, section 5.1.
#[derive(Sequence)]
pub(crate) struct SignedData {
    pub version: u8,
    pub digest_algorithms: SetOfVec<AlgorithmIdentifierOwned>,
    pub content: EncapsulatedContent,
    #[asn1(
        context_specific = "0",
        tag_mode = "IMPLICIT",
        constructed = "true",
        optional = "true"
    )]
    pub certificates: Option<SetOfVec<Any>>,
    #[asn1(
        context_specific = "1",
        tag_mode = "IMPLICIT",
        constructed = "true",
        optional = "true"
    )]
    pub revocations: Option<SetOfVec<Any>>,
    /// Each a [`SignerInfo`].
    pub signers: SetOfVec<Any>,
}

/// RFC 5652, section 5.2.
#[derive(Sequence)]
pub(crate) struct EncapsulatedContent {
    pub content_type: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    pub content: OctetString,
}

/// RFC 5652, section 5.3; TRCs have signed attributes always.
#[derive(Sequence)]
pub(crate) struct SignerInfo {
    pub version: u8,
    pub signer: IssuerAndSerial,
    pub digest_algorithm: AlgorithmIdentifierOwned,
    /// `[0] IMPLICIT SET OF Attribute`, in the order of the file.
    pub signed: Any,
    pub signature_algorithm: AlgorithmIdentifierOwned,
    pub signature: OctetString,
    #[asn1(
        context_specific = "1",
        tag_mode = "IMPLICIT",
        constructed = "true",
        optional = "true"
    )]
    pub unsigned: Option<SetOfVec<Any>>,
}

/// RFC 5652, section 10.2.4.
#[derive(Sequence)]
pub(crate) struct IssuerAndSerial {
    pub issuer: Name,
    pub serial: SerialNumber,
}

/// The tag of the signed attributes in the file.
const SIGNED: Tag = Tag::ContextSpecific {
    constructed: true,
    number: TagNumber::N0,
};

/// Signs `content` with each of `signers`, at a Unix second.
pub(crate) fn sign(content: &[u8], signers: &[&Holder], at: u64) -> Result<Vec<u8>, SignError> {
    let mut algorithms = SetOfVec::new();
    let mut infos = SetOfVec::new();
    for signer in signers {
        let info = info(content, signer, at)?;
        if !algorithms.iter().any(|a| *a == info.digest_algorithm) {
            algorithms.insert(info.digest_algorithm.clone())?;
        }
        infos.insert(Any::encode_from(&info)?)?;
    }
    let data = SignedData {
        version: 1,
        digest_algorithms: algorithms,
        content: EncapsulatedContent {
            content_type: oid::DATA,
            content: OctetString::new(content)?,
        },
        certificates: None,
        revocations: None,
        signers: infos,
    };
    let info = ContentInfo {
        content_type: oid::SIGNED_DATA,
        content: Any::encode_from(&data)?,
    };
    Ok(info.to_der()?)
}

fn info(content: &[u8], signer: &Holder, at: u64) -> Result<SignerInfo, SignError> {
    let (digest_oid, hash) = match signer.key.signs {
        Signs::P256 => (oid::SHA256, &digest::SHA256),
        Signs::P384 => (oid::SHA384, &digest::SHA384),
    };
    let digest = digest::digest(hash, content);
    let attributes: SetOfVec<Attribute> = SetOfVec::try_from(vec![
        attribute(oid::CONTENT_TYPE, &oid::DATA)?,
        attribute(oid::SIGNING_TIME, &utc(at)?)?,
        attribute(oid::MESSAGE_DIGEST, &OctetStringRef::new(digest.as_ref())?)?,
    ])?;
    // RFC 5652, section 5.4: signed with the tag of a SET.
    let attributes = attributes.to_der()?;
    let signature = signer.key.sign(&attributes)?;
    let certificate = &signer.certificate.tbs_certificate;
    Ok(SignerInfo {
        version: 1,
        signer: IssuerAndSerial {
            issuer: certificate.issuer.clone(),
            serial: certificate.serial_number.clone(),
        },
        digest_algorithm: AlgorithmIdentifierOwned {
            oid: digest_oid,
            parameters: None,
        },
        signed: Any::new(SIGNED, Any::from_der(&attributes)?.value())?,
        signature_algorithm: signature_algorithm(signer.key.signs),
        signature: OctetString::new(signature)?,
        unsigned: None,
    })
}

fn attribute<T: Encode + Tagged + der::EncodeValue>(
    oid: ObjectIdentifier,
    value: &T,
) -> der::Result<Attribute> {
    Ok(Attribute {
        oid,
        values: SetOfVec::try_from(vec![Any::encode_from(value)?])?,
    })
}

//! Signed messages (`proto.crypto.v1.SignedMessage`).

use scion_protobuf::buffa::{EnumValue, Message};
use scion_protobuf::buffa_types::google::protobuf::Timestamp;
use scion_protobuf::proto::control_plane::v1::VerificationKeyID;
use scion_protobuf::proto::crypto::v1::{
    Header, HeaderAndBodyInternal, SignatureAlgorithm, SignedMessage,
};

use crate::certificate::Certificate;
use crate::ecdsa::Hash;
use crate::issue::SignError;
use crate::key::{Key, Signs};

/// Why a signed message cannot be read or believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// A part is not what it should be.
    #[error("the {what} of a signed message cannot be read: {reason}")]
    Format {
        /// Which part.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The signature is not of that key, or of something else.
    #[error("a signed message bears a wrong signature")]
    Signature,
}

/// A signed message taken apart. Nothing says yet that it is to be believed.
pub(crate) struct Opened {
    pub key: VerificationKeyID,
    pub body: Vec<u8>,
    hash: Hash,
    associated: usize,
}

fn format(what: &'static str) -> impl FnOnce(scion_protobuf::buffa::DecodeError) -> MessageError {
    move |error| MessageError::Format {
        what,
        reason: error.to_string(),
    }
}

/// Takes a message apart.
pub(crate) fn open(message: &SignedMessage) -> Result<Opened, MessageError> {
    let parts = HeaderAndBodyInternal::decode_from_slice(&message.header_and_body);
    let parts = parts.map_err(format("envelope"))?;
    let header = Header::decode_from_slice(&parts.header).map_err(format("header"))?;
    let key = VerificationKeyID::decode_from_slice(&header.verification_key_id);
    let key = key.map_err(format("key identifier"))?;
    let hash = match header.signature_algorithm {
        EnumValue::Known(SignatureAlgorithm::EcdsaWithSha256) => Some(Hash::Sha256),
        EnumValue::Known(SignatureAlgorithm::EcdsaWithSha384) => Some(Hash::Sha384),
        EnumValue::Known(SignatureAlgorithm::EcdsaWithSha512) => Some(Hash::Sha512),
        _ => None,
    };
    let broken = |reason: &str| MessageError::Format {
        what: "header",
        reason: reason.to_owned(),
    };
    Ok(Opened {
        key,
        body: parts.body,
        hash: hash.ok_or_else(|| broken("its signature algorithm is unknown"))?,
        associated: usize::try_from(header.associated_data_length)
            .map_err(|_| broken("its associated data have a negative length"))?,
    })
}

/// Checks that the key of `certificate` signed a message with `associated`.
pub(crate) fn verify(
    message: &SignedMessage,
    opened: &Opened,
    certificate: &Certificate,
    associated: &[u8],
) -> Result<(), MessageError> {
    let input = [&message.header_and_body, associated].concat();
    let key = certificate.key();
    if associated.len() == opened.associated
        && key.verifies(opened.hash, &input, &message.signature)
    {
        return Ok(());
    }
    Err(MessageError::Signature)
}

/// Signs a body and `associated`, which does not become part of the message, at a Unix second.
pub(crate) fn sign(
    key: &Key,
    key_id: &VerificationKeyID,
    body: Vec<u8>,
    associated: &[u8],
    at: u64,
) -> Result<SignedMessage, SignError> {
    let too_long = |_| SignError::Encode("too much is to be signed".to_owned());
    let header = Header {
        signature_algorithm: EnumValue::Known(match key.signs {
            Signs::P256 => SignatureAlgorithm::EcdsaWithSha256,
            Signs::P384 => SignatureAlgorithm::EcdsaWithSha384,
        }),
        verification_key_id: key_id.encode_to_vec(),
        timestamp: Some(Timestamp {
            seconds: i64::try_from(at).unwrap_or(i64::MAX),
            ..Timestamp::default()
        })
        .into(),
        associated_data_length: i32::try_from(associated.len()).map_err(too_long)?,
        ..Header::default()
    };
    let parts = HeaderAndBodyInternal {
        header: header.encode_to_vec(),
        body,
    };
    let mut input = parts.encode_to_vec();
    let length = input.len();
    input.extend_from_slice(associated);
    let signature = key.sign(&input)?;
    input.truncate(length);
    Ok(SignedMessage {
        header_and_body: input,
        signature,
    })
}

//! Signed messages (`proto.crypto.v1`).

use prost::{Enumeration, Message};

use crate::well_known::Timestamp;

/// How a message is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum SignatureAlgorithm {
    /// Not said.
    Unspecified = 0,
    /// ECDSA with SHA-256.
    EcdsaWithSha256 = 1,
    /// ECDSA with SHA-384.
    EcdsaWithSha384 = 2,
    /// ECDSA with SHA-512.
    EcdsaWithSha512 = 3,
}

/// A message with a signature.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SignedMessage {
    /// The encoded [`HeaderAndBodyInternal`], as it was signed.
    #[prost(bytes = "vec", tag = "1")]
    pub header_and_body: Vec<u8>,
    /// The signature over `header_and_body` and the associated data, which the message does not have.
    #[prost(bytes = "vec", tag = "2")]
    pub signature: Vec<u8>,
}

/// How and by whom a message was signed.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Header {
    /// How it was signed.
    #[prost(enumeration = "SignatureAlgorithm", tag = "1")]
    pub signature_algorithm: i32,
    /// The encoded [`VerificationKeyID`](crate::control_plane::VerificationKeyID).
    #[prost(bytes = "vec", tag = "2")]
    pub verification_key_id: Vec<u8>,
    /// When it was signed.
    #[prost(message, optional, tag = "3")]
    pub timestamp: Option<Timestamp>,
    /// The number of bytes of the associated data.
    #[prost(int32, tag = "5")]
    pub associated_data_length: i32,
}

/// What is signed, besides the associated data.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct HeaderAndBodyInternal {
    /// The encoded [`Header`].
    #[prost(bytes = "vec", tag = "1")]
    pub header: Vec<u8>,
    /// The encoded body.
    #[prost(bytes = "vec", tag = "2")]
    pub body: Vec<u8>,
}

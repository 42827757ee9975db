//! TRCs and certificates.

use prost::Message;

use crate::Method;
use crate::well_known::Timestamp;

/// The certificate chains of an AS.
pub const CHAINS: Method<ChainsRequest, ChainsResponse> =
    Method::new("/proto.control_plane.v1.TrustMaterialService/Chains");
/// A TRC.
pub const TRC: Method<TRCRequest, TRCResponse> =
    Method::new("/proto.control_plane.v1.TrustMaterialService/TRC");

/// The request of [`CHAINS`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ChainsRequest {
    /// The AS.
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
    /// The identifier of its key; empty for any.
    #[prost(bytes = "vec", tag = "2")]
    pub subject_key_id: Vec<u8>,
    /// When the chain must still be valid.
    #[prost(message, optional, tag = "3")]
    pub at_least_valid_until: Option<Timestamp>,
    /// When the chain must be valid already.
    #[prost(message, optional, tag = "4")]
    pub at_least_valid_since: Option<Timestamp>,
}

/// The answer of [`CHAINS`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ChainsResponse {
    /// The chains.
    #[prost(message, repeated, tag = "1")]
    pub chains: Vec<Chain>,
}

/// A certificate chain, without its root.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Chain {
    /// The certificate of the AS, in DER.
    #[prost(bytes = "vec", tag = "1")]
    pub as_cert: Vec<u8>,
    /// The certificate of its CA, in DER.
    #[prost(bytes = "vec", tag = "2")]
    pub ca_cert: Vec<u8>,
}

/// The request of [`TRC`].
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct TRCRequest {
    /// The ISD.
    #[prost(uint32, tag = "1")]
    pub isd: u32,
    /// The base number; 0, as `serial`, for the newest TRC.
    #[prost(uint64, tag = "2")]
    pub base: u64,
    /// The serial number.
    #[prost(uint64, tag = "3")]
    pub serial: u64,
}

/// The answer of [`TRC`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TRCResponse {
    /// The signed TRC, in DER.
    #[prost(bytes = "vec", tag = "1")]
    pub trc: Vec<u8>,
}

/// The key that signed a message.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct VerificationKeyID {
    /// The AS.
    #[prost(uint64, tag = "1")]
    pub isd_as: u64,
    /// The identifier of its key.
    #[prost(bytes = "vec", tag = "2")]
    pub subject_key_id: Vec<u8>,
    /// The base number of the TRC that the signer knows as the newest.
    #[prost(uint64, tag = "3")]
    pub trc_base: u64,
    /// The serial number of that TRC.
    #[prost(uint64, tag = "4")]
    pub trc_serial: u64,
}

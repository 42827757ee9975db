//! Object identifiers of SCION's control-plane PKI.

use der::oid::ObjectIdentifier;
pub use der::oid::db::rfc4519::CN;
pub use der::oid::db::rfc5911::{
    ID_CONTENT_TYPE, ID_DATA, ID_MESSAGE_DIGEST, ID_SIGNED_DATA, ID_SIGNING_TIME,
};
pub use der::oid::db::rfc5912::{
    ECDSA_WITH_SHA_256, ECDSA_WITH_SHA_384, ECDSA_WITH_SHA_512, ID_EC_PUBLIC_KEY,
    ID_KP_CLIENT_AUTH, ID_KP_SERVER_AUTH, ID_KP_TIME_STAMPING, ID_SHA_256, ID_SHA_384, ID_SHA_512,
    SECP_256_R_1, SECP_384_R_1, SECP_521_R_1,
};

const fn oid(arcs: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(arcs)
}

/// `id-at-ia`: the ISD-AS in a distinguished name (SCION CP-PKI, section "Distinguished names").
pub const ISD_AS: ObjectIdentifier = oid("1.3.6.1.4.1.55324.1.2.1");
/// `id-kp-sensitive`: signs sensitive updates of a TRC.
pub const ID_KP_SENSITIVE: ObjectIdentifier = oid("1.3.6.1.4.1.55324.1.3.1");
/// `id-kp-regular`: signs regular updates of a TRC.
pub const ID_KP_REGULAR: ObjectIdentifier = oid("1.3.6.1.4.1.55324.1.3.2");
/// `id-kp-root`: the root of an ISD's AS certificates.
pub const ID_KP_ROOT: ObjectIdentifier = oid("1.3.6.1.4.1.55324.1.3.3");

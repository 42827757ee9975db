//! Object identifiers of SCION's control-plane PKI.

use der::oid::ObjectIdentifier;

const fn oid(arcs: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(arcs)
}

/// `id-at-ia`: the ISD-AS in a distinguished name (SCION CP-PKI, section "Distinguished names").
pub const ISD_AS: ObjectIdentifier = oid("1.3.6.1.4.1.55324.1.2.1");
/// X.520 common name.
pub const COMMON_NAME: ObjectIdentifier = oid("2.5.4.3");

/// `id-kp-sensitive`: signs sensitive updates of a TRC.
pub const SENSITIVE: ObjectIdentifier = oid("1.3.6.1.4.1.55324.1.3.1");
/// `id-kp-regular`: signs regular updates of a TRC.
pub const REGULAR: ObjectIdentifier = oid("1.3.6.1.4.1.55324.1.3.2");
/// `id-kp-root`: the root of an ISD's AS certificates.
pub const ROOT: ObjectIdentifier = oid("1.3.6.1.4.1.55324.1.3.3");
/// RFC 5280, section 4.2.1.12.
pub const SERVER_AUTH: ObjectIdentifier = oid("1.3.6.1.5.5.7.3.1");
/// RFC 5280, section 4.2.1.12.
pub const CLIENT_AUTH: ObjectIdentifier = oid("1.3.6.1.5.5.7.3.2");
/// RFC 5280, section 4.2.1.12.
pub const TIME_STAMPING: ObjectIdentifier = oid("1.3.6.1.5.5.7.3.8");

/// RFC 5480: an elliptic-curve public key.
pub const EC_PUBLIC_KEY: ObjectIdentifier = oid("1.2.840.10045.2.1");
/// RFC 5480: secp256r1.
pub const P256: ObjectIdentifier = oid("1.2.840.10045.3.1.7");
/// RFC 5480: secp384r1.
pub const P384: ObjectIdentifier = oid("1.3.132.0.34");
/// RFC 5480: secp521r1.
pub const P521: ObjectIdentifier = oid("1.3.132.0.35");
/// RFC 5758: ECDSA with SHA-256.
pub const ECDSA_SHA256: ObjectIdentifier = oid("1.2.840.10045.4.3.2");
/// RFC 5758: ECDSA with SHA-384.
pub const ECDSA_SHA384: ObjectIdentifier = oid("1.2.840.10045.4.3.3");
/// RFC 5758: ECDSA with SHA-512.
pub const ECDSA_SHA512: ObjectIdentifier = oid("1.2.840.10045.4.3.4");
/// RFC 5754: SHA-256.
pub const SHA256: ObjectIdentifier = oid("2.16.840.1.101.3.4.2.1");
/// RFC 5754: SHA-384.
pub const SHA384: ObjectIdentifier = oid("2.16.840.1.101.3.4.2.2");
/// RFC 5754: SHA-512.
pub const SHA512: ObjectIdentifier = oid("2.16.840.1.101.3.4.2.3");

/// RFC 5652: arbitrary bytes.
pub const DATA: ObjectIdentifier = oid("1.2.840.113549.1.7.1");
/// RFC 5652: signed data.
pub const SIGNED_DATA: ObjectIdentifier = oid("1.2.840.113549.1.7.2");
/// RFC 5652: the attribute with the type of what is signed.
pub const CONTENT_TYPE: ObjectIdentifier = oid("1.2.840.113549.1.9.3");
/// RFC 5652: the attribute with the digest of what is signed.
pub const MESSAGE_DIGEST: ObjectIdentifier = oid("1.2.840.113549.1.9.4");
/// RFC 5652: the attribute with the time of signing.
pub const SIGNING_TIME: ObjectIdentifier = oid("1.2.840.113549.1.9.5");

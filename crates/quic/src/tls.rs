//! TLS for the connections of an endpoint.
//!
//! Any certificate is accepted, on both sides: TLS proves here only that the peer holds the
//! certificate's key. That shows which connections belong to one peer; whether a key is allowed is
//! for the application to say.

use std::sync::Arc;

use hawser_keys::{Identity, PeerKey};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CipherSuite, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, SignatureScheme,
};
use sha2::{Digest, Sha256};

/// The server name that clients name; it has no meaning.
pub(crate) const SERVER_NAME: &str = "hawser";

/// TLS for connections in and out, with one key.
pub(crate) struct Tls {
    pub(crate) client: Arc<QuicClientConfig>,
    pub(crate) server: Arc<QuicServerConfig>,
    pub(crate) key: PeerKey,
}

impl Tls {
    /// Configurations that show `identity` and speak `alpn`.
    pub(crate) fn new(
        identity: &Identity,
        alpn: &[u8],
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let certificate = identity.certificate(SERVER_NAME)?;
        let provider = Arc::new(provider());
        let any = Arc::new(AnyPeer::new(Arc::clone(&provider)));
        let tls13 = &[&rustls::version::TLS13];

        let mut client = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(tls13)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&any) as _)
            .with_client_auth_cert(vec![certificate.clone()], identity.private_key())?;
        client.alpn_protocols = vec![alpn.to_vec()];
        client.resumption = rustls::client::Resumption::disabled();

        let mut server = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(tls13)?
            .with_client_cert_verifier(any)
            .with_single_cert(vec![certificate], identity.private_key())?;
        server.alpn_protocols = vec![alpn.to_vec()];
        // Sessions are never resumed, so the server sends no tickets.
        server.send_tls13_tickets = 0;

        Ok(Self {
            client: Arc::new(QuicClientConfig::try_from(client)?),
            server: Arc::new(QuicServerConfig::try_from(server)?),
            key: identity.key(),
        })
    }
}

/// `ring`, preferring the cipher that is fastest where the processor has AES instructions.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    let first = if has_aes() {
        CipherSuite::TLS13_AES_128_GCM_SHA256
    } else {
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
    };
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != first);
    provider
}

fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

/// The key of the peer that presented `certificate`.
pub(crate) fn peer_key(certificate: &CertificateDer<'_>) -> Result<PeerKey, Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    Ok(PeerKey(
        Sha256::digest(parsed.subject_public_key_info()).into(),
    ))
}

/// A verifier that accepts every certificate whose key the peer proves to hold.
#[derive(Debug)]
pub struct AnyPeer(Arc<CryptoProvider>);

impl AnyPeer {
    /// A verifier that checks signatures with `provider`.
    pub fn new(provider: Arc<CryptoProvider>) -> Self {
        Self(provider)
    }
}

/// The checks of signatures, which are the same for certificates of servers and of clients.
macro_rules! signature_checks {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            // TLS 1.2 is never offered (RFC 9001, 4.2).
            Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.0.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signature, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for AnyPeer {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        peer_key(certificate).map(|_| ServerCertVerified::assertion())
    }

    signature_checks!();
}

impl ClientCertVerifier for AnyPeer {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        peer_key(certificate).map(|_| ClientCertVerified::assertion())
    }

    signature_checks!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_shows_the_key_of_its_identity() {
        let identity = Identity::generate().unwrap();
        let certificate = identity.certificate(SERVER_NAME).unwrap();
        assert_eq!(peer_key(&certificate), Ok(identity.key()));
    }
}

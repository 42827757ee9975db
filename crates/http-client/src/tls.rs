//! Which servers are trusted over TLS.

use std::io;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

/// A configuration that trusts the certificates of the system, or the ones that browsers trust where the
/// system has none, and `roots`, in DER form. Reads files.
///
/// # Errors
/// When a certificate of `roots` is malformed.
pub(super) fn config(roots: &[Vec<u8>]) -> io::Result<Arc<ClientConfig>> {
    let mut store = RootCertStore::empty();
    // Files that cannot be read leave fewer certificates.
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    for root in roots {
        let added = store.add(CertificateDer::from(root.clone()));
        added.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(Arc::new(
        builder.with_root_certificates(store).with_no_client_auth(),
    ))
}

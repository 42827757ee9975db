//! The client's side of TLS.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::FetchError;

/// Files with the certificates that the system trusts, of the usual distributions.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// A configuration that accepts servers whose certificate was issued by one of `ca` (PEM), or if
/// that is `None` by one that the system trusts: those in the file `$SSL_CERT_FILE`, or in the
/// distribution's file.
pub(crate) fn config(ca: Option<&str>) -> Result<Arc<ClientConfig>, FetchError> {
    let invalid = |reason: String| FetchError::Certificates(reason);
    let mut roots = RootCertStore::empty();
    match ca {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|e| invalid(e.to_string()))?;
                roots.add(certificate).map_err(|e| invalid(e.to_string()))?;
            }
        }
        None => {
            let file = std::env::var("SSL_CERT_FILE").ok();
            let file = file.or_else(|| {
                let found = SYSTEM.iter().find(|path| Path::new(path).exists());
                found.map(|path| (*path).to_owned())
            });
            let file = file.ok_or_else(|| {
                let reason = "the system has none: install ca-certificates, or set SSL_CERT_FILE";
                invalid(reason.to_owned())
            })?;
            let read = CertificateDer::pem_file_iter(&file);
            let read = read.map_err(|error| invalid(format!("{file}: {error}")))?;
            // A system may trust certificates that rustls cannot use.
            roots.add_parsable_certificates(read.flatten());
        }
    }
    if roots.is_empty() {
        return Err(invalid("there is no usable one".to_owned()));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| invalid(error.to_string()))?;
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config))
}

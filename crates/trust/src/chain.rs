//! Certificate chains of ASes.

use sciparse::identifier::isd_asn::IsdAsn;

use crate::certificate::{Certificate, CertificateError, Kind, Validity};
use crate::pem;
use crate::trc::Trc;

/// The certificate of an AS and that of the authority that issued it.
#[derive(Debug, Clone)]
pub struct Chain {
    r#as: Certificate,
    ca: Certificate,
    isd_as: IsdAsn,
}

/// Not a certificate chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// Not PEM.
    #[error("not a chain of certificates in PEM: {0}")]
    Pem(String),
    /// A certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The certificates are not a chain.
    #[error("not a chain of an AS certificate and a CA certificate: {0}")]
    Rule(&'static str),
}

impl Chain {
    /// The chain of two certificates in DER: the AS's, then the authority's.
    ///
    /// # Errors
    /// When one is not a certificate, or they are not a chain.
    pub fn from_der(r#as: &[u8], ca: &[u8]) -> Result<Self, ChainError> {
        Self::new(Certificate::from_der(r#as)?, Certificate::from_der(ca)?)
    }

    /// The chain of a file such as `ISD1-ASff00_0_110.pem`.
    ///
    /// # Errors
    /// When it does not have exactly two certificates that are a chain.
    pub fn from_pem(text: &[u8]) -> Result<Self, ChainError> {
        let blocks = pem::blocks(text).map_err(ChainError::Pem)?;
        match blocks.as_slice() {
            [(first, r#as), (second, ca)] if first == "CERTIFICATE" && second == first => {
                Self::from_der(r#as, ca)
            }
            _ => Err(ChainError::Rule("it does not have two certificates")),
        }
    }

    fn new(r#as: Certificate, ca: Certificate) -> Result<Self, ChainError> {
        let rule = |reason| Err(ChainError::Rule(reason));
        if r#as.kind() != Kind::As {
            return rule("the first certificate is not an AS's");
        }
        if ca.kind() != Kind::Ca {
            return rule("the second certificate is not a CA's");
        }
        if !ca.validity().covers(&r#as.validity()) {
            return rule("the CA's certificate is not valid as long as the AS's");
        }
        if !r#as.is_issued_by(&ca) {
            return rule("the second certificate's key did not sign the first");
        }
        match r#as.isd_as() {
            Some(isd_as) => Ok(Self { r#as, ca, isd_as }),
            None => rule("the AS certificate has no ISD-AS"),
        }
    }

    /// The AS.
    pub fn isd_as(&self) -> IsdAsn {
        self.isd_as
    }

    /// The certificate of the AS.
    pub fn r#as(&self) -> &Certificate {
        &self.r#as
    }

    /// The certificate of the authority.
    pub fn ca(&self) -> &Certificate {
        &self.ca
    }

    /// The time during which it is valid: that of the AS's certificate.
    pub fn validity(&self) -> Validity {
        self.r#as.validity()
    }

    /// Whether both its certificates are valid at a Unix second.
    pub fn holds(&self, at: u64) -> bool {
        // Chain::new has checked that the authority's covers the AS's.
        self.validity().contains(at)
    }

    /// Whether a root of the TRC issued the authority's certificate. The roots of a TRC are valid
    /// as long as the TRC.
    pub fn is_rooted_in(&self, trc: &Trc) -> bool {
        trc.isd() == self.isd_as.isd().to_u16()
            && trc
                .certificates_of(Kind::Root)
                .any(|(_, root)| self.ca.is_issued_by(root))
    }
}

impl PartialEq for Chain {
    fn eq(&self, other: &Self) -> bool {
        self.r#as.to_der() == other.r#as.to_der() && self.ca.to_der() == other.ca.to_der()
    }
}

impl Eq for Chain {}

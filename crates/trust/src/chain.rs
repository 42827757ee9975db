//! Certificate chains of ASes.

use hawser_address::IsdAsn;

use crate::certificate::{Certificate, CertificateKind, Validity};
use crate::error::{BoxError, ParseError};
use crate::pem;
use crate::trc::Trc;

const WHAT: &str = "a certificate chain of an AS and its CA";

/// The certificate of an AS and that of the authority that issued it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    r#as: Certificate,
    ca: Certificate,
    isd_as: IsdAsn,
}

impl Chain {
    /// Reads a chain of two certificates in DER: the AS's, then the authority's.
    ///
    /// # Errors
    /// When one is not a valid certificate, or they do not form a chain.
    pub fn from_der(r#as: &[u8], ca: &[u8]) -> Result<Self, ParseError> {
        Self::new(r#as, ca).map_err(ParseError::not(WHAT))
    }

    /// Reads a chain in PEM, from a file such as `ISD1-ASff00_0_110.pem`.
    ///
    /// # Errors
    /// When it does not contain exactly two certificates that form a chain.
    pub fn from_pem(text: &[u8]) -> Result<Self, ParseError> {
        let read = || match pem::blocks(text)?.as_slice() {
            [(first, r#as), (second, ca)] if first == "CERTIFICATE" && second == first => {
                Self::new(r#as, ca)
            }
            _ => Err("it does not have two certificates".into()),
        };
        read().map_err(ParseError::not(WHAT))
    }

    fn new(r#as: &[u8], ca: &[u8]) -> Result<Self, BoxError> {
        let [r#as, ca] = [Certificate::from_der(r#as)?, Certificate::from_der(ca)?];
        let isd_as = r#as.isd_as().ok_or("the AS certificate has no ISD-AS")?;
        let broken = if r#as.kind != CertificateKind::As {
            "the first certificate is not an AS's"
        } else if ca.kind != CertificateKind::Ca {
            "the second certificate is not a CA's"
        } else if !ca.validity().covers(&r#as.validity()) {
            "the CA's certificate is not valid as long as the AS's"
        } else if !r#as.is_issued_by(&ca) {
            "the second certificate's key did not sign the first"
        } else {
            return Ok(Self { r#as, ca, isd_as });
        };
        Err(broken.into())
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

    /// The time during which both certificates are valid. This is the validity of the AS's
    /// certificate, which the authority's covers.
    pub fn validity(&self) -> Validity {
        self.r#as.validity()
    }

    /// Whether a root of the TRC issued the authority's certificate. The roots of a TRC are valid
    /// as long as the TRC.
    pub fn is_rooted_in(&self, trc: &Trc) -> bool {
        trc.id().isd == self.isd_as.isd().to_u16()
            && trc
                .certificates_of(CertificateKind::Root)
                .any(|root| self.ca.is_issued_by(root))
    }
}

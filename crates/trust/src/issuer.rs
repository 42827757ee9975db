//! The certification authority of an ISD at work: certificates for ASes that come later.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use der::{Decode, Encode};
use hawser_address::IsdAsn;

use crate::certificate::{Certificate, CertificateKind, Validity};
use crate::chain::Chain;
use crate::error::SignError;
use crate::issue::Holder;
use crate::key::Key;
use crate::pem;
use crate::store::{LoadError, Store, read};
use crate::trc::TrcId;
use crate::write::{AS_LIFETIME, DAY, EARLY, WriteError, file, file_name};

/// Least remaining lifetime with which an authority issues a certificate.
const MIN_LIFETIME: u64 = DAY;

/// The certification authority of an ISD, loaded from the folder of an issuing AS.
pub struct Issuer {
    holder: Holder,
    isd_as: IsdAsn,
    validity: Validity,
    folder: PathBuf,
}

/// A certificate cannot be issued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    /// The AS is in another ISD.
    #[error(
        "{isd_as} is not in the ISD of the authority {issuer}: give it an AS number in that ISD"
    )]
    OtherIsd {
        /// The AS.
        isd_as: IsdAsn,
        /// The authority.
        issuer: IsdAsn,
    },
    /// The authority's own certificate is not valid (long enough).
    #[error(
        "the CA certificate of {0} is not valid for another day: make the ISD's authority anew"
    )]
    Expired(IsdAsn),
    /// The authority's TRCs cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// No TRC of the authority has its root.
    #[error("no TRC in {folder} has the root of the CA of {issuer}", folder = .folder.display())]
    NoTrc {
        /// The authority.
        issuer: IsdAsn,
        /// The folder `certs` of the authority.
        folder: PathBuf,
    },
    /// No folder has a TRC of the ISD.
    #[error("there is no TRC of ISD {0}")]
    NoIsd(u16),
    /// The keys of voters are missing.
    #[error(
        "an update of {trc} needs the keys of {needed} sensitive voters, of which {found} are here: put the files of `crypto/voting` back into the folders of the ASes that voted"
    )]
    TooFewVoters {
        /// The TRC.
        trc: TrcId,
        /// How many keys there are.
        found: usize,
        /// How many votes it needs.
        needed: usize,
    },
    /// A certificate cannot be created or a file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Issuer {
    /// Loads the authority of the AS whose folder is `folder`: the newest valid `*.ca.crt` in
    /// `crypto/ca` that `cp-ca.key` there belongs to.
    ///
    /// # Errors
    /// When a file is missing or not valid, or no certificate belongs to the key.
    pub fn load(folder: &Path) -> Result<Self, LoadError> {
        let ca = folder.join("crypto").join("ca");
        let path = ca.join("cp-ca.key");
        let text = fs::read_to_string(&path).map_err(|source| LoadError::Io {
            path: path.clone(),
            source,
        })?;
        let invalid = |path: &Path, reason: String| LoadError::File {
            path: path.to_owned(),
            reason,
        };
        let key = || Key::from_pem(text.as_bytes()).map_err(|e| invalid(&path, e.to_string()));
        let point = key()?.public().to_vec();
        let mut best: Option<(Certificate, Vec<u8>)> = None;
        for (certificate, der) in read(&ca, "crt", parse)? {
            let later = best.as_ref().is_none_or(|(best, _)| {
                best.validity().not_after < certificate.validity().not_after
            });
            if certificate.kind == CertificateKind::Ca && certificate.key.point == point && later {
                best = Some((certificate, der));
            }
        }
        let (certificate, der) = best.ok_or_else(|| {
            invalid(
                &path,
                "no certificate (*.ca.crt) beside it has this key".to_owned(),
            )
        })?;
        let isd_as = certificate
            .isd_as()
            .ok_or_else(|| invalid(&ca, "the CA certificate names no AS".to_owned()))?;
        let validity = certificate.validity();
        let certificate = x509_cert::Certificate::from_der(&der)
            .map_err(|error| invalid(&ca, error.to_string()))?;
        Ok(Self {
            holder: Holder {
                certificate,
                key: key()?,
                pem: text,
            },
            isd_as,
            validity,
            folder: folder.to_owned(),
        })
    }

    /// The AS of the authority.
    pub fn isd_as(&self) -> IsdAsn {
        self.isd_as
    }

    /// Gives the AS `isd_as`, whose folder is `folder`, what it needs to take part in the control
    /// plane at `now` (Unix seconds): a key, a certificate chain valid for 365 days (less if the
    /// authority's ends before), and the authority's TRCs. Files are as [`write`] writes them;
    /// existing ones are replaced.
    ///
    /// [`write`]: crate::write
    ///
    /// # Errors
    /// [`IssueError`]. Then the folder may be incomplete.
    pub fn enroll(&self, isd_as: IsdAsn, folder: &Path, now: u64) -> Result<(), IssueError> {
        let (own, wanted) = (self.isd_as, isd_as);
        if own.isd() != wanted.isd() {
            return Err(IssueError::OtherIsd {
                isd_as,
                issuer: own,
            });
        }
        self.copy_trcs(folder)?;
        let from = now
            .saturating_sub(EARLY.as_secs())
            .max(self.validity.not_before);
        let until = (now + AS_LIFETIME).min(self.validity.not_after);
        if !self.validity.contains(now) || until < now + MIN_LIFETIME {
            return Err(IssueError::Expired(own));
        }
        let name = format!("{isd_as} AS Certificate");
        let made = Holder::make(
            CertificateKind::As,
            isd_as,
            &name,
            from..=until,
            Some(&self.holder),
        );
        let encode = |holder: &Holder| {
            let mut text = pem::encode("CERTIFICATE", &holder.certificate.to_der()?)?;
            text += &pem::encode("CERTIFICATE", &self.holder.certificate.to_der()?)?;
            Ok::<_, SignError>(text)
        };
        let made = made.and_then(|holder| encode(&holder).map(|text| (holder, text)));
        let (holder, text) = made.map_err(|source| WriteError::Sign { what: name, source })?;
        let at = folder.join("crypto").join("as");
        // A signer loads the pair that is valid longest, so an old certificate may stay beside the
        // new one until its key is replaced.
        file(&at.join("cp-as.key"), &holder.pem, 0o600)?;
        file(&at.join(file_name(isd_as, "pem")), &text, 0o644)?;
        Ok(())
    }

    /// Copies the authority's TRCs, one of which must have its root.
    fn copy_trcs(&self, folder: &Path) -> Result<(), IssueError> {
        let certs = self.folder.join("certs");
        let store = Store::load(&certs)?;
        let rooted = store.newest(self.isd_as.isd().to_u16()).is_some_and(|trc| {
            let ca = self.holder.certificate.to_der();
            let ca = ca.ok().and_then(|der| Certificate::from_der(&der).ok());
            ca.is_some_and(|ca| {
                trc.certificates_of(CertificateKind::Root)
                    .any(|r| ca.is_issued_by(r))
            })
        });
        if !rooted {
            return Err(IssueError::NoTrc {
                issuer: self.isd_as,
                folder: certs,
            });
        }
        copy(&certs, &folder.join("certs"))
            .map_err(|(path, source)| WriteError::Io { path, source })?;
        Ok(())
    }
}

/// Hides the key: it must not appear in logs.
impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issuer").field(&self.isd_as).finish()
    }
}

impl Chain {
    /// The certificate chain of the AS whose folder is `folder`, of several the one that is valid
    /// longest; `None` if it has none yet.
    ///
    /// # Errors
    /// When a file is not a chain or cannot be read.
    pub fn load(folder: &Path) -> Result<Option<Self>, LoadError> {
        let crypto = folder.join("crypto").join("as");
        if !crypto.exists() {
            return Ok(None);
        }
        let chains = read(&crypto, "pem", Self::from_pem)?;
        Ok(chains.into_iter().max_by_key(|c| c.validity().not_after))
    }
}

/// Reads one certificate in PEM; voting and root certificates lie beside that of the authority.
fn parse(text: &[u8]) -> Result<(Certificate, Vec<u8>), String> {
    match pem::blocks(text).map_err(|e| e.to_string())?.as_slice() {
        [(label, der)] if label == "CERTIFICATE" => {
            let certificate = Certificate::from_der(der).map_err(|e| e.to_string())?;
            Ok((certificate, der.clone()))
        }
        _ => Err("it does not have one PEM block labelled CERTIFICATE".to_owned()),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), (PathBuf, io::Error)> {
    fs::create_dir_all(to).map_err(|e| (to.to_owned(), e))?;
    for entry in fs::read_dir(from).map_err(|e| (from.to_owned(), e))? {
        let path = entry.map_err(|e| (from.to_owned(), e))?.path();
        if path.extension().is_some_and(|e| e == "trc")
            && let Some(name) = path.file_name()
        {
            let bytes = fs::read(&path).map_err(|e| (path.clone(), e))?;
            let copy = to.join(name);
            hawser_file::write(&copy, &bytes, 0o644).map_err(|e| (copy.clone(), e))?;
        }
    }
    Ok(())
}

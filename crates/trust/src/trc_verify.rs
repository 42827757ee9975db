//! Verification of the signatures of TRCs.

use std::collections::BTreeSet;

use crate::certificate::{Certificate, CertificateKind};
use crate::trc::{Trc, TrcId};

/// The reason why a TRC cannot be verified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrcVerifyError {
    /// The TRC is not a base TRC, or not the next update.
    #[error("{id} does not follow on {before}")]
    Order {
        /// The TRC.
        id: TrcId,
        /// The TRC that it should follow.
        before: String,
    },
    /// An update breaks a rule, or lacks votes.
    #[error("{id} is not a valid update: {reason}")]
    Update {
        /// The TRC.
        id: TrcId,
        /// The broken rule, or the lack of votes.
        reason: &'static str,
    },
    /// A signature is missing or wrong.
    #[error("{id} lacks a valid signature of {by}")]
    Signature {
        /// The TRC.
        id: TrcId,
        /// The signer, as a distinguished name.
        by: String,
    },
}

impl Trc {
    /// Checks that all voters have signed a base TRC. The caller must decide by other means whether
    /// to trust the voters.
    ///
    /// # Errors
    /// When the TRC is an update, or a signature is missing or wrong.
    pub fn verify_base(&self) -> Result<(), TrcVerifyError> {
        if self.id().base != self.id().serial {
            return Err(self.order("no TRC".to_owned()));
        }
        self.voters().try_for_each(|voter| self.signed_by(voter))
    }

    /// Checks that the TRC is a valid update of the trusted TRC `before`. A regular update only
    /// renews certificates, with the votes of their holders; other updates are sensitive and need
    /// the votes of the sensitive voters (SCION CP-PKI, section "TRC update").
    ///
    /// # Errors
    /// When the TRC is not the next update, breaks a rule, or a signature is missing or wrong.
    pub fn verify_update(&self, before: &Self) -> Result<(), TrcVerifyError> {
        let id = self.id();
        let serial = id.serial.checked_sub(1);
        if serial.map(|serial| TrcId { serial, ..id }) != Some(before.id()) {
            return Err(self.order(before.id().to_string()));
        }
        let votes: BTreeSet<_> = self.content().votes.iter().collect();
        if votes.len() < before.content().quorum || votes.len() < self.content().votes.len() {
            return Err(self.broken("it has too few votes"));
        }
        let voters = votes.into_iter().map(|&vote| before.certificates.get(vote));
        let voters: Option<Vec<_>> = voters.collect();
        let voters = voters.ok_or(self.broken("a vote is of no certificate"))?;
        let all = |kind| voters.iter().all(|voter| voter.kind == kind);
        let renewed_roots = if all(CertificateKind::RegularVoting) {
            self.check_regular(before, &voters)?
        } else if all(CertificateKind::SensitiveVoting) {
            Vec::new()
        } else {
            return Err(self.broken("its votes are not all regular or all sensitive"));
        };
        let new_voters = self
            .voters()
            .filter(|voter| !before.certificates.contains(voter));
        voters
            .iter()
            .copied()
            .chain(renewed_roots)
            .chain(new_voters)
            .try_for_each(|certificate| self.signed_by(certificate))
    }

    fn voters(&self) -> impl Iterator<Item = &Certificate> {
        self.certificates_of(CertificateKind::SensitiveVoting)
            .chain(self.certificates_of(CertificateKind::RegularVoting))
    }

    /// Checks the rules of a regular update. Returns the renewed roots of `before`, which must sign
    /// the update too.
    fn check_regular<'a>(
        &self,
        before: &'a Self,
        voters: &[&Certificate],
    ) -> Result<Vec<&'a Certificate>, TrcVerifyError> {
        let (new, old) = (self.content(), before.content());
        let same = new.quorum == old.quorum
            && new.core == old.core
            && new.authoritative == old.authoritative;
        if !same {
            return Err(self.broken("a regular update changes the quorum or the ASes"));
        }
        let mut roots = Vec::new();
        for kind in [
            CertificateKind::SensitiveVoting,
            CertificateKind::RegularVoting,
            CertificateKind::Root,
        ] {
            let count = |trc: &Self| trc.certificates_of(kind).count();
            if count(self) != count(before) {
                return Err(self.broken("a regular update adds or removes a certificate"));
            }
            for certificate in self.certificates_of(kind) {
                let subject = &certificate.tbs.subject;
                let mut olds = before.certificates_of(kind);
                let old = olds.find(|old| old.tbs.subject == *subject);
                let old = old.ok_or(self.broken("a regular update adds a certificate"))?;
                if old == certificate {
                    continue;
                }
                match kind {
                    CertificateKind::Root => roots.push(old),
                    CertificateKind::RegularVoting if voters.contains(&old) => {}
                    CertificateKind::RegularVoting => {
                        return Err(self.broken("a renewed voter does not vote for it"));
                    }
                    _ => return Err(self.broken("a regular update changes a sensitive voter")),
                }
            }
        }
        Ok(roots)
    }

    fn signed_by(&self, certificate: &Certificate) -> Result<(), TrcVerifyError> {
        if self.signed.is_signed_by(certificate) {
            return Ok(());
        }
        Err(TrcVerifyError::Signature {
            id: self.id(),
            by: certificate.tbs.subject.to_string(),
        })
    }

    fn order(&self, before: String) -> TrcVerifyError {
        TrcVerifyError::Order {
            id: self.id(),
            before,
        }
    }

    fn broken(&self, reason: &'static str) -> TrcVerifyError {
        TrcVerifyError::Update {
            id: self.id(),
            reason,
        }
    }
}

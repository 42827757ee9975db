//! The signatures that a TRC must have.

use crate::certificate::{Certificate, Kind};
use crate::trc::{Trc, TrcId};

/// A TRC whose signatures do not suffice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrcVerifyError {
    /// Not a base TRC, or not the next update.
    #[error("{id} does not follow on {before}")]
    Order {
        /// The TRC.
        id: TrcId,
        /// The TRC that it should follow on.
        before: String,
    },
    /// An update breaks a rule, or lacks votes.
    #[error("{id} is not a valid update: {reason}")]
    Update {
        /// The TRC.
        id: TrcId,
        /// What is wrong.
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

const VOTERS: [Kind; 2] = [Kind::SensitiveVoting, Kind::RegularVoting];

impl Trc {
    /// Checks that a base TRC is signed by all its voters. Whether the voters can be trusted must be
    /// decided by other means.
    ///
    /// # Errors
    /// When it is an update, or a signature is missing or wrong.
    pub fn verify_base(&self) -> Result<(), TrcVerifyError> {
        if !self.is_base() {
            return Err(self.order("no TRC".to_owned()));
        }
        VOTERS
            .into_iter()
            .flat_map(|kind| self.certificates_of(kind))
            .try_for_each(|(_, voter)| self.signed_by(voter))
    }

    /// Checks that the TRC is a valid update of `before`, which is trusted: a
    /// regular update only renews certificates, with the consent of their holders; all others are
    /// sensitive updates, with the consent of the sensitive voters (SCION CP-PKI, section "TRC
    /// update").
    ///
    /// # Errors
    /// When it is not the next update, breaks a rule, or a signature is missing or wrong.
    pub fn verify_update(&self, before: &Self) -> Result<(), TrcVerifyError> {
        let serial = self.id.serial.checked_sub(1);
        let previous = serial.map(|serial| TrcId { serial, ..self.id });
        if previous != Some(before.id) {
            return Err(self.order(before.id.to_string()));
        }
        let mut votes = self.votes.clone();
        votes.sort_unstable();
        votes.dedup();
        if votes.len() < before.quorum || votes.len() < self.votes.len() {
            return Err(self.broken("it has too few votes"));
        }
        let voters: Vec<_> = votes
            .iter()
            .map(|&vote| before.certificates.get(vote))
            .collect::<Option<_>>()
            .ok_or(self.broken("a vote is of no certificate"))?;
        let all = |kind| voters.iter().all(|voter| voter.kind() == kind);
        let renewed_roots = if all(Kind::RegularVoting) {
            self.check_regular(before, &voters)?
        } else if all(Kind::SensitiveVoting) {
            Vec::new()
        } else {
            return Err(self.broken("its votes are not all regular or all sensitive"));
        };
        let new_voters = VOTERS
            .into_iter()
            .flat_map(|kind| self.certificates_of(kind))
            .map(|(_, voter)| voter)
            .filter(|voter| !before.has(voter));
        voters
            .iter()
            .copied()
            .chain(renewed_roots)
            .chain(new_voters)
            .try_for_each(|certificate| self.signed_by(certificate))
    }

    /// The rules of a regular update. Returns the roots of `before` that are renewed: they must
    /// acknowledge it.
    fn check_regular<'a>(
        &self,
        before: &'a Self,
        voters: &[&Certificate],
    ) -> Result<Vec<&'a Certificate>, TrcVerifyError> {
        let same = self.quorum == before.quorum
            && self.core == before.core
            && self.authoritative == before.authoritative;
        if !same {
            return Err(self.broken("a regular update changes the quorum or the ASes"));
        }
        let mut roots = Vec::new();
        for kind in [Kind::SensitiveVoting, Kind::RegularVoting, Kind::Root] {
            let count = |trc: &Self| trc.certificates_of(kind).count();
            if count(self) != count(before) {
                return Err(self.broken("a regular update adds or removes a certificate"));
            }
            for (_, certificate) in self.certificates_of(kind) {
                let subject = &certificate.tbs().subject;
                let mut olds = before.certificates_of(kind).map(|(_, old)| old);
                let old = olds.find(|old| old.tbs().subject == *subject);
                let old = old.ok_or(self.broken("a regular update adds a certificate"))?;
                if old.to_der() == certificate.to_der() {
                    continue;
                }
                let votes = voters.iter().any(|voter| voter.to_der() == old.to_der());
                match kind {
                    Kind::Root => roots.push(old),
                    Kind::RegularVoting if votes => {}
                    Kind::RegularVoting => {
                        return Err(self.broken("a renewed voter does not vote for it"));
                    }
                    _ => return Err(self.broken("a regular update changes a sensitive voter")),
                }
            }
        }
        Ok(roots)
    }

    fn has(&self, certificate: &Certificate) -> bool {
        self.certificates
            .iter()
            .any(|own| own.to_der() == certificate.to_der())
    }

    fn signed_by(&self, certificate: &Certificate) -> Result<(), TrcVerifyError> {
        if self.signed.is_signed_by(certificate) {
            return Ok(());
        }
        Err(TrcVerifyError::Signature {
            id: self.id,
            by: certificate.subject(),
        })
    }

    fn order(&self, before: String) -> TrcVerifyError {
        TrcVerifyError::Order {
            id: self.id,
            before,
        }
    }

    fn broken(&self, reason: &'static str) -> TrcVerifyError {
        TrcVerifyError::Update {
            id: self.id,
            reason,
        }
    }
}

//! Signatures with the key of an AS.

use std::fmt;
use std::path::Path;

use hawser_address::IsdAsn;
use hawser_proto::control_plane::{ASEntry, PathSegment, VerificationKeyID};
use hawser_proto::crypto::SignedMessage;

use crate::chain::Chain;
use crate::error::SignError;
use crate::key::Key;
use crate::message;
use crate::segment::associated;
use crate::store::{LoadError, Store, read};

/// Signs messages of an AS with the key of its certificate.
pub struct Signer {
    key: Key,
    key_id: VerificationKeyID,
    chain: Chain,
}

impl Signer {
    /// Loads the signer of the AS whose folder is `dir`: a key in `crypto/as` with its chain, of
    /// several the chain that is valid longest. The signatures name the newest TRC of the ISD in
    /// `trcs`.
    ///
    /// # Errors
    /// When a file cannot be read, no key has a chain, or the chain is not rooted in a TRC of the
    /// ISD.
    pub fn load(dir: &Path, trcs: &Store) -> Result<Self, LoadError> {
        let crypto = dir.join("crypto").join("as");
        let chains: Vec<Chain> = read(&crypto, "pem", Chain::from_pem)?;
        let keys: Vec<Key> = read(&crypto, "key", Key::from_pem)?;
        let pairs = keys.into_iter().flat_map(|key| {
            let of_key = |chain: &&Chain| chain.r#as().key.point == key.public();
            let best = chains.iter().filter(of_key);
            let best = best.max_by_key(|chain| chain.validity().not_after);
            best.cloned().map(|chain| (key, chain))
        });
        let best = pairs.max_by_key(|(_, chain)| chain.validity().not_after);
        let (key, chain) = best.ok_or_else(|| LoadError::NoSigner(crypto.clone()))?;
        let trc = trcs.newest(chain.isd_as().isd().to_u16());
        let trc = trc.filter(|trc| chain.is_rooted_in(trc));
        let trc = trc.ok_or(LoadError::NoTrc {
            isd_as: chain.isd_as(),
            folder: crypto,
        })?;
        let key_id = VerificationKeyID {
            isd_as: chain.isd_as().to_u64(),
            subject_key_id: chain.r#as().subject_key_id().to_vec(),
            trc_base: trc.id().base,
            trc_serial: trc.id().serial,
        };
        Ok(Self { key, key_id, chain })
    }

    /// The AS.
    pub fn isd_as(&self) -> IsdAsn {
        self.chain.isd_as()
    }

    /// The chain to verify the signatures with.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Signs a body together with associated data, which the message does not contain. The time of
    /// signing is `at`, in Unix seconds.
    ///
    /// # Errors
    /// When the AS's certificate is not valid at that time, or the key fails.
    pub fn sign(
        &self,
        body: Vec<u8>,
        associated: &[u8],
        at: u64,
    ) -> Result<SignedMessage, SignError> {
        if !self.chain.validity().contains(at) {
            return Err(SignError::Expired(self.isd_as()));
        }
        message::sign(&self.key, &self.key_id, body, associated, at)
    }

    /// Adds the AS's entry, an encoded `ASEntrySignedBody`, to a segment. The signature covers the
    /// entry and all previous parts of the segment; its time is given in Unix seconds.
    ///
    /// # Errors
    /// When the AS's certificate is not valid at that time, or the key fails.
    pub fn add_entry(
        &self,
        segment: &mut PathSegment,
        body: Vec<u8>,
        at: u64,
    ) -> Result<(), SignError> {
        let before = associated(segment, segment.as_entries.len());
        let signed = self.sign(body, &before, at)?;
        segment.as_entries.push(ASEntry {
            signed: Some(signed),
            ..ASEntry::default()
        });
        Ok(())
    }
}

/// Hides the key: it must not appear in logs.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signer").field(&self.isd_as()).finish()
    }
}

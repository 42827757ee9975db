//! Checks the signatures of the ASes on segments against the TRCs of this host. Certificates come
//! from the control service (`TrustMaterialService`), which need not be trusted: only certificates
//! whose root is in a TRC are kept.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::error::Error;
use std::path::Path;
use std::sync::Mutex;

use hawser_proto::Message;
use hawser_proto::control_plane::{CHAINS, ChainsRequest, PathSegment, TRC, TRCRequest};
use hawser_proto::well_known::Timestamp;
use hawser_trust::{Chain, ChainQuery, SegmentVerifyError, Store, Trc, TrcId};

use crate::clock::unix_now;
use crate::service::Caller;
use crate::sync::lock;

/// Most TRCs fetched to catch up with an ISD; a larger gap requires installing its TRC by hand.
const MAX_TRC_UPDATES: u64 = 16;

type AnyError = Box<dyn Error + Send + Sync>;

/// Verifies segments.
pub(super) struct Verifier {
    trusted: Mutex<Store>,
    /// Segments with valid signatures, as encoded messages, and when they expire.
    verified: Mutex<HashMap<Vec<u8>, u64>>,
}

impl Verifier {
    /// Trusts the TRCs in the folder `certs`.
    pub(super) fn load(certs: &Path) -> Result<Self, hawser_trust::LoadError> {
        Ok(Self {
            trusted: Mutex::new(Store::load(certs)?),
            verified: Mutex::default(),
        })
    }

    /// Fetches the certificates and TRCs that are missing to check `segments`.
    ///
    /// If one cannot be fetched, the segments that need it fail the check.
    pub(super) async fn prepare(
        &self,
        segments: impl Iterator<Item = &PathSegment>,
        client: &Caller,
    ) {
        let (mut chains, mut updates) = (BTreeSet::new(), BTreeSet::new());
        {
            let (trusted, now) = (lock(&self.trusted), unix_now());
            for segment in segments.filter(|segment| !self.is_verified(segment)) {
                chains.extend(trusted.missing_chains(segment, now).unwrap_or_default());
                if let Err(SegmentVerifyError::OtherTrc { wanted, known, .. }) =
                    trusted.verify_segment(segment, now)
                    && wanted.base == known.base
                {
                    let last = wanted.serial.min(known.serial + MAX_TRC_UPDATES);
                    updates
                        .extend((known.serial + 1..=last).map(|serial| TrcId { serial, ..known }));
                }
            }
        }
        // In order, because each is signed with keys of the one before.
        for id in updates {
            if let Err(error) = self.update(id, client).await {
                tracing::warn!(%id, %error, "a TRC is missing");
                break;
            }
        }
        for query in chains {
            if let Err(error) = self.certify(&query, client).await {
                tracing::debug!(isd_as = %query.isd_as, %error, "certificates are missing");
            }
        }
    }

    async fn update(&self, id: TrcId, service: &Caller) -> Result<(), AnyError> {
        let request = TRCRequest {
            isd: id.isd.into(),
            base: id.base,
            serial: id.serial,
        };
        let answer = service.required(TRC, &request, Ok::<_, Infallible>);
        let trc = Trc::from_der(&answer.await?.trc)?;
        Ok(lock(&self.trusted).add_trc(trc)?)
    }

    async fn certify(&self, query: &ChainQuery, service: &Caller) -> Result<(), AnyError> {
        let request = ChainsRequest {
            isd_as: query.isd_as.to_u64(),
            subject_key_id: query.subject_key_id.clone(),
            at_least_valid_since: Some(Timestamp::from_unix_secs(query.since)),
            at_least_valid_until: Some(Timestamp::from_unix_secs(query.until)),
        };
        let answer = service.required(CHAINS, &request, Ok::<_, Infallible>);
        let mut result = Ok(());
        for chain in answer.await?.chains {
            match Chain::from_der(&chain.as_cert, &chain.ca_cert) {
                Ok(chain) => {
                    if !lock(&self.trusted).add_chain(chain) {
                        result = Err("no TRC here has the root of a chain".into());
                    }
                }
                Err(error) => result = Err(error.into()),
            }
        }
        result
    }

    /// Checks that the ASes of `segment`, which expires at `expiry`, signed it.
    pub(super) fn check(&self, segment: &PathSegment, expiry: u64) -> Result<(), String> {
        let (bytes, now) = (segment.encode_to_vec(), unix_now());
        if lock(&self.verified).contains_key(&bytes) {
            return Ok(());
        }
        let verdict = lock(&self.trusted).verify_segment(segment, now);
        verdict.map_err(|error| error.to_string())?;
        let mut verified = lock(&self.verified);
        verified.retain(|_, expiry| *expiry > now);
        verified.insert(bytes, expiry);
        Ok(())
    }

    /// Whether `segment` passed the check before.
    fn is_verified(&self, segment: &PathSegment) -> bool {
        lock(&self.verified).contains_key(&segment.encode_to_vec())
    }
}

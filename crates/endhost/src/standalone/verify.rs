//! Segments are believed only with the signatures of their ASes, where there are TRCs to check them
//! against. Certificates come from the control service (`TrustMaterialService`); they are kept only
//! when a TRC has their root, so it need not be trusted for that.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use connectrpc::client::HttpClient;
use hawser_trust::{Chain, ChainQuery, SegmentVerifyError, Store, Trc, TrcId};
use scion_protobuf::buffa::{Message, MessageField};
use scion_protobuf::buffa_types::google::protobuf::Timestamp;
use scion_protobuf::proto::control_plane::v1::{
    ChainsRequest, PathSegment, TRCRequest, TrustMaterialServiceClient,
};

use super::unix_now;
use crate::service::{Caller, SourceError, options};

/// TRCs an ISD may be ahead of those known here before somebody has to see to it.
const MOST_UPDATES: u64 = 16;

/// A client of a control service for certificates and TRCs.
pub(super) type Material = Caller<TrustMaterialServiceClient<HttpClient>>;

/// Checks segments.
pub(super) struct Verifier {
    trusted: Mutex<Store>,
    /// Segments that were found good, as messages, and when they expire.
    good: Mutex<HashMap<Vec<u8>, u64>>,
}

impl Verifier {
    /// Trusts the TRCs in the folder `certs`.
    pub(super) fn load(certs: &Path) -> Result<Self, hawser_trust::LoadError> {
        Ok(Self {
            trusted: Mutex::new(Store::load(certs)?),
            good: Mutex::default(),
        })
    }

    fn trusted(&self) -> MutexGuard<'_, Store> {
        self.trusted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn good(&self) -> MutexGuard<'_, HashMap<Vec<u8>, u64>> {
        self.good.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gets what is missing to check `segments` with from `material`.
    ///
    /// What cannot be got is missed when a segment is checked.
    pub(super) async fn prepare(
        &self,
        segments: impl Iterator<Item = &PathSegment>,
        material: &Material,
    ) {
        let (mut chains, mut updates) = (BTreeSet::new(), BTreeSet::new());
        {
            let (trusted, now) = (self.trusted(), unix_now());
            for segment in segments.filter(|segment| !self.is_good(segment)) {
                chains.extend(trusted.missing_chains(segment, now).unwrap_or_default());
                if let Err(SegmentVerifyError::OtherTrc { wanted, known, .. }) =
                    trusted.verify_segment(segment, now)
                    && wanted.base == known.base
                {
                    let last = wanted.serial.min(known.serial + MOST_UPDATES);
                    updates
                        .extend((known.serial + 1..=last).map(|serial| TrcId { serial, ..known }));
                }
            }
        }
        // In order: each is checked against the one before.
        for id in updates {
            if let Err(error) = self.update(id, material).await {
                tracing::warn!(%id, error, "a TRC is missing");
                break;
            }
        }
        for query in chains {
            if let Err(error) = self.certify(&query, material).await {
                tracing::debug!(isd_as = %query.isd_as, error, "certificates are missing");
            }
        }
    }

    async fn update(&self, id: TrcId, material: &Material) -> Result<(), String> {
        let request = TRCRequest {
            isd: id.isd.into(),
            base: id.base,
            serial: id.serial,
        };
        let client = material.client();
        let call = client.trc_with_options(request, options());
        let answer = material.found("TRC", call).await;
        let answer = answer.map_err(|error| error.to_string())?.into_owned();
        let trc = Trc::from_der(&answer.trc).map_err(|error| error.to_string())?;
        let added = self.trusted().add_trc(trc);
        added.map_err(|error| error.to_string())
    }

    async fn certify(&self, query: &ChainQuery, material: &Material) -> Result<(), String> {
        let time = |seconds: u64| {
            MessageField::some(Timestamp {
                seconds: seconds.try_into().unwrap_or(i64::MAX),
                ..Timestamp::default()
            })
        };
        let request = ChainsRequest {
            isd_as: query.isd_as.to_u64(),
            subject_key_id: query.subject_key_id.clone(),
            at_least_valid_since: time(query.since),
            at_least_valid_until: time(query.until),
        };
        let client = material.client();
        let call = client.chains_with_options(request, options());
        let answer = material.found("Chains", call).await;
        let answer = answer.map_err(|error: SourceError| error.to_string())?;
        let mut fault = None;
        for chain in answer.into_owned().chains {
            match Chain::from_der(&chain.as_cert, &chain.ca_cert) {
                Ok(chain) => {
                    if !self.trusted().add_chain(chain) {
                        fault = Some("no TRC here has the root of a chain".to_owned());
                    }
                }
                Err(error) => fault = Some(error.to_string()),
            }
        }
        fault.map_or(Ok(()), Err)
    }

    /// Whether the ASes of `segment`, which expires at `expiry`, signed it.
    pub(super) fn check(&self, segment: &PathSegment, expiry: u64) -> Result<(), String> {
        let (bytes, now) = (segment.encode_to_vec(), unix_now());
        if self.good().contains_key(&bytes) {
            return Ok(());
        }
        let verdict = self.trusted().verify_segment(segment, now);
        verdict.map_err(|error| error.to_string())?;
        let mut good = self.good();
        good.retain(|_, expiry| *expiry > now);
        good.insert(bytes, expiry);
        Ok(())
    }

    /// Whether `segment` was checked before.
    fn is_good(&self, segment: &PathSegment) -> bool {
        self.good().contains_key(&segment.encode_to_vec())
    }
}

//! State that a connection, its clones and its streams share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::lanes::Lane;
use hawser_keys::PeerKey;
use hawser_path::Fingerprint;
use noq_proto::ConnectionError;
use rustls::pki_types::CertificateDer;
use tokio::task::JoinSet;

use crate::close::CloseReason;
use crate::congestion::{Choice, Records};
use crate::doubt::Watched;
use crate::driver::{Driver, Lease};
use crate::tls;

/// The task that accepts connections of an endpoint. It ends when nothing of the endpoint is left:
/// neither itself nor a connection.
#[derive(Debug)]
pub(crate) struct AcceptTask {
    pub(crate) driver: Arc<Driver>,
    pub(crate) task: JoinSet<()>,
}

impl Drop for AcceptTask {
    fn drop(&mut self) {
        self.task.abort_all();
        self.driver.retire();
    }
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) quic: Lease,
    pub(super) lane: Lane,
    pub(super) watched: Arc<Watched>,
    pub(super) fingerprint: Fingerprint,
    pub(super) key: PeerKey,
    pub(super) congestion: Choice,
    idle_timeout: Duration,
    _task: Arc<AcceptTask>,
}

impl Inner {
    /// The connection `quic`, set up over `lane` since `began`, whose congestion controller writes
    /// `records`.
    pub(crate) fn new(
        quic: Lease,
        lane: Lane,
        records: Records,
        idle_timeout: Duration,
        task: Arc<AcceptTask>,
        began: Instant,
    ) -> Result<Arc<Self>, CloseReason> {
        // Packets passed in both directions.
        lane.report_alive(began);
        let key = peer_key(&quic).map_err(CloseReason::Protocol)?;
        let watched = Arc::new(Watched::new(quic.weak(), records.progress));
        lane.attach(Arc::clone(&watched) as _);
        if let Some(reason) = watched.reason() {
            return Err(reason.clone());
        }
        Ok(Arc::new(Self {
            quic,
            fingerprint: lane.fingerprint(),
            lane,
            watched,
            key,
            congestion: records.choice,
            idle_timeout,
            _task: task,
        }))
    }

    /// The reason for a QUIC error on this connection: the first one recorded counts.
    pub(crate) fn reason(&self, error: &ConnectionError) -> CloseReason {
        match self.watched.reason() {
            Some(reason) => reason.clone(),
            None => CloseReason::of(error, self.idle_timeout),
        }
    }
}

fn peer_key(quic: &Lease) -> Result<PeerKey, String> {
    let chain = quic
        .peer_identity()
        .and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok());
    let certificate = chain.as_ref().and_then(|chain| chain.first());
    let certificate = certificate.ok_or("the peer shows no certificate")?;
    tls::peer_key(certificate).map_err(|error| error.to_string())
}

//! The shared state of the services of a control plane, and the registration of methods that use
//! it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hawser_file::Stamp;
use hawser_proto::{Message, Method};
use hawser_rpc::{Encoded, Router, RpcError};
use hawser_topology::{AsDir, IsdAsn, Shape};
use tokio::sync::Mutex;

use crate::carriers::{Underlays, underlays};
use crate::error::{ControlError, LookupError};
use crate::plane::Plane;
use crate::{publication, source};

/// Time for which requests get the error of a failed read before the files are read again, so that
/// many requests do not read many files each.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// The shared state, which is read from the AS's folder on first use.
///
/// Answers read files and sign segments, which takes long: each is computed on a thread for blocking
/// work, one at a time, while the others wait without a thread.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<PlaneState>>);

struct PlaneState {
    dir: AsDir,
    source: Source,
    /// Changes of links since the service started, which the files may not contain yet.
    changes: BTreeMap<(IsdAsn, u16), (bool, Shape)>,
    /// Underlay addresses of links that are others than in the AS's folder.
    moved: Option<Underlays>,
    read: Read,
    /// The generation of the segments of the next control plane.
    generation: u64,
}

/// What came of reading the control plane.
enum Read {
    Unread,
    Plane(Box<Plane>),
    Failed { reason: String, at: Instant },
}

/// Where the segments come from.
enum Source {
    /// From the keys of all ASes of a lab; they expire after this time.
    Lab(Duration),
    /// From a file, which is replaced from time to time, read when it was this one.
    Published { file: PathBuf, read: Option<Stamp> },
}

impl PlaneState {
    /// The control plane at `now`, which this reads on the first call, again when the file of its
    /// segments has been replaced, and again [`READ_AGAIN`] after it could not be read.
    fn plane(&mut self, now: Instant) -> Result<&mut Plane, LookupError> {
        self.forget_replaced();
        let is_due = match &self.read {
            Read::Unread => true,
            Read::Plane(_) => false,
            Read::Failed { at, .. } => now.saturating_duration_since(*at) >= READ_AGAIN,
        };
        if is_due {
            self.read = match self.load() {
                Ok(plane) => Read::Plane(Box::new(plane)),
                Err(error) => {
                    let reason = error.to_string();
                    tracing::error!("the network cannot be read: {reason}");
                    Read::Failed { reason, at: now }
                }
            };
        }
        match &mut self.read {
            Read::Plane(plane) => {
                plane.look_at_carriers(now);
                Ok(plane)
            }
            Read::Failed { reason, .. } => Err(LookupError::NoNetwork(reason.clone())),
            Read::Unread => Err(LookupError::NoNetwork("it was not read".to_owned())),
        }
    }

    /// Forgets what was read from a file of segments that was replaced or removed since.
    fn forget_replaced(&mut self) {
        if let Source::Published { file, read } = &mut self.source {
            let found = Stamp::of(file);
            if found != *read || found.is_none() {
                *read = found;
                if let Read::Plane(plane) = &self.read {
                    self.generation = plane.generation + 1;
                }
                self.read = Read::Unread;
            }
        }
    }

    /// Reads the control plane again, if it has been read; what cannot be read leaves it as it is.
    fn reload(&mut self) -> Result<(), ControlError> {
        let Read::Plane(plane) = &self.read else {
            // The next request reads it, also right after it could not be read.
            self.read = Read::Unread;
            return Ok(());
        };
        // All files are those of the AS's folder.
        let moved = self.moved.take();
        self.generation = plane.generation + 1;
        let read = self.load();
        if read.is_err() {
            self.moved = moved;
        }
        self.read = Read::Plane(Box::new(read?));
        Ok(())
    }

    fn load(&mut self) -> Result<Plane, ControlError> {
        let read = match &self.source {
            Source::Lab(lifetime) => source::load(&self.dir, *lifetime),
            Source::Published { file, .. } => publication::load(&self.dir, file, now()),
        };
        let mut plane = read?;
        for (a, (up, shape)) in std::mem::take(&mut self.changes) {
            plane.set_link_at(a, up, shape);
        }
        if let Some(links) = &self.moved {
            plane.set_underlays(links.clone());
        }
        plane.generation = self.generation;
        Ok(plane)
    }

    fn set_link(&mut self, a: (IsdAsn, u16), up: bool, shape: Shape) -> bool {
        if let Read::Plane(plane) = &mut self.read {
            return plane.set_link_at(a, up, shape);
        }
        self.changes.insert(a, (up, shape));
        true
    }
}

impl Shared {
    /// The state of the AS whose folder is `dir`, with segments that expire after `lifetime`.
    pub fn new(dir: AsDir, lifetime: Duration) -> Self {
        Self::of(dir, Source::Lab(lifetime))
    }

    /// The state of the AS whose folder is `dir`, with the segments in `file`.
    pub fn published(dir: AsDir, file: PathBuf) -> Self {
        Self::of(dir, Source::Published { file, read: None })
    }

    fn of(dir: AsDir, source: Source) -> Self {
        Self(Arc::new(Mutex::new(PlaneState {
            dir,
            source,
            changes: BTreeMap::new(),
            moved: None,
            read: Read::Unread,
            generation: 0,
        })))
    }

    /// Calls `answer` with the control plane on a thread for blocking work. Reads the control plane
    /// first when it has not been read, its file has been replaced, or the last read failed a while
    /// ago.
    ///
    /// # Errors
    /// When the network cannot be read, or `answer` fails.
    pub async fn with<T, E>(
        &self,
        answer: impl FnOnce(&mut Plane) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<LookupError> + Send + 'static,
    {
        // A panic in one answer can only leave an incomplete cache, which is harmless.
        let mut state = Arc::clone(&self.0).lock_owned().await;
        let job = move || answer(state.plane(Instant::now())?);
        let answered = tokio::task::spawn_blocking(job).await;
        answered.unwrap_or_else(|panic| Err(LookupError::Panicked(panic.to_string()).into()))
    }

    /// Reads the control plane again, if it has been read, on a thread for blocking work.
    ///
    /// # Errors
    /// When it cannot be read. Then nothing has changed.
    pub async fn reload(&self) -> Result<(), ControlError> {
        let mut state = Arc::clone(&self.0).lock_owned().await;
        let reloaded = tokio::task::spawn_blocking(move || state.reload()).await;
        reloaded.unwrap_or_else(|panic| Err(ControlError::Panicked(panic.to_string())))
    }

    /// Takes the underlay addresses of links from the topology in another folder.
    ///
    /// # Errors
    /// When it cannot be read. Then nothing has changed.
    pub async fn read_links(&self, folder: PathBuf) -> Result<(), ControlError> {
        let links = underlays(&AsDir::new(folder).topology()?);
        let mut state = self.0.lock().await;
        if let Read::Plane(plane) = &mut state.read {
            plane.set_underlays(links.clone());
        }
        state.moved = Some(links);
        Ok(())
    }

    /// Sets the state and the shape of a link. Returns `false` if the network has no such
    /// interface. Does not read the network; until it has been read, returns `true` for any
    /// interface.
    pub async fn set_link(&self, a: (IsdAsn, u16), up: bool, shape: Shape) -> bool {
        self.0.lock().await.set_link(a, up, shape)
    }
}

/// Methods of services that answer from the shared state.
pub(crate) struct Methods {
    pub router: Router,
    shared: Shared,
}

impl Methods {
    /// No methods.
    pub fn new(shared: &Shared) -> Self {
        Self {
            router: Router::new(),
            shared: shared.clone(),
        }
    }

    /// Adds a method whose requests `answer` answers.
    pub fn with<Q, A, B>(
        mut self,
        method: Method<Q, A>,
        answer: fn(&mut Plane, Q) -> Result<B, RpcError>,
    ) -> Self
    where
        Q: Message + Default + 'static,
        A: Message + 'static,
        B: Into<Encoded<A>> + Send + 'static,
    {
        let shared = self.shared.clone();
        self.router = self.router.with_method(method, move |request| {
            let shared = shared.clone();
            async move { shared.with(move |plane| answer(plane, request)).await }
        });
        self
    }
}

/// The current time, in Unix seconds.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lab, ia};

    fn later(lab: &Lab, isd_as: &str) -> Shared {
        Shared::new(lab.dir(ia(isd_as)), Duration::from_secs(60))
    }

    #[tokio::test]
    async fn changes_before_the_first_request_are_in_its_answer() {
        let lab = Lab::ready("fig4");
        let (a, b) = (ia("1-ff00:0:110"), ia("1-ff00:0:111"));
        let shared = later(&lab, "1-ff00:0:110");
        let shape = Shape {
            delay: Duration::from_millis(7),
            ..Shape::default()
        };
        assert!(shared.set_link((a, 1), false, shape).await);
        // The network does not have this interface.
        assert!(shared.set_link((a, 9), false, shape).await);
        let down = || {
            shared.with(move |plane| {
                let down: Vec<_> = plane.beacons.graph.down().map(|link| link.a.id).collect();
                assert!(plane.paths(a, b, 0).is_ok());
                Ok::<_, LookupError>(down)
            })
        };
        assert_eq!(down().await, Ok(vec![1]));
        assert!(shared.set_link((b, 1), true, shape).await);
        assert!(!shared.set_link((a, 9), true, shape).await);
        assert_eq!(down().await, Ok(vec![]));
    }

    #[tokio::test]
    async fn a_network_that_cannot_be_read_is_an_error_of_each_request_until_it_can() {
        let lab = Lab::ready("fig4");
        let a = ia("1-ff00:0:110");
        let shared = later(&lab, "1-ff00:0:110");
        let file = lab.folder.path().join("network.json");
        std::fs::write(&file, "{").unwrap();
        let answer = || shared.with(|_| Ok::<_, LookupError>(()));
        for _ in 0..2 {
            let error = answer().await.unwrap_err().to_string();
            assert!(error.contains("network.json"), "{error}");
        }
        // It is kept for the control plane that is read later.
        assert!(shared.set_link((a, 1), false, Shape::default()).await);
        lab.network.write_json(&file).unwrap();
        let mut state = shared.0.lock().await;
        let Read::Failed { at, .. } = state.read else {
            panic!("the read has not failed");
        };
        let soon = at + READ_AGAIN - Duration::from_nanos(1);
        assert!(state.plane(soon).is_err());
        let plane = state.plane(at + READ_AGAIN).unwrap();
        assert_eq!(plane.beacons.graph.down().count(), 1);
    }

    #[tokio::test]
    async fn a_published_network_is_read_again_though_its_file_stays_the_same() {
        let lab = Lab::ready("fig4");
        let dir = lab.dir(ia("1-ff00:0:110"));
        let file = lab.folder.path().join("segments.json");
        let hour = Duration::from_secs(3600);
        let (network, folder) = (lab.network.clone(), lab.folder.path());
        let none = |_| Default::default();
        let made = crate::Publication::make(network, folder, none, hour, now());
        std::fs::write(&file, made.unwrap().to_json()).unwrap();
        let (certs, elsewhere) = (dir.path().join("certs"), dir.path().join("elsewhere"));
        std::fs::rename(&certs, &elsewhere).unwrap();
        let shared = Shared::published(dir, file);
        let mut state = shared.0.lock().await;
        let start = Instant::now();
        assert!(state.plane(start).is_err());
        std::fs::rename(&elsewhere, &certs).unwrap();
        assert!(state.plane(start + READ_AGAIN).is_ok());
    }

    #[tokio::test]
    async fn files_that_are_read_again_count_unless_they_cannot_be_used() {
        let lab = Lab::ready("fig4");
        let (a, b) = (ia("1-ff00:0:110"), ia("1-ff00:0:111"));
        let shared = later(&lab, "1-ff00:0:110");
        let seen = || {
            shared.with(move |plane| {
                assert!(plane.paths(a, b, 0).is_ok());
                let mtu = plane.beacons.graph.network.links[0].mtu;
                Ok::<_, LookupError>((mtu, plane.generation))
            })
        };
        // Before the first request there is nothing to read again.
        assert!(shared.reload().await.is_ok());
        let (mtu, generation) = seen().await.unwrap();
        let file = lab.folder.path().join("network.json");
        std::fs::write(&file, "{").unwrap();
        let error = shared.reload().await.unwrap_err().to_string();
        assert!(error.contains("network.json"), "{error}");
        assert_eq!(seen().await, Ok((mtu, generation)));
        let mut network = lab.network.clone();
        network.links[0].mtu = mtu - 1;
        network.write_json(&file).unwrap();
        assert_eq!(seen().await, Ok((mtu, generation)));
        assert!(shared.reload().await.is_ok());
        let (now, next) = seen().await.unwrap();
        assert_eq!(now, mtu - 1);
        // A client that pages through an answer must begin again.
        assert!(next > generation);
    }

    #[tokio::test]
    async fn an_answer_that_panics_is_an_error_of_its_request_alone() {
        let lab = Lab::ready("fig4");
        let shared = later(&lab, "1-ff00:0:110");
        let panics = shared.with(|_| -> Result<(), LookupError> { panic!("as this test has it") });
        assert!(matches!(panics.await, Err(LookupError::Panicked(_))));
        assert_eq!(shared.with(|_| Ok::<_, LookupError>(7)).await, Ok(7));
    }
}

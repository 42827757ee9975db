//! The state that the services of a control plane share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hawser_topology::{IsdAsn, Shape};

use crate::error::LookupError;
use crate::plane::Plane;
use crate::source::Source;

/// The state that the services share: made when it is first needed.
#[derive(Clone)]
pub(crate) struct Shared(Arc<State>);

struct State {
    plane: OnceLock<Mutex<Plane>>,
    waiting: Mutex<Waiting>,
}

/// What the plane is made of.
struct Waiting {
    /// None when it has been taken.
    source: Option<Source>,
    /// Why it could not be made.
    failure: Option<String>,
    /// Changes of links since the service started, which the files may not have.
    changes: BTreeMap<(IsdAsn, u16), (bool, Shape)>,
}

impl Shared {
    pub fn new(source: Source) -> Self {
        Self(Arc::new(State {
            plane: OnceLock::new(),
            waiting: Mutex::new(Waiting {
                source: Some(source),
                failure: None,
                changes: BTreeMap::new(),
            }),
        }))
    }

    /// Held for the time of one answer, never across an await.
    ///
    /// # Errors
    /// When the network cannot be read.
    pub fn lock(&self) -> Result<MutexGuard<'_, Plane>, LookupError> {
        let plane = match self.0.plane.get() {
            Some(plane) => plane,
            None => {
                let mut waiting = lock(&self.0.waiting);
                match self.0.plane.get() {
                    // Made while this caller waited.
                    Some(plane) => plane,
                    None => {
                        let plane = waiting.plane()?;
                        self.0.plane.get_or_init(|| Mutex::new(plane))
                    }
                }
            }
        };
        Ok(lock(plane))
    }

    /// Takes a link down or up and gives it a shape; false when the network has no such interface.
    /// Before the network is read, which such a change is no reason for, the answer is true for
    /// any.
    pub fn set_link(&self, a: (IsdAsn, u16), up: bool, shape: Shape) -> bool {
        let mut waiting = lock(&self.0.waiting);
        let Some(plane) = self.0.plane.get() else {
            waiting.changes.insert(a, (up, shape));
            return true;
        };
        set_link(&mut lock(plane), a, up, shape)
    }
}

impl Waiting {
    fn plane(&mut self) -> Result<Plane, LookupError> {
        if let Some(source) = self.source.take() {
            match source.plane() {
                Ok(mut plane) => {
                    for (a, (up, shape)) in std::mem::take(&mut self.changes) {
                        set_link(&mut plane, a, up, shape);
                    }
                    return Ok(plane);
                }
                Err(error) => {
                    tracing::error!("the network cannot be read: {error}");
                    self.failure = Some(error.to_string());
                }
            }
        }
        let reason = self.failure.clone().unwrap_or_default();
        Err(LookupError::NoNetwork(reason))
    }
}

fn set_link(plane: &mut Plane, a: (IsdAsn, u16), up: bool, shape: Shape) -> bool {
    let Some(link) = plane.graph.link_at(a.0, a.1) else {
        return false;
    };
    plane.set_link(link, up, shape);
    true
}

/// A panic in one answer leaves at worst a cache half filled.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Control;
    use crate::testing::Lab;

    fn later(lab: &Lab, isd_as: &str) -> Shared {
        let dir = lab.dir(isd_as.parse().unwrap());
        Shared::new(Control::load_later(&dir).unwrap().into_source())
    }

    #[test]
    fn changes_before_the_first_request_are_in_its_answer() {
        let lab = Lab::ready("fig4");
        let (a, b): (IsdAsn, IsdAsn) = (
            "1-ff00:0:110".parse().unwrap(),
            "1-ff00:0:111".parse().unwrap(),
        );
        let shared = later(&lab, "1-ff00:0:110");
        let shape = Shape {
            delay: Duration::from_millis(7),
            ..Shape::default()
        };
        assert!(shared.set_link((a, 1), false, shape));
        // What the network turns out not to have.
        assert!(shared.set_link((a, 9), false, shape));
        let mut plane = shared.lock().unwrap();
        let down: Vec<_> = plane.graph.down().map(|link| link.a.id).collect();
        assert_eq!(down, [1]);
        assert!(plane.paths(a, b, 0).is_ok());
        drop(plane);
        assert!(shared.set_link((b, 1), true, shape));
        assert!(!shared.set_link((a, 9), true, shape));
        assert_eq!(shared.lock().unwrap().graph.down().count(), 0);
    }

    #[test]
    fn a_network_that_cannot_be_read_is_an_error_of_each_request() {
        let lab = Lab::ready("fig4");
        let shared = later(&lab, "1-ff00:0:110");
        std::fs::write(lab.folder.path().join("network.json"), "{").unwrap();
        for _ in 0..2 {
            let error = shared.lock().err().unwrap().to_string();
            assert!(error.contains("network.json"), "{error}");
        }
    }
}

//! A path policy that changes while transfers use it.

use std::future::pending;

use hawser_path::Policy;
use tokio::sync::watch;

/// Which paths transfers may use; `None` for all. It can be changed at any time, and transfers that use it
/// close the subflows over paths that are denied then. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct SharedPolicy(watch::Sender<Option<Policy>>);

impl SharedPolicy {
    /// Begins with this policy.
    pub fn new(policy: Option<Policy>) -> Self {
        Self(watch::Sender::new(policy))
    }

    /// Changes it. Setting the policy that is in force already has no effect.
    pub fn set(&self, policy: Option<Policy>) {
        self.0.send_if_modified(|current| {
            let is_new = *current != policy;
            *current = policy;
            is_new
        });
    }

    /// The policy in force.
    pub fn get(&self) -> Option<Policy> {
        self.0.borrow().clone()
    }

    /// The policy in force, and its changes from then on.
    pub fn follow(&self) -> (Option<Policy>, PolicyChanges) {
        let mut changes = self.0.subscribe();
        let current = changes.borrow_and_update().clone();
        (current, PolicyChanges(Some(changes)))
    }
}

/// The changes of a [`SharedPolicy`]. Only the newest one counts. By default there are none.
#[derive(Debug, Default)]
pub struct PolicyChanges(Option<watch::Receiver<Option<Policy>>>);

impl PolicyChanges {
    /// Waits for the next change, and returns the policy in force then. Never returns once nobody can change
    /// it any more. Cancel safe.
    pub async fn next(&mut self) -> Option<Policy> {
        if let Some(policy) = &mut self.0
            && policy.changed().await.is_ok()
        {
            return policy.borrow_and_update().clone();
        }
        pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn policy(acl: &str) -> Option<Policy> {
        Some(Policy::new().with_acl(acl.parse().unwrap()))
    }

    #[tokio::test(start_paused = true)]
    async fn each_user_gets_the_newest_policy_once() {
        let shared = SharedPolicy::new(policy("+"));
        let (current, mut one) = shared.follow();
        let (_, mut other) = shared.clone().follow();
        assert_eq!(current, policy("+"));
        let second = Duration::from_secs(1);
        // What is in force is no change.
        shared.set(policy("+"));
        assert!(timeout(second, one.next()).await.is_err());

        shared.set(policy("- 1; +"));
        assert_eq!(one.next().await, policy("- 1; +"));
        shared.set(None);
        assert_eq!(one.next().await, None);
        assert_eq!((other.next().await, shared.get()), (None, None));
        assert!(timeout(second, other.next()).await.is_err());

        drop(shared);
        assert!(timeout(second, one.next()).await.is_err());
    }
}

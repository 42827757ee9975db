//! The limits of an AS that may have none.

use std::sync::atomic::{AtomicBool, Ordering};

use hawser_limit::{EnforceError, Enforcer, FailedLinks, KernelEnforcer, LinkUsage, NamedLink};

/// The limits of a user AS: the kernel's queueing disciplines are left alone until a link has a limit, which
/// takes a right that user ASes have no other need of.
pub(super) struct LimitsOfUser {
    limits: KernelEnforcer<String>,
    is_used: AtomicBool,
}

impl LimitsOfUser {
    pub fn new(limits: KernelEnforcer<String>) -> Self {
        Self {
            limits,
            is_used: AtomicBool::new(false),
        }
    }

    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}

impl Enforcer<String> for LimitsOfUser {
    fn enforce(&self, links: &[NamedLink<String>]) -> Result<FailedLinks<String>, EnforceError> {
        if !links.is_empty() {
            self.is_used.store(true, Ordering::Relaxed);
        }
        match self.is_used() {
            true => self.limits.enforce(links),
            false => Ok(FailedLinks::new()),
        }
    }

    fn usage(&self) -> Result<Vec<LinkUsage<String>>, EnforceError> {
        match self.is_used() {
            true => self.limits.usage(),
            false => Ok(Vec::new()),
        }
    }

    fn reset(&self) -> Result<(), EnforceError> {
        match self.is_used() {
            true => self.limits.reset(),
            false => Ok(()),
        }
    }
}

//! The rules of a policy, and how they judge paths.

use std::sync::Arc;

use hawser_address::IsdAsn;

use super::acl::Acl;
use crate::{Path, Reason, Sequence};

/// The conditions that a path must meet to be used. A policy without rules keeps every path.
///
/// All rules must hold: the ACL, the sequences, the ISD-ASes at both ends. Options then narrow the
/// paths down: of the options that keep any path, those with the greatest weight decide.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    pub(super) acl: Option<Arc<Acl>>,
    pub(super) sequences: Vec<Arc<Sequence>>,
    pub(super) local: Option<Arc<[IsdAsn]>>,
    pub(super) remote: Option<Arc<[RemoteRule]>>,
    /// By descending weight.
    pub(super) options: Arc<[Choice]>,
}

/// Whether paths may end in some ASes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemoteRule {
    /// 0 stands for any ISD, and for any AS.
    pub isd_as: IsdAsn,
    pub reject: bool,
}

/// One of a policy's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub weight: i64,
    pub policy: Arc<Policy>,
}

impl Policy {
    /// A policy that keeps every path.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps only paths of which `acl` allows every interface.
    pub fn with_acl(mut self, acl: Acl) -> Self {
        self.acl = Some(Arc::new(acl));
        self
    }

    /// Keeps only paths that follow `sequence` and all sequences added before.
    pub fn with_sequence(mut self, sequence: Sequence) -> Self {
        self.sequences.push(Arc::new(sequence));
        self
    }

    /// Judges all paths to a destination: one result for each, in their order. It is the weight of
    /// the option that keeps the path (`None` if the policy has no options), or a
    /// [`Reason::Policy`].
    ///
    /// Paths are judged together, since an option counts only if no option of greater weight keeps
    /// any of them.
    pub fn filter<P: AsRef<Path>>(&self, paths: &[P]) -> Vec<Result<Option<i64>, Reason>> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        let judged = self.judge(&paths).into_iter();
        judged
            .map(|one| one.map_err(|why| Reason::Policy { why }))
            .collect()
    }

    /// For each path the weight of the option that keeps it, or why it is left.
    fn judge(&self, paths: &[&Path]) -> Vec<Result<Option<i64>, String>> {
        let mut judged: Vec<_> = paths
            .iter()
            .map(|path| self.holds_for(path).map(|()| None))
            .collect();
        let open: Vec<usize> = (0..paths.len()).filter(|&at| judged[at].is_ok()).collect();
        if !self.options.is_empty() && !open.is_empty() {
            let candidates: Vec<&Path> = open.iter().map(|&at| paths[at]).collect();
            for (at, outcome) in open.into_iter().zip(self.choose(&candidates)) {
                judged[at] = outcome.map(Some);
            }
        }
        judged
    }

    /// Applies all rules but the options, which need all paths.
    fn holds_for(&self, path: &Path) -> Result<(), String> {
        let has_ends = self.local.is_some() || self.remote.is_some();
        if has_ends && path.interfaces.is_empty() {
            return Err(format!("it stays inside {}", path.src));
        }
        if let Some(local) = &self.local
            && !local.contains(&path.src)
        {
            return Err(format!("{} is not among the local ISD-ASes", path.src));
        }
        if let Some(remote) = &self.remote {
            let rule = remote.iter().find(|rule| rule.isd_as.matches(path.dst));
            match rule {
                Some(rule) if !rule.reject => {}
                Some(rule) => {
                    return Err(format!("remote ISD-AS {} is rejected", rule.isd_as));
                }
                None => return Err(format!("{} is not among the remote ISD-ASes", path.dst)),
            }
        }
        if let Some((entry, interface)) = self.acl.as_ref().and_then(|acl| acl.denies(path)) {
            return Err(format!("acl entry \"{entry}\" at {interface}"));
        }
        let mut sequences = self.sequences.iter();
        if let Some(sequence) = sequences.find(|sequence| !sequence.matches(path)) {
            return Err(format!("does not follow the sequence '{sequence}'"));
        }
        Ok(())
    }

    /// For each path the weight of the option that keeps it, or why none does.
    fn choose(&self, paths: &[&Path]) -> Vec<Result<i64, String>> {
        let mut outcomes: Vec<Result<i64, String>> = vec![Err(String::new()); paths.len()];
        let mut found: Option<i64> = None;
        for option in self.options.iter() {
            if let Some(weight) = found.filter(|&weight| option.weight < weight) {
                // The options that are not tried any more might have kept these paths.
                for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_err()) {
                    *outcome = Err(format!("an option of weight {weight} has paths"));
                }
                break;
            }
            let weight = option.weight;
            let judged = option.policy.judge(paths);
            for (outcome, judged) in outcomes.iter_mut().zip(judged) {
                match judged {
                    Ok(_) => {
                        found = Some(weight);
                        *outcome = Ok(weight);
                    }
                    Err(why) if outcome.is_err() => {
                        *outcome = Err(format!("in the option of weight {weight}: {why}"));
                    }
                    Err(_) => {}
                }
            }
        }
        outcomes
    }
}

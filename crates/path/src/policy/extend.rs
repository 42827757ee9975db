//! Policies of a document, with what they extend filled in.

use std::collections::BTreeMap;
use std::sync::Arc;

use sciparse::identifier::isd_asn::IsdAsn;

use super::acl::Acl;
use super::error::{MOST_DEPTH, MOST_RULES, PolicyError};
use super::rules::{Choice, Policy, RemoteRule};
use super::written::Written;

/// The policies of a document, each with what it extends.
///
/// # Errors
/// What is wrong with one of them.
pub(super) fn resolve(
    written: &BTreeMap<String, Written>,
) -> Result<BTreeMap<String, Policy>, PolicyError> {
    let mut resolver = Resolver {
        written,
        whole: BTreeMap::new(),
        pending: Vec::new(),
    };
    for (name, policy) in written {
        resolver.named(name, policy, 1)?;
    }
    let whole = resolver.whole.into_iter();
    Ok(whole
        .map(|(name, whole)| (name.to_owned(), whole.policy))
        .collect())
}

struct Resolver<'a> {
    written: &'a BTreeMap<String, Written>,
    whole: BTreeMap<&'a str, Whole>,
    /// The policies being resolved, each extended by the one before.
    pending: Vec<&'a str>,
}

/// A policy with everything it extends.
#[derive(Clone, Default)]
struct Whole {
    policy: Policy,
    /// Its own rules, those of its options left out.
    rules: usize,
    option_rules: usize,
    /// The most steps over what it extends and its options.
    depth: usize,
}

impl<'a> Resolver<'a> {
    fn named(
        &mut self,
        name: &'a str,
        written: &'a Written,
        depth: usize,
    ) -> Result<Whole, PolicyError> {
        if let Some(whole) = self.whole.get(name) {
            return Ok(whole.clone());
        }
        if let Some(at) = self.pending.iter().position(|other| *other == name) {
            let through = self.pending[at + 1..].iter().chain([&name]);
            return Err(PolicyError::Cycle {
                policy: name.to_owned(),
                through: through.map(|&name| name.to_owned()).collect(),
            });
        }
        self.pending.push(name);
        let whole = self.whole(name, written, depth)?;
        self.pending.pop();
        self.whole.insert(name, whole.clone());
        Ok(whole)
    }

    /// `within` is the name of the policy it is or is in.
    fn whole(
        &mut self,
        within: &'a str,
        written: &'a Written,
        depth: usize,
    ) -> Result<Whole, PolicyError> {
        let too_deep = || PolicyError::TooDeep {
            policy: within.to_owned(),
        };
        if depth > MOST_DEPTH {
            return Err(too_deep());
        }
        let mut whole = own(within, written)?;
        let mut options = Vec::with_capacity(written.options.len());
        for option in &written.options {
            let inner = self.whole(within, &option.policy, depth + 1)?;
            whole.depth = whole.depth.max(inner.depth);
            // 1 for the option itself, so that empty ones count.
            whole.option_rules = [whole.option_rules, inner.rules, inner.option_rules, 1]
                .into_iter()
                .fold(0, usize::saturating_add);
            options.push(Choice {
                weight: option.weight,
                policy: Arc::new(inner.policy),
            });
        }
        options.sort_by_key(|option| std::cmp::Reverse(option.weight));
        whole.policy.options = options.into();
        // The last has precedence over those before it.
        for name in written.extends.iter().rev() {
            let Some((name, written)) = self.written.get_key_value(name) else {
                return Err(PolicyError::Extends {
                    policy: within.to_owned(),
                    extends: name.clone(),
                    known: self.written.keys().cloned().collect(),
                });
            };
            let extended = self.named(name, written, depth + 1)?;
            whole.depth = whole.depth.max(extended.depth);
            whole.inherit(extended);
        }
        whole.depth += 1;
        if whole.depth > MOST_DEPTH {
            return Err(too_deep());
        }
        match whole.rules.saturating_add(whole.option_rules) {
            rules if rules > MOST_RULES => Err(PolicyError::TooManyRules {
                policy: within.to_owned(),
                rules,
            }),
            _ => Ok(whole),
        }
    }
}

impl Whole {
    fn inherit(&mut self, from: Self) {
        let (policy, other) = (&mut self.policy, from.policy);
        policy.acl = policy.acl.take().or(other.acl);
        if policy.sequences.is_empty() {
            policy.sequences = other.sequences;
        }
        policy.local = policy.local.take().or(other.local);
        policy.remote = policy.remote.take().or(other.remote);
        if policy.options.is_empty() {
            policy.options = other.options;
            self.option_rules = from.option_rules;
        }
        self.rules = policy.rules();
    }
}

impl Policy {
    /// How many rules it has, those of its options left out.
    fn rules(&self) -> usize {
        let acl = self.acl.as_ref().map_or(0, |acl| acl.entries().len());
        let local = self.local.as_ref().map_or(0, |local| local.len());
        let remote = self.remote.as_ref().map_or(0, |remote| remote.len());
        acl + local + remote + self.sequences.len()
    }
}

/// What a policy says itself, without its options.
fn own(within: &str, written: &Written) -> Result<Whole, PolicyError> {
    let isd_as = |text: &str| {
        text.parse::<IsdAsn>().map_err(|_| PolicyError::IsdAs {
            policy: within.to_owned(),
            text: text.to_owned(),
        })
    };
    let mut policy = Policy::new();
    if let Some(entries) = &written.acl {
        let entries = entries.iter().map(|entry| entry.0.parse());
        let acl = entries.collect::<Result<_, _>>().and_then(Acl::new);
        policy = policy.with_acl(acl.map_err(|source| PolicyError::Acl {
            policy: within.to_owned(),
            source,
        })?);
    }
    if let Some(text) = &written.sequence {
        let sequence = text.parse().map_err(|source| PolicyError::Sequence {
            policy: within.to_owned(),
            source,
        })?;
        policy = policy.with_sequence(sequence);
    }
    if let Some(local) = &written.local_isd_ases {
        let local = local.iter().map(|text| isd_as(text));
        policy.local = Some(local.collect::<Result<_, _>>()?);
    }
    if let Some(rules) = &written.remote_isd_ases {
        let rules = rules.iter().map(|rule| {
            let any = Ok(IsdAsn::WILDCARD);
            Ok(RemoteRule {
                isd_as: rule.isd_as.as_deref().map_or(any, isd_as)?,
                reject: rule.reject,
            })
        });
        policy.remote = Some(rules.collect::<Result<_, _>>()?);
    }
    Ok(Whole {
        rules: policy.rules(),
        policy,
        ..Whole::default()
    })
}

//! Documents of named policies in YAML or JSON, with `extends` resolved.

use std::collections::BTreeMap;
use std::sync::Arc;

use hawser_address::IsdAsn;

use super::acl::Acl;
use super::error::{MOST_BYTES, PolicyError, listed};
use super::rules::{Choice, Policy, RemoteRule};
use super::written::{Document, Written};
use crate::Sequence;

/// Most nested levels of `extends` and `options` below a policy.
const MAX_DEPTH: usize = 32;

/// Most rules of a policy, including those of its options: nested options let a short document
/// describe many rules.
const MAX_RULES: usize = 10_000;

/// Named policies, as a document lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies(BTreeMap<String, Policy>);

impl Policies {
    /// Reads a document, YAML or JSON: names, each with its policy, as a mapping or as a list of
    /// mappings. A policy may have
    ///
    /// - `acl`: a list of entries as [`AclEntry`](super::AclEntry) reads them;
    /// - `sequence`: a [`Sequence`](crate::Sequence);
    /// - `local_isd_ases`: a list of ISD-ASes where paths may begin;
    /// - `remote_isd_ases`: a list of `isd_as` (0 for any), each with an optional `reject: true`;
    ///   the first entry that matches the end of a path decides, and paths that match none are
    ///   left;
    /// - `options`: a list of `weight` (0 unless given; the greatest first) and `policy`;
    /// - `extends`: a list of names of policies; what a policy does not set itself is taken from
    ///   the last one in the list that sets it.
    ///
    /// # Errors
    /// [`PolicyError`] says in one line what is wrong. Unknown keys are errors, as are more than
    /// 256 KiB, more than 32 nested levels of `extends` and `options`, and more than 10,000 rules
    /// in a policy with its options.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        if text.len() > MOST_BYTES {
            let bytes = text.len();
            return Err(PolicyError::TooLarge { bytes });
        }
        let document: Document = serde_saphyr::from_str(text).map_err(|error| {
            let error = error.without_snippet().to_string();
            PolicyError::Format(error.lines().next().unwrap_or_default().to_owned())
        })?;
        if document.0.is_empty() {
            return Err(PolicyError::Empty);
        }
        let mut resolver = Resolver {
            written: &document.0,
            whole: BTreeMap::new(),
            pending: Vec::new(),
        };
        for (name, policy) in &document.0 {
            resolver.named(name, policy, 1)?;
        }
        let whole = resolver.whole.into_iter();
        let policies = whole.map(|(name, whole)| (name.to_owned(), whole.policy));
        Ok(Self(policies.collect()))
    }

    /// The policy of this name.
    ///
    /// # Errors
    /// When there is no policy of this name.
    pub fn policy(&self, name: &str) -> Result<&Policy, PolicyError> {
        self.0.get(name).ok_or_else(|| PolicyError::Unknown {
            name: name.to_owned(),
            known: self.names(),
        })
    }

    /// The only policy of the document.
    ///
    /// # Errors
    /// When there are several.
    pub fn only(&self) -> Result<&Policy, PolicyError> {
        let mut policies = self.0.values();
        match (policies.next(), policies.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(PolicyError::Several {
                known: self.names(),
            }),
        }
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
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
    /// Number of its rules, without those of its options.
    rules: usize,
    option_rules: usize,
    /// Nested levels of `extends` and `options` below it.
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
            let mut through = self.pending[at + 1..].to_vec();
            through.push(name);
            let through = through.join(", ");
            return Err(wrong(name, format!(" extends itself through {through}")));
        }
        self.pending.push(name);
        let whole = self.whole(name, written, depth)?;
        self.pending.pop();
        self.whole.insert(name, whole.clone());
        Ok(whole)
    }

    /// `within` names the policy to resolve, or the policy that contains it as an option.
    fn whole(
        &mut self,
        within: &'a str,
        written: &'a Written,
        depth: usize,
    ) -> Result<Whole, PolicyError> {
        let too_deep = || {
            let why = format!(" leads over more than {MAX_DEPTH} steps of extends and options");
            wrong(within, why)
        };
        if depth > MAX_DEPTH {
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
                let known: Vec<_> = self.written.keys().cloned().collect();
                let known = listed(&known);
                let why = format!(" extends {name:?}, which is not in the document{known}");
                return Err(wrong(within, why));
            };
            let extended = self.named(name, written, depth + 1)?;
            whole.depth = whole.depth.max(extended.depth);
            whole.inherit(extended);
        }
        whole.depth += 1;
        if whole.depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match whole.rules.saturating_add(whole.option_rules) {
            rules if rules > MAX_RULES => {
                let most = format!("at most {MAX_RULES} are applied");
                let why = format!(" has {rules} rules with those of its options: {most}");
                Err(wrong(within, why))
            }
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
    /// Number of its rules, without those of its options.
    fn rules(&self) -> usize {
        let acl = self.acl.as_ref().map_or(0, |acl| acl.entries().len());
        let local = self.local.as_ref().map_or(0, |local| local.len());
        let remote = self.remote.as_ref().map_or(0, |remote| remote.len());
        acl + local + remote + self.sequences.len()
    }
}

/// A policy as it is written, without its options and what it extends.
fn own(within: &str, written: &Written) -> Result<Whole, PolicyError> {
    let isd_as = |text: &str| {
        let why = |_| format!(": {text:?} is not an ISD-AS: write for example 1-ff00:0:110");
        text.parse::<IsdAsn>()
            .map_err(|error| wrong(within, why(error)))
    };
    let mut policy = Policy::new();
    if let Some(entries) = &written.acl {
        let entries = entries.iter().map(|entry| entry.0.parse());
        let acl = entries.collect::<Result<_, _>>().and_then(Acl::new);
        policy = policy.with_acl(acl.map_err(|error| wrong(within, format!(": {error}")))?);
    }
    if let Some(text) = &written.sequence {
        let sequence = text.parse::<Sequence>();
        let sequence = sequence.map_err(|error| wrong(within, format!(": {error}")))?;
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

fn wrong(policy: &str, why: String) -> PolicyError {
    let policy = policy.to_owned();
    PolicyError::Policy { policy, why }
}

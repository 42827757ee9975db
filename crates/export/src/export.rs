//! An export, from a network to files.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use hawser_topology::Network;
use serde::Serialize;

use crate::archive;
use crate::containerlab::Topologies;
use crate::error::ExportError;
use crate::hosts::{Host, Hosts};
use crate::index::{INDEX, Index};
use crate::keys::{self, Keys, Need, PKI};
use crate::kubernetes::{self, Manifests};
use crate::name;
use crate::partition::partition;
use crate::plan::{Plan, Wiring};
use crate::readme::{self, DOCKERFILE, Kind, README};
use crate::segments::{self, Segments, part_path};
use crate::tree::{self, Tree};

/// The program that runs an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Kubernetes.
    Kubernetes,
    /// podman on one machine, as plain pods.
    Podman,
    /// containerlab, on these hosts or on one machine.
    Containerlab(Option<Hosts>),
}

impl Target {
    fn name(&self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Podman => "podman",
            Self::Containerlab(_) => "containerlab",
        }
    }
}

/// How a network is exported.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program that runs it.
    pub to: Target,
    /// The name of the namespace, network or lab: up to 40 of a-z, 0-9 and `-`.
    pub name: String,
    /// The image that runs each AS.
    pub image: String,
    /// The image of hawser alone, from which an image for containerlab can be made.
    pub base: String,
}

/// What an export has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// ASes of the network.
    pub ases: usize,
    /// Links of the network.
    pub links: usize,
    /// Links between hosts; 0 on one machine and for Kubernetes, which places ASes by itself.
    pub links_between_hosts: usize,
    /// Files that were written, without those of keys.
    pub written: usize,
    /// Files of an export before that were removed.
    pub removed: usize,
    /// Files that were there already.
    pub unchanged: usize,
    /// Bytes of all files, without those of keys.
    pub bytes: u64,
    /// What the pods of all ASes request together; `None` where nothing is requested.
    pub requests: Option<Requests>,
    /// ASes whose keys were made, which must start with them, again if they run.
    pub new_keys: usize,
    /// The names of ASes that an export before had and this one has not. What runs of them runs on.
    pub gone: Vec<String>,
    /// How many path segments there are.
    pub segments: usize,
    /// When the segments were made, in Unix seconds.
    pub segments_made: u64,
    /// When the segments expire, in Unix seconds.
    pub segments_expire: u64,
    /// What is not as in the topology, in sentences.
    pub notes: Vec<String>,
}

/// What pods request of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// Thousandths of a processor.
    pub cpu_millis: u64,
    /// MiB of memory.
    pub memory_mib: u64,
}

/// Exports a network to `folder`, at `now` in Unix seconds. What an export before has written there is
/// changed where it differs.
///
/// # Errors
/// [`ExportError`]. When arguments are wrong, nothing is written.
pub fn export(
    network: &Network,
    options: &Options,
    folder: &Path,
    now: u64,
) -> Result<Exported, ExportError> {
    name::check_name(&options.name)?;
    name::check_image(&options.image)?;
    let hosts = hosts(network, &options.to)?;
    let placed = place(network, hosts);
    let plan = match options.to {
        Target::Kubernetes | Target::Podman => Plan::new(network, Wiring::Names)?,
        Target::Containerlab(_) => Plan::new(network, Wiring::Devices(&placed))?,
    };
    let index = open(folder, options)?;
    let mut export = Export {
        options,
        hosts,
        placed,
        plan,
        folder,
        index,
    };
    export.run(now)
}

/// The hosts, none for one machine.
fn hosts<'a>(network: &Network, to: &'a Target) -> Result<&'a [Host], ExportError> {
    let Target::Containerlab(Some(hosts)) = to else {
        return Ok(&[]);
    };
    let (hosts, ases) = (hosts.all(), network.ases.len());
    match hosts.len() > ases {
        true => Err(ExportError::HostCount(format!(
            "{} hosts are more than the network has ASes ({ases}): name fewer",
            hosts.len()
        ))),
        false => Ok(hosts),
    }
}

/// The host of each AS.
fn place(network: &Network, hosts: &[Host]) -> Vec<usize> {
    let numbers: BTreeMap<_, usize> = (0..)
        .zip(&network.ases)
        .map(|(at, as_)| (as_.isd_as, at))
        .collect();
    let ends = network.links.iter().filter_map(|link| {
        let number = |isd_as| numbers.get(isd_as).copied();
        Some((number(&link.a.isd_as)?, number(&link.b.isd_as)?))
    });
    let ends: Vec<_> = ends.collect();
    partition(network.ases.len(), &ends, hosts.len())
}

/// The index of the export in `folder`; that of an empty one if it has none.
fn open(folder: &Path, options: &Options) -> Result<Index, ExportError> {
    match fs::metadata(folder) {
        Ok(found) if !found.is_dir() => return Err(ExportError::NotAFolder(folder.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(ExportError::NotAFolder(folder.to_owned()));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(ExportError::at(folder)(error));
        }
        _ => {}
    }
    let new = Index::new(options.to.name(), &options.name);
    let Some(there) = Index::read(folder)? else {
        // Keys that no export has written are not replaced.
        let pki = folder.join(PKI);
        return match pki.symlink_metadata() {
            Ok(_) => Err(ExportError::Foreign(pki)),
            Err(_) => Ok(new),
        };
    };
    match (&there.to, &there.name) == (&new.to, &new.name) {
        true => Ok(there),
        false => Err(ExportError::OtherExport {
            folder: folder.to_owned(),
            there: format!("{:?} for {}", there.name, there.to),
        }),
    }
}

struct Export<'a> {
    options: &'a Options,
    hosts: &'a [Host],
    placed: Vec<usize>,
    plan: Plan,
    folder: &'a Path,
    index: Index,
}

impl Export<'_> {
    fn run(&mut self, now: u64) -> Result<Exported, ExportError> {
        let before = self.index.clone();
        // Before anything is written: what is in the way shows by the names alone.
        self.check_foreign()?;
        let (keys, new_keys) = self.keys(now)?;
        let pki = self.folder.join(PKI);
        let Segments { made, parts } = segments::segments(
            self.folder,
            (&pki, &keys),
            &self.plan,
            before.segments.as_ref(),
            now,
        )?;
        self.index.config_maps = segments::config_maps(before.config_maps, parts.len());
        let mut tree = Tree::default();
        let archives = self.archives(&keys)?;
        for (at, part) in parts.iter().enumerate() {
            tree.insert(part_path(at), part.clone());
        }
        self.add(&mut tree, &archives, &parts)?;
        tree.insert(README, readme::readme(&self.kind(), &self.plan, &made));
        let exported = Exported {
            ases: self.plan.ases.len(),
            links: self.plan.links.len(),
            links_between_hosts: self.links_between_hosts(),
            written: 0,
            removed: 0,
            unchanged: 0,
            bytes: tree.bytes(),
            requests: self.requests(),
            new_keys,
            gone: self.gone(&before),
            segments: made.count,
            segments_made: made.made,
            segments_expire: made.expiry,
            notes: self.plan.notes.clone(),
        };
        self.index.segments = Some(made);
        let changes = self.write(&tree, &before)?;
        Ok(Exported {
            written: changes.written,
            removed: changes.removed,
            unchanged: changes.unchanged,
            ..exported
        })
    }

    /// Whether something is in the way of the files whose names depend on the network alone.
    fn check_foreign(&self) -> Result<(), ExportError> {
        let mut tree = Tree::default();
        self.add(&mut tree, &vec![Vec::new(); self.plan.ases.len()], &[])?;
        tree.insert(README, "");
        // How many follow is not known yet.
        tree.insert(part_path(0), "");
        tree.compare(self.folder, &self.index.files).map(drop)
    }

    /// Reads the keys, and makes those that are missing. Returns how many ASes have new ones.
    fn keys(&mut self, now: u64) -> Result<(Keys, usize), ExportError> {
        let (pki, network) = (self.folder.join(PKI), &self.plan.network);
        let (roles, before) = (keys::roles(network), self.index.roles.clone());
        if !keys::are_due(self.index.keys_made, now)
            && let Need::Some(change) = keys::need(&before, network)
            && pki.exists()
        {
            for isd in &change.roles {
                Keys::check_roles(&pki, network, *isd)?;
            }
            let certified = Keys::certified(&pki, network);
            for isd_as in &change.new {
                Keys::enroll(&pki, network, *isd_as, now)?;
            }
            for (isd, core) in &change.core {
                Keys::set_core(&pki, *isd, core, now)?;
            }
            if !change.roles.is_empty() {
                // Of keys that were changed half-way, none is used: all are made anew then.
                self.index.roles.clear();
                self.write_index()?;
            }
            for isd in &change.roles {
                Keys::set_roles(&pki, network, *isd, now)?;
            }
            if let Some(keys) = Keys::read(&pki, network)? {
                for isd_as in before.keys().filter(|one| !roles.contains_key(one)) {
                    let has_roles = change.roles.contains(&isd_as.isd().to_u16());
                    Keys::retire(&pki, *isd_as, has_roles)?;
                }
                self.index.roles = roles;
                let both = certified.iter().zip(Keys::certified(&pki, network));
                return Ok((keys, both.filter(|(before, now)| *before != now).count()));
            }
        }
        tree::create(self.folder)?;
        // What is in `pki` is of no export until the index says so, and of one from then on.
        self.index.roles.clear();
        self.write_index()?;
        let keys = Keys::make(&pki, network)?;
        (self.index.roles, self.index.keys_made) = (roles, now);
        Ok((keys, network.ases.len()))
    }

    fn archives(&mut self, keys: &Keys) -> Result<Vec<Vec<u8>>, ExportError> {
        let (network, before) = (&self.plan.network, &self.index.versions);
        let made = hawser_parallel::map(&self.plan.ases, |as_| {
            let (bundle, version) = archive::bundle(network, as_, keys, before)?;
            Ok::<_, ExportError>((bundle.pack(), version))
        });
        let mut archives = Vec::with_capacity(self.plan.ases.len());
        let mut versions = BTreeMap::new();
        for (as_, made) in self.plan.ases.iter().zip(made) {
            let (archive, version) = made?;
            archives.push(archive);
            versions.insert(as_.isd_as, version);
        }
        self.index.versions = versions;
        Ok(archives)
    }

    fn add(
        &self,
        tree: &mut Tree,
        archives: &[Vec<u8>],
        parts: &[Vec<u8>],
    ) -> Result<(), ExportError> {
        let Options { name, image, .. } = self.options;
        let manifests = Manifests {
            plan: &self.plan,
            name,
            image,
            parts: parts.len(),
            config_maps: self.index.config_maps,
        };
        match self.options.to {
            Target::Kubernetes => manifests.add(tree, archives),
            Target::Podman => manifests.add_pods(tree, archives, self.folder),
            Target::Containerlab(_) => {
                tree.insert(DOCKERFILE, readme::dockerfile(&self.options.base));
                Topologies {
                    plan: &self.plan,
                    name,
                    image,
                    hosts: self.hosts,
                    placed: &self.placed,
                    parts,
                }
                .add(tree, archives)
            }
        }
    }

    fn kind(&self) -> Kind<'_> {
        let Options { name, image, .. } = self.options;
        match self.options.to {
            Target::Kubernetes => Kind::Kubernetes { namespace: name },
            Target::Podman => Kind::Podman { network: name },
            Target::Containerlab(_) => Kind::Containerlab {
                name,
                image,
                has_hosts: !self.hosts.is_empty(),
            },
        }
    }

    /// The names of the ASes that are no longer in the network.
    fn gone(&self, before: &Index) -> Vec<String> {
        let gone = before.versions.keys();
        let gone = gone.filter(|isd_as| self.plan.network.find(**isd_as).is_none());
        gone.map(|isd_as| name::of_as(*isd_as)).collect()
    }

    fn requests(&self) -> Option<Requests> {
        let ases = self.plan.ases.len() as u64;
        matches!(self.options.to, Target::Kubernetes).then(|| Requests {
            cpu_millis: ases * kubernetes::REQUESTED_CPU_MILLIS,
            memory_mib: ases * kubernetes::REQUESTED_MEMORY_MIB,
        })
    }

    fn links_between_hosts(&self) -> usize {
        let host = |owner: usize| self.placed.get(owner);
        let links = self.plan.links.iter();
        links
            .filter(|link| host(link.a.owner) != host(link.b.owner))
            .count()
    }

    /// Writes the files by difference, and the index. If this process ends in the middle, the index has
    /// the files of both exports, so that the next one removes or replaces them.
    fn write(&mut self, tree: &Tree, before: &Index) -> Result<tree::Changes, ExportError> {
        let difference = tree.compare(self.folder, &before.files)?;
        self.index.files = tree.names();
        if self.index == *before && difference.is_empty() {
            return difference.apply(self.folder);
        }
        let after = self.index.files.clone();
        self.index.files.extend(before.files.iter().cloned());
        if !difference.is_empty() {
            self.write_index()?;
        }
        let changes = difference.apply(self.folder)?;
        self.index.files = after;
        self.write_index()?;
        Ok(changes)
    }

    fn write_index(&self) -> Result<(), ExportError> {
        let path = self.folder.join(INDEX);
        let written = hawser_file::write(&path, &self.index.to_json(), 0o644);
        written.map_err(ExportError::at(&path))
    }
}

#[cfg(test)]
mod tests;

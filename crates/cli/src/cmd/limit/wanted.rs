//! Which limits are wanted: from a file of links, an AS's topology, and the command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hawser_limit::{DeviceLimits, Limit, Limiter, Limits, Routes};
use hawser_limit_file::{FileLimits, LinkFile, Rates};
use hawser_topology::{AsTopology, read_json};

use super::failed::Failed;
use super::settings::Settings;
use crate::cmd::folders;
use crate::cmd::quantity::{RateArg, limit_or_none};
use crate::failure::Failure;

/// The files of links, in the folder of configuration, of which the first that exists is read when none is
/// named.
const FILES: [&str; 2] = ["links.toml", "link_info.json"];

/// Where the wanted limits are said.
#[derive(clap::Args)]
pub struct WantedArgs {
    /// The file of links
    ///
    /// link_info.json as SCIONLab writes it, or TOML or YAML with rates; when not given, links.toml or
    /// link_info.json in /etc/hawser, for users in ~/.config/hawser.
    #[arg(long, value_name = "FILE")]
    links: Option<PathBuf>,
    /// Find links in the topology.json of an AS
    ///
    /// Those that the file of links names by interface, or with --limit all.
    #[arg(long, value_name = "TOPOLOGY")]
    from: Option<PathBuf>,
    /// The limit of an interface's link, or of all links of the AS
    ///
    /// In both directions. May be given several times; the one for an interface counts.
    #[arg(long = "limit", value_name = "[IF=]RATE", requires = "from", value_parser = interface_rate)]
    rates: Vec<(Option<u16>, u64)>,
    /// The limit of all other traffic together
    ///
    /// On the devices of links; none when not given.
    #[arg(long, value_name = "RATE", value_parser = limit_or_none)]
    default: Option<RateArg>,
}

/// What is wanted, as far as it can be.
pub struct Wanted {
    /// The limits of each device.
    pub devices: BTreeMap<String, DeviceLimits>,
    /// Links whose device cannot be found.
    pub failed: Vec<Failed>,
}

/// How far hawser may go.
#[derive(clap::Args)]
pub struct ReplaceArgs {
    /// Replace what somebody else has set on a device of links
    ///
    /// That is the root queueing discipline of the device.
    #[arg(long)]
    pub replace: bool,
}

fn interface_rate(text: &str) -> Result<(Option<u16>, u64), String> {
    let (interface, rate) = match text.split_once('=') {
        None => (None, text),
        Some((interface, rate)) => {
            let number = interface.parse();
            let number =
                number.map_err(|_| format!("{interface:?} is not the number of an interface"))?;
            (Some(number), rate)
        }
    };
    match limit_or_none(rate)? {
        RateArg(Some(rate)) => Ok((interface, rate)),
        RateArg(None) => Err("none is no rate: leave the interface out".to_owned()),
    }
}

impl WantedArgs {
    /// The wanted arguments of `-l`.
    pub fn of_letters() -> Self {
        Self {
            links: None,
            from: None,
            rates: Vec::new(),
            default: None,
        }
    }

    /// The files whose changes count.
    pub fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        let links = self.links_path(&Settings::read()?)?;
        Ok(links.into_iter().chain(self.from.clone()).collect())
    }

    /// The file of links; `None` if the topology's links with `--limit` are enough.
    fn links_path(&self, settings: &Settings) -> Result<Option<PathBuf>, Failure> {
        if let Some(path) = &self.links {
            return Ok(Some(path.clone()));
        }
        if !self.rates.is_empty() {
            return Ok(None);
        }
        if let Some(path) = &settings.links {
            return Ok(Some(path.clone()));
        }
        let folder = folders::config()?;
        let [first, second] = FILES.map(|name| folder.join(name));
        Ok(match second.exists() && !first.exists() {
            true => Some(second),
            false => Some(first),
        })
    }

    /// The limits of each device, and the links that have none because their device cannot be found.
    /// Devices that have limits now and are to have none have empty ones.
    pub fn read(&self, limiter: &mut Limiter) -> Result<Wanted, Failure> {
        let settings = Settings::read()?;
        let topology = self.from.as_deref().map(topology).transpose()?;
        let mut file = match self.links_path(&settings)? {
            Some(path) => self.file(&path)?,
            None => LinkFile::default(),
        };
        if let (Some(topology), false) = (&topology, self.rates.is_empty()) {
            let of_all = self.rate_of(None);
            let rate = |interface| self.rate_of(Some(interface)).or(of_all).map(Rates::both);
            for (interface, _) in &self.rates {
                let has = |number: &u16| {
                    let mut routers = topology.border_routers.values();
                    routers.any(|router| router.interfaces.contains_key(number))
                };
                if let Some(number) = interface.filter(|number| !has(number)) {
                    let isd_as = topology.isd_as;
                    return Err(Failure::usage(format_args!(
                        "--limit {number}=: {isd_as} has no interface {number}"
                    )));
                }
            }
            let links = LinkFile::of_topology(topology, rate).links;
            file.links.extend(links);
        }
        match self.default {
            Some(RateArg(rate)) => file.default = rate,
            None => file.default = file.default.or(settings.default),
        }
        let mut routes = Routes::open()?;
        let device_to = |address| routes.device_to(address);
        let FileLimits {
            mut devices,
            failed,
        } = file.limits(topology.as_ref(), device_to)?;
        // Without a route a link keeps its limit where it is: else it had none until the next look
        // after the route is back.
        let now = match failed.is_empty() {
            true => BTreeMap::new(),
            false => limiter.devices_of_links()?,
        };
        for link in &failed {
            if let Some(device) = now.get(&link.remote) {
                let on_device = devices.entry(device.clone()).or_default();
                on_device.links.insert(link.remote, link.limits);
                on_device.default = file
                    .default
                    .map(Limit::new)
                    .map(Limits::both)
                    .unwrap_or_default();
            }
        }
        for device in limiter.devices()? {
            devices.entry(device).or_default();
        }
        let failed = failed.into_iter();
        let failed = failed.map(|link| Failed::link(link.entry, &link.error));
        Ok(Wanted {
            devices,
            failed: failed.collect(),
        })
    }

    fn rate_of(&self, interface: Option<u16>) -> Option<u64> {
        let mut found = self.rates.iter().rev().filter(|(of, _)| *of == interface);
        found.next().map(|(_, rate)| *rate)
    }

    fn file(&self, path: &Path) -> Result<LinkFile, Failure> {
        LinkFile::read(path).map_err(|error| match error.is_missing() {
            true if self.links.is_none() => Failure::usage(format_args!(
                "there is no {}: write the links there, or name their file with --links",
                path.display()
            )),
            // A file that is named and not there is wrong use, its content is not.
            true => Failure::usage(error),
            false => error.into(),
        })
    }
}

/// Reads the `topology.json` of an AS.
pub fn topology(path: &Path) -> Result<AsTopology, Failure> {
    Ok(read_json(path)?)
}

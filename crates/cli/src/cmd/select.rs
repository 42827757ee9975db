//! The strategies that choose among the allowed paths.

use std::path::{Path, PathBuf};

use hawser_path::{Carbon, STRATEGIES, Select, SelectError, StrategyKind};

use super::policy::PolicyArgs;
use super::{files, headings};
use crate::failure::Failure;

/// Most paths taken to each peer by default.
const PATHS: u16 = 4;

/// Which paths may be used, and how to choose among them.
#[derive(clap::Args)]
pub struct PathArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// How to choose among the paths that may be used.
#[derive(clap::Args)]
pub struct SelectArgs {
    /// Take at most this many paths [default: 4]
    ///
    /// With several peers, to each of them.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub paths: Option<u16>,
    #[arg(long, value_name = "STRATEGY,...", help = select_help(), help_heading = headings::PATHS, hide_short_help = true)]
    pub select: Option<Select>,
    /// Grams of CO2 per GB, for the strategy carbon: a YAML or JSON file with lines such as
    /// '1-ff00:0:110: 12.5', or '1-ff00:0:110#2: 3' for an interface; where it says nothing, notes
    /// of ASes count
    #[arg(long, value_name = "FILE", help_heading = headings::PATHS, hide_short_help = true)]
    pub carbon: Option<PathBuf>,
}

impl SelectArgs {
    /// Most paths taken.
    pub fn most(&self) -> usize {
        self.paths.unwrap_or(PATHS).into()
    }

    /// The first of these flags that was given.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            (self.paths.is_some(), "--paths"),
            (self.select.is_some(), "--select"),
            (self.carbon.is_some(), "--carbon"),
        ];
        flags
            .into_iter()
            .find_map(|(given, flag)| given.then_some(flag))
    }

    /// The strategies, with the carbon table if there is one.
    ///
    /// # Errors
    /// Wrong use, if the table cannot be read or no strategy uses it.
    pub fn read(&self) -> Result<Select, Failure> {
        let select = self.select.clone().unwrap_or_else(Select::disjoint);
        with_carbon(select, self.carbon.as_deref())
    }
}

/// Adds the carbon table in `file`, if there is one.
///
/// # Errors
/// As [`SelectArgs::read`].
pub fn with_carbon(select: Select, file: Option<&Path>) -> Result<Select, Failure> {
    let Some(file) = file else {
        return Ok(select);
    };
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("--carbon {}: {error}", file.display()))
    };
    if !select.uses_carbon() {
        return Err(wrong(
            &"nothing is chosen by it: add --select carbon, or for example carbon,latency",
        ));
    }
    let text = files::read_text(file).map_err(|error| wrong(&error))?;
    let table: Carbon = text.parse().map_err(|error| wrong(&error))?;
    Ok(select.with_carbon(&table))
}

/// Help for `--select` of the commands that choose paths.
fn select_help() -> String {
    format!(
        "How to choose among paths: by {}; and one of {} [default: disjoint]; a download then \
         chooses here, not the uploader",
        described(false),
        described(true)
    )
}

/// Help for `--select` of `seed`.
pub fn ranking_help() -> String {
    format!(
        "Which paths to downloaders come first: by {}; no two of them share a link [default: \
         shortest]",
        described(false)
    )
}

/// Reads strategies, none of which may pick a set.
pub fn ranking(text: &str) -> Result<Select, String> {
    let select: Select = text
        .parse()
        .map_err(|error: SelectError| error.to_string())?;
    if select == select.ranking() {
        return Ok(select);
    }
    let names: Vec<&str> = kinds(false).map(|kind| kind.name).collect();
    Err(format!(
        "an uploader gives out paths that share no link: write what ranks them, one or more of {}",
        names.join(", ")
    ))
}

fn kinds(picks: bool) -> impl Iterator<Item = &'static StrategyKind> {
    STRATEGIES.iter().filter(move |kind| kind.picks() == picks)
}

/// `shortest (the fewest hops), latency (…)`.
fn described(picks: bool) -> String {
    let described = kinds(picks).map(|kind| format!("{kind} ({})", kind.about));
    described.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_strategy() {
        let (select, rank) = (select_help(), ranking_help());
        for kind in &STRATEGIES {
            assert!(select.contains(&kind.to_string()), "{select}");
            assert_eq!(rank.contains(&kind.to_string()), !kind.picks(), "{rank}");
        }
    }

    #[test]
    fn the_page_on_choosing_paths_names_every_strategy() {
        let page = include_str!("../../../../docs/choosing-paths.md");
        for kind in &STRATEGIES {
            let is_named = page.contains(&format!("`{}", kind.name));
            assert!(is_named, "docs/choosing-paths.md has no `{}`", kind.name);
        }
    }

    #[test]
    fn an_uploader_takes_ranking_strategies_only() {
        assert!(ranking("latency,shortest").is_ok());
        let error = ranking("latency,disjoint").unwrap_err();
        assert!(
            error.contains("shortest, latency, bandwidth, mtu, carbon"),
            "{error}"
        );
        assert!(ranking("fastest").unwrap_err().contains("latency,disjoint"));
    }
}

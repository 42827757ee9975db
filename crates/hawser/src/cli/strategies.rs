//! What help and errors say of path strategies, derived from the list of them.

use hawser_path::{Kind, STRATEGIES, Select, SelectError};

/// Help for `--select` of commands that choose paths.
pub(super) fn select_help() -> String {
    format!(
        "How to choose among paths: by {}; and one of {} [default: disjoint]; a download then \
         chooses here, not the uploader",
        described(false),
        described(true)
    )
}

/// Help for `--select` of `seed`.
pub(super) fn ranking_help() -> String {
    format!(
        "Which paths to downloaders come first: by {}; no two of them share a link [default: \
         shortest]",
        described(false)
    )
}

/// Reads strategies of which none picks a set.
pub(super) fn ranking(text: &str) -> Result<Select, String> {
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

fn kinds(picks: bool) -> impl Iterator<Item = &'static Kind> {
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
    fn an_uploader_ranks_only() {
        assert!(ranking("latency,shortest").is_ok());
        let error = ranking("latency,disjoint").unwrap_err();
        assert!(
            error.contains("shortest, latency, bandwidth, carbon"),
            "{error}"
        );
        assert!(ranking("fastest").unwrap_err().contains("latency,disjoint"));
    }
}

//! The path policy that a command's arguments name.

use std::convert::Infallible;
use std::future::pending;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use hawser_bulk::SharedPolicy;
use hawser_file::Stamp;
use hawser_path::{Acl, AclEntry, Policies, Policy, Sequence};
use tokio::time::{MissedTickBehavior, interval};

use super::{files, headings};
use crate::failure::Failure;
use crate::out::{errln, plain};

/// Interval at which it is looked whether the file of a policy has changed.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Which paths may be used, as seen from this host.
#[derive(Debug, Clone, clap::Args)]
pub struct PolicyArgs {
    /// Use only paths that a policy keeps: a YAML or JSON file, and the name of one of several in
    /// it. A transfer that runs follows its changes
    #[arg(long, value_name = "FILE[:NAME]", help_heading = headings::PATHS, hide_short_help = true)]
    pub policy: Option<String>,
    /// Use only paths that these allow, in order, for example '- 2-ff00:0:210' and then '+'
    #[arg(
        long,
        value_name = "ENTRY",
        allow_hyphen_values = true,
        conflicts_with = "policy",
        help_heading = headings::PATHS,
        hide_short_help = true
    )]
    pub acl: Vec<AclEntry>,
    /// Use only paths of this sequence of hops, for example '0* 1-ff00:0:110#2 0*', in addition to
    /// --policy or --acl
    #[arg(long, value_name = "SEQUENCE", help_heading = headings::PATHS, hide_short_help = true)]
    pub sequence: Option<Sequence>,
}

/// Reads the policy; `None` if the arguments name none.
///
/// # Errors
/// Wrong use, if it cannot be read or is invalid.
pub fn read(args: &PolicyArgs) -> Result<Option<Policy>, Failure> {
    let policy = match args.acl.is_empty() {
        true => in_file(args)?,
        false => {
            let acl = Acl::new(args.acl.clone());
            let acl = acl.map_err(|error| Failure::usage(format!("--acl: {error}")))?;
            Some(Policy::new().with_acl(acl))
        }
    };
    Ok(match &args.sequence {
        None => policy,
        Some(sequence) => Some(policy.unwrap_or_default().with_sequence(sequence.clone())),
    })
}

/// Sets `policy` anew whenever the file in the argument of `--policy` changes, for as long as this is
/// polled. While the file cannot be used, the former policy stays in force.
pub async fn follow(args: &PolicyArgs, policy: &SharedPolicy) -> Infallible {
    let Some(file) = file(args) else {
        return pending().await;
    };
    let mut looks = interval(FOLLOW_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first look reads it again: it may have changed since the command read it.
    let mut seen = None;
    loop {
        looks.tick().await;
        let found = Stamp::of(file);
        if found == seen {
            continue;
        }
        seen = found;
        let shown = plain(&file.display().to_string());
        match read(args) {
            Ok(read) if read == policy.get() => {}
            Ok(read) => {
                policy.set(read);
                errln!("hawser: the policy in {shown} has changed, and is in force now");
            }
            Err(failure) => errln!("hawser: {failure}; the former policy stays in force"),
        }
    }
}

/// The file in the argument of `--policy`.
pub fn file(args: &PolicyArgs) -> Option<&Path> {
    Some(Path::new(split(args.policy.as_deref()?).0))
}

/// Splits `FILE[:NAME]`.
fn split(policy: &str) -> (&str, Option<&str>) {
    match policy.rsplit_once(':') {
        // A file name may contain a colon.
        Some((file, name)) if !Path::new(policy).exists() => (file, Some(name)),
        _ => (policy, None),
    }
}

fn in_file(args: &PolicyArgs) -> Result<Option<Policy>, Failure> {
    let Some(policy) = &args.policy else {
        return Ok(None);
    };
    let wrong =
        |error: &dyn std::fmt::Display| Failure::usage(format!("--policy {policy}: {error}"));
    let (file, name) = split(policy);
    let text = files::read_text(Path::new(file)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => wrong(&format_args!("there is no file {file}")),
        _ => wrong(&error),
    })?;
    let policies = Policies::parse(&text).map_err(|error| wrong(&error))?;
    let chosen = match name {
        Some(name) => policies.policy(name),
        None => policies.only(),
    };
    Ok(Some(chosen.map_err(|error| wrong(&error))?.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(policy: &str) -> Result<Option<Policy>, String> {
        let args = PolicyArgs {
            policy: Some(policy.to_owned()),
            acl: Vec::new(),
            sequence: None,
        };
        read(&args).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_file_that_changed_before_it_is_followed_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yml");
        std::fs::write(&file, "one: {acl: ['- 2', '+']}").unwrap();
        let args = PolicyArgs {
            policy: Some(file.to_str().unwrap().to_owned()),
            acl: Vec::new(),
            sequence: None,
        };
        let policy = SharedPolicy::new(read(&args).unwrap());
        std::fs::write(&file, "one: {acl: ['- 3', '+']}").unwrap();
        let (_, mut changes) = policy.follow();
        tokio::select! {
            changed = changes.next() => assert_eq!(changed, read(&args).unwrap()),
            never = follow(&args, &policy) => match never {},
            () = tokio::time::sleep(Duration::from_secs(60)) => panic!("it was not seen"),
        }
    }

    #[test]
    fn a_policy_is_named_after_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let one = file("one.yml", "mine: {acl: ['- 2', '+']}");
        let two = file("two:b", "a: {}\nb: {acl: ['- 2', '+']}");
        let policy = Policy::new().with_acl("- 2; +".parse().unwrap());
        assert_eq!(of(&one), Ok(Some(policy.clone())));
        assert_eq!(of(&format!("{one}:mine")), Ok(Some(policy.clone())));
        assert_eq!(of(&format!("{two}:b")), Ok(Some(policy)));
        for (text, part) in [
            (format!("{one}:other"), "\"mine\""),
            (two, "name one"),
            (format!("{}/none.yml", folder.path().display()), "none.yml"),
        ] {
            let error = of(&text).unwrap_err();
            assert!(
                error.starts_with("--policy ") && error.contains(part),
                "{error}"
            );
        }
    }

    #[test]
    fn entries_make_an_acl() {
        let acl = |entries: &[&str]| {
            let acl = entries.iter().map(|entry| entry.parse().unwrap()).collect();
            let args = PolicyArgs {
                policy: None,
                acl,
                sequence: None,
            };
            read(&args).map_err(|error| error.to_string())
        };
        assert_eq!(acl(&[]), Ok(None));
        let policy = Policy::new().with_acl("- 2; +".parse().unwrap());
        assert_eq!(acl(&["- 2", "+"]), Ok(Some(policy)));
        assert!(
            acl(&["- 2"])
                .unwrap_err()
                .contains("--acl: the ACL has no default")
        );
    }

    #[test]
    fn a_sequence_is_added_to_the_policy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.yml");
        std::fs::write(&file, "p: {sequence: '0+'}").unwrap();
        let read = |policy, acl: &[&str]| {
            read(&PolicyArgs {
                policy,
                acl: acl.iter().map(|entry| entry.parse().unwrap()).collect(),
                sequence: Some("0 0".parse().unwrap()),
            })
            .unwrap()
            .unwrap()
        };
        let sequence = || Policy::new().with_sequence("0 0".parse().unwrap());
        let acl = sequence().with_acl("- 2; +".parse().unwrap());
        let both = Policy::new()
            .with_sequence("0+".parse().unwrap())
            .with_sequence("0 0".parse().unwrap());
        assert_eq!(read(None, &[]), sequence());
        assert_eq!(read(None, &["- 2", "+"]), acl);
        assert_eq!(read(Some(file.display().to_string()), &[]), both);
    }
}

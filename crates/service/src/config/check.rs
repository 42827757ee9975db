//! What the parts of a configuration need of each other.

use std::path::Component;

use super::Config;
use crate::owner::OWNER;

/// The key, and what is wrong with it.
type Wrong = (String, String);

pub(super) fn check(config: &Config) -> Result<(), Wrong> {
    let wrong = |key: &str, reason: &str| Err((key.to_owned(), reason.to_owned()));
    let transfers = &config.transfers;
    if transfers.running == 0 {
        let reason = "0 transfers at once is none: write 1 or more";
        return wrong("transfers.running", reason);
    }
    if transfers.attempts == Some(0) {
        return wrong("transfers.attempts", "0 attempts is none: write 1 or more");
    }
    if transfers.paths == 0 {
        return wrong("transfers.paths", "0 paths is none: write 1 or more");
    }
    let network = &config.network;
    if network.bootstrap.is_some() && (network.sciond.is_some() || network.config_dir.is_some()) {
        return wrong(
            "network.bootstrap",
            "the bootstrap server has topology.json: leave out `sciond` and `config_dir`, or this",
        );
    }
    let http = &config.http;
    if http.listen.is_some_and(|listen| !listen.ip().is_loopback()) {
        return wrong(
            "http.listen",
            "tokens would cross the network unencrypted: write 127.0.0.1:PORT, and use [https] for other hosts",
        );
    }
    if let Some(user) = &http.anonymous
        && !config.users.contains_key(user)
    {
        let reason = format!("there is no user {user:?}: add a section [users.{user}]");
        return wrong("http.anonymous", &reason);
    }
    if let Some(receive) = &config.receive {
        if receive.allow.is_empty() && receive.allowed_keys.is_none() {
            return wrong(
                "receive",
                "nobody may send: name keys as `allow`, or a file with keys as `allowed_keys`",
            );
        }
        if receive.sessions == 0 {
            return wrong("receive.sessions", "0 sessions is none: write 1 or more");
        }
    }
    users(config)
}

fn users(config: &Config) -> Result<(), Wrong> {
    if config.users.contains_key(OWNER) {
        let reason = "this is the user that the daemon's own token stands for: take another name";
        return Err((format!("users.{OWNER}"), reason.to_owned()));
    }
    for (name, user) in &config.users {
        let wrong = |key: &str, reason: &str| Err((format!("users.{name}{key}"), reason.into()));
        let anonymous = config.http.anonymous.as_ref();
        let client_ca = config
            .https
            .as_ref()
            .and_then(|https| https.client_ca.as_ref());
        if user.certificate.is_some() && client_ca.is_none() {
            return wrong(
                ".certificate",
                "certificates are not asked for: add `client_ca` to [https]",
            );
        }
        let nothing = user.token_sha256.is_none() && user.certificate.is_none();
        if nothing && anonymous != Some(name) {
            return wrong(
                "",
                "nothing identifies this user: add `token_sha256` or `certificate`",
            );
        }
        let others = || config.users.iter().filter(|(other, _)| *other < name);
        for (other, others) in others() {
            let same = |same: bool| same.then(|| format!("users.{other} has the same one"));
            let token = user.token_sha256.is_some() && user.token_sha256 == others.token_sha256;
            if let Some(reason) = same(token) {
                return wrong(".token_sha256", &reason);
            }
            let certificate = user.certificate.is_some() && user.certificate == others.certificate;
            if let Some(reason) = same(certificate) {
                return wrong(".certificate", &reason);
            }
        }
        if user.running == 0 {
            return wrong(".running", "0 transfers at once is none: write 1 or more");
        }
        let parent =
            |path: &std::path::PathBuf| path.components().any(|one| one == Component::ParentDir);
        if user.folders.iter().any(parent) {
            return wrong(".folders", "`..` is not allowed: write the path without it");
        }
    }
    Ok(())
}

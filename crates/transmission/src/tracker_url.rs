//! Parts of announce URLs, as far as Transmission's RPC shows them, and lists of them.

use crate::error::CallError;

/// Whether a text may be an announce URL: a scheme, a host, no blanks.
pub(crate) fn is_announce(url: &str) -> bool {
    let is_blank = |char: char| char.is_whitespace() || char.is_control();
    !authority(url).is_empty() && !url.contains(is_blank)
}

/// Reads a list of announce URLs in lines, with empty lines between tiers (BEP 12).
pub(crate) fn tiers(list: &str) -> Result<Vec<Vec<String>>, CallError> {
    let mut tiers = vec![Vec::new()];
    for line in list.lines().map(str::trim) {
        match (line, tiers.last_mut()) {
            ("", _) => tiers.push(Vec::new()),
            (url, Some(tier)) if is_announce(url) => tier.push(url.to_owned()),
            _ => return Err(CallError::TrackerList),
        }
    }
    tiers.retain(|tier| !tier.is_empty());
    Ok(tiers)
}

/// Host and port of a URL: what stands between `//` and the path, or nothing.
fn authority(url: &str) -> &str {
    let Some((scheme, rest)) = url.split_once("://") else {
        return "";
    };
    if scheme.is_empty() {
        return "";
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

/// Host and port of an announce URL, as `tracker.example.org:80`.
pub(crate) fn host(url: &str) -> String {
    let authority = authority(url);
    let default = match url.split_once(':') {
        Some(("http", _)) => ":80",
        Some(("https", _)) => ":443",
        _ => "",
    };
    if authority.is_empty() || bare(authority) != authority {
        return authority.to_owned();
    }
    format!("{authority}{default}")
}

/// A host without its port.
fn bare(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !is_open(host) => {
            host
        }
        _ => authority,
    }
}

/// Whether a text ends within brackets, as `[fd00:` does.
fn is_open(text: &str) -> bool {
    text.contains('[') && !text.ends_with(']')
}

/// The name that a user knows a tracker by: `example` of `http://tracker.example.org:80/announce`;
/// the host if it is an address.
pub(crate) fn site(url: &str) -> &str {
    let host = bare(authority(url));
    let is_address = host.contains([':', ',']) || host.rsplit('.').next().is_some_and(is_number);
    if is_address {
        return host;
    }
    host.rsplit('.').nth(1).unwrap_or(host)
}

fn is_number(label: &str) -> bool {
    label.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_sites_are_found() {
        for (url, expected_host, expected_site) in [
            (
                "http://tracker.example.org/announce",
                "tracker.example.org:80",
                "example",
            ),
            ("https://example.org:8443/a", "example.org:8443", "example"),
            (
                "udp://user:word@tracker.example.org:6969",
                "tracker.example.org:6969",
                "example",
            ),
            ("udp://10.0.0.1:6969/announce", "10.0.0.1:6969", "10.0.0.1"),
            ("http://[fd00::1]/announce", "[fd00::1]:80", "[fd00::1]"),
            ("http://[fd00::1]:81/announce", "[fd00::1]:81", "[fd00::1]"),
            ("http://localhost/a", "localhost:80", "localhost"),
            (
                "http://1-ff00:0:110,10.0.0.1:80/announce",
                "1-ff00:0:110,10.0.0.1:80",
                "1-ff00:0:110,10.0.0.1",
            ),
            ("no URL", "", ""),
            ("", "", ""),
        ] {
            assert_eq!(host(url), expected_host, "{url}");
            assert_eq!(site(url), expected_site, "{url}");
        }
    }

    #[test]
    fn lists_are_read_in_tiers() {
        let list = "udp://a:1\nudp://b:2\n\n\nhttp://c/announce\n";
        let expected = [vec!["udp://a:1", "udp://b:2"], vec!["http://c/announce"]];
        assert_eq!(tiers(list).unwrap(), expected);
        assert_eq!(tiers("").unwrap(), Vec::<Vec<String>>::new());
        for wrong in ["a", "://a", "http://", "http://a b", "http:///announce"] {
            assert_eq!(tiers(wrong), Err(CallError::TrackerList), "{wrong}");
        }
    }
}

//! Names of images.

/// Longest name of an image without its tag and digest, in bytes, as registries have it.
const MAX_IMAGE: usize = 255;
/// Longest tag of an image, in bytes.
const MAX_TAG: usize = 128;

/// Whether a text is the name of an image: `[HOST[:PORT]/]NAME[/NAME...][:TAG][@sha256:DIGEST]`, as the OCI
/// distribution specification and Docker have it.
#[must_use]
pub fn is_image_name(image: &str) -> bool {
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    let is_digest = |digest: &str| {
        let hex = digest.strip_prefix("sha256:");
        hex.is_some_and(|hex| {
            let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            hex.len() == 64 && hex.bytes().all(digit)
        })
    };
    // A colon before the last slash is that of a port.
    let last = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match rest[last..].split_once(':') {
        Some((_, tag)) => (&rest[..rest.len() - tag.len() - 1], Some(tag)),
        None => (rest, None),
    };
    let is_tag = |tag: &str| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        (1..=MAX_TAG).contains(&tag.len()) && !tag.starts_with(['.', '-']) && tag.bytes().all(inner)
    };
    let is_host = |part: &str| {
        let (host, port) = part.split_once(':').unwrap_or((part, "1"));
        let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-');
        !host.is_empty() && host.bytes().all(inner) && port.parse::<u16>().is_ok()
    };
    let is_component = |part: &str| {
        let inner =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'.' | b'-');
        let end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        part.starts_with(end) && part.ends_with(end) && part.bytes().all(inner)
    };
    let mut parts: Vec<&str> = name.split('/').collect();
    let first = parts[0];
    let names_host = first.contains(['.', ':']) || first == "localhost";
    let host_fits = match names_host && parts.len() > 1 {
        true => is_host(parts.remove(0)),
        false => true,
    };
    name.len() <= MAX_IMAGE
        && host_fits
        && parts.into_iter().all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
}

/// The tag of an image name without a digest; `None` if it has none.
pub(crate) fn tag(image: &str) -> Option<&str> {
    let last = image.rsplit('/').next()?;
    let (_, tag) = last.split_once(':')?;
    (is_image_name(image) && !image.contains('@')).then_some(tag)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_image_is_read_without_panic(text in "\\PC{0,40}") {
            let _ = is_image_name(&text);
        }
    }

    #[test]
    fn tags_are_found() {
        assert_eq!(tag("localhost/hawser:0.1.0"), Some("0.1.0"));
        assert_eq!(tag("a.b:50/hawser:x"), Some("x"));
        let digest = format!("x:1@sha256:{}", "0a".repeat(32));
        for none in ["a.b:50/hawser", "hawser", "Hawser:1", &digest] {
            assert_eq!(tag(none), None, "{none}");
        }
    }

    #[test]
    fn images_are_checked() {
        let digest = format!("x@sha256:{}", "0a".repeat(32));
        for good in [
            "hawser",
            "hawser:0.1.0",
            "localhost/hawser:0.1.0",
            "registry.example:5000/net/hawser",
            "Registry.Example/net/hawser:v1_2-3",
            "localhost:5000/a__b/c-d.e",
            &digest,
        ] {
            assert!(is_image_name(good), "{good}");
        }
        let long = "x".repeat(MAX_IMAGE + 1);
        for wrong in [
            "",
            ":",
            "/x",
            "x/",
            "Hawser",
            "x:",
            "x:.a",
            "a b",
            "x@sha256:12",
            "x:y:z",
            "-x",
            "x\n",
            "a.b:99999/x",
            "https://x/y",
            "ä",
            &long,
        ] {
            assert!(!is_image_name(wrong), "{wrong:?}");
        }
    }
}

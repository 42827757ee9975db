//! The ports that border routers deliver to directly (`dispatched_ports`).

/// Reads a range, as scionproto takes it: `31000-32767`, `all`, or `-` for no port, which is
/// `(0, 0)`. `None` when it is none of these.
pub(crate) fn parse(text: &str) -> Option<(u16, u16)> {
    match text {
        "" | "-" => return Some((0, 0)),
        "all" | "ALL" => return Some((1, u16::MAX)),
        _ => {}
    }
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (0 < first && first <= last).then_some((first, last))
}

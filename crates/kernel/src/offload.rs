//! Offloads of a network device, by the feature requests of ethtool (`SIOCETHTOOL` of netdevice(7),
//! `linux/ethtool.h`): whether a packet of many segments crosses the device whole.

use std::io;

use crate::ethtool::Ethtool;

/// Commands and constants of `linux/ethtool.h`.
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
const ETH_GSTRING_LEN: usize = 32;

/// Bits of one word of features.
const WORD: usize = 32;

/// A feature of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Feature {
    /// Position among the device's features.
    bit: usize,
    /// The kernel's name, as `ethtool -k` prints it.
    name: String,
    /// Whether it can be switched on and off.
    changeable: bool,
    active: bool,
}

impl Feature {
    fn is_bit_of(&self, word: usize) -> bool {
        self.bit / WORD == word
    }

    fn mask(&self) -> u32 {
        1 << (self.bit % WORD)
    }
}

/// The active offloads of a device that carry many packets as one, by the kernel's names: those that
/// send a large packet whole, and those that merge received ones. Empty if every packet crosses the
/// device by itself.
///
/// # Errors
/// When the calling thread's network namespace has no such device.
pub fn active(device: &str) -> io::Result<Vec<String>> {
    let offloads = offloads(&Ethtool::of(device)?)?;
    let active = offloads.into_iter().filter(|feature| feature.active);
    Ok(active.map(|feature| feature.name).collect())
}

/// Switches off all offloads that [`active`] lists. The kernel then cuts large packets (GSO)
/// immediately before the device, as for a card without such offloads. Checksums stay with the
/// device.
///
/// # Errors
/// When the calling thread's network namespace has no such device, without `CAP_NET_ADMIN` there,
/// or when an offload of the device is fixed.
pub fn disable(device: &str) -> io::Result<()> {
    let ethtool = Ethtool::of(device)?;
    let mut offloads = offloads(&ethtool)?;
    offloads.retain(|feature| feature.changeable);
    let words = offloads.iter().map(|feature| feature.bit / WORD + 1).max();
    let words = words.unwrap_or_default();
    let mut request = vec![ETHTOOL_SFEATURES, words as u32];
    for word in 0..words {
        let valid = offloads.iter().filter(|feature| feature.is_bit_of(word));
        let valid = valid.fold(0, |mask, feature| mask | feature.mask());
        let wanted = 0;
        request.extend([valid, wanted]);
    }
    ethtool.call(&mut request)?;
    let left = active(device)?;
    match left.is_empty() {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{device} keeps {}",
            left.join(", ")
        ))),
    }
}

/// Whether a feature carries many packets as one. Generic segmentation is the kernel's own, before
/// the device.
fn merges(name: &str) -> bool {
    let sends = name.ends_with("-segmentation") && name != "tx-generic-segmentation";
    let receives = ["rx-gro", "rx-lro"].iter().any(|s| name.starts_with(s));
    sends || receives || ["tx-gso-list", "rx-udp-gro-forwarding"].contains(&name)
}

fn offloads(ethtool: &Ethtool<'_>) -> io::Result<Vec<Feature>> {
    let mut offloads = features(ethtool)?;
    offloads.retain(|feature| merges(&feature.name));
    Ok(offloads)
}

/// All features of the device.
fn features(ethtool: &Ethtool<'_>) -> io::Result<Vec<Feature>> {
    // The kernel writes at most as many words as requested, and returns how many there are.
    let mut request = [ETHTOOL_GFEATURES, 0];
    ethtool.call(&mut request)?;
    let words = request[1] as usize;
    // Each word has a block: available, requested, active, never changed.
    let mut state = vec![0; 2 + 4 * words];
    state[..2].copy_from_slice(&[ETHTOOL_GFEATURES, words as u32]);
    ethtool.call(&mut state)?;
    // The kernel writes a name for every feature; there are no more than bits.
    let mut names = vec![0; 3 + words * WORD * ETH_GSTRING_LEN / 4];
    names[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, 0]);
    ethtool.call(&mut names)?;
    let count = (names[2] as usize).min(words * WORD);
    let text: Vec<u8> = names[3..].iter().flat_map(|w| w.to_ne_bytes()).collect();
    let features = text.chunks(ETH_GSTRING_LEN).take(count).enumerate();
    let features = features.map(|(bit, name)| {
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let block = &state[2 + 4 * (bit / WORD)..];
        let is_set = |word: u32| word & (1 << (bit % WORD)) != 0;
        Feature {
            bit,
            name: String::from_utf8_lossy(name).into_owned(),
            changeable: is_set(block[0]) && !is_set(block[3]),
            active: is_set(block[2]),
        }
    });
    Ok(features.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::{NetNs, is_privileged};

    #[test]
    fn the_loopback_device_merges_until_that_is_switched_off() {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let namespace = NetNs::create().unwrap();
        let run = |job: fn() -> io::Result<Vec<String>>| namespace.run(job).unwrap().unwrap();
        let before = run(|| active("lo"));
        assert!(before.iter().any(|name| name == "tx-udp-segmentation"));
        assert!(before.iter().all(|name| name != "tx-generic-segmentation"));
        let after = run(|| disable("lo").and_then(|()| active("lo")));
        assert_eq!(after, [""; 0]);
        // Again it changes nothing.
        run(|| disable("lo").map(|()| Vec::new()));
    }

    #[test]
    fn devices_that_do_not_exist_are_refused() {
        let error = active("hawser-no-such").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        let error = active("a-name-longer-than-any-device").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn only_offloads_of_many_packets_count() {
        for name in ["tx-tcp6-segmentation", "rx-gro-list", "rx-lro"] {
            assert!(merges(name), "{name}");
        }
        for name in ["tx-generic-segmentation", "tx-checksum-ipv4", "rx-checksum"] {
            assert!(!merges(name), "{name}");
        }
    }
}

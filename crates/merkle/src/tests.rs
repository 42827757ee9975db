use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;

/// The root over all leaves, padded to 2^`height` of them, as BEP 52 describes it.
fn naive(bytes: &[u8], height: u32) -> Hash {
    let leaves = bytes.chunks(BLOCK as usize);
    let mut layer: Vec<Hash> = leaves.map(|block| Sha256::digest(block).into()).collect();
    layer.resize(1 << height, [0; 32]);
    while layer.len() > 1 {
        layer = layer.chunks(2).map(|it| pair(&it[0], &it[1])).collect();
    }
    layer[0]
}

fn content(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(length as u64).fill(&mut bytes);
    bytes
}

/// The nodes of height `base` over `bytes`.
fn layer(bytes: &[u8], base: u32) -> Vec<Hash> {
    let pieces = bytes.chunks((BLOCK as usize) << base);
    pieces.map(|piece| naive(piece, base)).collect()
}

#[test]
fn padding_is_over_zero_leaves() {
    assert_eq!(padding(0), [0; 32]);
    assert_eq!(padding(3), naive(&[], 3));
    assert_eq!(height(0), 0);
    assert_eq!(height(BLOCK), 0);
    assert_eq!(height(BLOCK + 1), 1);
    assert_eq!(height(5 * BLOCK), 3);
    assert_eq!(height(i64::MAX as u64), MAX_HEIGHT);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_node_is_that_of_its_bytes_however_they_come(
        length in 0usize..200_000,
        more in 0u32..3,
        cuts in prop::collection::vec(1usize..40_000, 0..20),
        behind in 0usize..20_000,
    ) {
        let bytes = content(length);
        let height = height(length as u64) + more;
        let mut hasher = MerkleHasher::new(length as u64, height);
        // Padding follows, which does not count.
        let all = [&bytes[..], &vec![7; behind]].concat();
        let mut rest = &all[..];
        for cut in cuts {
            let (part, after) = rest.split_at(cut.min(rest.len()));
            hasher.update(part);
            rest = after;
        }
        hasher.update(rest);
        prop_assert_eq!(hasher.finalize(), naive(&bytes, height));
        let zeros = MerkleHasher::new(length as u64, height).zeros();
        prop_assert_eq!(zeros, naive(&vec![0; length], height));
    }

    #[test]
    fn a_tree_proves_its_ranges_and_no_others(
        length in 16_385usize..1_500_000,
        base in 0u32..3,
        index in 0u32..64,
        size in 1u32..6,
        wrong in any::<prop::sample::Index>(),
    ) {
        let bytes = content(length);
        prop_assume!(length as u64 > BLOCK << base);
        let tree = Tree::new(base, layer(&bytes, base));
        prop_assert_eq!(tree.root(), naive(&bytes, tree.height()));
        prop_assert_eq!(tree.height(), height(length as u64));
        let length = 1 << size;
        let range = HashRange::proven(base, index * length, length, tree.height());
        let nodes = 1u64 << (tree.height() - base);
        let is_there = u64::from(index + 1) * u64::from(length) <= nodes;
        let hashes = tree.hashes(&range);
        prop_assert_eq!(hashes.is_some(), is_there);
        let Some(mut hashes) = hashes else { return Ok(()) };
        prop_assert_eq!(hashes.len(), range.count() as usize);
        prop_assert_eq!(range.root(&hashes), Some(tree.root()));
        let changed = wrong.index(hashes.len());
        hashes[changed][0] ^= 1;
        prop_assert_ne!(range.root(&hashes), Some(tree.root()));
        hashes.pop();
        prop_assert_eq!(range.root(&hashes), None);
    }

    #[test]
    fn no_range_of_any_form_panics(base: u32, index: u32, length: u32, proof: u32, small: bool) {
        let tree = Tree::new(1, layer(&content(300_000), 1));
        let range = match small {
            true => HashRange {
                base: base % 8,
                index: index % 32,
                length: length % 32,
                proof: proof % 8,
            },
            false => HashRange { base, index, length, proof },
        };
        if let Some(hashes) = tree.hashes(&range) {
            prop_assert!(range.fits(tree.height()) && hashes.len() == range.count() as usize);
        }
    }
}

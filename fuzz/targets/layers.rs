//! Requests for hashes of a file's merkle tree, and answers to them: what a tree answers is proven by its
//! root, and nothing else is.
//!
//! The first byte is the height of the lowest nodes, the second their number; a request of 48 bytes and
//! the hashes of an answer follow.

#![no_main]

use hawser_merkle::{HASH_REQUEST_BYTES, HashRequest, MerkleHasher, Tree, height};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [base, count, rest @ ..] = input else {
        return;
    };
    let Some((request, answer)) = rest.split_first_chunk::<{ HASH_REQUEST_BYTES as usize }>()
    else {
        return;
    };
    let request = HashRequest::decode(request);
    assert_eq!(HashRequest::decode(&request.encode()), request);
    let nodes = (0..=*count).map(|node| [node; 32]).collect();
    let tree = Tree::new(u32::from(base % 4), nodes);
    let range = request.range;
    let (answer, _) = answer.as_chunks::<32>();
    if !range.fits(tree.height()) {
        assert_eq!(tree.hashes(&range), None);
        return;
    }
    let is_proven = range.base + range.proof + 1 == tree.height().max(range.top());
    if let Some(mut hashes) = tree.hashes(&range) {
        assert_eq!(hashes.len(), range.count() as usize);
        if is_proven {
            assert_eq!(range.root(&hashes), Some(tree.root()));
            hashes[0][31] ^= 1;
            assert_ne!(range.root(&hashes), Some(tree.root()));
        }
    }
    if let Some(root) = range.root(answer) {
        // No other hashes lead to the root of this tree.
        let is_true = tree.hashes(&range).is_some_and(|hashes| hashes == answer);
        assert!(!is_proven || range.base < tree.base() || is_true == (root == tree.root()));
    }
    // A node over the bytes of an answer is that of these bytes, however they come.
    let bytes = answer.as_flattened();
    let length = bytes.len() as u64;
    let mut hashers = [(); 2].map(|()| MerkleHasher::new(length, height(length)));
    hashers[0].update(bytes);
    bytes
        .chunks(1 + usize::from(*count))
        .for_each(|part| hashers[1].update(part));
    let [whole, parts] = hashers.map(MerkleHasher::finalize);
    assert_eq!(whole, parts);
});

//! A host in a SCION AS: find paths, send and receive on a chosen path, hear SCMP.

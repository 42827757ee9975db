//! SCION, UDP and SCMP bytes: headers, numbers, checksums.

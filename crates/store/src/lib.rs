//! Content as one run of bytes over files, verified or not, with disk threads and one budget shared
//! by all jobs of a process.

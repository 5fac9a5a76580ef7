//! Loaders and generators, one file each.

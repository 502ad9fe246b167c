//! Cases for reading, and those of which there is no recording.

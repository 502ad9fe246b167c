//! Recordings with lines dropped, doubled, swapped, cut and changed; then anything at all.

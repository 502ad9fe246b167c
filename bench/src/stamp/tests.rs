//! Stamps are found however the bytes are cut, and each once.

use std::time::Duration;

use super::{Finder, write};

#[test]
fn every_split_finds_each_stamp_once() {
    let stamps: String = [(0, 5), (1, 3), (0, 6)].map(|(stream, at)| stamp(stream, at)).concat();
    let text = format!("me@home {stamps} and again {stamps}@");
    for at in 0..=text.len() {
        let mut finder = Finder::default();
        let (head, tail) = text.as_bytes().split_at(at);
        finder.feed(head);
        finder.feed(tail);
        assert_eq!(finder.delays.count(), 3, "cut at {at}");
    }
}

#[test]
fn byte_by_byte() {
    let mut finder = Finder::default();
    for byte in format!("@@{}", stamp(7, 1)).as_bytes() {
        finder.feed(&[*byte]);
    }
    assert_eq!(finder.delays.count(), 1);
}

fn stamp(stream: u16, seconds: u64) -> String {
    write(stream, Duration::from_secs(seconds)) + " "
}

//! Data URLs decode to the original bytes.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

use super::read;

/// Tests every byte value and every length of padding.
#[test]
fn encoded_bytes_are_decoded() {
    let bytes: Vec<u8> = (0..=255).collect();
    for n in 0..=bytes.len() {
        let bytes = &bytes[..n];
        let ways = [
            format!("data:text/plain;base64,{}", BASE64_STANDARD.encode(bytes)),
            format!("data:;base64,{}", BASE64_STANDARD_NO_PAD.encode(bytes)),
            format!("data:text/plain;charset=utf-8,{}", percent_encode(bytes, NON_ALPHANUMERIC)),
        ];
        for url in ways {
            assert_eq!(read(&url).unwrap().unwrap(), bytes, "{url}");
        }
    }
}

#[test]
fn other_urls_are_none() {
    for url in ["", "data:", "data:text/plain;base64", "https://example.com/a,b"] {
        assert_eq!(read(url), None, "{url}");
    }
    assert!(read("data:image/png;base64,!").unwrap().is_err());
}

//! `data:` URLs in Base64 and percent encoding.

use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine};
use percent_encoding::percent_decode_str;

#[cfg(test)]
mod tests;

/// Base64 decoder that accepts missing padding, which many writers omit.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decodes the content of a `data:` URL. Returns `None` for other URLs.
pub(crate) fn read(url: &str) -> Option<Result<Vec<u8>, DecodeError>> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    let bytes = percent_decode_str(data);
    Some(match kind.ends_with(";base64") {
        true => BASE64.decode(bytes.collect::<Vec<u8>>()),
        false => Ok(bytes.collect()),
    })
}

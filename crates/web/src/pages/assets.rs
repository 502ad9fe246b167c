//! Files of the page. Their URLs contain a hash of the content, so that browsers can cache them forever.

use std::io::Write;
use std::sync::LazyLock;

use axum::extract::{FromRequestParts, Path};
use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use render::Asset;

use crate::error::{HttpError, RequestCode};
use crate::openapi::{DescribeInput, Operation};

const FOREVER: &str = "public, max-age=31536000, immutable";

/// Asset files of the page, compressed with gzip, in the order of [`render::assets`].
static COMPRESSED: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| render::assets().iter().map(|asset| compress(asset.text)).collect());

fn compress(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(text.as_bytes());
    written.and_then(|()| encoder.finish()).expect("writing to memory cannot fail")
}

pub(crate) async fn asset(
    path: Result<AssetPath, HttpError>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let AssetPath { asset, compressed } = path?;
    let mut response = if accepts_gzip(&headers) {
        ([(CONTENT_ENCODING, "gzip")], compressed).into_response()
    } else {
        asset.text.into_response()
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(FOREVER));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    Ok(response)
}

/// Extractor of the asset file with the version and the name in the path of a request. Other
/// versions are not found, because browsers would cache the wrong content.
pub(crate) struct AssetPath {
    asset: &'static Asset,
    compressed: &'static [u8],
}

impl<S: Send + Sync> FromRequestParts<S> for AssetPath {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpError> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((version, file)) = path.map_err(|it| HttpError::invalid(it.body_text()))?;
        let mut assets = render::assets().iter().zip(COMPRESSED.iter());
        let found = assets.find(|(it, _)| it.name == file && version == render::assets_version());
        let not_found = || HttpError::new(RequestCode::NotFound, "there is no such file");
        found.map(|(asset, compressed)| Self { asset, compressed }).ok_or_else(not_found)
    }
}

impl DescribeInput for AssetPath {
    fn describe(operation: &mut Operation<'_>) {
        operation.refuses(&[RequestCode::InvalidRequest, RequestCode::NotFound]);
    }
}

/// Returns whether the client of a request accepts gzip, by name or by `*`, with a quality above
/// zero.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let quality = |wanted: &str| {
        let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|it| it.to_str().ok());
        values.flat_map(|it| it.split(',')).find_map(|it| {
            let (coding, parameters) = it.split_once(';').unwrap_or((it, ""));
            let is_wanted = coding.trim().eq_ignore_ascii_case(wanted);
            let quality =
                parameters.trim().strip_prefix("q=").and_then(|it| it.trim().parse().ok());
            is_wanted.then_some(quality.unwrap_or(1.0_f32))
        })
    };
    quality("gzip").or_else(|| quality("*")).is_some_and(|it| it > 0.0)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use axum::http::header::ACCEPT_ENCODING;
    use axum::http::{HeaderMap, HeaderValue};
    use flate2::read::GzDecoder;

    use super::{COMPRESSED, accepts_gzip};

    #[test]
    fn gzip_is_used_only_if_the_client_accepts_it() {
        let accepts = |value| {
            let headers =
                HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            accepts_gzip(&headers)
        };
        for value in ["gzip", "br, GZIP", "gzip;q=0.5", "*", "identity, gzip ; q=1.0"] {
            assert!(accepts(value), "{value}");
        }
        for value in ["", "br", "gzip;q=0", "gzip;q=0.0, *", "*;q=0", "x-gzip-like"] {
            assert!(!accepts(value), "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn compressed_assets_expand_to_the_original_text() {
        for (asset, compressed) in render::assets().iter().zip(COMPRESSED.iter()) {
            let mut text = String::new();
            GzDecoder::new(&**compressed).read_to_string(&mut text).unwrap();
            assert_eq!(text, asset.text, "{}", asset.name);
        }
    }
}

//! Who may come in: whoever has the token, as a bearer, in the printed address, or by the cookie
//! that the printed address leaves behind.

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use super::App;
use super::error::HttpError;

pub(super) struct Keys {
    token: String,
    cookie_name: String,
    /// Made from the token, which itself never goes into a cookie.
    cookie_value: String,
}

impl Keys {
    pub(super) fn new(token: String, port: u16) -> Self {
        let cookie_value = blake3::derive_key("callboard 2026-11-15 page cookie", token.as_bytes());
        Self {
            token,
            // Cookies know no ports: two servers on one machine must not share one.
            cookie_name: format!("callboard_{port}"),
            cookie_value: blake3::Hash::from(cookie_value).to_hex().to_string(),
        }
    }

    fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
        value.and_then(|it| it.strip_prefix("Bearer ")).is_some_and(|it| same(it, &self.token))
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
        cookies.flat_map(|it| it.split(';')).any(|cookie| {
            cookie.trim().split_once('=').is_some_and(|(name, value)| {
                name == self.cookie_name && same(value, &self.cookie_value)
            })
        })
    }

    fn set_cookie(&self) -> String {
        let Self { cookie_name, cookie_value, .. } = self;
        format!("{cookie_name}={cookie_value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000")
    }
}

/// In front of every route but `/healthz`.
pub(super) async fn require_key(State(app): State<App>, request: Request, next: Next) -> Response {
    let keys = &app.keys;
    let in_query = token_in(request.uri()).is_some_and(|it| same(it, &keys.token));
    if in_query && is_page(request.uri()) {
        // The token must not stay in the address bar and the history.
        let clean = without_token(request.uri());
        let headers = [(LOCATION, clean), (SET_COOKIE, keys.set_cookie())];
        return (StatusCode::SEE_OTHER, headers).into_response();
    }
    let in_query = in_query && request.uri().path() == "/ws";
    if in_query || keys.has_bearer(request.headers()) || keys.has_cookie(request.headers()) {
        return next.run(request).await;
    }
    let message = "open the address that the server printed when it started, or send its token \
                   as 'Authorization: Bearer TOKEN'";
    let error = HttpError::new(StatusCode::UNAUTHORIZED, "unauthorized", message);
    if is_page(request.uri()) { error.into_page() } else { error.into_response() }
}

/// Takes the same time whichever letter is wrong.
fn same(given: &str, wanted: &str) -> bool {
    given.as_bytes().ct_eq(wanted.as_bytes()).into()
}

fn is_page(uri: &Uri) -> bool {
    uri.path() == "/" || uri.path().starts_with("/s/")
}

fn token_in(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

fn without_token(uri: &Uri) -> String {
    let kept: Vec<&str> = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("token="))
        .collect();
    if kept.is_empty() {
        return uri.path().to_owned();
    }
    format!("{}?{}", uri.path(), kept.join("&"))
}

//! Signing in with a password or token, and signing out.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Extension;
use axum::extract::State;
use axum::http::header::{LOCATION, REFERRER_POLICY, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, NoContent, Response};
use render::SignIn;
use transcript::Millis;

use crate::auth::gate::Gate;
use crate::auth::password;
use crate::error::{HttpError, RequestCode};
use crate::extract::Password;
use crate::html::{Html, PageError};
use crate::openapi::{DescribeOutput, Operation};
use runtime::clock;
use session::Refused;

/// Maximum number of sign-in attempts that an address can have left. One is added every
/// [`REFILL_MS`] milliseconds.
const BURST: u32 = 5;
const REFILL_MS: u64 = 12_000;
/// Maximum number of addresses whose sign-in attempts are kept in memory. When it is reached, the
/// older half is removed.
const ADDRESSES: usize = 10_000;

/// Rate limits of sign-in attempts, by address.
#[derive(Default)]
pub(crate) struct Attempts {
    /// Number of sign-in attempts that each address has left, and the time of its last refill.
    /// Locked for a look-up, never across an await.
    left: Mutex<HashMap<IpAddr, (u32, Millis)>>,
    /// Lock for password checks, which by design need much memory and time. Held until the check has
    /// ended, even if its client has disconnected.
    pub(crate) password_check: Arc<tokio::sync::Mutex<()>>,
}

impl Attempts {
    /// Takes one sign-in attempt of an address. Returns false if none is left.
    fn take(&self, from: IpAddr, now: Millis) -> bool {
        let from = network_of(from);
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.len() >= ADDRESSES && !left.contains_key(&from) {
            forget_older_half(&mut left);
        }
        let (count, since) = left.entry(from).or_insert((BURST, now));
        let refilled = u32::try_from(now.since(*since) / REFILL_MS).unwrap_or(BURST);
        if refilled > 0 {
            (*count, *since) = (BURST.min(count.saturating_add(refilled)), now);
        }
        let may = *count > 0;
        *count = count.saturating_sub(1);
        may
    }
}

/// Returns the network whose addresses share a rate limit: an IPv6 client controls all addresses
/// with the same first half, and a local user all of 127.0.0.0/8.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        it if it.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(it) => IpAddr::V6((it.to_bits() >> 64 << 64).into()),
        it @ IpAddr::V4(_) => it,
    }
}

fn forget_older_half(left: &mut HashMap<IpAddr, (u32, Millis)>) {
    let mut times: Vec<Millis> = left.values().map(|it| it.1).collect();
    let middle = times.len() / 2;
    let (_, median, _) = times.select_nth_unstable(middle);
    let median = *median;
    left.retain(|_, (_, since)| *since > median);
}

/// Signs a browser in with a submitted form that contains `password=...`.
pub(crate) async fn sign_in(
    State(gate): State<Arc<Gate>>,
    State(attempts): State<Arc<Attempts>>,
    Extension(from): Extension<SocketAddr>,
    Password(given): Password,
) -> Result<ToHome, Response> {
    match check(&gate, &attempts, from.ip(), given).await {
        Ok(cookie) => Ok(ToHome { cookie }),
        Err(error) => Err(refusal_page(&gate, error)),
    }
}

async fn check(
    gate: &Gate,
    attempts: &Attempts,
    from: IpAddr,
    given: String,
) -> Result<String, HttpError> {
    if !attempts.take(from, clock::now()) {
        let message = "too many attempts; wait a minute, then try again";
        return Err(HttpError::new(RequestCode::TooManyAttempts, message));
    }
    let secrets = gate.keys.read_secrets().map_err(unreadable_password)?;
    let hash = secrets.password_hash.clone().unwrap_or_default();
    let permit = Arc::clone(&attempts.password_check).lock_owned().await;
    let check = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        password::is_right(&hash, &given)
    });
    let is_right = check.await.unwrap_or(false);
    if !is_right {
        tracing::warn!(%from, "sign-in with a wrong password");
        let message = "the password is wrong";
        return Err(HttpError::new(RequestCode::Unauthorized, message));
    }
    let signed_in = gate.keys.sign_in(&secrets, clock::now()).await?;
    let message = "the password was just changed; sign in with the new one";
    signed_in.ok_or_else(|| HttpError::new(RequestCode::Unauthorized, message))
}

/// Returns the error for a password file that cannot be read.
pub(crate) fn unreadable_password(error: io::Error) -> HttpError {
    Refused::Storage(format!("the file with the password cannot be read: {error}")).into()
}

pub(crate) async fn sign_out(
    State(gate): State<Arc<Gate>>,
    headers: HeaderMap,
) -> Result<ToHome, Response> {
    match gate.keys.sign_out(&headers).await {
        Ok(cookie) => Ok(ToHome { cookie }),
        Err(error) => Err(PageError::from(error).into_response()),
    }
}

/// Returns the sign-out page, which has a form because a GET request must not sign out.
pub(crate) async fn sign_out_page() -> Response {
    with_form(Html::new(render::sign_out_page()).into_response())
}

pub(crate) async fn sign_out_everywhere(
    State(gate): State<Arc<Gate>>,
) -> Result<NoContent, HttpError> {
    gate.keys.sign_out_everywhere().await?;
    Ok(NoContent)
}

/// A redirect to the home page that sets or deletes the sign-in cookie.
pub(crate) struct ToHome {
    cookie: String,
}

impl IntoResponse for ToHome {
    fn into_response(self) -> Response {
        let headers = [(LOCATION, "/".to_owned()), (SET_COOKIE, self.cookie)];
        (StatusCode::SEE_OTHER, headers).into_response()
    }
}

/// Describes refusals as HTML and as JSON: the handler refuses with a page, the authorization layer
/// with JSON.
impl DescribeOutput for Result<ToHome, Response> {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives(StatusCode::SEE_OTHER, None);
        operation.refuses_as(&["text/html", "application/json"]);
    }
}

/// Returns the sign-in page for a request without a key.
pub(crate) fn page(gate: &Gate, error: HttpError) -> Response {
    if error.code != RequestCode::Unauthorized {
        return refusal_page(gate, error);
    }
    let takes_password = gate.keys.has_password();
    let message = match takes_password {
        true => "Enter the password, or use the token.",
        false => "Open the address that the server printed when it started. Or enter its token.",
    };
    answer(&error, &SignIn { message, is_error: false, takes_password })
}

/// Returns the sign-in page with an error message and the ways to sign in, or an error page if
/// signing in would not help.
pub(crate) fn refusal_page(gate: &Gate, error: HttpError) -> Response {
    let may_sign_in =
        matches!(error.code, RequestCode::Unauthorized | RequestCode::TooManyAttempts);
    if !may_sign_in {
        return PageError(error).into_response();
    }
    let (message, takes_password) = (&error.sentence(), gate.keys.has_password());
    answer(&error, &SignIn { message, is_error: true, takes_password })
}

fn answer(error: &HttpError, page: &SignIn<'_>) -> Response {
    let shown = Html::new(render::sign_in_page(page));
    let response = (error.code.status(), shown).into_response();
    if page.takes_password { with_form(response) } else { response }
}

/// Sets a referrer policy for a page with a form, so that the browser sends an Origin with it:
/// without a referrer, a form is sent with the Origin `null`.
fn with_form(mut response: Response) -> Response {
    let policy = HeaderValue::from_static("same-origin");
    response.headers_mut().insert(REFERRER_POLICY, policy);
    response
}

#[cfg(test)]
mod tests {
    //! Sign-in attempts run out and are refilled.

    use super::*;

    #[test]
    fn attempts_are_limited_per_address() {
        let attempts = Attempts::default();
        let [one, other]: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        let at = |seconds: i64| Millis(seconds * 1000);
        assert!((0..BURST).all(|_| attempts.take(one, at(0))));
        assert!(!attempts.take(one, at(1)));
        assert!(attempts.take(other, at(1)));
        assert!(attempts.take(one, at(14)), "one more after a while");
        assert!(!attempts.take(one, at(15)));
        assert!((0..BURST).all(|_| attempts.take(one, at(1000))), "as at the beginning");
        assert!(!attempts.take(one, at(1000)));
    }

    #[test]
    fn loopback_addresses_share_a_limit() {
        let attempts = Attempts::default();
        let from = |n: u8| IpAddr::from([127, n, 0, 1]);
        assert!((0..5).all(|n| attempts.take(from(n), Millis(0))));
        assert!(!attempts.take(from(77), Millis(1)));
        for other in ["::1", "::ffff:127.0.0.9"] {
            assert!(!attempts.take(other.parse().unwrap(), Millis(1)), "{other}");
        }
    }

    #[test]
    fn an_ipv6_network_shares_attempts_and_memory() {
        let attempts = Attempts::default();
        let home = |n: u128| IpAddr::V6((0x2001_0db8_u128 << 96 | n).into());
        assert!((0..BURST).all(|n| attempts.take(home(n.into()), Millis(0))));
        assert!(!attempts.take(home(7777), Millis(1)));
        assert!(attempts.take(home(1 << 64), Millis(1)), "another's");
        for n in 0..3 * ADDRESSES as u32 {
            attempts.take(IpAddr::V4(n.into()), Millis(2));
            assert!(attempts.left.lock().unwrap().len() <= ADDRESSES);
        }
    }
}

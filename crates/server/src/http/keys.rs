//! What opens the door: the token, or a cookie that somebody got for it or for the password.
//!
//! A cookie's value is random and means nothing by itself. The store keeps a hash of it, so that a
//! sign-in survives a restart and signing out really ends it.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use store::{AppendError, Store};
use subtle::ConstantTimeEq;
use transcript::Millis;

use crate::clock;

/// How long a browser stays signed in, in days.
const SIGNED_IN_DAYS: u32 = 365;
const DAY_MS: i64 = 86_400_000;

pub(super) struct Keys {
    token: String,
    cookie_name: String,
    /// Whether browsers reach us by https alone.
    is_secure: bool,
    store: Store,
    /// Hashes of the cookies, and since when they are good. Held for a look-up, never across an await.
    sign_ins: RwLock<HashMap<[u8; 32], Millis>>,
}

impl Keys {
    pub(super) fn load(
        token: String,
        port: u16,
        is_secure: bool,
        store: Store,
    ) -> Result<Self, store::Error> {
        let sign_ins = RwLock::new(store.sign_ins()?.into_iter().collect());
        // Cookies know no ports: two servers on one machine must not share one.
        Ok(Self { token, cookie_name: format!("callboard_{port}"), is_secure, store, sign_ins })
    }

    pub(super) fn is_token(&self, given: &str) -> bool {
        // Takes the same time whichever letter is wrong.
        given.as_bytes().ct_eq(self.token.as_bytes()).into()
    }

    pub(super) fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
        value.and_then(|it| it.strip_prefix("Bearer ")).is_some_and(|it| self.is_token(it))
    }

    /// A hash is looked up, so the time it takes says nothing about the value.
    pub(super) fn has_cookie(&self, headers: &HeaderMap, now: Millis) -> bool {
        let sign_ins = self.sign_ins.read().unwrap_or_else(PoisonError::into_inner);
        let is_good = |since: &Millis| *since > oldest_sign_in(now);
        self.cookies(headers).any(|value| sign_ins.get(&hash(value)).is_some_and(is_good))
    }

    /// A new sign-in: the header that tells the browser.
    pub(super) async fn sign_in(&self, now: Millis) -> Result<String, AppendError> {
        let value = clock::new_cookie();
        self.store.add_sign_in(hash(&value), now).await?;
        let mut sign_ins = self.sign_ins.write().unwrap_or_else(PoisonError::into_inner);
        sign_ins.insert(hash(&value), now);
        Ok(self.set_cookie(&value, u64::from(SIGNED_IN_DAYS) * 86_400))
    }

    /// Ends the sign-ins that the request has, and tells the browser to forget them.
    pub(super) async fn sign_out(&self, headers: &HeaderMap) -> Result<String, AppendError> {
        let hashes: Vec<[u8; 32]> = self.cookies(headers).map(hash).collect();
        for hash in hashes {
            self.sign_ins.write().unwrap_or_else(PoisonError::into_inner).remove(&hash);
            self.store.remove_sign_in(hash).await?;
        }
        Ok(self.set_cookie("", 0))
    }

    fn set_cookie(&self, value: &str, seconds: u64) -> String {
        let name = &self.cookie_name;
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
    }

    fn cookies<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
        cookies.flat_map(|it| it.split(';')).filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == self.cookie_name).then_some(value)
        })
    }
}

/// What is older is not good any more.
pub(crate) fn oldest_sign_in(now: Millis) -> Millis {
    Millis(now.0 - i64::from(SIGNED_IN_DAYS) * DAY_MS)
}

fn hash(value: &str) -> [u8; 32] {
    *blake3::hash(value.as_bytes()).as_bytes()
}

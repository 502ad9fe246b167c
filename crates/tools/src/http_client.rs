//! The HTTP client: TLS by rustls with ring, and the certificates that the system trusts.

use std::sync::Once;

use reqwest::{Client, ClientBuilder};

/// Returns a builder for an HTTP client. All HTTP clients are built here, because a TLS provider
/// must be installed before the first one.
#[expect(clippy::disallowed_methods, reason = "all clients are built here")]
pub fn http_client_builder() -> ClientBuilder {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        // An error means that the program has installed a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    Client::builder()
}

/// Returns an HTTP client with default settings.
///
/// # Panics
///
/// Panics if the system's certificates cannot be read at all.
pub fn http_client() -> Client {
    http_client_builder().build().expect("a client with default settings can be built")
}

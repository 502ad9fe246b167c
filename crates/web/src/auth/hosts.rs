//! Host names under which this server may be addressed.
//!
//! With DNS rebinding, an attacker's host name resolves to this server, and a browser treats pages of the
//! attacker and of this server as one origin. Therefore only known names are accepted. IP addresses are
//! not affected.

use std::net::{IpAddr, SocketAddr};

use transcript::Attachment;

pub(crate) struct Hosts {
    listen: SocketAddr,
    /// Host and port of the proxy in front of the server; `None` without a proxy.
    public: Option<String>,
    /// URL scheme of the proxy in front of the server: `http` or `https`.
    public_scheme: String,
}

impl Hosts {
    pub(crate) fn new(listen: SocketAddr, public_url: Option<&str>) -> Self {
        let public_url = public_url.and_then(|url| url.split_once("://"));
        let public =
            public_url.map(|(_, rest)| rest.split('/').next().unwrap_or_default().to_owned());
        let public_scheme = public_url.map_or("http", |(scheme, _)| scheme).to_owned();
        Self { listen, public, public_scheme }
    }

    /// Returns the absolute URL of a path for a client that reaches the server under this host.
    fn address(&self, host: &str, path: &str) -> String {
        let scheme = if self.is_public(host) { &self.public_scheme } else { "http" };
        format!("{scheme}://{host}{path}")
    }

    /// Returns the absolute URL of a stored file for a client that addresses the server as `host`.
    pub(crate) fn file_url(&self, host: &str, file: &Attachment) -> String {
        self.address(host, &format!("/api/blobs/{}", file.blob))
    }

    fn is_public(&self, host: &str) -> bool {
        self.public.as_ref().is_some_and(|it| it.eq_ignore_ascii_case(host))
    }

    pub(crate) fn is_ours(&self, host: &str) -> bool {
        if self.is_public(host) {
            return true;
        }
        let Some((name, port)) = split(host) else { return false };
        if port != self.listen.port() {
            return false;
        }
        let name = name.trim_start_matches('[').trim_end_matches(']');
        match name.parse::<IpAddr>() {
            Ok(address) if self.listen.ip().is_loopback() => address.is_loopback(),
            Ok(address) => address == self.listen.ip() || self.listen.ip().is_unspecified(),
            Err(_) => name.eq_ignore_ascii_case("localhost") && self.serves_loopback(),
        }
    }

    fn serves_loopback(&self) -> bool {
        self.listen.ip().is_loopback() || self.listen.ip().is_unspecified()
    }
}

/// Splits the `Host` header of a request into name and port. Browsers omit port 80.
fn split(host: &str) -> Option<(&str, u16)> {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => Some((name, port.parse().ok()?)),
        _ => Some((host, 80)),
    }
}

#[cfg(test)]
mod tests {
    //! Accepted and refused host names.

    use super::Hosts;

    #[track_caller]
    fn check(listen: &str, public: Option<&str>, ours: &[&str], not_ours: &[&str]) {
        let hosts = Hosts::new(listen.parse().unwrap(), public);
        for host in ours {
            assert!(hosts.is_ours(host), "{host} at {listen}");
        }
        for host in not_ours {
            assert!(!hosts.is_ours(host), "{host} at {listen}");
        }
    }

    #[test]
    fn urls_use_the_scheme_of_the_host() {
        let hosts = Hosts::new("127.0.0.1:4520".parse().unwrap(), Some("https://chat.example/x"));
        assert_eq!(hosts.address("chat.example", "/a"), "https://chat.example/a");
        assert_eq!(hosts.address("127.0.0.1:4520", "/a"), "http://127.0.0.1:4520/a");
    }

    #[test]
    fn only_names_of_this_server_are_accepted() {
        let strangers =
            ["", "evil.example:4520", "127.0.0.1.evil.example:4520", "127.0.0.1", "127.0.0.1:4521"];
        let loopback = ["127.0.0.1:4520", "localhost:4520", "LOCALHOST:4520", "[::1]:4520"];
        check("127.0.0.1:4520", None, &loopback, &strangers);
        check("127.0.0.1:4520", None, &[], &["192.0.2.7:4520", "[fe80::1]:4520", "x:y:4520"]);
        check("0.0.0.0:4520", None, &["192.0.2.7:4520", "localhost:4520"], &strangers);
        check("192.0.2.7:80", None, &["192.0.2.7", "192.0.2.7:80"], &["192.0.2.8", "localhost"]);
        let public = Some("https://chat.example/x");
        check(
            "127.0.0.1:4520",
            public,
            &["chat.example", "Chat.Example", "127.0.0.1:4520"],
            &["chat.example:1", "evil.example"],
        );
    }
}

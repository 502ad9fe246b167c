//! The SSRF guard: name resolution, and the check that an address is on the public internet and not on this
//! machine or in a private network.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use futures_util::future::BoxFuture;

/// Function that resolves a host name to IP addresses.
type LookUp = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// Access of tools to the web: name resolution and the addresses that may be contacted.
#[derive(Clone)]
pub struct Web {
    /// Function that resolves a host name to all its IP addresses.
    pub look_up: Arc<LookUp>,
    /// Function that returns whether an IP address may be contacted.
    pub may_contact: fn(IpAddr) -> bool,
}

impl Web {
    /// Returns web access to the public internet only.
    pub fn public() -> Self {
        Self { look_up: Arc::new(|name| Box::pin(by_system(name))), may_contact: is_public }
    }

    /// Returns web access to all addresses, including this machine and private networks.
    pub fn with_private() -> Self {
        Self { may_contact: |_| true, ..Self::public() }
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_private = (self.may_contact)(Ipv4Addr::LOCALHOST.into());
        f.debug_struct("Web").field("private", &is_private).finish_non_exhaustive()
    }
}

async fn by_system(name: String) -> io::Result<Vec<IpAddr>> {
    // The port is irrelevant, but the function requires one.
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|it| it.ip()).collect())
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => is_public_v4(address),
            None => is_public_v6(address),
        },
    }
}

/// Returns whether an IPv4 address is outside the special-purpose blocks of the IANA registry.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        (0 | 10 | 127 | 224.., ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    );
    !is_special
}

/// Returns whether an IPv6 address is in the allocated global unicast block, outside the parts for
/// tunnels into IPv4 (Teredo, 6to4), tests and documentation.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let is_global_unicast = a & 0xe000 == 0x2000;
    let is_special = match a {
        0x2001 => b < 0x0200 || b == 0x0db8,
        0x2002 => true,
        0x3fff => b < 0x1000,
        _ => false,
    };
    is_global_unicast && !is_special
}

#[cfg(test)]
mod tests {
    //! Notations of private addresses, and the neighbours of each block.

    use super::*;

    #[test]
    fn private_addresses_are_recognised_in_every_notation() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2001:10::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "126.0.0.1",
            "128.0.0.1",
            "169.253.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2001:4860::8888",
            "2606:4700::1111",
            "2a00::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}

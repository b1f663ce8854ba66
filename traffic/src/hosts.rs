//! Names from `/etc/hosts`, read here because a static program cannot load the system's resolver.

use std::net::IpAddr;

/// Resolves a text: an IP address, or a name from the first matching line of `/etc/hosts`.
pub fn address(text: &str) -> Result<IpAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    find(&hosts, text).ok_or_else(|| format!("`{text}` is neither an address nor a name in /etc/hosts"))
}

fn find(hosts: &str, name: &str) -> Option<IpAddr> {
    hosts.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|word| word == name).then_some(address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_with_the_name_counts() {
        let hosts = "127.0.0.1 localhost # h2\nbad h2\n10.0.0.2\th2 h2.lab\nfd00::2 h2 v6\n";
        assert_eq!(find(hosts, "h2"), Some([10, 0, 0, 2].into()));
        assert_eq!(find(hosts, "v6").map(|address| address.is_ipv6()), Some(true));
        assert_eq!(find(hosts, "h3"), None);
        assert_eq!(address("fd00::1"), Ok("fd00::1".parse().unwrap()));
    }
}

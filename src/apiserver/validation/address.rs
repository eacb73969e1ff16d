//! Validation of IP addresses and CIDR values.
//!
//! Follows `apimachinery/pkg/util/validation/ip.go @v1.36.3`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::json;

use super::field::{Errors, Path};
use crate::apimachinery::FieldError;
use crate::config::Gate;

/// Checks an IP address in a field that is older than strict validation. Returns the address if it can be read.
/// Follows `#IsValidIPForLegacyField`.
pub(super) fn ip(text: &str, path: Path<'_>, errors: &mut Errors) -> Option<IpAddr> {
    let is_strict = errors.enabled(Gate::StrictIPCIDRValidation);
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(path, &json!(text), detail));
    let Some(ip) = parse(text) else {
        refuse("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        return None;
    };
    if is_strict && text.parse::<IpAddr>().is_err() {
        refuse("must not have leading 0s");
    }
    if is_strict && is_mapped(ip) {
        refuse("must not be an IPv4-mapped IPv6 address");
    }
    Some(ip)
}

/// Checks a CIDR value in a field that is older than strict validation. Returns its address if the value can be read.
/// Follows `#IsValidCIDRForLegacyField`.
pub(super) fn cidr(text: &str, path: Path<'_>, errors: &mut Errors) -> Option<IpAddr> {
    let Some((address, bits)) = parse_cidr(text) else {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        errors.push(FieldError::invalid(path, &json!(text), detail));
        return None;
    };
    if errors.enabled(Gate::StrictIPCIDRValidation) {
        let is_strict = text.split_once('/').is_some_and(|(address, length)| {
            address.parse::<IpAddr>().is_ok() && (length == "0" || !length.starts_with('0'))
        });
        let detail = if !is_strict {
            "must not have leading 0s in IP or prefix length"
        } else if is_mapped(address) {
            "must not have an IPv4-mapped IPv6 address"
        } else if has_bits_after(address, bits) {
            "must not have bits set beyond the prefix length"
        } else {
            ""
        };
        if !detail.is_empty() {
            errors.push(FieldError::invalid(path, &json!(text), detail));
        }
    }
    Some(address)
}

/// Whether an address belongs to the IPv6 family. As in Go, an IPv4-mapped address does not.
pub(super) fn is_ipv6(address: IpAddr) -> bool {
    address.is_ipv6() && !is_mapped(address)
}

/// Parses an address whose IPv4 parts may have leading zeros. Follows `ParseIPSloppy` of `k8s.io/utils/net`.
fn parse(text: &str) -> Option<IpAddr> {
    if !text.contains(':') {
        return parse_v4(text).map(IpAddr::V4);
    }
    let plain = match text.rsplit_once(':') {
        Some((head, tail)) if tail.contains('.') => format!("{head}:{}", parse_v4(tail)?),
        _ => text.to_owned(),
    };
    plain.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    let octets: Option<Vec<u8>> = text.split('.').map(number).collect();
    <[u8; 4]>::try_from(octets?).ok().map(Ipv4Addr::from)
}

/// Parses decimal digits, with any number of leading zeros.
fn number(digits: &str) -> Option<u8> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let significant = digits.trim_start_matches('0');
    if is_number && significant.is_empty() { Some(0) } else { significant.parse().ok().filter(|_| is_number) }
}

fn parse_cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/')?;
    let (address, bits) = (parse(address)?, number(bits)?);
    (bits <= if address.is_ipv6() { 128 } else { 32 }).then_some((address, bits))
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// Whether an address has bits after the first `length`.
fn has_bits_after(address: IpAddr, length: u8) -> bool {
    match address {
        IpAddr::V4(address) => address.to_bits().checked_shl(length.into()).unwrap_or(0) != 0,
        IpAddr::V6(address) => address.to_bits().checked_shl(length.into()).unwrap_or(0) != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FeatureGates;

    type Check = fn(&str, Path<'_>, &mut Errors) -> Option<IpAddr>;

    #[track_caller]
    fn check(rule: Check, is_strict: bool, text: &str, expected: &str) {
        let gates = FeatureGates::default().with(Gate::StrictIPCIDRValidation, is_strict);
        let mut errors = Errors::new(&gates);
        rule(text, Path::Root("ip"), &mut errors);
        let details: Vec<String> = errors.into_list().into_iter().map(|error| error.detail).collect();
        assert_eq!(details.join("; "), expected, "{text}");
    }

    #[test]
    fn addresses_follow_the_strict_rules_while_their_gate_is_on() {
        for good in ["10.9.8.7", "2001:db8::ffff", "::", "FE80:0:0:0:0:0:0:0abc"] {
            check(ip, true, good, "");
        }
        let invalid = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        for bad in ["", "10.9.8", "10.9.8.256", "a", "fe80::1%eth0", "1.2.3.+4", "::12345"] {
            check(ip, true, bad, invalid);
            check(ip, false, bad, invalid);
        }
        check(ip, true, "010.002.003.004", "must not have leading 0s");
        check(ip, true, "::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address");
        check(ip, false, "010.002.003.004", "");
        check(ip, false, "::ffff:1.2.3.4", "");
    }

    #[test]
    fn networks_follow_the_strict_rules_while_their_gate_is_on() {
        for good in ["10.9.8.0/24", "0.0.0.0/0", "2001:db8::/64", "10.9.8.7/32"] {
            check(cidr, true, good, "");
        }
        for bad in ["10.9.8.0", "10.9.8.0/33", "2001:db8::/129", "10.9.8.0/", "x/8"] {
            check(cidr, true, bad, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
        }
        check(cidr, true, "10.9.8.5/24", "must not have bits set beyond the prefix length");
        check(cidr, true, "2001:db8::1/64", "must not have bits set beyond the prefix length");
        check(cidr, true, "10.9.8.0/024", "must not have leading 0s in IP or prefix length");
        check(cidr, false, "10.9.8.5/024", "");
    }
}

//! Free loopback ports.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

use ring::rand::{SecureRandom, SystemRandom};

/// Below it, ports are often taken by services of the machine.
const LOWEST: u16 = 10_240;
const ATTEMPTS: usize = 200;

/// A port that nobody listens on now.
///
/// It lies below the range the kernel takes client ports from. Otherwise a client that reconnects to a stopped API
/// server can be given that very port as its own, connect to itself, and keep the server from ever coming back.
///
/// # Errors
/// There is none.
pub fn free() -> io::Result<u16> {
    let span = first_client_port().max(2 * LOWEST) - LOWEST;
    let random = SystemRandom::new();
    for _ in 0..ATTEMPTS {
        let mut bytes = [0; 2];
        random.fill(&mut bytes).map_err(|_| io::Error::other("no random bytes"))?;
        let port = LOWEST + u16::from_le_bytes(bytes) % span;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "no free port on 127.0.0.1"))
}

/// An address of the loopback with a free port, as [`free`] finds it.
///
/// # Errors
/// There is none.
pub fn free_address() -> io::Result<SocketAddr> {
    Ok((Ipv4Addr::LOCALHOST, free()?).into())
}

fn first_client_port() -> u16 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(32_768)
}

#[cfg(test)]
mod tests {
    #[test]
    fn free_port_is_outside_the_client_port_range() {
        let port = super::free().unwrap();
        assert!(port >= super::LOWEST);
        assert!(port < super::first_client_port().max(2 * super::LOWEST));
    }
}

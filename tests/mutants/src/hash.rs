//! A stable hash that is the same on every machine, for drawing samples and for distinguishing source trees.

/// Computes FNV-1a with a final mixing step, so that similar texts get very different hashes.
pub fn hash<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |byte: u8| state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    for part in parts {
        part.iter().copied().for_each(&mut eat);
        // No UTF-8 text has this byte, so it separates the parts.
        eat(0xff);
    }
    for shift in [32, 29] {
        state = (state ^ (state >> shift)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    state ^ (state >> 32)
}

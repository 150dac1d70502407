//! Go's `encoding/base64`, with padding: it skips line breaks and names the byte that is wrong.

/// Decodes the alphabet for URLs.
///
/// # Errors
/// Go's text.
pub(crate) fn decode_url(text: &str) -> Result<Vec<u8>, String> {
    decode(text.as_bytes(), *b"-_").map_err(|at| format!("illegal base64 data at input byte {at}"))
}

/// Decodes the standard alphabet.
///
/// # Errors
/// The byte that Go's error names.
pub fn decode_base64(text: &str) -> Result<Vec<u8>, usize> {
    decode(text.as_bytes(), *b"+/")
}

fn digit(byte: u8, last: [u8; 2]) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        _ if byte == last[0] => 62,
        _ if byte == last[1] => 63,
        _ => return None,
    })
}

/// `Encoding.decodeQuantum`, again and again; or the place of the byte that is wrong.
fn decode(text: &[u8], last: [u8; 2]) -> Result<Vec<u8>, usize> {
    let skip = |mut at: usize| {
        while text.get(at).is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            at += 1;
        }
        at
    };
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut at = 0;
    while at < text.len() {
        let (mut bits, mut count) = (0_u32, 0);
        while count < 4 {
            let Some(&byte) = text.get(at) else {
                return if count == 0 { Ok(out) } else { Err(at - count) };
            };
            at += 1;
            match digit(byte, last) {
                Some(digit) => {
                    bits = bits << 6 | u32::from(digit);
                    count += 1;
                }
                None if matches!(byte, b'\n' | b'\r') => {}
                None if byte != b'=' || count < 2 => return Err(at - 1),
                None => {
                    if count == 2 {
                        at = skip(at);
                        match text.get(at) {
                            None => return Err(text.len()),
                            Some(b'=') => at += 1,
                            Some(_) => return Err(at - 1),
                        }
                    }
                    at = skip(at);
                    if at < text.len() {
                        return Err(at);
                    }
                    let bytes = (bits << (6 * (4 - count))).to_be_bytes();
                    out.extend_from_slice(&bytes[1..count]);
                    return Ok(out);
                }
            }
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_are_skipped_and_the_wrong_byte_is_named() {
        for (text, expected) in [
            ("", Ok(&b""[..])),
            ("YQ==", Ok(b"a")),
            ("YWJj\n", Ok(b"abc")),
            ("Y\nQ=\r\n=\n", Ok(b"a")),
            ("-_-_", Ok(&[0xfb, 0xff, 0xbf])),
            ("++//", Err(0)),
            ("YQ", Err(0)),
            ("YWJjY", Err(4)),
            ("YQ=", Err(3)),
            ("YQ=a", Err(2)),
            ("YQ==a", Err(4)),
            ("=", Err(0)),
        ] {
            assert_eq!(decode(text.as_bytes(), *b"-_").as_deref(), expected.as_ref().copied(), "{text:?}");
        }
    }

    /// The answers are those of Go's `encoding/base64`.
    #[test]
    fn base64_is_read_as_go_reads_it() {
        for (text, expected) in [
            ("", Ok("")),
            ("aGVsbG8=", Ok("hello")),
            ("aGVs\nbG8=\n", Ok("hello")),
            ("aGVs\r\nbG8=\r\n", Ok("hello")),
            ("\n", Ok("")),
            ("aGk\n=", Ok("hi")),
            ("aA=\n=\n", Ok("h")),
            // Bits that no byte has.
            ("aR==", Ok("i")),
            ("aGl=", Ok("hi")),
            ("aGVsbG8", Err(4)),
            ("aGVs\nbG8", Err(5)),
            ("a", Err(0)),
            ("a=", Err(1)),
            ("=", Err(0)),
            ("aA=", Err(3)),
            ("aA=x", Err(2)),
            ("aA==x", Err(4)),
            ("aA==\nx", Err(5)),
            ("aGVs bG8=", Err(4)),
            ("aGVs-_8=", Err(4)),
        ] {
            let found = decode_base64(text).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(found, expected.map(str::to_owned), "{text:?}");
        }
    }
}

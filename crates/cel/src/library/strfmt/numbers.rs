//! Numbers with a check digit, and others (kube-openapi `pkg/internal/third_party/govalidator`).

/// Without white space and dashes, as far as `\s` is white space to Go.
fn compact(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !b"\t\n\x0c\r -".contains(byte)).collect()
}

fn value(digit: u8) -> u32 {
    u32::from(digit - b'0')
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let text = compact(text);
    let [digits @ .., last] = &text[..] else { return false };
    if digits.len() != 9 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match last {
        b'X' => 10,
        b'0'..=b'9' => value(*last),
        _ => return false,
    };
    let sum: u32 = (1..).zip(digits).map(|(factor, digit)| factor * value(*digit)).sum();
    (sum + 10 * last).is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let text = compact(text);
    if text.len() != 13 || !text.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = text[..12].iter().zip([1, 3].iter().cycle()).map(|(digit, factor)| factor * value(*digit)).sum();
    value(text[12]) == (10 - sum % 10) % 10
}

/// The digits of a text, whatever is between them, as the number of a card of a known issuer.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).collect();
    let number =
        |count: usize| digits.get(..count).map_or(0, |digits| digits.iter().fold(0, |n, d| n * 10 + value(*d)));
    let is_issued = match digits.len() {
        13 => number(1) == 4,
        14 => matches!(number(3), 300..=305) || matches!(number(2), 36 | 38),
        15 => matches!(number(2), 34 | 37) || matches!(number(4), 2131 | 1800),
        16 => number(1) == 4 || matches!(number(2), 51..=55 | 35 | 65) || number(4) == 6011,
        _ => false,
    };
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| if place % 2 == 1 { doubled(value(*digit)) } else { value(*digit) })
        .sum();
    is_issued && sum.is_multiple_of(10)
}

/// Groups of 3, 2 and 4 digits with a dash or a space between them.
pub(super) fn is_ssn(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 11
        && bytes.iter().enumerate().all(|(place, byte)| match place {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

//! The two forms of number that a quantity may have.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

/// The most digits that an operation appends to a number.
const MAX_SHIFT: i64 = 100_000;

/// `value * 10^scale`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Int {
    pub(super) value: i64,
    pub(super) scale: i32,
}

impl Int {
    pub(super) fn to_dec(self) -> Dec {
        Dec { unscaled: self.value.into(), scale: self.scale.wrapping_neg() }
    }

    /// The number, if it is an integer of 64 bits; none with decimals is, zeros or not.
    pub(super) fn to_i64(self) -> Option<i64> {
        shift(self.value, u32::try_from(self.scale).ok()?)
    }

    /// The sum, if it fits and so does the one with the larger scale at the smaller scale.
    pub(super) fn add(self, other: Self) -> Option<Self> {
        if other.value == 0 {
            return Some(self);
        }
        if self.value == 0 {
            return Some(other);
        }
        let scale = self.scale.min(other.scale);
        let at_scale = |int: Self| shift(int.value, int.scale.checked_sub(scale)?.try_into().ok()?);
        let (a, b) = (at_scale(self)?, at_scale(other)?);
        Some(Self { value: a.checked_add(b)?, scale })
    }
}

/// The value with so many zeros appended.
fn shift(value: i64, zeros: u32) -> Option<i64> {
    if zeros == 0 || value == 0 {
        return Some(value);
    }
    value.checked_mul(10_i64.checked_pow(zeros)?)
}

/// `unscaled / 10^scale`, as in `gopkg.in/inf.v0`.
#[derive(Clone, Debug)]
pub(super) struct Dec {
    pub(super) unscaled: BigInt,
    pub(super) scale: i32,
}

impl Dec {
    pub(super) fn sign(&self) -> i64 {
        match self.unscaled.sign() {
            Sign::Minus => -1,
            Sign::NoSign => 0,
            Sign::Plus => 1,
        }
    }

    pub(super) fn negate(mut self) -> Self {
        self.unscaled = -self.unscaled;
        self
    }

    fn digits(&self) -> i64 {
        i64::try_from(self.unscaled.magnitude().to_string().len()).unwrap_or(i64::MAX)
    }

    /// The unscaled number with so many zeros appended, unless they are too many.
    fn zeros(&self, count: i64, most: i64) -> Option<BigInt> {
        let count = u32::try_from(count).ok().filter(|count| i64::from(*count) <= most)?;
        Some(&self.unscaled * BigInt::from(10).pow(count))
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let signs = self.sign().cmp(&other.sign());
        if signs != Ordering::Equal || self.sign() == 0 {
            return signs;
        }
        // Where the first digit stands tells most, and without huge numbers.
        let first = |dec: &Self| dec.digits() - i64::from(dec.scale);
        let places = first(self).cmp(&first(other));
        if places != Ordering::Equal {
            return if self.sign() > 0 { places } else { places.reverse() };
        }
        let shift = i64::from(other.scale) - i64::from(self.scale);
        // With the first digit at the same place, the shift is no more than the digits of one of both.
        match (self.zeros(shift.max(0), i64::MAX), other.zeros((-shift).max(0), i64::MAX)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => Ordering::Equal,
        }
    }

    pub(super) fn add(&self, other: &Self) -> Result<Self, String> {
        let scale = self.scale.max(other.scale);
        let at_scale = |dec: &Self| dec.zeros(i64::from(scale) - i64::from(dec.scale), MAX_SHIFT);
        let sum = at_scale(self).zip(at_scale(other)).map(|(a, b)| Self { unscaled: a + b, scale });
        sum.ok_or_else(|| "the sum of the quantities has too many digits to be computed".to_owned())
    }

    /// Cuts a number that is not negative to so many decimals, up if something is cut off.
    pub(super) fn round_up(self, decimals: i32) -> Option<Self> {
        let cut = i64::from(self.scale) - i64::from(decimals);
        if cut <= 0 {
            return Some(Self { unscaled: self.zeros(-cut, MAX_SHIFT)?, scale: decimals });
        }
        if cut > self.digits() {
            return Some(Self { unscaled: BigInt::from(self.sign()), scale: decimals });
        }
        let divisor = BigInt::from(10).pow(u32::try_from(cut).ok()?);
        let (mut unscaled, rest) = (&self.unscaled / &divisor, &self.unscaled % &divisor);
        if rest.sign() != Sign::NoSign {
            unscaled += self.sign();
        }
        Some(Self { unscaled, scale: decimals })
    }

    /// The unscaled number as the nearest double.
    pub(super) fn unscaled_double(&self) -> f64 {
        self.unscaled.to_string().parse().unwrap_or(f64::NAN)
    }
}

/// Go's `math.Pow10`: zero and infinity beyond its tables, and the rounding of a quotient for small ones.
pub(super) fn power_of_ten(exponent: i32) -> f64 {
    let exact = |exponent: u32| format!("1e{exponent}").parse::<f64>().unwrap_or(f64::INFINITY);
    let magnitude = exponent.unsigned_abs();
    match exponent {
        309.. => f64::INFINITY,
        0..=308 => exact(magnitude / 32 * 32) * exact(magnitude % 32),
        -323..0 => {
            let high: f64 = format!("1e-{}", magnitude / 32 * 32).parse().unwrap_or(0.0);
            high / exact(magnitude % 32)
        }
        _ => 0.0,
    }
}

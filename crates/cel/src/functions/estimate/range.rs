//! Sizes and costs with a minimum and a maximum (cel-go `SizeEstimate`, `CostEstimate`). Larger values than 64 bits can
//! hold are [`u64::MAX`].

/// From the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Range {
    /// An unknown size.
    pub const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    /// One and the same.
    pub const fn fixed(value: u64) -> Self {
        Self { min: value, max: value }
    }

    /// The sum.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product.
    #[must_use]
    pub(crate) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Times a factor, rounded up.
    #[must_use]
    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    /// The smallest range that contains both.
    #[must_use]
    pub(crate) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

#[expect(clippy::cast_precision_loss, reason = "as cel-go does")]
fn scaled(value: u64, factor: f64) -> u64 {
    /// The smallest number that exceeds an unsigned integer of 64 bits.
    const TOO_MUCH: f64 = 18_446_744_073_709_551_616.0;
    let value = value as f64;
    if value > 0.0 && factor > 0.0 && value > TOO_MUCH / factor {
        return u64::MAX;
    }
    let product = (value * factor).ceil();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive and fits")]
    if product >= TOO_MUCH { u64::MAX } else { product as u64 }
}

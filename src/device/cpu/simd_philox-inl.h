// Included once per instruction set: the counter-based random words of core/random.h for ranges of elements, and
// dropout by them. The words equal random_bits(key, index) to the bit.

#include "core/random.h"

#if defined(ZT_SIMD_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZT_SIMD_PHILOX_INL_H_
#undef ZT_SIMD_PHILOX_INL_H_
#else
#define ZT_SIMD_PHILOX_INL_H_
#endif

#include "device/cpu/simd_common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

struct PhiloxKeys {
  explicit PhiloxKeys(std::uint64_t k) : key(k) {}
  std::uint64_t key;
};
// Blocks computed at once.
inline std::int64_t philox_lanes() { return 1; }
inline void philox_blocks(const PhiloxKeys& keys, std::uint64_t block, std::uint32_t* out) {
  const auto words = philox(keys.key, block);
  std::memcpy(out, words.data(), sizeof(words));
}

#else

using U64 = hn::ScalableTag<std::uint64_t>;
using VU64 = hn::Vec<U64>;

// The key of each of the ten rounds.
struct PhiloxKeys {
  explicit PhiloxKeys(std::uint64_t key) {
    auto k0 = static_cast<std::uint32_t>(key);
    auto k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      first[round] = k0;
      second[round] = k1;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
  }
  std::uint64_t first[10], second[10];
};

inline std::int64_t philox_lanes() { return static_cast<std::int64_t>(hn::Lanes(U64())); }

// The words of blocks block, block + 1, ... (one per 64-bit lane), 4 words each. Every lane holds one 32-bit word of
// the state in its lower half; the upper half is arbitrary, as the multiplication does not read it.
HWY_INLINE void philox_blocks(const PhiloxKeys& keys, std::uint64_t block, std::uint32_t* out) {
  const U64 d;
  const hn::Repartition<std::uint32_t, U64> d32;
  const auto product = [&](VU64 a, VU64 b) HWY_ATTR { return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b)); };
  const VU64 m0 = hn::Set(d, std::uint64_t{0xD2511F53U});
  const VU64 m1 = hn::Set(d, std::uint64_t{0xCD9E8D57U});
  VU64 x0 = hn::Add(hn::Set(d, block), hn::Iota(d, 0));
  VU64 x1 = hn::ShiftRight<32>(x0);
  VU64 x2 = hn::Zero(d);
  VU64 x3 = x2;
  for (int round = 0; round < 10; ++round) {
    const VU64 p0 = product(x0, m0);
    const VU64 p1 = product(x2, m1);
    x0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), x1), hn::Set(d, keys.first[round]));
    x1 = p1;
    x2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), x3), hn::Set(d, keys.second[round]));
    x3 = p0;
  }
  const VU64 low = hn::Set(d, std::uint64_t{0xffffffffU});
  const VU64 words01 = hn::Or(hn::And(x0, low), hn::ShiftLeft<32>(x1));
  const VU64 words23 = hn::Or(hn::And(x2, low), hn::ShiftLeft<32>(x3));
  HWY_ALIGN std::uint64_t words[2 * hn::MaxLanes(d)];
  hn::StoreInterleaved2(words01, words23, d, words);
  std::memcpy(out, words, 2 * hn::Lanes(d) * sizeof(std::uint64_t));
}

#endif

// Random words of consecutive indices.
constexpr std::int64_t most_words = 2 * piece;
struct RandomWords {
  // For the indices first ... first + n - 1, n <= most_words; the first is at begin().
  HWY_INLINE void fill(const PhiloxKeys& keys, std::uint64_t first, std::int64_t n) {
    skipped = static_cast<std::int64_t>(first % 4);
    const std::int64_t lanes = philox_lanes();
    std::uint64_t block = first / 4;
    for (std::int64_t i = 0; i < skipped + n; i += 4 * lanes) {
      philox_blocks(keys, block, words + i);
      block += static_cast<std::uint64_t>(lanes);
    }
  }
  const std::uint32_t* begin() const { return words + skipped; }

  std::int64_t skipped = 0;
  // Room for whole vectors past the last index.
  std::uint32_t words[most_words + 2 * 4 * 64];
};

// Uniform in [0, 1): as uniform_from_bits.
HWY_INLINE VF uniform_of(VU bits) {
  const F32 d;
  const I32 di;
  return hn::Mul(hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<8>(bits))), hn::Set(d, 0x1p-24F));
}

// Dropout of one operation: fill() for a piece of elements, then apply() to their vectors.
class Dropper {
 public:
  explicit Dropper(const Dropout& dropout)
      : keys_(dropout.key),
        first_(static_cast<std::uint64_t>(dropout.first_sample) *
               static_cast<std::uint64_t>(dropout.elements_per_sample)),
        probability_(dropout.probability),
        scale_(1.0F / (1.0F - dropout.probability)) {}

  bool active() const { return probability_ != 0.0F; }
  // n <= piece elements from `first` on, counted from the first element of this rank's first sample.
  HWY_INLINE void fill(std::int64_t first, std::int64_t n) {
    words_.fill(keys_, first_ + static_cast<std::uint64_t>(first), n);
  }
  // i: of the vector's first element within the piece.
  HWY_INLINE VF apply(std::int64_t i, VF value) const {
    const F32 d;
    const VF uniform = uniform_of(hn::LoadU(U32(), words_.begin() + i));
    const VF kept = hn::Mul(value, hn::Set(d, scale_));
    return hn::IfThenElse(hn::Lt(uniform, hn::Set(d, probability_)), hn::Zero(d), kept);
  }

 private:
  PhiloxKeys keys_;
  std::uint64_t first_;
  float probability_;
  float scale_;
  RandomWords words_;
};

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#endif

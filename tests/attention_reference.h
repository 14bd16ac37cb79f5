// Attention and its gradient in double precision, by the definition in device/operations.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/random.h"
#include "device/operations.h"

namespace zt::test {

struct AttentionCase {
  std::int64_t batch = 1, length = 1, heads = 1, head_size = 1;
  DType dtype = DType::f32;
  float dropout = 0.0F;
  std::int64_t first_sample = 0;

  Dropout dropout_of() const {
    return {.probability = dropout,
            .key = 77,
            .first_sample = first_sample,
            .elements_per_sample = heads * length * length};
  }
  std::int64_t tokens() const { return batch * length; }
  std::int64_t width() const { return heads * head_size; }
  bool keeps(std::int64_t sample, std::int64_t head, std::int64_t query, std::int64_t key) const {
    if (dropout <= 0.0F) return true;
    const Dropout all = dropout_of();
    const auto index = static_cast<std::uint64_t>((first_sample + sample) * all.elements_per_sample +
                                                  (head * length + query) * length + key);
    return uniform_from_bits(random_bits(all.key, index)) >= dropout;
  }
};

inline std::string text_of(const AttentionCase& c) {
  return "B" + std::to_string(c.batch) + " T" + std::to_string(c.length) + " H" + std::to_string(c.heads) + " D" +
         std::to_string(c.head_size) + " " + std::string(name_of(c.dtype)) + " dropout " + std::to_string(c.dropout);
}

// Results with the sizes of what is rounded on the way (the same sums over absolute values), for the bounds.
struct AttentionReference {
  std::vector<double> out, log_sum_exp, d_qkv;
  std::vector<double> out_size, d_qkv_size;
};

inline AttentionReference attention_reference(const AttentionCase& c, const std::vector<double>& qkv,
                                              const std::vector<double>& d_out) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const std::int64_t T = c.length, H = c.heads, D = c.head_size;
  AttentionReference r;
  r.out.resize(d_out.size());
  r.out_size = r.out;
  r.d_qkv.resize(qkv.size());
  r.d_qkv_size = r.d_qkv;
  r.log_sum_exp.resize(at(c.batch * H * T));
  const double scale = 1.0 / std::sqrt(static_cast<double>(D));
  for (std::int64_t b = 0; b < c.batch; ++b) {
    for (std::int64_t h = 0; h < H; ++h) {
      const auto in = [&](std::int64_t row, std::int64_t part, std::int64_t d) {
        return at((((b * T + row) * 3 + part) * H + h) * D + d);
      };
      const auto o = [&](std::int64_t row, std::int64_t d) { return at(((b * T + row) * H + h) * D + d); };
      for (std::int64_t q = 0; q < T; ++q) {
        std::vector<double> p(at(q + 1)), kept(at(q + 1), 1.0), dp(at(q + 1)), dp_size(at(q + 1));
        double largest = -1e300, sum = 0;
        for (std::int64_t k = 0; k <= q; ++k) {
          for (std::int64_t d = 0; d < D; ++d) p[at(k)] += qkv[in(q, 0, d)] * qkv[in(k, 1, d)] * scale;
          largest = std::max(largest, p[at(k)]);
        }
        for (double& value : p) sum += value = std::exp(value - largest);
        for (double& value : p) value /= sum;
        r.log_sum_exp[at((b * H + h) * T + q)] = largest + std::log(sum);
        double product = 0, product_size = 0;
        for (std::int64_t k = 0; k <= q; ++k) {
          if (c.dropout > 0) kept[at(k)] = c.keeps(b, h, q, k) ? 1.0 / (1.0 - c.dropout) : 0.0;
          for (std::int64_t d = 0; d < D; ++d) {
            const double term = p[at(k)] * kept[at(k)] * qkv[in(k, 2, d)];
            r.out[o(q, d)] += term;
            r.out_size[o(q, d)] += std::abs(term);
            dp[at(k)] += d_out[o(q, d)] * qkv[in(k, 2, d)] * kept[at(k)];
            dp_size[at(k)] += std::abs(d_out[o(q, d)] * qkv[in(k, 2, d)] * kept[at(k)]);
            r.d_qkv[in(k, 2, d)] += p[at(k)] * kept[at(k)] * d_out[o(q, d)];
            r.d_qkv_size[in(k, 2, d)] += std::abs(p[at(k)] * kept[at(k)] * d_out[o(q, d)]);
          }
          product += p[at(k)] * dp[at(k)];
        }
        for (std::int64_t d = 0; d < D; ++d) product_size += std::abs(d_out[o(q, d)]) * r.out_size[o(q, d)];
        for (std::int64_t k = 0; k <= q; ++k) {
          const double ds = p[at(k)] * (dp[at(k)] - product) * scale;
          const double size = p[at(k)] * (dp_size[at(k)] + product_size) * scale;
          for (std::int64_t d = 0; d < D; ++d) {
            r.d_qkv[in(q, 0, d)] += ds * qkv[in(k, 1, d)];
            r.d_qkv_size[in(q, 0, d)] += size * std::abs(qkv[in(k, 1, d)]);
            r.d_qkv[in(k, 1, d)] += ds * qkv[in(q, 0, d)];
            r.d_qkv_size[in(k, 1, d)] += size * std::abs(qkv[in(q, 0, d)]);
          }
        }
      }
    }
  }
  return r;
}

// How much is allowed relative to those sizes when sums and functions are computed in fp32 and P, d_S and results are
// rounded to the dtype, with queries and keys in [-scale, scale). A score errs by (D + 2) 2^-24 sum |q k| / sqrt(D); a
// probability by twice that, plus a few units for the exponential and the sum. Sums over T or D terms in fp32 add their
// number of units. In 16 bits P, d_S and out (in delta) are rounded once each.
struct AttentionBounds {
  double log_sum_exp, out, d_qkv;
};
inline AttentionBounds attention_bounds(const AttentionCase& c, double scale) {
  const double unit = c.dtype == DType::f32 ? 0.0 : c.dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
  const double root = std::sqrt(static_cast<double>(c.head_size));
  const double delta = 2 * (static_cast<double>(c.head_size) + 2) * root * scale * scale * 0x1p-24 +
                       static_cast<double>(c.length + 16) * 0x1p-24;
  return {delta, delta + 1.01 * unit, 2 * delta + 2.02 * unit};
}

}  // namespace zt::test

#include "comm/copy.h"

#include <cstddef>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace zt {
namespace {

#if defined(__SSE2__)
// Smaller blocks are as fast through the caches, and their reader finds them there.
constexpr std::int64_t streaming_threshold = std::int64_t{6} << 20;

// to: aligned to 16.
void stream_block(std::byte* to, const std::byte* from, std::int64_t bytes) {
  std::int64_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
    const auto* in = reinterpret_cast<const __m128i*>(from + i);
    auto* out = reinterpret_cast<__m128i*>(to + i);
    _mm_prefetch(reinterpret_cast<const char*>(from + i + 1024), _MM_HINT_NTA);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  _mm_sfence();
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}
#endif

}  // namespace

void copy_block(void* to, const void* from, std::int64_t bytes) {
  if (bytes == 0 || to == from) return;
#if defined(__SSE2__)
  if (bytes >= streaming_threshold) {
    auto* out = static_cast<std::byte*>(to);
    const auto* in = static_cast<const std::byte*>(from);
    const auto head = static_cast<std::int64_t>((64 - reinterpret_cast<std::uintptr_t>(out) % 64) % 64);
    std::memcpy(out, in, static_cast<std::size_t>(head));
    stream_block(out + head, in + head, bytes - head);
    return;
  }
#endif
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace zt

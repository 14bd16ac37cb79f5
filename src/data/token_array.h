// The tokens of a corpus in the narrowest integers that hold the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace zt {

class TokenArray {
 public:
  TokenArray() = default;
  // `count` zeros, of a type that holds 0 ... vocabulary_size - 1.
  TokenArray(std::int64_t count, std::int64_t vocabulary_size) {
    const auto size = static_cast<std::size_t>(count);
    if (vocabulary_size <= 0x100) {
      ids_ = std::vector<std::uint8_t>(size);
    } else if (vocabulary_size <= 0x10000) {
      ids_ = std::vector<std::uint16_t>(size);
    } else {
      ids_ = std::vector<std::uint32_t>(size);
    }
  }

  // Ids that are there already: std::uint8_t, uint16_t or uint32_t.
  template <typename Id>
  explicit TokenArray(std::vector<Id> ids) : ids_(std::move(ids)) {}

  std::int64_t size() const {
    return std::visit([](const auto& ids) { return static_cast<std::int64_t>(ids.size()); }, ids_);
  }
  std::int64_t bytes() const {
    return std::visit([](const auto& ids) { return static_cast<std::int64_t>(ids.size() * sizeof(ids[0])); }, ids_);
  }

  // Calls f with the vector of uint8_t, uint16_t or uint32_t.
  template <typename F>
  decltype(auto) visit(F&& f) {
    return std::visit(std::forward<F>(f), ids_);
  }

  // out[i] = tokens[first + i].
  void copy(std::int64_t first, std::span<std::int32_t> out) const {
    std::visit(
        [&](const auto& ids) {
          const auto* from = ids.data() + first;
          for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int32_t>(from[i]);
        },
        ids_);
  }

 private:
  std::variant<std::vector<std::uint8_t>, std::vector<std::uint16_t>, std::vector<std::uint32_t>> ids_;
};

}  // namespace zt

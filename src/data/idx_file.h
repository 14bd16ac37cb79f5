// IDX, the format of MNIST and its relatives (Y. LeCun, "The MNIST database", the section "File formats"): two zero
// bytes, one of the element type, one of the number of dimensions; then each dimension in 4 bytes and the elements,
// row-major, all big-endian.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zt {

class IdxFile {
 public:
  // Reads the whole file, plain or gzip; the elements stay as they are stored. `key` is the config key that names it.
  // Throws UserError: no IDX, cut short, longer than its header says, no elements.
  IdxFile(const std::string& path, const std::string& key);

  const std::vector<std::int64_t>& dimensions() const { return dimensions_; }  // all at least 1
  std::int64_t items() const { return dimensions_.front(); }
  std::int64_t values_per_item() const { return values_per_item_; }  // product of the dimensions after the first
  bool holds_integers() const;
  std::string description() const;  // "60000 x 28 x 28 unsigned bytes"
  std::int64_t bytes() const { return static_cast<std::int64_t>(content_.size()); }

  // Item `index` as features: unsigned bytes divided by 255, numbers of other types as they are.
  void features(std::int64_t index, std::span<float> out) const;
  // Element `index` of the whole file, which holds integers.
  std::int64_t integer(std::int64_t index) const;
  // Element `index` of the whole file as it is stored.
  double value(std::int64_t index) const;
  // The first element, as it is stored, that is no number or of a larger magnitude; -1 if there is none. Unsigned bytes
  // are never looked at: `limit` is at least 255. Integers that cannot reach the limit cost nothing.
  std::int64_t first_beyond(double limit) const;

 private:
  enum class Type : std::uint8_t { u8 = 0x08, i8 = 0x09, i16 = 0x0b, i32 = 0x0c, f32 = 0x0d, f64 = 0x0e };
  struct TypeRow;
  static const TypeRow* row_of(std::uint8_t type);
  template <typename T>
  T element(std::int64_t index) const;

  Type type_ = Type::u8;
  std::vector<std::int64_t> dimensions_;
  std::int64_t values_per_item_ = 1;
  std::size_t header_bytes_ = 0;
  std::string content_;  // header and elements
};

}  // namespace zt

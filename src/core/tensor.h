// Views of flat, contiguous memory with a number format. A view owns nothing; shapes are the business of
// the operation that receives it (device/operations.h gives them in comments).
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/dtype.h"

namespace zt {

template <bool is_const>
struct BasicTensorView {
  using Void = std::conditional_t<is_const, const void, void>;
  using Byte = std::conditional_t<is_const, const std::byte, std::byte>;

  Void* data = nullptr;
  std::int64_t count = 0;  // elements
  DType dtype = DType::f32;

  BasicTensorView() = default;
  BasicTensorView(Void* memory, std::int64_t elements, DType type) : data(memory), count(elements), dtype(type) {}
  // A view of mutable memory is also one of constant memory.
  template <bool other_const, typename = std::enable_if_t<is_const && !other_const>>
  BasicTensorView(const BasicTensorView<other_const>& other)  // NOLINT(google-explicit-constructor)
      : data(other.data), count(other.count), dtype(other.dtype) {}

  explicit operator bool() const { return data != nullptr; }
  std::int64_t bytes() const { return count * static_cast<std::int64_t>(size_of(dtype)); }

  BasicTensorView part(std::int64_t first, std::int64_t elements) const {
    assert(first >= 0 && elements >= 0 && first + elements <= count);
    return {static_cast<Byte*>(data) + first * static_cast<std::int64_t>(size_of(dtype)), elements, dtype};
  }

  template <typename T>
  auto as() const {
    assert(DTypeOf<T>::value == dtype);
    using Pointer = std::conditional_t<is_const, const T*, T*>;
    return static_cast<Pointer>(data);
  }
};

using TensorView = BasicTensorView<false>;
using ConstTensorView = BasicTensorView<true>;

}  // namespace zt

// The operations of a GPT's training step at its real shapes, each with what it must move or multiply at least.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "device/device.h"

namespace zt::bench {

// Rows are B * T tokens.
struct Shape {
  std::string name;
  std::int64_t batch = 0, length = 0, columns = 0, heads = 0, vocabulary = 0, padded_vocabulary = 0;
  std::int64_t rows() const { return batch * length; }
};

Shape gpt2_small(std::int64_t batch);  // 124M
Shape gpt2_xl(std::int64_t batch);     // 1.5B
Shape char_model(std::int64_t batch);  // configs/bench/char.json
Shape tiny();                          // for emulated GPUs and tests

struct Case {
  std::string name;
  std::string shape;
  Operation operation;
  double bytes = 0.0;  // read and written by an operation that does so once
  double flops = 0.0;  // of its products; 0: bytes count
};

// Calls `measure` for one operation after another; its operands live only during the call. Their values are random, as
// products of zeros need less power and are quicker.
void for_each_case(Device& device, const Shape& shape, DType dtype, const std::function<void(const Case&)>& measure);

// The products that GELU goes with, forward and backward: within the product, if the device was opened to do so, else
// after it. `how` ends the names.
void for_each_gelu_product(Device& device, const Shape& shape, DType dtype, const std::string& how,
                           const std::function<void(const Case&)>& measure);

// What the card can do: a large product, and a copy within its memory.
void for_each_ceiling(Device& device, DType dtype, bool tiny, const std::function<void(const Case&)>& measure);

}  // namespace zt::bench

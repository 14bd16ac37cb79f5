// Layers as free functions, forward and backward, over the device's operations; and the named buffers that a
// model keeps its activations in.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "device/device.h"
#include "model/parameter_access.h"

namespace zt {

// y[rows, outputs] = x[rows, inputs] W^T + b, with W [outputs, inputs] and b optional.
struct Linear {
  std::int64_t rows = 0, inputs = 0, outputs = 0;
};
// With `active`, also active = activation(y).
void linear_forward(Device& device, const Linear& shape, ConstTensorView x, ConstTensorView weight,
                    ConstTensorView bias, TensorView y, Activation activation = Activation::identity,
                    TensorView active = {});
// `values` as products read them: themselves, or cast into `cast` if that is given.
ConstTensorView as_operand(Device& device, ConstTensorView values, TensorView cast);

// d_x = d_y W (left out if d_x is empty). With `before`, x was activation(before), and d_x becomes the gradient of
// `before`; with `active` besides, x is computed again into it.
void linear_backward_input(Device& device, const Linear& shape, ConstTensorView weight, ConstTensorView d_y,
                           TensorView d_x, Activation activation = Activation::identity, ConstTensorView before = {},
                           TensorView active = {});
// d_W = d_y^T x; nothing if the weight is frozen.
void linear_backward_weight(Device& device, const Linear& shape, ConstTensorView x, ConstTensorView d_y,
                            GradientView d_weight);
// d_b = column sums of d_y; nothing if the bias is frozen.
void linear_backward_bias(Device& device, const Linear& shape, ConstTensorView d_y, GradientView d_bias);

// 2 flops forward, 2 for the gradient of the input (but where nothing below is trained: the rule counts it for the
// lowest layer, too), 2 for that of a trained weight: 6 as a rule.
double product_flops_per_parameter(const TensorSpec& weight, bool backward_reaches);

// Buffers with names, so that a check can say which tensor an address belongs to.
class NamedBuffers {
 public:
  TensorView tensor(Device& device, MemoryCategory category, const std::string& name, std::int64_t count, DType dtype);
  float* floats(Device& device, MemoryCategory category, const std::string& name, std::int64_t count);
  std::int32_t* integers(Device& device, MemoryCategory category, const std::string& name, std::int64_t count);
  std::string name_at(const void* address) const;

 private:
  struct Named {
    std::string name;
    Buffer buffer;
  };
  std::deque<Named> buffers_;
};

}  // namespace zt

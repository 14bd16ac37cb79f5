#include "model/layers.h"

#include <functional>

namespace zt {

void linear_forward(Device& device, const Linear& shape, ConstTensorView x, ConstTensorView weight,
                    ConstTensorView bias, TensorView y, Activation activation, TensorView active) {
  device.run(Stream::compute, MatMul{.a = x,
                                     .b = weight,
                                     .out = y,
                                     .bias = bias,
                                     .m = shape.rows,
                                     .n = shape.outputs,
                                     .k = shape.inputs,
                                     .lda = shape.inputs,
                                     .ldb = shape.inputs,
                                     .ldc = shape.outputs,
                                     .transpose_b = true,
                                     .activated = active ? active.part(0, shape.rows * shape.outputs) : active,
                                     .activation = activation});
}

ConstTensorView as_operand(Device& device, ConstTensorView values, TensorView cast) {
  if (!cast) return values;
  const TensorView out = cast.part(0, values.count);
  device.run(Stream::compute, Cast{.in = values, .out = out});
  return out;
}

double product_flops_per_parameter(const TensorSpec& weight, bool backward_reaches) {
  return 2.0 + (backward_reaches ? 2.0 : 0.0) + (is_trained(weight.segment) ? 2.0 : 0.0);
}

void linear_backward_input(Device& device, const Linear& shape, ConstTensorView weight, ConstTensorView d_y,
                           TensorView d_x, Activation activation, ConstTensorView before, TensorView active) {
  if (!d_x) return;
  device.run(Stream::compute, MatMul{.a = d_y,
                                     .b = weight,
                                     .out = d_x,
                                     .m = shape.rows,
                                     .n = shape.inputs,
                                     .k = shape.outputs,
                                     .lda = shape.outputs,
                                     .ldb = shape.inputs,
                                     .ldc = shape.inputs,
                                     .activated = active ? active.part(0, shape.rows * shape.inputs) : active,
                                     .activation_input = before ? before.part(0, shape.rows * shape.inputs) : before,
                                     .activation = activation});
}

void linear_backward_weight(Device& device, const Linear& shape, ConstTensorView x, ConstTensorView d_y,
                            GradientView d_weight) {
  if (!d_weight.view) return;
  device.run(Stream::compute, MatMul{.a = d_y,
                                     .b = x,
                                     .out = d_weight.view,
                                     .m = shape.outputs,
                                     .n = shape.inputs,
                                     .k = shape.rows,
                                     .lda = shape.outputs,
                                     .ldb = shape.inputs,
                                     .ldc = shape.inputs,
                                     .transpose_a = true,
                                     .add = d_weight.add});
}

void linear_backward_bias(Device& device, const Linear& shape, ConstTensorView d_y, GradientView d_bias) {
  if (!d_bias.view) return;
  device.run(Stream::compute,
             BiasGradient{
                 .d_out = d_y, .d_bias = d_bias.view, .rows = shape.rows, .columns = shape.outputs, .add = d_bias.add});
}

TensorView NamedBuffers::tensor(Device& device, MemoryCategory category, const std::string& name, std::int64_t count,
                                DType dtype) {
  buffers_.push_back({name, device.allocate(count * static_cast<std::int64_t>(size_of(dtype)), category, name)});
  return {buffers_.back().buffer.data(), count, dtype};
}

float* NamedBuffers::floats(Device& device, MemoryCategory category, const std::string& name, std::int64_t count) {
  return static_cast<float*>(tensor(device, category, name, count, DType::f32).data);
}

std::int32_t* NamedBuffers::integers(Device& device, MemoryCategory category, const std::string& name,
                                     std::int64_t count) {
  static_assert(sizeof(std::int32_t) == sizeof(float));
  return static_cast<std::int32_t*>(tensor(device, category, name, count, DType::f32).data);
}

std::string NamedBuffers::name_at(const void* address) const {
  const std::less<const void*> before;
  for (const Named& named : buffers_) {
    const void* begin = named.buffer.data();
    const void* end = named.buffer.at(named.buffer.bytes());
    if (!before(address, begin) && before(address, end)) return named.name;
  }
  return "";
}

}  // namespace zt

#include "cases.h"

#include <array>

#include "operands.h"

namespace zt::bench {

namespace {

double size(DType dtype) { return static_cast<double>(size_of(dtype)); }

std::string text(std::initializer_list<std::int64_t> numbers) {
  std::string result;
  for (const std::int64_t number : numbers) result += (result.empty() ? "" : " x ") + std::to_string(number);
  return result;
}

using Measure = std::function<void(const Case&)>;

// The three products of a linear layer: y = x W^t (+ bias), dx = dy W, dW = dy^t x.
void linear(Device& device, const std::string& name, std::int64_t rows, std::int64_t outputs, std::int64_t inputs,
            bool with_bias, DType dtype, const Measure& measure) {
  Operands operands(device);
  const TensorView x = operands.random(rows * inputs, dtype);
  const TensorView weight = operands.random(outputs * inputs, dtype, 0.02F);
  const TensorView y = operands.random(rows * outputs, dtype);
  MatMul op;
  op.a = x, op.b = weight, op.out = y;
  if (with_bias) op.bias = operands.random(outputs, dtype);
  op.m = rows, op.n = outputs, op.k = inputs;
  op.lda = inputs, op.ldb = inputs, op.ldc = outputs, op.transpose_b = true;
  const auto give = [&](const std::string& which) {
    const double bytes = size(dtype) * static_cast<double>(rows * inputs + outputs * inputs + rows * outputs);
    measure({name + which, text({op.m, op.n, op.k}), op, bytes, product_flops(op)});
  };
  give(", forward");
  // The output holds what products of this layer's size make; as a gradient it is as random.
  op = {};
  op.a = y, op.b = weight, op.out = x;
  op.m = rows, op.n = inputs, op.k = outputs, op.lda = outputs, op.ldb = inputs, op.ldc = inputs;
  give(", d input");
  op = {};
  op.a = y, op.b = x, op.out = weight;
  op.m = outputs, op.n = inputs, op.k = rows, op.lda = outputs, op.ldb = inputs, op.ldc = inputs;
  op.transpose_a = true;
  give(", d weight");
  if (!with_bias) return;
  const BiasGradient bias{.d_out = y, .d_bias = operands.empty(outputs, dtype), .rows = rows, .columns = outputs};
  measure({name + ", d bias", text({rows, outputs}), bias, size(dtype) * static_cast<double>(rows * outputs), 0.0});
}

void embedding(Device& device, const Shape& s, DType dtype, const Measure& measure) {
  Operands operands(device);
  const std::int32_t* tokens = operands.tokens(s.rows(), s.vocabulary);
  const TensorView table = operands.random(s.vocabulary * s.columns, dtype);
  const TensorView positions = operands.random(s.length * s.columns, dtype);
  const TensorView activation = operands.random(s.rows() * s.columns, dtype);
  const auto moved = static_cast<double>(s.rows() * s.columns) * size(dtype);
  measure({"embedding, forward", text({s.rows(), s.columns}),
           EmbeddingForward{.tokens = tokens,
                            .token_table = table,
                            .position_table = positions,
                            .out = activation,
                            .batch = s.batch,
                            .length = s.length,
                            .columns = s.columns,
                            .vocabulary = s.vocabulary},
           2.0 * moved, 0.0});
  const auto tables = static_cast<double>((s.vocabulary + s.length) * s.columns) * size(dtype);
  measure({"embedding, backward", text({s.rows(), s.columns}),
           EmbeddingBackward{.tokens = tokens,
                             .d_out = activation,
                             .d_token_table = table,
                             .d_position_table = positions,
                             .add_token = true,
                             .batch = s.batch,
                             .length = s.length,
                             .columns = s.columns,
                             .vocabulary = s.vocabulary,
                             .positions = s.length},
           2.0 * moved + tables, 0.0});
}

void norm(Device& device, const Shape& s, DType dtype, const Measure& measure) {
  Operands operands(device);
  const std::int64_t count = s.rows() * s.columns;
  const TensorView in = operands.random(count, dtype);
  const TensorView delta = operands.random(count, dtype);
  const TensorView sum = operands.empty(count, dtype);
  const TensorView out = operands.empty(count, dtype);
  const TensorView weight = operands.random(s.columns, dtype);
  const TensorView bias = operands.random(s.columns, dtype);
  float* const mean = operands.floats(s.rows());
  float* const rstd = operands.floats(s.rows());
  const LayerNormForward forward{.in = in,
                                 .delta = delta,
                                 .sum = sum,
                                 .weight = weight,
                                 .bias = bias,
                                 .out = out,
                                 .mean = mean,
                                 .rstd = rstd,
                                 .rows = s.rows(),
                                 .columns = s.columns};
  const double pass = size(dtype) * static_cast<double>(count);
  measure({"residual and norm, forward", text({s.rows(), s.columns}), forward, 4.0 * pass, 0.0});
  operands.run(forward);
  measure({"residual and norm, backward", text({s.rows(), s.columns}),
           LayerNormBackward{.in = sum,
                             .d_out = delta,
                             .d_residual = in,
                             .weight = weight,
                             .mean = mean,
                             .rstd = rstd,
                             .d_in = in,
                             .d_weight = operands.empty(s.columns, dtype),
                             .d_bias = operands.empty(s.columns, dtype),
                             .bias = bias,
                             .out = out,
                             .rows = s.rows(),
                             .columns = s.columns},
           5.0 * pass, 0.0});
}

void gelu(Device& device, const Shape& s, DType dtype, const Measure& measure) {
  Operands operands(device);
  const std::int64_t count = s.rows() * 4 * s.columns;
  const TensorView in = operands.random(count, dtype);
  const TensorView out = operands.random(count, dtype);
  const double pass = size(dtype) * static_cast<double>(count);
  measure({"GELU, forward", text({s.rows(), 4 * s.columns}),
           ActivationForward{.in = in, .out = out, .activation = Activation::gelu_new}, 2.0 * pass, 0.0});
  measure({"GELU, backward", text({s.rows(), 4 * s.columns}),
           // Not in place: a gradient that is multiplied by the derivative again and again ends in subnormal numbers.
           ActivationBackward{
               .in = in, .d_out = out, .d_in = operands.empty(count, dtype), .activation = Activation::gelu_new},
           3.0 * pass, 0.0});
}

void attention(Device& device, const Shape& s, DType dtype, const Measure& measure) {
  Operands operands(device);
  const std::int64_t count = s.rows() * s.columns;
  const std::int64_t head_size = s.columns / s.heads;
  const TensorView qkv = operands.random(3 * count, dtype);
  const TensorView out = operands.empty(count, dtype);
  float* const log_sum_exp = operands.floats(s.rows() * s.heads);
  const AttentionForward forward{.qkv = qkv,
                                 .out = out,
                                 .log_sum_exp = log_sum_exp,
                                 .batch = s.batch,
                                 .length = s.length,
                                 .heads = s.heads,
                                 .head_size = head_size};
  const double pass = size(dtype) * static_cast<double>(count);
  const std::string shape = text({s.batch, s.length, s.heads, head_size});
  measure({"attention, forward", shape, forward, 4.0 * pass, product_flops(forward)});
  operands.run(forward);
  const AttentionBackward backward{.qkv = qkv,
                                   .out = out,
                                   .d_out = operands.random(count, dtype),
                                   .log_sum_exp = log_sum_exp,
                                   .d_qkv = operands.empty(3 * count, dtype),
                                   .batch = s.batch,
                                   .length = s.length,
                                   .heads = s.heads,
                                   .head_size = head_size};
  measure({"attention, backward", shape, backward, 8.0 * pass, product_flops(backward)});
}

void loss(Device& device, const Shape& s, DType dtype, const Measure& measure) {
  Operands operands(device);
  const TensorView logits = operands.random(s.rows() * s.padded_vocabulary, dtype);
  const double pass = size(dtype) * static_cast<double>(s.rows() * s.padded_vocabulary);
  measure({"cross entropy and gradient", text({s.rows(), s.vocabulary}),
           CrossEntropy{.logits = logits,
                        .targets = operands.tokens(s.rows(), s.vocabulary),
                        .losses = operands.floats(s.rows()),
                        .d_logits = logits,
                        .rows = s.rows(),
                        .vocabulary = s.vocabulary,
                        .stride = s.padded_vocabulary,
                        .scale = 1e-4F},
           2.0 * pass, 0.0});
}

// What a step does once: on as many elements as a transformer block has.
void step(Device& device, const Shape& s, DType dtype, const Measure& measure) {
  Operands operands(device);
  const std::int64_t count = 12 * s.columns * s.columns;
  const auto elements = static_cast<double>(count);
  const TensorView gradient = operands.random(count, dtype);
  const TensorView other = operands.random(count, dtype);
  const TensorView master = operands.random(count, DType::f32);
  const TensorView published = operands.empty(count, dtype);
  const std::string shape = text({count});
  measure({"AdamW", shape,
           AdamUpdate{.parameter = master,
                      .first_moment = operands.random(count, DType::f32, 1e-3F),
                      .second_moment = operands.empty(count, DType::f32),
                      .gradient = gradient,
                      .published = published,
                      .factor = 1.0F,
                      .learning_rate = 1e-4F,
                      .step_size = 1e-4F,
                      .weight_decay = 0.1F},
           elements * (24.0 + 2.0 * size(dtype)), 0.0});
  measure({"sum of squares", shape, SumSquares{.in = gradient, .out = operands.numbers<Accumulator>()},
           elements * size(dtype), 0.0});
  measure({"cast from fp32", shape, Cast{.in = master, .out = published}, elements * (4.0 + size(dtype)), 0.0});
  measure({"fill", shape, Fill{.out = published}, elements * size(dtype), 0.0});
  measure({"checksum", shape,
           Checksum{.in = master, .tensor_index = 1, .first_element = 0, .out = operands.numbers<std::uint64_t>()},
           elements * 4.0, 0.0});
  const std::array<const void*, 2> sources = {gradient.data, other.data};
  measure({"fold of two ranks' gradients onto fp32", shape,
           ReduceOnto{.acc = master, .sources = sources, .source_dtype = dtype, .first = false},
           elements * (8.0 + 2.0 * size(dtype)), 0.0});
}

}  // namespace

Shape gpt2_small(std::int64_t batch) { return {"124M", batch, 1024, 768, 12, 50304, 50304}; }
Shape gpt2_xl(std::int64_t batch) { return {"1.5B", batch, 1024, 1600, 25, 50304, 50304}; }
Shape char_model(std::int64_t batch) { return {"char", batch, 256, 384, 6, 65, 80}; }
Shape tiny() { return {"tiny", 2, 16, 32, 1, 61, 64}; }

void for_each_case(Device& device, const Shape& s, DType dtype, const Measure& measure) {
  embedding(device, s, dtype, measure);
  norm(device, s, dtype, measure);
  linear(device, "query, key, value", s.rows(), 3 * s.columns, s.columns, true, dtype, measure);
  attention(device, s, dtype, measure);
  linear(device, "attention's output", s.rows(), s.columns, s.columns, true, dtype, measure);
  linear(device, "first of the MLP", s.rows(), 4 * s.columns, s.columns, true, dtype, measure);
  gelu(device, s, dtype, measure);
  linear(device, "second of the MLP", s.rows(), s.columns, 4 * s.columns, true, dtype, measure);
  linear(device, "head", s.rows(), s.vocabulary, s.columns, false, dtype, measure);
  loss(device, s, dtype, measure);
  step(device, s, dtype, measure);
}

void for_each_gelu_product(Device& device, const Shape& s, DType dtype, const std::string& how,
                           const Measure& measure) {
  Operands operands(device);
  const std::int64_t inner = 4 * s.columns;
  const TensorView x = operands.random(s.rows() * s.columns, dtype);
  const TensorView weight = operands.random(inner * s.columns, dtype, 0.02F);
  const TensorView y = operands.random(s.rows() * inner, dtype);
  const TensorView activated = operands.empty(s.rows() * inner, dtype);
  MatMul op;
  op.a = x, op.b = weight, op.out = y, op.bias = operands.random(inner, dtype), op.activated = activated;
  op.m = s.rows(), op.n = inner, op.k = s.columns;
  op.lda = s.columns, op.ldb = s.columns, op.ldc = inner, op.transpose_b = true;
  op.activation = Activation::gelu_new;
  measure({"first of the MLP with GELU, forward" + how, text({op.m, op.n, op.k}), op, 0.0, product_flops(op)});
  op = {};
  // The second's weight is [C, 4 C]; its d input meets the first's output.
  op.a = x, op.b = weight, op.out = activated, op.activation_input = y;
  op.m = s.rows(), op.n = inner, op.k = s.columns, op.lda = s.columns, op.ldb = inner, op.ldc = inner;
  op.activation = Activation::gelu_new;
  measure({"second of the MLP with GELU, d input" + how, text({op.m, op.n, op.k}), op, 0.0, product_flops(op)});
}

void for_each_ceiling(Device& device, DType dtype, bool tiny, const Measure& measure) {
  const std::int64_t n = tiny ? 32 : 8192;
  Operands operands(device);
  MatMul op;
  op.a = operands.random(n * n, dtype), op.b = operands.random(n * n, dtype), op.out = operands.empty(n * n, dtype);
  op.m = op.n = op.k = op.lda = op.ldb = op.ldc = n;
  measure({"product", text({n, n, n}), op, 0.0, product_flops(op)});
  const std::int64_t count = tiny ? 256 : std::int64_t{1} << 28;
  const TensorView from = operands.random(count, DType::f32);
  measure({"copy", text({count}), Cast{.in = from, .out = operands.empty(count, DType::f32)},
           8.0 * static_cast<double>(count), 0.0});
}

}  // namespace zt::bench

#include "device/cpu/cpu_device.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "catch_compat.h"
#include "core/errors.h"

using namespace zt;

namespace {

MatMul square_product(const Buffer& a, const Buffer& b, const Buffer& out, std::int64_t size) {
  return {.a = a.view(DType::f16),
          .b = b.view(DType::f16),
          .out = out.view(DType::f16),
          .m = size,
          .n = size,
          .k = size,
          .lda = size,
          .ldb = size,
          .ldc = size};
}

}  // namespace

TEST_CASE("buffers are zeroed, aligned and on the ledger until they are given back") {
  cpu::CpuDevice device(1);
  for (const std::int64_t bytes : {0, 1, 1000, 3 << 20}) {
    Buffer buffer = device.allocate(bytes, MemoryCategory::data, "test");
    CHECK(buffer.bytes() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
    for (std::int64_t i = 0; i < bytes; i += 97) REQUIRE(buffer.as<char>()[i] == 0);
    CHECK(device.ledger().total() == bytes);
    buffer = {};
    CHECK(device.ledger().total() == 0);
  }
}

TEST_CASE("a buffer may live longer than its device") {
  Buffer buffer;
  {
    cpu::CpuDevice device(2);
    buffer = device.allocate(2 << 20, MemoryCategory::data, "test");
  }
  buffer.as<char>()[5] = 1;
  CHECK(buffer.as<char>()[5] == 1);
}

TEST_CASE("memory that does not suffice is the user's error and names the category") {
  cpu::CpuDevice device(1);
  try {
    device.allocate(std::int64_t{1} << 60, MemoryCategory::optimizer, "moments");
    FAIL("so much memory cannot be had");
  } catch (const UserError& error) {
    CHECK(std::string(error.what()).find("optimizer") != std::string::npos);
    CHECK(std::string(error.what()).find("moments") != std::string::npos);
  }
}

TEST_CASE("an operation runs in reserved scratch memory only") {
  cpu::CpuDevice device(2);
  constexpr std::int64_t size = 200;
  const Buffer a = device.allocate(size * size * 2, MemoryCategory::activations, "a");
  const Buffer b = device.allocate(size * size * 2, MemoryCategory::activations, "b");
  const Buffer out = device.allocate(size * size * 2, MemoryCategory::activations, "out");
  const MatMul op = square_product(a, b, out, size);
  CHECK_THROWS_AS(device.run(Stream::compute, op), std::logic_error);
  device.prepare(op);
  device.reserve_workspace();
  CHECK(device.ledger().current().at(static_cast<std::size_t>(MemoryCategory::workspace)) ==
        cpu::workspace_bytes(cpu::workspace_need(op), 2));
  device.run(Stream::compute, op);
  CHECK(out.as<std::uint16_t>()[size] == 0);
  CHECK_THROWS_AS(device.run(Stream::compute, square_product(a, b, out, 300)), std::logic_error);
}

TEST_CASE("an activation that follows a product has the bits of an operation of its own") {
  struct Shape {
    std::int64_t m, n, k;
  };
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  // One tile, several, few rows, few columns, no depth.
  const Shape shape =
      GENERATE(Shape{70, 70, 70}, Shape{600, 520, 40}, Shape{4, 70, 60}, Shape{300, 3, 8}, Shape{5, 40, 0});
  INFO(name_of(dtype) << ", " << shape.m << " x " << shape.n << " x " << shape.k);
  cpu::CpuDevice device(2);
  const std::int64_t largest = std::max({shape.m * shape.n, shape.m * shape.k, shape.k * shape.n});
  const std::int64_t bytes = largest * static_cast<std::int64_t>(size_of(dtype));
  const auto buffer = [&] { return device.allocate(bytes, MemoryCategory::activations, "test"); };
  const Buffer a = buffer(), out = buffer(), active = buffer(), apart = buffer(), apart_active = buffer();
  const auto values = [&](const Buffer& memory) { return memory.view(dtype).part(0, shape.m * shape.n); };
  device.run(Stream::compute, Initialize{.out = a.view(dtype), .distribution = Distribution::normal, .scale = 0.4F});
  MatMul op{.a = a.view(dtype), .b = a.view(dtype), .out = values(apart)};
  op.m = shape.m, op.n = op.ldb = op.ldc = shape.n, op.k = op.lda = shape.k;
  op.activation = Activation::gelu_new;
  device.prepare(op);
  device.reserve_workspace();
  const auto same = [&](const Buffer& one, const Buffer& other) {
    return std::memcmp(one.data(), other.data(), static_cast<std::size_t>(bytes)) == 0;
  };
  device.run(Stream::compute, op);
  device.run(Stream::compute,
             ActivationForward{.in = values(apart), .out = values(apart_active), .activation = Activation::gelu_new});
  MatMul forward = op;
  forward.out = values(out);
  forward.activated = values(active);
  device.run(Stream::compute, forward);
  CHECK(same(out, apart));
  CHECK(same(active, apart_active));
  CHECK(same(active, out) == (shape.k == 0));  // the activation of 0 is 0
  REQUIRE(outputs_of(forward).size() == 2);
  CHECK(outputs_of(forward).back().data == active.data());

  device.run(Stream::compute,
             ActivationBackward{
                 .in = values(a), .d_out = values(apart), .d_in = values(apart), .activation = Activation::gelu_new});
  MatMul backward = op;
  backward.out = values(out);
  backward.activation_input = values(a);
  device.run(Stream::compute, backward);
  CHECK(same(out, apart));

  // With both: what forward made of the input, beside the same gradient.
  device.run(Stream::compute,
             ActivationForward{.in = values(a), .out = values(apart_active), .activation = Activation::gelu_new});
  backward.activated = values(active);
  device.run(Stream::compute, backward);
  CHECK(same(out, apart));
  CHECK(same(active, apart_active));
}

TEST_CASE("misaligned buffers give the same bits") {
  constexpr std::int64_t size = 130;
  std::string bits;
  for (const std::int64_t misalignment : {0, 4, 36}) {
    const cpu::CpuDeviceOptions options{.misalignment = misalignment};
    cpu::CpuDevice device(2, &options);
    const Buffer a = device.allocate(size * size * 2, MemoryCategory::activations, "a");
    const Buffer out = device.allocate(size * size * 2, MemoryCategory::activations, "out");
    CHECK(reinterpret_cast<std::uintptr_t>(out.data()) % 64 == static_cast<std::uintptr_t>(misalignment));
    for (std::int64_t i = 0; i < size * size; ++i) {
      a.as<f16_t>()[i] = from_float<f16_t>(static_cast<float>(i % 13) - 6.1F);
    }
    const MatMul op = square_product(a, a, out, size);
    device.prepare(op);
    device.reserve_workspace();
    device.run(Stream::compute, op);
    const std::string found(out.as<char>(), static_cast<std::size_t>(out.bytes()));
    if (bits.empty()) bits = found;
    CHECK(found == bits);
  }
}

TEST_CASE("events are numbers and only recorded ones can be waited for") {
  cpu::CpuDevice device(1);
  device.synchronize(Event{});
  const Event event = device.record(Stream::gather);
  device.wait(Stream::compute, event);
  device.synchronize(Stream::reduce);
  CHECK_THROWS_AS(device.synchronize(Event{event.id + 100}), std::logic_error);
}

TEST_CASE("operations have names, outputs and flops") {
  CHECK(name_of(Operation(MatMul{})) == "matmul");
  CHECK(name_of(Operation(Checksum{})) == "checksum");
  CHECK(name_of(Activation::gelu_new) == "gelu_new");
  float values[6] = {};
  Fill fill;
  fill.out = {values, 6, DType::f32};
  REQUIRE(outputs_of(fill).size() == 1);
  CHECK(outputs_of(fill).front().data == values);
  CHECK(outputs_of(Checksum{}).empty());
  MatMul product;
  product.m = 2, product.n = 3, product.k = 5;
  CHECK(product_flops(product) == 60.0);
  AttentionForward forward;
  forward.batch = 2, forward.heads = 3, forward.length = 4, forward.head_size = 5;
  CHECK(product_flops(forward) == 2.0 * 2 * 3 * 10 * 5 * 2);
}

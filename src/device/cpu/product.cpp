#include "device/cpu/product.h"

#include <array>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/random.h"
#include "device/cpu/instruction_set.h"
#include "device/cpu/openmp.h"

namespace zt::cpu {
namespace {

struct ProductHash {
  std::size_t operator()(const Product& p) const {
    std::uint64_t hash = static_cast<std::uint64_t>(p.dtype) | (p.transpose_a ? 8U : 0U) | (p.transpose_b ? 16U : 0U) |
                         (p.bias ? 32U : 0U) | (p.sum ? 64U : 0U);
    for (const std::int64_t value : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc}) {
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

// Never destroyed: threads may still hold primitives when statics are.
const dnnl::engine& engine() {
  static const auto* const instance = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *instance;
}

struct Primitive {
  dnnl::matmul primitive;
  dnnl::memory::desc a, b, out, bias, scratch;
};

std::shared_ptr<const Primitive> make(const Product& p) {
  using Desc = dnnl::memory::desc;
  using Dims = dnnl::memory::dims;
  make_openmp_serial();  // the primitive is made for the number of threads that OpenMP reports now
  const auto type = p.dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
  const auto f32 = dnnl::memory::data_type::f32;
  auto made = std::make_shared<Primitive>();
  made->a = Desc({p.m, p.k}, type, p.transpose_a ? Dims{1, p.lda} : Dims{p.lda, 1});
  made->b = Desc({p.k, p.n}, type, p.transpose_b ? Dims{1, p.ldb} : Dims{p.ldb, 1});
  made->out = Desc({p.m, p.n}, f32, Dims{p.ldc, 1});
  if (p.bias) made->bias = Desc({1, p.n}, f32, Dims{p.n, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.sum) {
    dnnl::post_ops operations;
    operations.append_sum(1.0F);
    attributes.set_post_ops(operations);
  }
  try {
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine(), made->a, made->b, made->bias, made->out, attributes);
#else
    const auto operation = p.bias ? dnnl::matmul::desc(made->a, made->b, made->bias, made->out)
                                  : dnnl::matmul::desc(made->a, made->b, made->out);
    const dnnl::matmul::primitive_desc description(operation, attributes, engine());
#endif
    made->scratch = description.scratchpad_desc();
    made->primitive = dnnl::matmul(description);
  } catch (const dnnl::error& error) {
    throw std::runtime_error("oneDNN cannot make the matrix product " + std::to_string(p.m) + " x " +
                             std::to_string(p.n) + " x " + std::to_string(p.k) + " in " +
                             std::string(name_of(p.dtype)) + ": " + error.what());
  }
  return made;
}

// Of all threads. Never destroyed, as the engine.
struct Cache {
  std::shared_mutex mutex;
  std::unordered_map<Product, std::shared_ptr<const Primitive>, ProductHash> primitives;
};
Cache& cache() {
  static auto* const instance = new Cache;
  return *instance;
}

std::shared_ptr<const Primitive> shared_primitive(const Product& product) {
  {
    const std::shared_lock lock(cache().mutex);
    const auto found = cache().primitives.find(product);
    if (found != cache().primitives.end()) return found->second;
  }
  const std::unique_lock lock(cache().mutex);
  auto& entry = cache().primitives[product];
  if (!entry) entry = make(product);
  return entry;
}

// A primitive with memory objects of one thread: their addresses are set for every run.
struct Executable {
  std::shared_ptr<const Primitive> shared;
  dnnl::memory a, b, out, bias, scratch;
  std::array<dnnl_exec_arg_t, 5> arguments{};
  int count = 0;
  std::int64_t scratch_bytes = 0;

  explicit Executable(const Product& product) : shared(shared_primitive(product)) {
    const auto add = [&](dnnl::memory& memory, const dnnl::memory::desc& description, int index) {
      memory = dnnl::memory(description, engine(), nullptr);
      arguments.at(static_cast<std::size_t>(count++)) = {index, memory.get()};
    };
    add(a, shared->a, DNNL_ARG_SRC);
    add(b, shared->b, DNNL_ARG_WEIGHTS);
    add(out, shared->out, DNNL_ARG_DST);
    if (product.bias) add(bias, shared->bias, DNNL_ARG_BIAS);
    scratch_bytes = static_cast<std::int64_t>(shared->scratch.get_size());
    if (scratch_bytes > 0) add(scratch, shared->scratch, DNNL_ARG_SCRATCHPAD);
  }
};

// This thread's.
Executable& executable(const Product& product) {
  thread_local std::unordered_map<Product, std::unique_ptr<Executable>, ProductHash> executables;
  auto& entry = executables[product];
  if (!entry) entry = std::make_unique<Executable>(product);
  return *entry;
}

const dnnl::stream& stream() {
  thread_local const dnnl::stream instance(engine());
  return instance;
}

void check(dnnl_status_t status) {
  if (status != dnnl_success) throw std::runtime_error("a matrix product of oneDNN failed");
}

void set_address(const dnnl::memory& memory, const void* address) {
  // The library's arguments are not const; sources are only read.
  check(dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(address)));
}

}  // namespace

std::int64_t prepare_product(const Product& product) {
  return round_up(static_cast<std::int64_t>(shared_primitive(product)->scratch.get_size()), 64);
}

std::vector<Product> prepared_products() {
  std::vector<Product> products;
  const std::shared_lock lock(cache().mutex);
  for (const auto& entry : cache().primitives) products.push_back(entry.first);
  return products;
}

void prepare_thread_for_products() {
  make_openmp_serial();
  stream();
  for (const Product& product : prepared_products()) executable(product);
}

void run_product(const Product& product, const void* a, const void* b, float* out, const float* bias, Scratch scratch) {
  make_openmp_serial();
  Executable& entry = executable(product);
  if (scratch.bytes < entry.scratch_bytes) {
    throw std::logic_error("a matrix product was run that needs more scratch memory than was reserved");
  }
  set_address(entry.a, a);
  set_address(entry.b, b);
  set_address(entry.out, out);
  if (product.bias) set_address(entry.bias, bias);
  if (entry.scratch) set_address(entry.scratch, scratch.data);
  check(dnnl_primitive_execute(entry.shared->primitive.get(), stream().get(), entry.count, entry.arguments.data()));
}

bool multiplies_natively(DType dtype) {
  return dtype == DType::f32 || (dtype == DType::bf16 && instruction_level() >= InstructionLevel::avx512_bf16);
}

bool reads_rows_in_place() { return instruction_level() < InstructionLevel::avx512; }

}  // namespace zt::cpu

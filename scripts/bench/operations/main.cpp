// Times each operation of a GPT's training step on the CPU:
//
//   operations_bench [--shape char|124m|tiny] [--batch N] [--dtype fp32|bf16|fp16] [--threads N] [--milliseconds N]
//                    [--only TEXT] [--json]
//
// One line an operation. Products, and attention, are held against oneDNN's plain product, of their own shapes where
// they have such; the others against a copy beyond the caches ("of memory", which what fits into the caches may exceed)
// and against a copy of as many bytes as they move ("of copy"): what is missing there is arithmetic. --only: operations
// with TEXT in their names.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <variant>

#include "cases.h"
#include "ceilings.h"
#include "core/errors.h"
#include "core/json.h"
#include "device/cpu/cpu_device.h"
#include "timing.h"

using namespace zt;
using namespace zt::bench;

namespace {

struct Options {
  std::string shape = "char";
  std::int64_t batch = 0;  // 0: the one of configs/bench
  DType dtype = DType::f32;
  int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  double seconds = 0.05;  // that a repetition shall last
  std::string only;
  bool json = false;
};

std::int64_t number(const std::string& name, const std::string& value) {
  char* end = nullptr;
  const long long result = std::strtoll(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0' || result < 1) throw UserError(name + " wants a number from 1 up, not " + value);
  return result;
}

std::string in_small_letters(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

constexpr const char* usage =
    "usage: operations_bench [--shape char|124m|tiny] [--batch N] [--dtype fp32|bf16|fp16] [--threads N]\n"
    "                        [--milliseconds N] [--only TEXT] [--json]\n";

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--json") {
      options.json = true;
      continue;
    }
    if (++i == count) throw UserError(name + " needs a value, or is unknown\n" + usage);
    const std::string value = arguments[i];
    if (name == "--shape") {
      options.shape = value;
    } else if (name == "--only") {
      options.only = value;
    } else if (name == "--batch") {
      options.batch = number(name, value);
    } else if (name == "--threads") {
      options.threads = static_cast<int>(number(name, value));
      if (options.threads > 4096) throw UserError("--threads " + value + ": at most 4096");
    } else if (name == "--milliseconds") {
      options.seconds = static_cast<double>(number(name, value)) * 1e-3;
    } else if (name == "--dtype") {
      if (value != "bf16" && value != "fp16" && value != "fp32") throw UserError("--dtype is fp32, bf16 or fp16");
      options.dtype = value == "bf16" ? DType::bf16 : value == "fp16" ? DType::f16 : DType::f32;
    } else {
      throw UserError("unknown option " + name);
    }
  }
  return options;
}

Shape shape_of(const Options& options) {
  if (options.shape == "char") return char_model(options.batch > 0 ? options.batch : 16);
  if (options.shape == "124m") return gpt2_small(options.batch > 0 ? options.batch : 1);
  if (options.shape == "tiny") return tiny();
  throw UserError("--shape is char, 124m or tiny");
}

// A product of the first linear layer of the MLP: what attention, whose products are small, is held against.
MatMul typical_product(const Shape& s, DType dtype) {
  MatMul op;
  op.a = op.b = {nullptr, 0, dtype};
  op.m = s.rows(), op.n = 4 * s.columns, op.k = s.columns, op.transpose_b = true;
  return op;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), shape_(shape_of(options)), device_(options.threads) {
    // Well beyond the caches of a processor.
    const std::int64_t large = options.shape == "tiny" ? std::int64_t{1} << 20 : std::int64_t{256} << 20;
    copy_ = copy_rate(options.threads, large, options.seconds);
    triad_ = triad_rate(options.threads, large, options.seconds);
    product_ = plain_product_rate(options.threads, typical_product(shape_, options.dtype), options.seconds);
    if (options.json) return;
    std::printf("%s, %s, shapes of %s, batches of %lld\ncopy %.1f GB/s, triad %.1f GB/s, plain product %.1f GF/s\n",
                device_.description().c_str(), std::string(name_of(options.dtype)).c_str(), shape_.name.c_str(),
                static_cast<long long>(shape_.batch), copy_ * 1e-9, triad_ * 1e-9, product_ * 1e-9);
  }

  void run() {
    for_each_case(device_, shape_, options_.dtype, [&](const Case& c) {
      if (in_small_letters(c.name).find(in_small_letters(options_.only)) != std::string::npos) measure(c);
    });
    if (!options_.json) return;
    const nlohmann::ordered_json result = {{"device", device_.description()},
                                           {"shape", options_.shape},
                                           {"batch", shape_.batch},
                                           {"dtype", name_of(options_.dtype)},
                                           {"threads", options_.threads},
                                           {"ceilings",
                                            {{"copy_gigabytes_per_second", copy_ * 1e-9},
                                             {"triad_gigabytes_per_second", triad_ * 1e-9},
                                             {"product_gigaflops", product_ * 1e-9}}},
                                           {"operations", table_}};
    std::cout << result.dump(1) << "\n";
  }

 private:
  void measure(const Case& c) {
    const double seconds = time_of(device_, c.operation, options_.seconds);
    if (c.flops > 0.0) {
      const auto* const product = std::get_if<MatMul>(&c.operation);
      const double plain =
          product == nullptr ? product_ : plain_product_rate(options_.threads, *product, options_.seconds);
      const double rate = c.flops / seconds;
      table_.push_back({{"operation", c.name},
                        {"shape", c.shape},
                        {"bound", "product"},
                        {"microseconds", seconds * 1e6},
                        {"gigaflops", rate * 1e-9},
                        {"of_plain_product", rate / plain}});
      print(c, seconds, rate * 1e-9, "GF/s");
      if (!options_.json) std::printf("%5.0f %% of plain product\n", 100.0 * rate / plain);
    } else {
      const double rate = c.bytes / seconds;
      const double same_size = copy_rate(options_.threads, static_cast<std::int64_t>(c.bytes / 2.0), options_.seconds);
      table_.push_back({{"operation", c.name},
                        {"shape", c.shape},
                        {"bound", "memory"},
                        {"microseconds", seconds * 1e6},
                        {"gigabytes_per_second", rate * 1e-9},
                        {"of_memory", rate / std::max(copy_, triad_)},
                        {"of_copy", rate / same_size}});
      print(c, seconds, rate * 1e-9, "GB/s");
      if (!options_.json)
        std::printf("%5.0f %% of memory, %.0f %% of copy\n", 100.0 * rate / std::max(copy_, triad_),
                    100.0 * rate / same_size);
    }
    std::fflush(stdout);
  }

  void print(const Case& c, double seconds, double rate, const char* unit) const {
    if (options_.json) return;
    std::printf("%-40s %-24s %10.1f us %8.1f %s ", c.name.c_str(), c.shape.c_str(), seconds * 1e6, rate, unit);
  }

  Options options_;
  Shape shape_;
  cpu::CpuDevice device_;
  double copy_ = 0.0, triad_ = 0.0, product_ = 0.0;
  nlohmann::ordered_json table_ = nlohmann::ordered_json::array();
};

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count == 2 && std::string(arguments[1]) == "--help") {
    std::fputs(usage, stdout);
    return 0;
  }
  try {
    Bench(parse(argument_count, arguments)).run();
    return 0;
  } catch (const UserError& error) {
    std::fprintf(stderr, "operations_bench: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "operations_bench: %s\n", error.what());
    return 1;
  }
}

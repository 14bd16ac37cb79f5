// Times each operation of a GPT's training step on a GPU, where the work is done, beside what the card can do:
//
//   gpu_operations [--shape 124M|1.5B|tiny] [--batch N] [--dtype bf16|fp16|fp32] [--milliseconds N] [--json]
//
// One line an operation; its last column is the part of the card's own rate for a large product or a large copy, both
// measured first. Without a usable GPU it says why and ends with 77.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "cases.h"
#include "core/errors.h"
#include "core/json.h"
#include "device/gpu/backend.h"
#include "timing.h"

using namespace zt;
using namespace zt::bench;

namespace {

struct Options {
  std::string shape = "124M";
  std::int64_t batch = 0;  // 0: 32 or 8
  DType dtype = DType::bf16;
  double seconds = 0.02;  // that a repetition shall last
  bool json = false;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--json") {
      options.json = true;
      continue;
    }
    if (++i == count)
      throw UserError(name + " needs a value, or is unknown (see the head of scripts/bench/gpu_operations/main.cpp)");
    const std::string value = arguments[i];
    if (name == "--shape") {
      options.shape = value;
    } else if (name == "--batch") {
      options.batch = std::atoll(value.c_str());
    } else if (name == "--milliseconds") {
      options.seconds = std::atof(value.c_str()) * 1e-3;
    } else if (name == "--dtype") {
      if (value != "bf16" && value != "fp16" && value != "fp32") throw UserError("--dtype is bf16, fp16 or fp32");
      options.dtype = value == "bf16" ? DType::bf16 : value == "fp16" ? DType::f16 : DType::f32;
    } else {
      throw UserError("unknown option " + name);
    }
  }
  return options;
}

Shape shape_of(const Options& options) {
  if (options.shape == "124M") return gpt2_small(options.batch > 0 ? options.batch : 32);
  if (options.shape == "1.5B") return gpt2_xl(options.batch > 0 ? options.batch : 8);
  if (options.shape == "tiny") return tiny();
  throw UserError("--shape is 124M, 1.5B or tiny");
}

int measure(const Options& options) {
  const Shape shape = shape_of(options);
  std::string problem;
  GpuBackend* const backend = open_gpu_backend(&problem);
  const GpuSurvey survey = backend == nullptr ? GpuSurvey{} : backend->survey();
  if (backend == nullptr || !survey.problem.empty()) {
    std::fprintf(stderr, "no usable GPU: %s\n", (backend == nullptr ? problem : survey.problem).c_str());
    return 77;
  }
  const auto device = backend->open(0, {});
  nlohmann::ordered_json table = nlohmann::ordered_json::array();
  double product_rate = 0.0, memory_rate = 0.0;
  if (!options.json) {
    std::printf("%s, %s, shapes of GPT-2 %s, batches of %lld\n", survey.devices.front().name.c_str(),
                std::string(name_of(options.dtype)).c_str(), shape.name.c_str(), static_cast<long long>(shape.batch));
  }
  Device* now = device.get();
  const auto report = [&](const Case& c) {
    const double seconds = time_of(*now, c.operation, options.seconds);
    const bool product = c.flops > 0.0;
    const double rate = (product ? c.flops : c.bytes) / seconds;
    double& ceiling = product ? product_rate : memory_rate;
    if (ceiling == 0.0) ceiling = rate;
    if (options.json) {
      table.push_back({{"operation", c.name},
                       {"shape", c.shape},
                       {"microseconds", seconds * 1e6},
                       {product ? "tflops" : "gigabytes_per_second", rate * (product ? 1e-12 : 1e-9)},
                       {"part_of_card", rate / ceiling}});
    } else {
      std::printf("%-40s %-24s %10.1f us %8.1f %-9s %4.0f %%\n", c.name.c_str(), c.shape.c_str(), seconds * 1e6,
                  rate * (product ? 1e-12 : 1e-9), product ? "TFLOP/s" : "GB/s", 100.0 * rate / ceiling);
      std::fflush(stdout);
    }
  };
  for_each_ceiling(*device, options.dtype, options.shape == "tiny", report);
  for_each_case(*device, shape, options.dtype, report);
  for_each_gelu_product(*device, shape, options.dtype, "", report);
  const auto fusing = backend->open(0, {.tf32 = false, .gelu_epilogue = true});
  now = fusing.get();
  for_each_gelu_product(*fusing, shape, options.dtype, " (epilogue)", report);
  if (options.json) std::cout << table.dump(1) << "\n";
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    return measure(parse(argument_count, arguments));
  } catch (const UserError& error) {
    std::fprintf(stderr, "gpu_operations: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_operations: %s\n", error.what());
    return 1;
  }
}

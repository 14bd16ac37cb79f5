// Which gradients are added up in which order, held against sums made here from the gradients of single micro-batches:
// training.gradient_accumulation_order "local" at stages 0 and 1, global order at stages 2 and 3.
#include <map>
#include <mutex>

#include "catch_compat.h"
#include "comm/threads.h"
#include "core/dtype.h"
#include "device/cpu/cpu_device.h"
#include "tiny_models.h"
#include "train/compute.h"
#include "train/plan.h"
#include "train/session.h"

using namespace zt;
using namespace zt::test;

namespace {

// By tensor: what a gradient is, as fp32.
using Gradients = std::map<std::string, std::vector<float>>;

// The summed gradients of each of the first steps, from all ranks; `formats`: in what the sums are held, by tensor.
std::vector<Gradients> gradients_of_steps(const Settings& settings, int ranks, std::map<std::string, DType>& formats) {
  const Dataset data = data_for(settings);
  std::vector<Gradients> steps(static_cast<std::size_t>(settings.training.max_steps));
  std::mutex mutex;
  run_ranks_as_threads(ranks, 0, [&](Communicator& communicator) {
    const Plan plan = make_plan(settings, communicator.rank(), ranks, 0, scratch_of_device(settings.device));
    cpu::CpuDevice device(1);
    for (const Operation& operation : plan.operations) device.prepare(operation);
    device.reserve_workspace();
    Session session(settings, device, communicator, data.training.get(), nullptr);
    session.initialize();
    Engine& engine = session.engine();
    const Layout& layout = session.layout();
    for (Gradients& step : steps) {
      session.train_step();
      const std::lock_guard lock(mutex);
      for (int unit = 0; unit < static_cast<int>(layout.units().size()); ++unit) {
        for (const Segment segment : trained_segments) {
          const auto [begin, end] = engine.updated_range(unit, segment);
          if (begin == end) continue;
          const ConstTensorView sums = engine.summed_gradients(unit, segment);
          layout.for_each_piece(unit, segment, begin, end, [&](const Piece& piece) {
            const TensorPlace& tensor = layout.tensor(piece.tensor);
            formats[tensor.name] = sums.dtype;
            std::vector<float>& values = step[tensor.name];
            values.resize(static_cast<std::size_t>(tensor.count));
            dispatch(sums.dtype, [&]<typename T>(T*) {
              const T* from = sums.as<T>() + piece.offset;
              for (std::int64_t i = 0; i < piece.count; ++i) {
                values[static_cast<std::size_t>(piece.tensor_offset + i)] = to_float(from[i]);
              }
            });
          });
        }
      }
    }
  });
  return steps;
}

float rounded(float value, DType format) {
  return dispatch(format, [&]<typename T>(T*) { return to_float(from_float<T>(value)); });
}

// Each rank its own micro-batches, one by one, then the ranks in their order: every sum that is stored is rounded.
float local_sum(const std::vector<float>& micro_batches, int ranks, DType format) {
  const auto n = static_cast<std::size_t>(ranks);
  float total = 0.0F;
  for (std::size_t r = 0; r < n; ++r) {
    float own = rounded(micro_batches[r], format);
    for (std::size_t j = r + n; j < micro_batches.size(); j += n) own = rounded(own + micro_batches[j], format);
    total = r == 0 ? own : total + own;
  }
  return rounded(total, format);
}

// All in the order of the global batch; a sum is stored once a micro-step of all ranks.
float global_sum(const std::vector<float>& micro_batches, int ranks, DType format) {
  const auto n = static_cast<std::size_t>(ranks);
  float total = 0.0F;
  for (std::size_t j = 0; j < micro_batches.size(); ++j) {
    total = j == 0 ? micro_batches[j] : total + micro_batches[j];
    if ((j + 1) % n == 0) total = rounded(total, format);
  }
  return total;
}

}  // namespace

TEST_CASE("Local order adds up each rank's micro-batches, then the ranks' sums: the bits of these sums made apart") {
  struct Case {
    std::string preset, sums;
    bool rounds;  // sums have no more bits than what is added
  };
  for (const Case& which :
       {Case{"fp32", "fp32", true}, Case{"bf16", "fp32", false}, Case{"bf16", "bf16", true},
        Case{"fp16", "fp32", false}, Case{"fp16", "fp16", true}, Case{"O2", "fp32", false}, Case{"O2", "fp16", true}}) {
    for (const bool is_gpt : {true, false}) {
      constexpr int micro_batches = 12;
      Settings settings = is_gpt ? tiny_gpt() : tiny_mlp();
      settings.precision.preset = which.preset;
      settings.loss_scale.initial_scale_power = 8;
      settings.training.eval_interval = 0;
      settings.optimizer.learning_rate = 0.0;  // weights stay, so a step of one micro-batch after the other gives them
      settings.training.max_steps = micro_batches;
      std::map<std::string, DType> formats;
      const std::vector<Gradients> single = gradients_of_steps(with_batch(settings, 2, 1, 1), 1, formats);
      settings.training.max_steps = 1;
      settings.precision.grad_accum_dtype = which.sums;
      for (const int ranks : {1, 2, 3, 4}) {
        for (int stage = 0; stage <= 3; ++stage) {
          INFO(which.preset << " summed in " << which.sums << ", " << ranks << " ranks, stage " << stage);
          Settings run = with_batch(settings, 2, micro_batches / ranks, ranks);
          run.training.accumulation_order = AccumulationOrder::local;
          run.zero.stage = stage;
          const Gradients sums = gradients_of_steps(run, ranks, formats).front();
          std::int64_t wrong = 0;
          std::int64_t distinct = 0;  // elements whose two orders differ
          for (const auto& [name, values] : sums) {
            for (std::size_t i = 0; i < values.size(); ++i) {
              std::vector<float> parts;
              for (const Gradients& gradients : single) parts.push_back(gradients.at(name)[i]);
              const float local = local_sum(parts, ranks, formats.at(name));
              const float global = global_sum(parts, ranks, formats.at(name));
              wrong += values[i] != (stage <= 1 ? local : global) ? 1 : 0;
              distinct += local != global ? 1 : 0;
            }
          }
          CHECK(wrong == 0);
          // Twelve 16-bit gradients of close sizes add up in fp32 without rounding: nothing differs there.
          if (ranks == 1) CHECK(distinct == 0);
          if (ranks > 1 && which.rounds) CHECK(distinct > 0);
        }
      }
    }
  }
}

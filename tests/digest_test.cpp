// Copies of the parameters that have drifted are found, and the rank is named.
#include "train/digest.h"

#include "catch_compat.h"
#include "comm/threads.h"
#include "core/errors.h"
#include "device/cpu/cpu_device.h"
#include "tiny_models.h"
#include "train/compute.h"
#include "train/plan.h"

using namespace zt;
using namespace zt::test;

TEST_CASE("A rank whose copy of the parameters has drifted is named, with the tensor") {
  for (const int ranks : {2, 3, 5}) {
    for (const int stage : {0, 1, 2}) {
      for (const int victim : {-1, 0, ranks - 1}) {
        CAPTURE(ranks, stage, victim);
        Settings settings = with_batch(tiny_gpt(), 2, 1, ranks);
        settings.zero.stage = stage;
        const Dataset data = data_for(settings);
        std::string told;
        const auto body = [&](Communicator& communicator) {
          cpu::CpuDevice device(1);
          const Plan plan = make_plan(settings, communicator.rank(), ranks, 0, scratch_of_device(settings.device));
          for (const Operation& operation : plan.operations) device.prepare(operation);
          device.reserve_workspace();
          Session session(settings, device, communicator, data.training.get(), data.validation.get());
          session.initialize();
          session.train_step();
          session.wait_for_device();
          require_equal_copies(session);
          if (communicator.rank() == victim) {
            Engine& engine = session.engine();
            engine.begin(Pass::inference);
            engine.acquire(1);
            auto* values = const_cast<float*>(static_cast<const float*>(engine.parameter(1, 0).data));
            values[7] += 1e-7F;
            engine.release(1);
          }
          try {
            require_equal_copies(session);
          } catch (const RunError& error) {
            if (communicator.rank() == 0) told = error.what();
          } catch (const PeerFailed&) {
          }
        };
        run_ranks_as_threads(ranks, 0, body);
        if (victim < 0) {
          CHECK(told.empty());
          continue;
        }
        INFO(told);
        CHECK(told.find("first in h.0.attn.c_attn.weight") != std::string::npos);
        // Of two copies either may be the wrong one.
        if (ranks > 2)
          CHECK(told.find("parameters: rank " + std::to_string(victim) + ", first in") != std::string::npos);
      }
    }
  }
}

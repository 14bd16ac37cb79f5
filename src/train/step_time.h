// How long a step will take, from its plan and from measured rates.
//
// A rank computes, in A micro-steps, a forward and a backward pass, sends and receives, and updates what it owns:
//
//   | forward    | a third of the model's flops / rate of products                                     |
//   | backward   | the rest of the passes' flops, recomputed blocks included / rate of products        |
//   | update     | the optimizer's flops (Muon) / rate of products + elements updated / rate of updates |
//   | reduce     | bytes of reduce-scatters / bandwidth + calls (N - 1) latency                        |
//   | gather     | bytes of all-gathers / bandwidth + calls (N - 1) latency                            |
//   | all_to_all | bytes of all-to-alls / bandwidth of reduces + calls (N - 1) latency                 |
//
// Where communication runs beside computation (GPUs over NCCL), what a phase cannot hide is exposed:
//
//   | stage | reduces                            | gathers                                                     |
//   |-------|------------------------------------|-------------------------------------------------------------|
//   | 0     | beside each backward pass          | of sums: beside the last backward pass, after its reduces   |
//   | 1, 2  | beside each backward pass          | of updated parameters: beside the next step's first forward |
//   | 3     | beside each backward pass          | half beside each forward, half beside each backward pass    |
//
// (in local order stages 0 and 1 reduce in the last micro-step alone), and at the least what has no computation beside
// it: the last unit's reduction, at stage 0 the gather of its sums, at stage 3 each micro-step's gather of the first
// unit. All-to-alls, within the update, have nothing beside them. Elsewhere (CPUs, which move data themselves) all of
// it is exposed.
//
//   step = forward + backward + update + exposed
#pragma once

#include <optional>

#include "config/settings.h"
#include "train/plan.h"

namespace zt {

struct Rates {
  double flops = 0.0;             // products of one rank a second
  double gather_bandwidth = 0.0;  // bytes that a rank sends a second; 0: sending takes no time
  double reduce_bandwidth = 0.0;  // and of all-to-alls
  double latency = 0.0;           // seconds a collective takes for each of the other ranks, beside the bytes
  double updates = 0.0;           // elements that one rank's optimizer updates a second; 0: updating takes no time
};

struct StepTime {
  double forward = 0.0, backward = 0.0, update = 0.0;
  double gather = 0.0, reduce = 0.0;  // hidden or not
  double exposed = 0.0;
  double step = 0.0;
  double all_to_all = 0.0;  // part of exposed
};

// `overlaps`: communication runs beside computation.
StepTime predict_step(const Plan& plan, std::int64_t accumulation, AccumulationOrder order, const Rates& rates,
                      bool overlaps);

// Where the time of a run's step went, as its summary.json has it: seconds of this rank over all steps.
struct MeasuredRun {
  double step_seconds = 0.0;  // the median
  double forward = 0.0, backward = 0.0, optimizer = 0.0, data_wait = 0.0;
  // Inside the calls; none: they were not waited for, as over NCCL.
  std::optional<double> gather, reduce, all_to_all;
};

// The rates with which predict_step() gives that run's own step back, but for its wait for data. A bandwidth is 0 where
// the run had nothing to send, or did not wait. `plan`: of one of its steps. UserError if the measurement is none.
Rates rates_of(const MeasuredRun& run, const Plan& plan);

}  // namespace zt

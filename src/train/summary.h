// summary.json and metrics.jsonl: the records that a run leaves (names and units: docs/outputs.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "optim/early_stopping.h"
#include "train/metrics_writer.h"
#include "train/plan.h"
#include "train/session.h"

namespace zt {

// Times of steps in memory that is taken once: of every step as long as `capacity` suffices, then of every second one,
// every fourth, and so on, evenly over the run. The first two steps, in which memory is touched, are left out.
class StepTimes {
 public:
  StepTimes() { seconds_.reserve(capacity); }
  void add(double seconds);
  double median() const;  // 0 without steps; of what there is with fewer than three

  static constexpr std::size_t capacity = std::size_t{1} << 16;

 private:
  std::vector<double> seconds_;
  std::int64_t added_ = 0, stride_ = 1;
};

// What rank 0 collects for the summary while the run goes on.
struct RunRecord {
  std::string status = "failed";      // completed, stopped, failed
  std::string error;                  // with failed
  std::string stop_reason = "error";  // max_steps, max_epochs, early_stopping, signal, error
  std::optional<double> loss, validation_loss;
  std::int64_t evaluated = 0;  // the step after which it was evaluated last; 0: not yet; -1: not known
  std::optional<BestEvaluation> best;
  std::optional<std::uint64_t> weights_checksum;
  StepTimes step_times;
  std::int64_t checkpoints = 0;     // written
  double checkpoint_seconds = 0.0;  // that the training has waited for them
  double product_rate = 0.0;        // multiplications and additions a second
  double startup_seconds = 0.0, train_seconds = 0.0;
  std::string instruction_set;
  std::string gpu;                           // its name; empty on the CPU
  bool tf32 = false, gelu_epilogue = false;  // what its products were asked to do
  bool hides_its_waits = false;  // collectives run on streams of their own: how long computing waits is not known
};

// One rank's entry under memory.ranks, as JSON text to be gathered.
std::string rank_memory_json(int rank, const MemoryLedger& ledger, std::int64_t peers_shared);

nlohmann::ordered_json make_summary(const Session& session, const Plan& plan, const RunRecord& record,
                                    const CommunicationCounts& counts, const std::vector<std::string>& rank_memory,
                                    double flops_per_row);

StepRecord step_record(const Session& session, const StepOutcome& outcome, double seconds);
nlohmann::ordered_json evaluation_metrics(const Session& session, const EvaluationResult& result);

double median(std::vector<double> values);

}  // namespace zt

// A run's checkpoints: what its first step starts from, and what it leaves for a later run to go on from.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/saver.h"
#include "optim/early_stopping.h"
#include "train/console.h"
#include "train/session.h"
#include "train/summary.h"
#include "train/trainer.h"

namespace zt {

// Refers to all that it is given.
class RunCheckpoints {
 public:
  RunCheckpoints(const ResolvedConfig& config, const Dataset& dataset, Communicator& communicator,
                 const TrainOptions& options, Session& session, Console& console);

  // All ranks: weights, moments, progress, early stopping and the last losses, from the seed, a pretrained model or the
  // checkpoint to go on from. UserError where the disk has no room for a checkpoint; RunError where one is damaged.
  void set_up_state(EarlyStopping& early_stopping, RunRecord& record);

  // All ranks, after a step whose outcome is known. Once a step, however often it is called.
  void save(const EarlyStopping& early_stopping, RunRecord& record);

  // Throws what has gone wrong in the background, on the rank on which it has.
  void check() { saver_.check(); }
  // All ranks: until the last checkpoint is whole.
  void finish(RunRecord& record);

 private:
  bool first_rank() const { return communicator_.rank() == 0; }
  std::string directory() const { return config_.settings.training.output_dir + "/checkpoints"; }
  SaverOptions saver_options() const;
  void load(EarlyStopping& early_stopping, RunRecord& record);
  Manifest describe(const EarlyStopping& early_stopping, const RunRecord& record) const;

  const ResolvedConfig& config_;
  const Dataset& dataset_;
  Communicator& communicator_;
  const TrainOptions& options_;
  Session& session_;
  Console& console_;
  Saver saver_;
  std::int64_t last_saved_ = -1;
};

}  // namespace zt

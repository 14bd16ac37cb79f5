// Matrices that an optimizer updates whole (optim/optimizer.h, MatrixRule), at every stage.
//
// Where ranks update slices (stages 1 to 3), the slices of the directions of one unit go to a rank that owns the unit
// in this round, which works on its matrices, and come back. In a round each rank owns one unit at most: the units
// whose slices have the same size are dealt out, N at a time. A rank sends a slice of each unit twice a step, but for
// its own units: 2/N elements a parameter, each time (N-1)/N. Where ranks hold everything (stage 0) nothing is sent,
// and each does all the work.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "zero/finish_step.h"

namespace zt {

class WholeMatrices {
 public:
  // All ranks alike. `rule` must outlive it.
  WholeMatrices(Engine& engine, MatrixRule& rule);

  // On the compute stream, all ranks: updates what this rank updates of the matrices. The parameters are not published.
  void update(FinishContext& context, const OptimizerStep& step);

 private:
  struct Round {
    std::int64_t slice = 0;            // elements of a slice of each unit
    std::vector<int> units;            // by the rank that owns it; -1: none
    std::vector<std::int64_t> counts;  // by owner: slice or 0
  };

  void deal_out();
  void run_round(FinishContext& context, const Round& round, const OptimizerStep& step);
  void update_alone(FinishContext& context, int unit, const OptimizerStep& step);
  void orthogonalize(int unit, TensorView whole);
  // The two halves of the work on this rank's pieces of a unit; `directions`: what is updated of its matrices.
  void find_directions(FinishContext& context, int unit, TensorView directions, const OptimizerStep& step);
  void apply(FinishContext& context, int unit, ConstTensorView directions, const OptimizerStep& step);
  template <typename Visit>
  void for_each_piece(FinishContext& context, int unit, const Visit& visit);

  Engine& engine_;
  MatrixRule& rule_;
  std::vector<int> units_;  // that have such matrices, in forward order
  bool alone_;              // this rank updates them whole
  std::vector<Round> rounds_;
  std::int64_t most_elements_ = 0;  // of a unit
  Buffer whole_;                    // one unit, where it is alone
  // Peers read both: slices of the round's units one after the other, and a unit whole. fp32.
  SharedBufferPtr slices_, unit_;
  Ticket slices_read_, unit_read_;
};

// Null where the optimizer has no such rule, or the model no such matrices.
std::unique_ptr<WholeMatrices> make_whole_matrices(Engine& engine, Optimizer& optimizer);

}  // namespace zt

// From samples to micro-batches. A loader's position is one integer, the samples consumed since training began, which
// the caller keeps (and a checkpoint with it): the loader itself never changes.
#pragma once

#include <cstdint>
#include <vector>

#include "data/source.h"

namespace zt {

// Rows of one micro-batch, padded to the full number. Which of the vectors are used is the source's shape; the others
// stay empty. Kept by the caller and filled again and again: its memory is taken once.
struct MicroBatch {
  std::int64_t first_sample_in_global_batch = 0;
  std::int64_t rows = 0;
  std::int64_t valid = 0;                   // losses that count: tokens of sequences, or rows
  std::vector<std::int32_t> tokens;         // [rows, T]; masked rows: 0
  std::vector<std::int32_t> token_targets;  // [rows, T], or [rows] classes; masked: -1
  std::vector<float> features;              // [rows, F]; masked rows: 0
  std::vector<float> value_targets;         // [rows, C]; masked rows: 0
  std::vector<std::int32_t> valid_rows;     // [rows]: 1, or 0 for masked rows
};

class Loader {
 public:
  enum class Order : std::uint8_t {
    shuffled,    // training: epoch after epoch without end, each in an order of its own
    sequential,  // evaluation: 0, 1, 2 ... and then masked rows
  };

  // The source must outlive the loader. `micro` rows a micro-batch; `global_batch` samples a step.
  Loader(const Source& source, Order order, std::uint64_t seed, std::int64_t micro, std::int64_t global_batch);

  // Fills micro-batch j of the global batch that starts with sample `first_sample` (the samples consumed before it):
  // samples first_sample + j * micro ... of the run. Depends on nothing else, so every rank takes the j it owns. Rows
  // past the end of the global batch (j may be one past the last) or of a sequential source are masked. Does not
  // allocate after the first call with the same MicroBatch. May be called by several threads at once.
  void fill(std::int64_t first_sample, std::int64_t j, MicroBatch& out) const;

  // V: the losses that count in the global batch that starts with `first_sample`, over all micro-batches. With a source
  // that masks losses it is the sum over the very samples of that batch, so every rank can know it beforehand.
  std::int64_t valid(std::int64_t first_sample) const;

  std::int64_t micro_batches() const { return (global_batch_ + micro_ - 1) / micro_; }  // J
  std::int64_t epoch_of(std::int64_t sample) const { return sample / samples_; }
  SampleShape shape() const { return shape_; }
  // Bytes of one filled MicroBatch.
  std::int64_t micro_batch_bytes() const;

 private:
  // Samples of the global batch from `first_sample` that exist.
  std::int64_t present(std::int64_t first_sample) const;
  // Calls visit(i, index in the source) for the samples number first, first + 1 ... of the run, i = 0 ... count - 1.
  template <typename Visit>
  void visit_samples(std::int64_t first, std::int64_t count, Visit&& visit) const;

  const Source& source_;
  Order order_;
  std::uint64_t seed_;
  std::int64_t micro_, global_batch_, samples_;
  SampleShape shape_;
};

}  // namespace zt

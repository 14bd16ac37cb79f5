// Where samples come from. A source is immutable once made, knows no batches, ranks or epochs, and may be read by
// several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/settings.h"
#include "data/token_array.h"
#include "data/tokenizer.h"

namespace zt {

// What one sample is made of. Fields that a kind of data does not have are 0.
struct SampleShape {
  std::int64_t tokens = 0;         // int32, the inputs of a sequence [T]
  std::int64_t token_targets = 0;  // int32: T for a sequence, 1 for a row with a class
  std::int64_t features = 0;       // float, the inputs of a row
  std::int64_t value_targets = 0;  // float, of a row of a regression

  // Losses that a sample gives at most, and without a mask: positions of a sequence, or one for a row.
  std::int64_t losses() const { return tokens > 0 ? tokens : 1; }
  bool operator==(const SampleShape&) const = default;
};

// Where one sample is written to: spans of exactly the shape's lengths.
struct SampleView {
  std::span<std::int32_t> tokens, token_targets;
  std::span<float> features, value_targets;
};

class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  virtual SampleShape shape() const = 0;
  virtual std::int64_t samples() const = 0;
  // Writes sample `index`, 0 <= index < samples(). Allocates nothing. Positions that do not count have target -1.
  virtual void sample(std::int64_t index, const SampleView& out) const = 0;
  // How many losses of sample `index` count, at least 1: what sample() gives as targets other than -1, or 1 for a row.
  virtual std::int64_t losses(std::int64_t /*index*/) const { return shape().losses(); }
  // Whether losses() differs from shape().losses() for some sample.
  virtual bool masks_losses() const { return false; }
  // Whether the tokens of sample `index` are those of the same text that follow sample index - 1, all of whose losses
  // count then: windows may lie across the two. False for the first sample, and where a document begins.
  virtual bool goes_on(std::int64_t /*index*/) const { return false; }
};

// Windows of `length` tokens side by side in tokens [first, first + count) with targets shifted by one: k * length + 1
// tokens make k samples.
std::unique_ptr<Source> make_window_source(std::shared_ptr<const TokenArray> tokens, std::int64_t first,
                                           std::int64_t count, std::int64_t length);

// Made-up data: a function of key and index of the sample. Samples [first, first + count) of it.
//
// Regression: features N(0, 1); targets W x + 0.1 N(0, 1) with a fixed W [targets, features] of N(0, 1/features), so
// the best mean squared error is 0.01.
std::unique_ptr<Source> make_synthetic_regression(std::int64_t features, std::int64_t targets, std::uint64_t key,
                                                  std::int64_t first, std::int64_t count);
// Classification: N(0, 1) around the class's own centre; two centres lie about 4 apart, so the best accuracy is high
// but not 1.
std::unique_ptr<Source> make_synthetic_classification(std::int64_t features, std::int64_t classes, std::uint64_t key,
                                                      std::int64_t first, std::int64_t count);
// Tokens: a noisy Markov chain. Nine times of ten a token is followed by one of four successors of its own, else by
// any; both fall more often on small ids, as words do.
std::unique_ptr<Source> make_synthetic_tokens(std::int64_t vocabulary, std::int64_t length, std::uint64_t key,
                                              std::int64_t first, std::int64_t count);

// What a run learns from.
struct Dataset {
  std::unique_ptr<Source> training;      // at least batch.train samples
  std::unique_ptr<Source> validation;    // null: there is none (validation_fraction 0)
  std::unique_ptr<Tokenizer> tokenizer;  // null: the data are not text
  std::int64_t vocab_size = 0;           // of the model: settings.model.gpt.vocab_size, or the tokenizer's; 0 for rows
  std::int64_t bytes = 0;                // memory that the data hold
  std::string description;               // one line for the start of a run
  std::vector<std::string> notices;      // what a user may not expect of the data, a line each
};

// Opens and checks what settings.data says, for settings.model and settings.batch. Synthetic data follow
// training.seed. Throws UserError: all that can be wrong is found here, before the first step.
Dataset open_dataset(const Settings& settings);

}  // namespace zt

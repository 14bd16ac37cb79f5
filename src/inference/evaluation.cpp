#include "inference/evaluation.h"

#include <array>
#include <cmath>

#include "data/loader.h"
#include "train/batch_feeder.h"
#include "zero/finish_step.h"

namespace zt {

namespace {

// Bytes of text by token. Tokens that the tokenizer does not know stand for none.
std::vector<std::int32_t> bytes_of_tokens(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> bytes;
  for (std::int32_t token = 0; token < tokenizer.vocabulary_size(); ++token)
    bytes.push_back(static_cast<std::int32_t>(tokenizer.decode({&token, 1}).size()));
  return bytes;
}

// Counts what a micro-batch's targets stand for.
class ByteCounter {
 public:
  ByteCounter(const Loader& loader, const Tokenizer& tokenizer) : loader_(loader), bytes_(bytes_of_tokens(tokenizer)) {}
  std::int64_t count(std::int64_t j) {
    loader_.fill(0, j, batch_);
    std::int64_t sum = 0;
    for (const std::int32_t target : batch_.token_targets) {
      if (target >= 0 && target < static_cast<std::int64_t>(bytes_.size()))
        sum += bytes_[static_cast<std::size_t>(target)];
    }
    return sum;
  }

 private:
  const Loader& loader_;
  std::vector<std::int32_t> bytes_;
  MicroBatch batch_;
};

}  // namespace

std::optional<Evaluation> evaluate_all(InferenceModel& model, Device& device, Communicator& communicator,
                                       const Source& source, std::int64_t rows, const Tokenizer* tokenizer,
                                       const std::function<bool()>& stop) {
  communicator.set_purpose(Purpose::evaluation);
  const std::int64_t micro_batches = (source.samples() + rows - 1) / rows;
  const Loader loader(source, Loader::Order::sequential, 0, rows, micro_batches * rows);
  BatchFeeder feeder(device, source.shape(), rows);
  std::optional<ByteCounter> counter;
  if (tokenizer != nullptr) counter.emplace(loader, *tokenizer);
  StepSums sums(device);
  sums.clear();
  std::array<std::int64_t, 4> totals{};  // counted, correct, bytes, stopped
  bool has_accuracy = false;
  std::vector<std::int32_t> correct;
  for (std::int64_t j = communicator.rank(); j < micro_batches && totals[3] == 0; j += communicator.size()) {
    const BatchFeeder::Fed fed = feeder.take(&loader, 0, j);
    const LossView loss = model.model().evaluate(device, model.weights(), fed.batch, StepInfo{});
    sums.add_losses(loss.losses, loss.count);
    if (j + communicator.size() < micro_batches) feeder.prefetch(&loader, 0, j + communicator.size());
    totals[0] += fed.valid;
    if (counter) totals[2] += counter->count(j);
    if (loss.correct != nullptr) {
      has_accuracy = true;
      correct.resize(static_cast<std::size_t>(loss.count));
      device.copy(Stream::compute, correct.data(), loss.correct, loss.count * 4);
      device.synchronize(Stream::compute);
      for (const std::int32_t hit : correct) totals[1] += hit;
    }
    if (stop()) totals[3] = 1;
  }
  const Agreement agreed = sums.agree(communicator, has_accuracy ? 1 : 0);
  communicator.all_reduce_sum(totals);
  communicator.set_purpose(Purpose::control);
  if (totals[3] > 0) return std::nullopt;
  Evaluation result;
  result.counted = totals[0];
  result.samples = source.samples();
  const auto counted = static_cast<double>(totals[0]);
  result.loss = agreed.losses_not_finite > 0 ? std::nan("") : agreed.loss_sum / counted;
  if (agreed.votes > 0) result.accuracy = static_cast<double>(totals[1]) / counted;
  if (counter) result.bytes = totals[2];
  return result;
}

void rehearse_evaluation(InferenceModel& model, Device& device, const SampleShape& shape, std::int64_t rows) {
  BatchFeeder feeder(device, shape, rows);
  StepSums sums(device);
  sums.clear();
  const LossView loss = model.model().evaluate(device, model.weights(), feeder.last(), StepInfo{});
  sums.add_losses(loss.losses, loss.count);
}

}  // namespace zt

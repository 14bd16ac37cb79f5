#include "model/decoder.h"

#include <algorithm>
#include <stdexcept>

namespace zt {

std::int64_t window_start(std::int64_t length, std::int64_t positions) {
  if (length <= positions) return 0;
  const std::int64_t step = std::max<std::int64_t>(1, positions / 2);
  return (length - positions + step - 1) / step * step;
}

Decoder::Decoder(Device& device, Model& model, ParameterAccess& parameters, std::int64_t positions,
                 std::int64_t vocabulary, Prompt prompt, PutTokens put_tokens)
    : device_(device),
      model_(model),
      parameters_(parameters),
      positions_(positions),
      prompt_(prompt),
      put_tokens_(std::move(put_tokens)),
      logits_(static_cast<std::size_t>(vocabulary)) {}

std::span<const float> Decoder::logits_after(std::span<const std::int32_t> tokens) {
  if (tokens.empty()) throw std::logic_error("no token to go on from");
  const auto length = static_cast<std::int64_t>(tokens.size());
  const auto window = tokens.subspan(static_cast<std::size_t>(window_start(length, positions_)));
  const bool goes_on = !held_.empty() && held_.size() < window.size() && model_.keeps_keys() &&
                       std::equal(held_.begin(), held_.end(), window.begin());
  const float* logits = nullptr;
  if (!goes_on) {
    logits = run(window, 0);
  } else {
    // One by one: the shapes of a step are known beforehand.
    for (std::size_t at = held_.size(); at < window.size(); ++at)
      logits = run(window.subspan(at, 1), static_cast<std::int64_t>(at));
  }
  held_.assign(window.begin(), window.end());
  device_.copy(Stream::compute, logits_.data(), logits, static_cast<std::int64_t>(logits_.size()) * 4);
  device_.synchronize(Stream::compute);
  return logits_;
}

const float* Decoder::run(std::span<const std::int32_t> tokens, std::int64_t first) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const std::int32_t* on_device = put_tokens_(tokens);
  if (first == 0 && prompt_ == Prompt::whole) return model_.next_token_logits(device_, parameters_, on_device, count);
  return model_.decode(device_, parameters_, on_device, first, count);
}

}  // namespace zt

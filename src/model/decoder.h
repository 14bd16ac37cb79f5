// Tokens one after the other: keys and values of what has been run are kept, so each new token costs one position.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/device.h"
#include "model/model.h"

namespace zt {

// The tokens that the scores after a sequence of `length` depend on are those from here on. While the sequence fits
// n_positions it is 0; then the window starts half a window later whenever it is full, as every position of a learned
// table that moves makes all keys and values new. A function of the length alone.
std::int64_t window_start(std::int64_t length, std::int64_t positions);

class Decoder {
 public:
  // How a sequence is begun. `whole`: by next_token_logits, in the shapes that training has; `exact`: its tokens alone.
  enum class Prompt : std::uint8_t { exact, whole };
  // Brings tokens to the device, for operations put on the compute stream from then on; behind them, up to
  // `positions`, lie any tokens.
  using PutTokens = std::function<const std::int32_t*(std::span<const std::int32_t> tokens)>;
  Decoder(Device& device, Model& model, ParameterAccess& parameters, std::int64_t positions, std::int64_t vocabulary,
          Prompt prompt, PutTokens put_tokens);

  // Scores of every token after `tokens` (at least one). What they have in common with the tokens of the call before is
  // not run again. Valid until the next call.
  std::span<const float> logits_after(std::span<const std::int32_t> tokens);
  // The weights have changed, or somebody else has used the model.
  void forget() { held_.clear(); }

 private:
  const float* run(std::span<const std::int32_t> tokens, std::int64_t first);

  Device& device_;
  Model& model_;
  ParameterAccess& parameters_;
  std::int64_t positions_;
  Prompt prompt_;
  PutTokens put_tokens_;
  std::vector<std::int32_t> held_;  // tokens whose keys and values the model holds
  std::vector<float> logits_;
};

}  // namespace zt

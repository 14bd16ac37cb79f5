#include "train/sample.h"

#include <cstdio>
#include <vector>

#include "core/errors.h"
#include "core/random.h"

namespace zt {

void print_sample(const Settings& settings, const Tokenizer* tokenizer, Session& session, bool first_rank) {
  const TrainingSettings& training = settings.training;
  if (settings.model.type != "gpt" || training.sample_prompt.empty() || tokenizer == nullptr) return;
  constexpr int sample_tokens = 300;
  std::vector<std::int32_t> tokens = tokenizer->encode(training.sample_prompt);
  const std::uint64_t key = derive_key(training.seed, "sample");
  for (int i = 0; i < sample_tokens; ++i) {
    tokens.push_back(session.next_token(tokens, uniform_from_bits(random_bits(key, static_cast<std::uint64_t>(i)))));
  }
  if (!first_rank) return;
  std::fputs((tokenizer->decode(tokens) + "\n").c_str(), stdout);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw RunError("cannot write the sample to stdout");
}

}  // namespace zt

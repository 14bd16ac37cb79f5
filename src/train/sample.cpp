#include "train/sample.h"

#include <unistd.h>

#include <cstdio>
#include <vector>

#include "core/errors.h"
#include "core/random.h"
#include "data/terminal_text.h"

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
  const std::string text = tokenizer->decode(tokens) + "\n";
  const std::string out = ::isatty(STDOUT_FILENO) == 1 ? shown_lines(text) : text;
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw RunError("cannot write the sample to stdout");
}

}  // namespace zt

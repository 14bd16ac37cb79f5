// Opening of each kind of data, one file each. Internal to data/: others call open_dataset.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "data/message_text.h"
#include "data/source.h"

namespace zt {

Dataset open_text(const Settings& settings);               // text_source.cpp: one running text
Dataset open_prompt_completion(const Settings& settings);  // prompt_source.cpp: JSON lines
Dataset open_token_files(const Settings& settings);        // token_source.cpp: files of ids
Dataset open_idx(const Settings& settings);                // idx_source.cpp
Dataset open_csv(const Settings& settings);                // csv_source.cpp
Dataset open_synthetic(const Settings& settings);          // synthetic.cpp

// What all of them share.

template <typename... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// Throws UserError unless settings.model.type is `type`; `data` in words: "text".
void require_model(const Settings& settings, const std::string& type, const std::string& data);

// Throws UserError when `samples` for training do not fill one step; `what` they are, in words: "x.csv has only 12 rows
// for training".
void require_one_step(const Settings& settings, std::int64_t samples, const std::string& what);

// How many of `count` are for validation: the fraction, rounded down.
std::int64_t validation_share(std::int64_t count, double fraction);

// Which of `count` independent samples are for validation: validation_share of them, chosen by the seed alone, so that
// a file sorted by target does not leave a class out. In the order of samples.
std::vector<bool> validation_samples(std::int64_t count, double fraction, std::uint64_t split_seed);

// The same for prompts and rows, checked: at least one for training and, with a fraction, one for validation.
// `origin` names the file in errors, `thing` what is counted: "row".
std::vector<bool> split_samples(const Settings& settings, std::int64_t count, const std::string& origin,
                                const std::string& thing);

// "900 training and 100 validation rows", of `thing` "row".
std::string parts_in_words(const Dataset& dataset, const std::string& thing);

// Whether the model's inputs and outputs are held in fp16, whose largest number this is.
bool computes_in_fp16(const Settings& settings);
constexpr double fp16_largest = 65504.0;

// The model's vocabulary: model.vocab_size, or the tokenizer's where it is "auto". UserError if it is less than that.
std::int64_t vocabulary_for(const Settings& settings, const Tokenizer& tokenizer);

}  // namespace zt

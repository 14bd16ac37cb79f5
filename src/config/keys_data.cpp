// Keys of the section data.
#include "config/keys.h"

namespace zt {
namespace {

using enum KeyType;

void add_text(std::vector<Key>& t) {
  const std::vector<std::string> text = {"text"};
  t.push_back(used_key(path, "data.path", "the text file, or JSON lines; gzip is unpacked").required().only_for(text));
  t.push_back(
      used_key(choice, "data.format",
               "plain: one running text. prompt_completion: JSON lines, each an object with the texts prompt and "
               "completion; a line is a sample, cut at n_positions + 1 tokens, and the loss counts completions "
               "alone. auto: prompt_completion if the name ends in .jsonl (or .jsonl.gz)")
          .standard("auto")
          .or_auto()
          .one_of({"plain", "prompt_completion"})
          .only_for(text));
  t.push_back(used_key(choice, "data.tokenizer",
                       "bytes, or characters (those of the text); this version reads no tokenizer files")
                  .standard("bytes")
                  .one_of({"bytes", "characters"})
                  .others("this version reads no tokenizer files: use \"bytes\" or \"characters\"")
                  .only_for(text));
  t.push_back(
      used_key(number, "data.validation_fraction",
               "share kept for evaluation: the end of a plain text, or lines of prompt and completion chosen by "
               "split_seed")
          .standard(0.1)
          .at_least(0)
          .below(1)
          .only_for(text));
}

void add_csv(std::vector<Key>& t) {
  const std::vector<std::string> csv = {"csv"};
  t.push_back(used_key(path, "data.path", "the CSV file (RFC 4180); gzip is unpacked").required().only_for(csv));
  t.push_back(used_key(columns, "data.target",
                       "what is learned: columns by name, or by number from 1; all others are features. With "
                       "cross_entropy one column of integers from 0")
                  .required()
                  .length(1, std::numeric_limits<std::size_t>::max())
                  .only_for(csv));
  t.push_back(
      used_key(boolean, "data.header", "the first line has the names of the columns").standard(true).only_for(csv));
  t.push_back(used_key(choice, "data.delimiter", "what stands between two fields")
                  .standard(",")
                  .one_of({",", ";", "\t"})
                  .only_for(csv));
  t.push_back(
      used_key(boolean, "data.normalize",
               "shift and scale every feature to mean 0 and standard deviation 1 over the training rows (one that "
               "is constant there becomes 0); targets stay as they are")
          .standard(true)
          .only_for(csv));
  t.push_back(
      used_key(number, "data.validation_fraction", "share of the rows kept for evaluation, chosen by split_seed")
          .standard(0.1)
          .at_least(0)
          .below(1)
          .only_for(csv));
}

void add_idx(std::vector<Key>& t) {
  const std::vector<std::string> idx = {"idx"};
  t.push_back(used_key(path, "data.images",
                       "IDX file of samples, for cross_entropy; gzip is unpacked. Unsigned bytes are divided by 255, "
                       "other numbers taken as they are")
                  .required()
                  .only_for(idx));
  t.push_back(used_key(path, "data.labels", "IDX file of their classes, from 0").required().only_for(idx));
  for (const auto& [name, help] : {std::pair{"images", "the same for evaluation; null: none"},
                                   std::pair{"labels", "classes of validation_images; null: none"}}) {
    t.push_back(used_key(path, std::string("data.validation_") + name, help).standard(nullptr).or_null().only_for(idx));
  }
}

}  // namespace

void add_data_keys(std::vector<Key>& t) {
  t.push_back(used_key(section, "data", "what is trained on; its other keys depend on its type"));
  t.push_back(
      used_key(choice, "data.type",
               "text (a file, for gpt), csv (a table, for mlp), idx (images with classes, for mlp) or synthetic "
               "(made up from the seed)")
          .one_of({"text", "idx", "csv", "synthetic"})
          .refusing("tokens",
                    "this version reads no token files: give the text itself with \"type\": \"text\", or prompts "
                    "and completions as JSON lines")
          .required());
  add_text(t);
  add_csv(t);
  add_idx(t);
  t.push_back(used_key(integer, "data.split_seed",
                       "which rows, or lines of prompt and completion, are for evaluation; training.seed has no say in "
                       "it, so that runs with different seeds can be compared")
                  .standard(0)
                  .at_least(0)
                  .only_for({"text", "csv"}));
  t.push_back(used_key(choice, "data.task", "regression (for mlp) or tokens (for gpt)")
                  .standard("regression")
                  .one_of({"regression", "tokens"})
                  .only_for({"synthetic"}));
  t.push_back(used_key(integer, "data.samples", "how many are made; a tenth of them is for validation")
                  .standard(4096)
                  .at_least(10)
                  .only_for({"synthetic"}));
}

}  // namespace zt

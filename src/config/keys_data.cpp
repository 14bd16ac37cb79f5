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
  t.push_back(used_key(path, "data.tokenizer",
                       "bytes, characters (those of the text), or the path of a byte-pair vocabulary: a "
                       "tokenizer.json, a vocab.json with its merges.txt, a folder with them, or a tiktoken file")
                  .standard("bytes")
                  .one_of({"bytes", "characters"})
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

void add_tokens(std::vector<Key>& t) {
  const std::vector<std::string> tokens = {"tokens"};
  t.push_back(used_key(path, "data.train",
                       "token files: one, or a pattern with * ? [...] for several, which are taken in the order of "
                       "their names as one run of tokens")
                  .required()
                  .only_for(tokens));
  t.push_back(used_key(path, "data.validation", "the same for evaluation; null: none")
                  .standard(nullptr)
                  .or_null()
                  .only_for(tokens));
  t.push_back(used_key(choice, "data.format",
                       "llm.c (a header, then 16 bits a token; 32 in its files for Llama 3), nanogpt (16 bits a token "
                       "and nothing else), megatron (.bin with its .idx). null: by the first bytes, and by whether an "
                       ".idx lies beside a .bin")
                  .standard(nullptr)
                  .or_null()
                  .one_of({"llm.c", "nanogpt", "megatron"})
                  .only_for(tokens));
  t.push_back(
      used_key(path, "data.tokenizer",
               "the tokenizer that the files were made with, as for text: it gives model.vocab_size \"auto\", the "
               "end of text, and the words of training.sample_prompt; null: none, and \"auto\" is one more than "
               "the largest id in the files")
          .standard(nullptr)
          .or_null()
          .one_of({"bytes"})
          .only_for(tokens));
  t.push_back(used_key(choice, "data.documents",
                       "joined: a sample may go on from one document into the next. apart: a sample ends where its "
                       "document ends, what is left of it is padded and does not count in the loss")
                  .standard("joined")
                  .one_of({"joined", "apart"})
                  .only_for(tokens));
  t.push_back(
      used_key(integer, "data.end_of_text",
               "with documents apart: the id at which one starts (Megatron's files know that themselves). null: "
               "the tokenizer's <|endoftext|>, or 50256, GPT-2's")
          .standard(nullptr)
          .or_null()
          .at_least(0)
          .only_for(tokens));
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
               "text (a file, for gpt), tokens (files of ids, for gpt), csv (a table, for mlp), idx (images with "
               "classes, for mlp) or synthetic (made up from the seed)")
          .one_of({"text", "tokens", "idx", "csv", "synthetic"})
          .required());
  add_text(t);
  add_tokens(t);
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

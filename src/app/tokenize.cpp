// zerotrain tokenize: text to ids, to token files, or to a vocabulary of its own.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include "app/signals.h"
#include "app/verbs.h"
#include "core/errors.h"
#include "core/files.h"
#include "core/json.h"
#include "core/ordered_work.h"
#include "core/process.h"
#include "data/byte_pair_split.h"
#include "data/byte_pair_training.h"
#include "data/document_reader.h"
#include "data/message_text.h"
#include "data/token_writer.h"
#include "data/tokenizer.h"

namespace zt {
namespace {

struct Arguments {
  std::string tokenizer, output, format = "llm.c", text_key = "text";
  std::vector<std::string> inputs, special_tokens;
  bool ids = false, train = false, whole_documents = false, without_end_of_text = false, quiet = false;
  bool overwrite = false;
  std::int64_t vocab_size = 0, min_frequency = 0;
  int threads = 0;
};

// How far it is, on a terminal.
class Progress {
 public:
  Progress(const std::vector<std::unique_ptr<DocumentReader>>& inputs, bool quiet)
      : shows_(!quiet && ::isatty(STDERR_FILENO) == 1) {
    for (const auto& input : inputs) total_ += input->size();
  }
  ~Progress() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(std::size_t bytes) {
    done_ += static_cast<std::int64_t>(bytes);
    const auto now = std::chrono::steady_clock::now();
    if (!shows_ || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    drawn_ = true;
    const double megabytes = 1e-6 * static_cast<double>(done_);
    std::fprintf(stderr, "\r\x1b[K%3.0f %%  %.1f of %.1f MB  %.1f MB/s",
                 100.0 * static_cast<double>(done_) / static_cast<double>(total_), megabytes,
                 1e-6 * static_cast<double>(total_), megabytes / seconds());
    std::fflush(stderr);
  }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  std::int64_t bytes() const { return done_; }

 private:
  bool shows_, drawn_ = false;
  std::int64_t total_ = 0, done_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_ = start_;
};

std::vector<std::unique_ptr<DocumentReader>> open_inputs(const Arguments& arguments) {
  std::vector<std::unique_ptr<DocumentReader>> inputs;
  for (const std::string& path : arguments.inputs)
    inputs.push_back(std::make_unique<DocumentReader>(path, "--input", arguments.text_key));
  return inputs;
}

TokenFormat format_of(const std::string& name) {
  for (const TokenFormat format : {TokenFormat::llm_c, TokenFormat::nanogpt, TokenFormat::megatron}) {
    if (name == name_of(format)) return format;
  }
  throw UserError("--format \"" + name + "\" is not known; use llm.c, nanogpt or megatron");
}

// What is read is not written over: not under another name or through a link either.
void require_other_output(const Arguments& arguments) {
  if (arguments.output.empty()) return;
  std::error_code ignored;
  if (std::filesystem::is_directory(arguments.output, ignored))
    throw UserError("--output " + arguments.output + " is a directory; name a file in it");
  const std::string stem =
      arguments.output.ends_with(".bin") ? arguments.output.substr(0, arguments.output.size() - 4) : arguments.output;
  const auto check = [&](const std::string& read, const char* option) {
    for (const std::string& written : {arguments.output, stem + ".bin", stem + ".idx"}) {
      std::error_code none;
      if (std::filesystem::equivalent(read, written, none)) {
        throw UserError("--output " + arguments.output + " would write over " + read + ", which " + option +
                        " reads: choose another name");
      }
    }
  };
  for (const std::string& input : arguments.inputs) check(input, "--input");
  if (!arguments.tokenizer.empty()) check(arguments.tokenizer, "--tokenizer");
  std::error_code none;
  for (std::filesystem::directory_iterator file(arguments.tokenizer, none), end; !none && file != end;
       file.increment(none))
    check(file->path().string(), "--tokenizer");
}

// What is there is not written over unasked, and what is no file never.
void require_new_output(const Arguments& arguments) {
  if (arguments.output.empty()) return;
  std::vector<std::string> written = {arguments.output};
  if (!arguments.train && !arguments.ids) written = files_of_tokens(arguments.output, format_of(arguments.format));
  for (const std::string& path : written) {
    std::error_code none;
    const std::filesystem::file_status status = std::filesystem::status(path, none);
    if (!std::filesystem::exists(status)) continue;
    if (!std::filesystem::is_regular_file(status))
      throw UserError("--output " + shown_path(path) + " is no file that can be replaced: name another");
    if (!arguments.overwrite) {
      throw UserError("--output " + shown_path(path) +
                      " is there already: name another file, or replace it with --overwrite");
    }
  }
}

struct Part {
  const DocumentReader* input = nullptr;
  DocumentPart part;
};

// The parts of all inputs, one after the other.
class Parts {
 public:
  Parts(const std::vector<std::unique_ptr<DocumentReader>>& inputs, DocumentReader::Cut cut)
      : inputs_(inputs), cut_(std::move(cut)) {}
  std::optional<Part> operator()() {
    constexpr std::size_t part_bytes = std::size_t{1} << 20;
    for (; at_ < inputs_.size(); ++at_) {
      Part part{inputs_[at_].get(), {}};
      if (inputs_[at_]->next(part_bytes, cut_, part.part)) return part;
    }
    return std::nullopt;
  }

 private:
  const std::vector<std::unique_ptr<DocumentReader>>& inputs_;
  DocumentReader::Cut cut_;
  std::size_t at_ = 0;
};

// Each line's ids on a line of its own; of JSON lines each text's.
int print_ids(const Arguments& arguments, const Tokenizer& tokenizer) {
  std::string out;
  const auto print = [&](std::string_view text) {
    bool is_first = true;
    for (const std::int32_t id : tokenizer.encode(text)) {
      if (!is_first) out += ' ';
      out += std::to_string(id);
      is_first = false;
    }
    out += '\n';
    if (arguments.output.empty() && out.size() > 1 << 16) {
      std::fwrite(out.data(), 1, out.size(), stdout);
      out.clear();
    }
  };
  for (const auto& input : open_inputs(arguments)) {
    if (input->is_json_lines()) {
      input->for_each_line({input->bytes()}, print);
      continue;
    }
    for (std::string_view rest = input->bytes(); !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      print(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (arguments.output.empty()) {
    std::fwrite(out.data(), 1, out.size(), stdout);
  } else {
    write_file_atomically(arguments.output, out);
  }
  return 0;
}

struct Encoded {
  std::vector<std::uint32_t> ids;
  std::vector<std::size_t> ends;  // of documents, in ids
  std::size_t bytes = 0;
};

int write_tokens(const Arguments& arguments, const Tokenizer& tokenizer) {
  const TokenFormat format = format_of(arguments.format);
  const auto inputs = open_inputs(arguments);
  std::optional<std::uint32_t> sign;
  if (!arguments.without_end_of_text) {
    if (const auto id = tokenizer.end_of_text()) {
      sign = static_cast<std::uint32_t>(*id);
    } else {
      std::fputs("notice: the tokenizer has no <|endoftext|>: nothing stands between documents\n", stderr);
    }
  }
  const bool sign_is_first = format == TokenFormat::llm_c;  // as its own scripts have it
  const auto encode = [&](const Part& part) {
    Encoded out;
    out.bytes = part.part.text.size();
    const auto add = [&](std::string_view text, bool starts, bool ends) {
      if (sign && starts && sign_is_first) out.ids.push_back(*sign);
      const std::vector<std::int32_t> ids = tokenizer.encode(text);
      out.ids.insert(out.ids.end(), ids.begin(), ids.end());
      if (sign && ends && !sign_is_first) out.ids.push_back(*sign);
      if (ends) out.ends.push_back(out.ids.size());
    };
    if (part.input->is_json_lines()) {
      part.input->for_each_line(part.part, [&](std::string_view text) { add(text, true, true); });
    } else {
      try {
        add(part.part.text, part.part.starts, part.part.ends);
      } catch (const UserError& error) {
        const auto at = part.part.text.data() - part.input->bytes().data();
        throw UserError(part.input->origin() + ": in the part from byte " + std::to_string(at) +
                        " on: " + error.what());
      }
    }
    return out;
  };
  TokenWriter writer(arguments.output, format, tokenizer.vocabulary_size());
  double seconds = 0.0;
  {
    Progress progress(inputs, arguments.quiet);
    const auto write = [&](const Encoded& encoded) {
      std::size_t first = 0;
      for (const std::size_t end : encoded.ends) {
        writer.append(std::span(encoded.ids).subspan(first, end - first));
        writer.end_document();
        first = end;
      }
      if (first < encoded.ids.size()) writer.append(std::span(encoded.ids).subspan(first));
      progress.add(encoded.bytes);
    };
    const auto cut = [&](std::string_view text, std::size_t at) { return tokenizer.cut_before(text, at); };
    work_in_order(arguments.threads, Parts(inputs, cut), encode, write);
    if (writer.tokens() == 0) throw UserError("--input: there is no text in the input; give files with some");
    writer.finish();
    seconds = progress.seconds();
  }
  if (!arguments.quiet) {
    std::fprintf(stderr, "%s: %" PRId64 " tokens of %d bytes in %s (%s, vocabulary %" PRId64 "), %.1f s\n",
                 writer.path().c_str(), writer.tokens(), writer.bytes_per_token(),
                 counted(writer.documents(), "document").c_str(), name_of(format), tokenizer.vocabulary_size(),
                 seconds);
  }
  return 0;
}

int train_vocabulary(const Arguments& arguments) {
  // What cannot be is said before the texts are read.
  const BytePairTraining settings{arguments.vocab_size, arguments.min_frequency, arguments.special_tokens};
  train_byte_pairs({}, settings);
  const auto inputs = open_inputs(arguments);
  const auto count = [&](const Part& part) {
    std::pair<PieceCounts, std::size_t> out{{}, part.part.text.size()};
    if (part.input->is_json_lines()) {
      part.input->for_each_line(part.part, [&](std::string_view text) { out.first.add(text); });
    } else if (arguments.whole_documents) {
      out.first.add(part.part.text);
    } else {
      for (std::string_view rest = part.part.text; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
        out.first.add(rest.substr(0, end));
        rest.remove_prefix(end);
      }
    }
    return out;
  };
  PieceCounts pieces;
  {
    Progress progress(inputs, arguments.quiet);
    const auto add = [&](const std::pair<PieceCounts, std::size_t>& counted_part) {
      pieces.add(counted_part.first);
      progress.add(counted_part.second);
    };
    const auto cut = [&](std::string_view text, std::size_t at) {
      if (arguments.whole_documents) return piece_cut_before(text, at);
      const std::size_t line = text.rfind('\n', at - 1);
      return line == std::string_view::npos ? std::size_t{0} : line + 1;
    };
    work_in_order(arguments.threads, Parts(inputs, cut), count, add);
  }
  const BytePairVocabulary vocabulary = train_byte_pairs(pieces, settings);
  write_file_atomically(arguments.output, tokenizer_json(vocabulary));
  const auto size = static_cast<std::int64_t>(vocabulary.tokens.size());
  if (size < arguments.vocab_size) {
    std::fprintf(stderr,
                 "notice: no pair is left to merge after %" PRId64
                 " tokens: the text is too small for --vocab-size %" PRId64 "\n",
                 size, arguments.vocab_size);
  }
  if (!arguments.quiet) {
    const auto different = static_cast<std::int64_t>(pieces.map().size());
    std::fprintf(stderr, "%s: %" PRId64 " tokens, learned from %s of text\n", arguments.output.c_str(), size,
                 counted(different, "different piece").c_str());
  }
  return 0;
}

void check(const CLI::App& app, const Arguments& arguments) {
  const auto given = [&](const char* option) { return app.count(option) > 0; };
  const auto refuse = [&](std::initializer_list<const char*> options, const std::string& why) {
    for (const char* option : options) {
      if (given(option)) throw UserError(std::string(option) + " " + why);
    }
  };
  if (arguments.inputs.empty()) throw UserError("no text: give files with --input FILE...");
  if (arguments.train) {
    refuse({"--tokenizer", "--ids", "--format", "--no-end-of-text"}, "does not go with --train");
    if (!given("--vocab-size")) throw UserError("--train needs --vocab-size N, as 8192");
  } else {
    refuse({"--vocab-size", "--min-frequency", "--special", "--documents"}, "goes with --train");
    if (arguments.tokenizer.empty()) {
      throw UserError(
          "no tokenizer: give one with --tokenizer PATH (a tokenizer.json, a vocab.json with its merges.txt, a "
          "tiktoken "
          "file, or \"bytes\"), or train one with --train");
    }
  }
  if (arguments.ids) refuse({"--format", "--no-end-of-text"}, "does not go with --ids");
  if (!arguments.ids && arguments.output.empty()) throw UserError("no output: give a file with --output FILE");
  if (!arguments.train && !arguments.ids) format_of(arguments.format);
}

}  // namespace

int tokenize(int argc, const char* const* argv) {
  Arguments arguments;
  CLI::App app("Writes the token ids of texts, or trains a vocabulary on them.", "zerotrain tokenize");
  app.footer(
      "Examples:\n"
      "  zerotrain tokenize --train --vocab-size 8192 --input a.txt --output tokenizer.json\n"
      "  zerotrain tokenize --tokenizer tokenizer.json --input a.txt b.jsonl --output train.bin\n"
      "  zerotrain tokenize --tokenizer tokenizer.json --input a.txt --ids\n\n"
      "Files that end in .jsonl or .ndjson are JSON lines, a document a line; any other is one document. gzip is "
      "unpacked.");
  app.add_option(
         "--tokenizer", arguments.tokenizer,
         "Which tokens: a tokenizer.json, vocab.json or merges.txt, a folder with them, a tiktoken file, or bytes "
         "(every byte a token)")
      ->type_name("PATH");
  app.add_option("-i,--input", arguments.inputs, "Texts, or JSON lines, one file or more")->type_name("FILE...");
  app.add_option("-o,--output", arguments.output, "The file to write; with --ids stdout if it is not given")
      ->type_name("FILE");
  app.add_flag("--overwrite", arguments.overwrite, "Replace --output if it is there already");
  app.add_option("--format", arguments.format, "Whose format the token file has: llm.c, nanogpt or megatron")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("--ids", arguments.ids, "In place of a token file: the ids as numbers, a line for each line of text");
  app.add_option("--text-key", arguments.text_key, "Of JSON lines: under which key the text is")
      ->type_name("KEY")
      ->capture_default_str();
  app.add_flag("--no-end-of-text", arguments.without_end_of_text,
               "Put no token <|endoftext|> between documents, also where the tokenizer has it");
  app.add_flag("--train", arguments.train, "Train a byte-level BPE vocabulary and write it as tokenizer.json");
  app.add_option("--vocab-size", arguments.vocab_size,
                 "--train: how many tokens the vocabulary has, the 256 bytes and the special ones included")
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("--min-frequency", arguments.min_frequency,
                 "--train: two tokens that follow each other become one only where the texts have them so at least N "
                 "times; 0: however rare they are")
      ->type_name("N")
      ->check(whole_number(0))
      ->capture_default_str();
  app.add_option("--special", arguments.special_tokens,
                 "--train: texts that are one token each and never cut; without it <|endoftext|> alone")
      ->type_name("TEXT...");
  app.add_flag(
      "--documents", arguments.whole_documents,
      "--train: take each file as one text, in which tokens may hold several line breaks; without it line by line");
  app.add_option("--threads", arguments.threads, "Threads that compute; without it one for each core")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  app.add_flag("-q,--quiet", arguments.quiet, "Only warnings and errors on the screen");
  if (!parse_verb(app, argc, argv)) return 0;
  check(app, arguments);
  require_other_output(arguments);
  require_new_output(arguments);
  end_at_stop_signals();
  if (arguments.threads == 0) arguments.threads = allowed_core_count();
  if (arguments.train) {
    if (arguments.special_tokens.empty()) arguments.special_tokens = {std::string(end_of_text_sign)};
    return train_vocabulary(arguments);
  }
  const auto tokenizer = open_tokenizer(arguments.tokenizer, "--tokenizer");
  return arguments.ids ? print_ids(arguments, *tokenizer) : write_tokens(arguments, *tokenizer);
}

}  // namespace zt

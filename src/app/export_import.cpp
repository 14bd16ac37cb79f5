#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/signals.h"
#include "app/verbs.h"
#include "app/version.h"
#include "checkpoint/file_access.h"
#include "checkpoint/huggingface.h"
#include "checkpoint/llmc_model.h"
#include "checkpoint/native_weights.h"
#include "checkpoint/open_weights.h"
#include "comm/mpi.h"
#include "core/errors.h"
#include "core/json.h"
#include "data/byte_pair_vocabulary.h"
#include "data/message_text.h"
#include "data/tokenizer.h"

namespace zt {
namespace {

struct ExportOptions {
  std::string checkpoint, format, output, dtype = "fp32";
  std::int64_t largest_file = HuggingfaceExport{}.largest_file;
};

// Nothing if help was asked for, which has then been printed.
std::optional<ExportOptions> parse_export(int argc, const char* const* argv) {
  ExportOptions options;
  CLI::App app("Writes the weights of a checkpoint in another program's format.", "zerotrain export");
  app.footer(
      "Examples:\n"
      "  zerotrain export --checkpoint runs/gpt --format huggingface --output gpt-hf\n"
      "  zerotrain export --checkpoint gpt-hf --format llm.c --dtype bf16 --output gpt-llmc");
  app.add_option("--checkpoint", options.checkpoint,
                 "The weights: a checkpoint, a run's directory (its newest), or what else model.pretrained takes: a "
                 "Hugging Face "
                 "directory, a model.bin of llm.c")
      ->type_name("PATH")
      ->required();
  app.add_option("--format", options.format, "huggingface (GPT-2 of the transformers library) or llm.c (model.bin)")
      ->check(CLI::IsMember({"huggingface", "llm.c"}))
      ->required();
  app.add_option("-o,--output", options.output, "The directory to write, which is new or empty")
      ->type_name("DIR")
      ->required();
  app.add_option("--dtype", options.dtype, "Number format of the weights written: fp32, bf16, fp16 (not llm.c)")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}))
      ->capture_default_str();
  app.add_option("--largest-file", options.largest_file,
                 "huggingface: bytes of weights in one file at most; more are written as several files")
      ->type_name("BYTES")
      ->check(whole_number(1, std::int64_t{1} << 60))
      ->capture_default_str();
  if (!parse_verb(app, argc, argv)) return std::nullopt;
  return options;
}

DType dtype_of(const std::string& name) {
  return name == "bf16" ? DType::bf16 : name == "fp16" ? DType::f16 : DType::f32;
}

// The files of a tokenizer, as they are.
std::vector<NamedText> read_files(const std::vector<std::string>& paths) {
  constexpr std::int64_t largest = 256 << 20;  // bytes
  std::vector<NamedText> files;
  for (const std::string& path : paths) {
    const InputDescriptor file(path);
    if (file.bytes() > largest) throw UserError(shown_path(path) + " is larger than a tokenizer's files are");
    NamedText& text = files.emplace_back();
    text.name = std::filesystem::path(path).filename().string();
    text.text.resize(static_cast<std::size_t>(file.bytes()));
    file.read(0, file.bytes(), text.text.data());
  }
  return files;
}

// A tokenizer that a checkpoint holds, in the library's files; nothing where the library has no such one.
std::vector<NamedText> files_of(const StoredTokenizer& tokenizer, const ModelSettings& model,
                                std::optional<std::int64_t>& end_of_text) {
  const std::string text = huggingface_tokenizer(tokenizer.name, tokenizer.definition);
  if (text.empty()) return {};
  nlohmann::ordered_json config;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  config["model_max_length"] = model.gpt.n_positions;
  config["clean_up_tokenization_spaces"] = false;
  if (const auto id = make_tokenizer(tokenizer.name, tokenizer.definition)->end_of_text()) {
    end_of_text = *id;
    for (const char* key : {"bos_token", "eos_token", "unk_token"}) config[key] = end_of_text_sign;
  }
  return {{"tokenizer.json", text}, {"tokenizer_config.json", config.dump(2) + "\n"}};
}

// The tokenizer of a directory of the library, as a checkpoint holds it; nothing, with a notice, where it is of a kind
// that is not known here.
std::optional<StoredTokenizer> taken_over(const WeightSource& source) {
  std::optional<StoredTokenizer> stored = source.tokenizer();
  if (!stored || !stored->name.empty()) return stored;
  try {
    const std::string folder = std::filesystem::path(stored->files.front()).parent_path().string();
    const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(folder.empty() ? "." : folder, "--from");
    if (tokenizer->vocabulary_size() > source.model().gpt.vocab_size) {
      throw UserError("it has " + std::to_string(tokenizer->vocabulary_size()) + " entries, the model's vocabulary " +
                      std::to_string(source.model().gpt.vocab_size));
    }
    stored->name = std::string(tokenizer->name());
    stored->definition = tokenizer->definition();
    return stored;
  } catch (const UserError& error) {
    std::fprintf(stderr, "notice: the tokenizer is not taken over: %s\n", error.what());
    return std::nullopt;
  }
}

void say_written(const std::string& directory, const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) text += (text.empty() ? "" : ", ") + file;
  std::fprintf(stderr, "wrote %s: %s\n", shown_path(directory).c_str(), text.c_str());
}

}  // namespace

int export_weights(int argc, const char* const* argv) {
  const std::optional<ExportOptions> options = parse_export(argc, argv);
  if (!options) return 0;
  if (launched_by_mpi()) throw UserError("export is one process: start it without mpirun");
  end_at_stop_signals();
  const std::unique_ptr<WeightSource> source = open_weights(options->checkpoint);
  source->verify();
  const std::optional<StoredTokenizer> tokenizer = source->tokenizer();
  const DType dtype = dtype_of(options->dtype);
  if (options->format == "llm.c") {
    if (tokenizer)
      std::fprintf(stderr, "notice: llm.c's model.bin holds no tokenizer; that of the weights is not written\n");
    say_written(options->output, {export_llmc_model(*source, source->model(), options->output, dtype)});
    return 0;
  }
  HuggingfaceExport details;
  details.largest_file = options->largest_file;
  details.dtype = dtype;
  if (tokenizer) {
    details.tokenizer_files = read_files(tokenizer->files);
    details.end_of_text = tokenizer->end_of_text;
    if (tokenizer->files.empty()) details.tokenizer_files = files_of(*tokenizer, source->model(), details.end_of_text);
    if (details.tokenizer_files.empty()) {
      std::fprintf(stderr, "notice: the tokenizer \"%s\" has no files in the transformers library; none is written\n",
                   shown(tokenizer->name).c_str());
    }
  }
  say_written(options->output, export_huggingface(*source, source->model(), options->output, details));
  return 0;
}

int import_weights(int argc, const char* const* argv) {
  std::string from, output;
  CLI::App app("Makes a checkpoint of zerotrain's own from weights of another program.", "zerotrain import");
  app.footer(
      "Examples:\n"
      "  zerotrain import --from gpt-hf --output gpt-checkpoint\n"
      "  zerotrain import --from gpt-hf/model.safetensors --output gpt-weights\n"
      "  zerotrain import --from gpt-llmc/model.bin --output gpt-imported\n\n"
      "A checkpoint made so has no state of an optimizer: training starts from it with\n"
      "  zerotrain --config FILE --set model.pretrained=DIR");
  app.add_option("--from", from, "A Hugging Face GPT-2 (directory or model.safetensors) or llm.c's model.bin")
      ->type_name("DIR|FILE")
      ->required();
  app.add_option("-o,--output", output, "The checkpoint to write, a directory that is new or empty")
      ->type_name("DIR")
      ->required();
  if (!parse_verb(app, argc, argv)) return 0;
  if (launched_by_mpi()) throw UserError("import is one process: start it without mpirun");
  end_at_stop_signals();
  const std::unique_ptr<WeightSource> source = open_weights(from);
  source->verify();
  const std::optional<StoredTokenizer> tokenizer = taken_over(*source);
  write_native_weights(*source, output, program_name(), tokenizer);
  std::vector<std::string> files = {"manifest.json", "rank-00000.weights.safetensors"};
  if (tokenizer) files.emplace_back("tokenizer");
  say_written(output, files);
  return 0;
}

}  // namespace zt

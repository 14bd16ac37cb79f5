// The program from the outside: every verb answers alike where a checkpoint is damaged and where there is none.
#include <functional>
#include <map>

#include "program_support.h"

using namespace zt::test;

namespace {

const char* const tiny_text_gpt = R"({
  "train_batch_size": 2,
  "model": { "type": "gpt", "n_layer": 1, "n_head": 1, "n_embd": 8, "n_positions": 8 },
  "data": { "type": "text", "path": "text.txt", "tokenizer": "bytes", "validation_fraction": 0.2 },
  "training": { "max_steps": 2, "eval_interval": 0, "checkpoint_interval": 2 }, "device": { "threads": 1 }
})";

// Begins from the weights at `path`.
std::string from_weights(const std::string& path) {
  return R"({ "train_batch_size": 2, "model": { "type": "gpt", "pretrained": ")" + path + R"(" },
    "data": { "type": "synthetic", "task": "tokens", "samples": 20 },
    "training": { "max_steps": 1, "eval_interval": 0 }, "device": { "threads": 1 } })";
}

// How each verb is given a checkpoint, or a run's directory, at `path`.
std::map<std::string, Arguments> verbs_with(const Workplace& place, const std::string& path) {
  place.write("from.json", from_weights(path));
  return {{"evaluate", {"evaluate", "--checkpoint", path}},
          {"evaluate what model.pretrained names", {"evaluate", "--config", "from.json"}},
          {"generate", {"generate", "--checkpoint", path, "--prompt", "a", "--max-tokens", "1"}},
          {"export", {"export", "--checkpoint", path, "--format", "llm.c", "--output", "out"}},
          {"import", {"import", "--from", path, "--output", "out"}},
          {"inspect", {"inspect", "--checkpoint", path}},
          {"compare", {"compare", "whole", path}},
          {"train from model.pretrained", {"--config", "from.json", "--output", "new"}},
          {"train --resume", {"--config", "config.json", "--output", "new", "--resume", path}}};
}

void check_all(const Workplace& place, const std::string& path, int code, const std::string& told) {
  for (const auto& [name, arguments] : verbs_with(place, path)) {
    CAPTURE(path, name);
    check_fails(place.run_with(arguments), code, told);
    CHECK_FALSE(fs::exists(place.file("out")));
  }
}

}  // namespace

TEST_CASE("a damaged checkpoint ends every verb with 1, a path that names none with 2") {
  const Workplace place(tiny_text_gpt);
  std::string text;
  for (int i = 0; i < 100; ++i) text += "the letters of text " + std::to_string(i) + "\n";
  place.write("text.txt", text);
  check_completes(place.run({}));
  fs::copy(place.file("run/checkpoints/step-00000002"), place.file("whole"), fs::copy_options::recursive);

  const std::map<std::string, std::function<void(const fs::path&)>> damages = {
      {"manifest.json: it does not end in its checksum",
       [](const fs::path& path) { fs::resize_file(path / "manifest.json", 700); }},
      {"manifest.json: its checksum does not fit",
       [](const fs::path& path) {
         std::string manifest = contents_of(path / "manifest.json");
         manifest.replace(manifest.find("\"step\": 2"), 9, "\"step\": 3");
         std::ofstream(path / "manifest.json", std::ios::binary) << manifest;
       }},
      {"rank-00000.weights.safetensors is missing",
       [](const fs::path& path) { fs::remove(path / "rank-00000.weights.safetensors"); }},
      {"it is damaged", [](const fs::path& path) {
         fs::resize_file(path / "rank-00000.weights.safetensors",
                         fs::file_size(path / "rank-00000.weights.safetensors") - 1);
       }}};
  for (const auto& [told, make] : damages) {
    fs::remove_all(place.file("damaged"));
    fs::copy(place.file("whole"), place.file("damaged"), fs::copy_options::recursive);
    make(place.file("damaged"));
    check_all(place, "damaged", 1, told);
  }
  fs::create_directory(place.file("empty"));
  for (const std::string path : {"missing", "text.txt", "empty"}) check_all(place, path, 2, path);

  // A replay goes on from a run's own checkpoints.
  check_fails(place.run_with({"replay", "missing", "--step", "1"}), 2, "missing");
  const Arguments more = {"--resume", "--set", "training.max_steps=4"};
  check_completes(place.run(more));
  fs::resize_file(place.file("run/checkpoints/step-00000002/manifest.json"), 700);
  check_fails(place.run_with({"replay", "run", "--step", "3"}), 1, "manifest.json: it does not end in its checksum");
}

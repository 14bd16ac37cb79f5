// GPT-2 of the transformers library: read as it writes it, in its dialects, and written so that it reads it.
#include <cmath>

#include "checkpoint/huggingface_config.h"
#include "checkpoint/transposed.h"
#include "config/model_section.h"
#include "core/json.h"
#include "formats_support.h"

using namespace zt;
using namespace zt::testing;

TEST_CASE("a directory of the library is read: names, shapes, orientation, settings") {
  const auto source = open_weights(golden_path("gpt2"));
  const GptSettings& gpt = source->model().gpt;
  CHECK(source->model().type == "gpt");
  CHECK(gpt.n_layer == 2);
  CHECK(gpt.n_embd == 8);
  CHECK(gpt.vocab_size == 29);
  CHECK(gpt.n_positions == 12);
  CHECK(gpt.n_inner == 0);
  CHECK(gpt.tie_word_embeddings);
  CHECK(gpt.embd_pdrop == 0.0);
  CHECK(source->tensors().size() == 28);
  const LooseTensors stored = read_tensors(golden_path("gpt2/model.safetensors"));
  const NamedValues values = values_of(*source);
  const auto floats = [&](const std::string& name) {
    std::vector<float> all(stored.at(name).data.size() / 4);
    std::memcpy(all.data(), stored.at(name).data.data(), stored.at(name).data.size());
    return all;
  };
  CHECK(values.at("wte.weight") == floats("transformer.wte.weight"));
  CHECK(values.at("h.1.ln_2.bias") == floats("transformer.h.1.ln_2.bias"));
  const std::vector<float> theirs = floats("transformer.h.1.mlp.c_fc.weight");  // [8, 32]
  const std::vector<float>& ours = values.at("h.1.mlp.c_fc.weight");            // [32, 8]
  for (std::size_t o = 0; o < 32; ++o) {
    for (std::size_t i = 0; i < 8; ++i) REQUIRE(ours[o * 8 + i] == theirs[i * 32 + o]);
  }
}

TEST_CASE("any part of a tensor is what the whole has there") {
  for (const char* path : {"gpt2", "gpt2_sharded", "model.bin", "model_bf16.bin"}) {
    const auto source = open_weights(golden_path(path));
    const NamedValues whole = values_of(*source);
    for (std::size_t i = 0; i < source->tensors().size(); ++i) {
      const std::vector<float>& values = whole.at(source->tensors()[i].name);
      const auto count = static_cast<std::int64_t>(values.size());
      for (const std::int64_t first : {std::int64_t{0}, std::int64_t{5}, count / 2, count - 1}) {
        for (const std::int64_t length : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3}, count - first}) {
          if (first < 0 || first + length > count) continue;
          std::vector<float> part(static_cast<std::size_t>(length));
          source->read(i, first, length, part.data());
          REQUIRE(std::equal(part.begin(), part.end(), values.begin() + first));
        }
      }
    }
  }
}

TEST_CASE("a matrix larger than a tile is turned around") {
  constexpr std::int64_t rows = 8200, columns = 37;
  const ReadFloats read = [](std::int64_t first, std::int64_t count, float* out) {
    REQUIRE(first + count <= rows * columns);
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(first + i);  // exact below 2^24
  };
  for (const auto& [first, count] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, rows * columns}, {36, 2}, {8191 * 37 + 5, 100}, {1000, 37 * 8170}}) {
    std::vector<float> out(static_cast<std::size_t>(count));
    read_transposed(read, rows, columns, first, count, out.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = (first + i) / columns, column = (first + i) % columns;
      REQUIRE(out[static_cast<std::size_t>(i)] == static_cast<float>(column * rows + row));
    }
  }
}

TEST_CASE("several files with an index are one model, with a head of its own and an inner width of its own") {
  for (const char* path : {"gpt2_sharded", "gpt2_sharded/model.safetensors.index.json"}) {
    const auto source = open_weights(golden_path(path));
    CHECK_FALSE(source->model().gpt.tie_word_embeddings);
    CHECK(source->model().gpt.n_inner == 20);
    CHECK(source->model().gpt.activation_function == "gelu");
    CHECK(values_of(*source).at("lm_head.weight").size() == 29 * 8);
  }
}

TEST_CASE("older files are read: without prefix, with masks, with the tied head stored, in 16 bits") {
  const NamedValues expected = values_of(*open_weights(golden_path("gpt2")));
  LooseModel model;
  LooseTensors old;
  for (const auto& [name, tensor] : model.tensors) old[name.substr(std::string("transformer.").size())] = tensor;
  for (const char* layer : {"h.0", "h.1"}) {
    old[std::string(layer) + ".attn.bias"] = {StoredType::u8, {1, 1, 12, 12}, std::string(144, '\1')};
    old[std::string(layer) + ".attn.masked_bias"] = {StoredType::f32, {}, std::string(4, '\0')};
  }
  old["lm_head.weight"] = old.at("wte.weight");
  model.tensors = old;
  for (const char* key : {"tie_word_embeddings", "n_inner", "activation_function", "layer_norm_epsilon"}) {
    model.config.erase(key);  // as in configs of the first versions: the library's defaults
  }
  CHECK(values_of(*model.open()) == expected);

  for (auto& [name, tensor] : model.tensors) {
    if (tensor.type != StoredType::f32) continue;
    std::vector<float> values(tensor.data.size() / 4);
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    tensor.type = StoredType::bf16;
    tensor.data.resize(values.size() * 2);
    from_floats(values.data(), static_cast<std::int64_t>(values.size()), DType::bf16, tensor.data.data());
  }
  const NamedValues rounded = values_of(*model.open());
  for (const auto& [name, values] : expected) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      REQUIRE(rounded.at(name)[i] == to_float(from_float<bf16_t>(values[i])));
    }
  }
}

TEST_CASE("a directory that is no whole GPT-2 is refused with file, tensor and reason") {
  const TemporaryFolder empty;
  CHECK(contains(message_of([&] { open_weights(empty.path("no")); }), {"there is no", "check the path"}));
  CHECK(contains(message_of([&] { open_weights(empty.path()); }), {"no model.safetensors"}));
  empty.write("pytorch_model.bin", std::string("PK\x03\x04", 4));
  CHECK(contains(message_of([&] { open_weights(empty.path()); }), {"pytorch_model.bin", "save_pretrained"}));
  CHECK(contains(message_of([&] { open_weights(empty.path("pytorch_model.bin")); }), {"runs code", "save_pretrained"}));
  empty.write("model.safetensors", "x");
  CHECK(contains(message_of([&] { open_weights(empty.path()); }), {"config.json"}));
  empty.write("config.json", "{");
  CHECK(contains(message_of([&] { open_weights(empty.path()); }), {"config.json", "no JSON"}));
  empty.write("config.json", "[]");
  CHECK(contains(message_of([&] { open_weights(empty.path()); }), {"no JSON object"}));
  empty.write("config.json", R"({"model_type": "gpt2"})");
  CHECK(contains(message_of([&] { open_weights(empty.path()); }), {"model.safetensors", "1 byte"}));
  CHECK(contains(message_of([&] { open_weights(empty.write("x.bin", "hello, I am a text")); }),
                 {"x.bin", "no file of weights"}));

  LooseModel model;
  const LooseTensors whole = model.tensors;
  model.tensors.erase("transformer.h.1.mlp.c_fc.bias");
  CHECK(contains(model.message(), {"has no tensor transformer.h.1.mlp.c_fc.bias"}));
  model.tensors = whole;
  model.tensors["transformer.h.0.attn.c_attn.weight"].shape = {24, 8};
  CHECK(contains(model.message(), {"c_attn.weight\" has the shape [24, 8]", "[8, 24]"}));
  model.tensors = whole;
  model.tensors["transformer.h.0.ln_1.bias"].type = StoredType::i32;
  CHECK(contains(model.message(), {"ln_1.bias", "I32"}));
  model.tensors = whole;
  model.tensors["score.weight"] = {StoredType::f32, {2}, std::string(8, '\0')};
  CHECK(contains(model.message(), {"score.weight", "none of a GPT-2"}));
  model.tensors = whole;
  model.tensors["lm_head.weight"] = whole.at("transformer.wte.weight");
  model.tensors["lm_head.weight"].data[5] ^= 1;
  CHECK(contains(model.message(), {"lm_head.weight", "tied"}));
  model.tensors = whole;
  model.config["tie_word_embeddings"] = false;
  CHECK(contains(model.message(), {"no tensor lm_head.weight", "tie_word_embeddings"}));
}

TEST_CASE("configs of what this program does not compute, or of no model, are refused with the key") {
  LooseModel model;
  const nlohmann::json whole = model.config;
  const auto with = [&](const char* key, const nlohmann::json& value) {
    model.config = whole;
    model.config[key] = value;
    return model.message();
  };
  CHECK(contains(with("model_type", "llama"), {"model_type", "llama", "gpt2"}));
  CHECK(contains(with("model_type", nullptr), {"model_type"}));
  CHECK(contains(with("scale_attn_weights", false), {"scale_attn_weights"}));
  CHECK(contains(with("scale_attn_by_inverse_layer_idx", true), {"scale_attn_by_inverse_layer_idx"}));
  CHECK(contains(with("add_cross_attention", true), {"add_cross_attention"}));
  CHECK(contains(with("activation_function", "quick_gelu"), {"activation_function", "quick_gelu", "gelu_new"}));
  CHECK(contains(with("n_layer", 1000000000000), {"n_layer", "1000000000000", "10000"}));
  CHECK(contains(with("n_layer", -1), {"n_layer", "-1"}));
  CHECK(contains(with("n_layer", 2.5), {"n_layer", "2.5"}));
  CHECK(contains(with("n_head", 3), {"n_head", "does not divide"}));
  CHECK(contains(with("vocab_size", "many"), {"vocab_size", "many"}));
  CHECK(contains(with("resid_pdrop", 1.0), {"resid_pdrop"}));
  CHECK(contains(with("layer_norm_epsilon", "x"), {"layer_norm_epsilon"}));
  CHECK(contains(with("tie_word_embeddings", 1), {"tie_word_embeddings", "true or false"}));
  CHECK(contains(with("vocab_size", 30), {"wte.weight", "[29, 8]", "[30, 8]"}));
  CHECK(with("activation_function", "gelu_pytorch_tanh").empty());
  CHECK(with("n_ctx", 12).empty());  // keys that mean nothing here
}

TEST_CASE("an index that points elsewhere is refused") {
  const TemporaryFolder folder;
  for (const char* file : {"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}) {
    folder.write(file, content_of(golden_path(std::string("gpt2_sharded/") + file)));
  }
  const nlohmann::json whole =
      nlohmann::json::parse(content_of(golden_path("gpt2_sharded/model.safetensors.index.json")));
  const auto with = [&](const std::string& tensor, const nlohmann::json& file) {
    nlohmann::json index = whole;
    index["weight_map"][tensor] = file;
    folder.write("model.safetensors.index.json", index.dump());
    return message_of([&] { open_weights(folder.path()); });
  };
  const std::string name = "transformer.wte.weight";
  CHECK(with(name, whole["weight_map"][name]).empty());
  for (const char* file : {"../x.safetensors", "/etc/passwd", "", "x", "a/b.safetensors"}) {
    CHECK(contains(with(name, file), {"weight_map names", "beside it"}));
  }
  CHECK(contains(with(name, "model-3.safetensors"), {"model-3.safetensors", "No such file"}));
  CHECK(contains(with(name, 5), {"names no file"}));
  CHECK(contains(with("transformer.wte.extra", "model-00001-of-00002.safetensors"), {"wte.extra", "missing"}));
  folder.write("model.safetensors.index.json", R"({"weight_map": []})");
  CHECK(contains(message_of([&] { open_weights(folder.path()); }), {"no weight_map"}));
}

TEST_CASE("what is exported is what the library has saved, to the bit") {
  for (const std::string name : {"gpt2", "gpt2_sharded"}) {
    const TemporaryFolder folder;
    const std::string out = folder.path("out");
    const auto source = open_weights(golden_path(name));
    HuggingfaceExport options;
    options.end_of_text = 28;
    options.tokenizer_files = {{"merges.txt", "#version: 0.2\n"}};
    if (name == "gpt2_sharded") options.largest_file = 6000;
    const std::vector<std::string> files = export_huggingface(*source, source->model(), out, options);
    CHECK(values_of(*open_weights(out)) == values_of(*source));
    CHECK(model_section(open_weights(out)->model()) == model_section(source->model()));
    CHECK(content_of(out + "/merges.txt") == "#version: 0.2\n");
    CHECK_FALSE(std::filesystem::exists(out + ".partial"));
    LooseTensors ours, theirs;
    for (const std::string& file : files) {
      if (!file.ends_with(".safetensors")) continue;
      ours.merge(read_tensors(out + "/" + file));
      CHECK(SafetensorsFile(out + "/" + file).metadata() == TensorMetadata{{"format", "pt"}});
    }
    for (const auto& entry : std::filesystem::directory_iterator(golden_path(name))) {
      if (entry.path().extension() == ".safetensors") theirs.merge(read_tensors(entry.path().string()));
    }
    REQUIRE(ours.size() == theirs.size());
    for (const auto& [tensor, value] : theirs) {
      INFO(tensor);
      CHECK(ours.at(tensor).shape == value.shape);
      CHECK(ours.at(tensor).data == value.data);
    }
    // What the library's config says, ours says as well, but for what this program has no part in.
    const nlohmann::json written = nlohmann::json::parse(content_of(out + "/config.json"));
    const nlohmann::json library = nlohmann::json::parse(content_of(golden_path(name + "/config.json")));
    for (const auto& [key, value] : library.items()) {
      if (written.contains(key) && !key.ends_with("_token_id")) CHECK(written.at(key) == value);
    }
    CHECK(written.at("eos_token_id") == 28);
    if (name != "gpt2_sharded") continue;
    const nlohmann::json index = nlohmann::json::parse(content_of(out + "/model.safetensors.index.json"));
    CHECK(index.at("weight_map").size() == theirs.size());
    CHECK(std::ranges::count_if(files, [](const std::string& file) { return file.ends_with(".safetensors"); }) == 2);
  }
}

TEST_CASE("an export in 16 bits is rounded to nearest, and says its format") {
  const TemporaryFolder folder;
  const auto source = open_weights(golden_path("gpt2"));
  HuggingfaceExport options;
  options.dtype = DType::f16;
  export_huggingface(*source, source->model(), folder.path("out"), options);
  const NamedValues rounded = values_of(*open_weights(folder.path("out")));
  for (const auto& [name, values] : values_of(*source)) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      REQUIRE(rounded.at(name)[i] == to_float(from_float<f16_t>(values[i])));
    }
  }
  CHECK(nlohmann::json::parse(content_of(folder.path("out/config.json"))).at("torch_dtype") == "float16");
}

TEST_CASE("what cannot be exported is refused, and nothing is left behind") {
  const TemporaryFolder folder;
  const auto source = open_weights(golden_path("gpt2"));
  const auto refused = [&](const ModelSettings& model, const std::string& out = "out") {
    const std::string message = message_of([&] { export_huggingface(*source, model, folder.path(out), {}); });
    CHECK_FALSE(std::filesystem::exists(folder.path(out + ".partial")));
    return message;
  };
  ModelSettings model = source->model();
  model.gpt.bias = false;
  CHECK(contains(refused(model), {"model.bias false", "always has biases"}));
  model.type = "mlp";
  CHECK(contains(refused(model), {"\"mlp\"", "transformers"}));
  model = source->model();
  model.gpt.vocab_size = 30;
  CHECK(contains(refused(model), {"vocabulary has 30 entries", "29"}));
  model = source->model();
  model.gpt.n_layer = 3;
  CHECK(contains(refused(model), {"it has not: h.2.attn.c_attn.weight", "6 more"}));
  model.gpt.n_layer = 1;
  CHECK(contains(refused(model), {"the model has not: h.1."}));
  model.gpt.n_layer = 2;
  model.gpt.n_positions = 13;
  CHECK(contains(refused(model), {"wpe.weight ([13, 8] in the model, [12, 8] there)"}));
  CHECK_FALSE(std::filesystem::exists(folder.path("out")));
  folder.write("file", "");
  CHECK(contains(refused(source->model(), "file"), {"is a file"}));
  std::filesystem::create_directory(folder.path("used"));
  folder.write("used/x", "");
  CHECK(contains(refused(source->model(), "used"), {"holds files already"}));
  std::filesystem::create_directory(folder.path("empty"));
  CHECK(refused(source->model(), "empty").empty());  // which is used
  CHECK(contains(message_of([&] { export_huggingface(*source, source->model(), "/proc/x", {}); }), {"/proc/x"}));

  LooseModel broken;
  const float infinite = -INFINITY;
  std::memcpy(broken.tensors.at("transformer.h.1.attn.c_attn.weight").data.data() + 40, &infinite, 4);
  const auto not_finite = broken.open();
  const std::string message =
      message_of([&] { export_huggingface(*not_finite, not_finite->model(), folder.path("broken"), {}); });
  CHECK(contains(message, {"h.1.attn.c_attn.weight is infinite", "element 80"}));  // [0, 10] of [8, 24] there
  CHECK_FALSE(std::filesystem::exists(folder.path("broken")));
}

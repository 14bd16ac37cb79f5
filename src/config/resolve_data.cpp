// Rules of the data and of what they mean for the model.
#include "config/resolver.h"

namespace zt {

void Resolver::resolve_data() {
  if (!checked_.selected.contains("data.type")) return;
  const bool gpt = is("model.type", "gpt");
  const bool mlp = is("model.type", "mlp");
  const std::string& type = checked_.selected.at("data.type");
  if (mlp && (type == "text" || type == "tokens")) {
    problem("data.type", "found \"" + type + "\", but model.type is \"mlp\", which takes no " + type +
                             ": use \"csv\" or \"idx\", \"synthetic\" with task \"regression\", or a gpt");
  }
  if (gpt && (type == "csv" || type == "idx")) {
    problem("data.type",
            "found \"" + type +
                "\", but model.type is \"gpt\", which takes tokens: use \"text\", \"tokens\", \"synthetic\" with task "
                "\"tokens\", or an mlp");
  }
  if (type == "synthetic") resolve_synthetic_data();
  if (type == "text") resolve_text_data();
  if (type == "tokens") resolve_token_files();
  if (mlp && type == "csv") resolve_csv_data();
  if (mlp && type == "idx") resolve_idx_data();

  if ((type == "text" || type == "csv") && known({"data.validation_fraction", "training.eval_interval"}) &&
      get<double>("data.validation_fraction") == 0.0 && get<std::int64_t>("training.eval_interval") > 0) {
    problem("data.validation_fraction",
            "0 leaves nothing for the evaluations that training.eval_interval asks for: "
            "give a share as 0.1, or set training.eval_interval to 0");
  }
}

void Resolver::resolve_synthetic_data() {
  if (!known({"data.task"})) return;
  const auto task = get<std::string>("data.task");
  if (is("model.type", "gpt") && task == "regression") {
    problem("data.task", "\"regression\" has no tokens for model.type \"gpt\": use \"task\": \"tokens\"");
  }
  if (is("model.type", "mlp") && task == "tokens") {
    problem("data.task", "found \"tokens\", but model.type \"mlp\" takes none: use \"task\": \"regression\"");
  }
  if (task == "tokens" && holds_auto("model.vocab_size") && !comes_with_weights("model.vocab_size")) {
    problem("model.vocab_size",
            "\"auto\" comes from a tokenizer, and synthetic tokens have none: give a number, as 256");
  }
}

void Resolver::resolve_text_data() {
  resolve_text_format();
  if (known({"data.split_seed", "data.format"}) && get<std::int64_t>("data.split_seed") != 0 &&
      get<std::string>("data.format") == "plain") {
    notice("data.split_seed", "has no effect: of a plain text the end is kept for evaluation");
  }
}

void Resolver::resolve_text_format() {
  if (!holds_auto("data.format") || !known({"data.path"})) return;
  const auto path = get<std::string>("data.path");
  bool lines = false;
  for (const char* ending : {".jsonl", ".ndjson"}) {
    lines = lines || path.ends_with(ending) || path.ends_with(std::string(ending) + ".gz");
  }
  if (lines) {
    set_auto("data.format", "prompt_completion", "after the ending of data.path");
  } else {
    values_["data.format"] = "plain";
  }
}

void Resolver::resolve_token_files() {
  if (checked_.wrong.contains("data.validation")) return;
  if (!known({"data.validation"}) && known({"training.eval_interval"}) &&
      get<std::int64_t>("training.eval_interval") > 0) {
    problem("data.validation",
            "missing, so there is nothing for the evaluations that training.eval_interval asks for: give it, or set "
            "training.eval_interval to 0");
  }
  if (known({"data.documents"}) && get<std::string>("data.documents") == "joined" && known({"data.end_of_text"})) {
    notice("data.end_of_text", "has no effect: documents are joined");
  }
}

void Resolver::resolve_csv_data() {
  if (!known({"data.target"})) return;
  const Json& target = values_.at("data.target");
  bool names = false, numbers = false;
  for (std::size_t i = 0; i < target.size(); ++i) {
    (target[i].is_string() ? names : numbers) = true;
    for (std::size_t j = 0; j < i; ++j) {
      // How many there are is told once each of them is there once.
      if (target[i] == target[j]) return problem("data.target", "names " + target[i].dump() + " twice: remove one");
    }
  }
  if (names && numbers) return;  // they may name one column twice: the table tells, and counts them
  if (!known({"model.layers", "model.loss"}) || comes_with_weights("model.loss")) return;
  const auto outputs = get<std::vector<std::int64_t>>("model.layers").back();
  const bool classes = get<std::string>("model.loss") == "cross_entropy";
  if (classes && target.size() != 1) {
    problem("data.target",
            "names " + std::to_string(target.size()) +
                " columns, but with model.loss \"cross_entropy\" it is one column of classes, integers from "
                "0: name that one, or use \"mse\"");
  }
  if (!classes && static_cast<std::int64_t>(target.size()) != outputs) {
    problem("model.layers", "the last entry is " + std::to_string(outputs) + ", but data.target names " +
                                std::to_string(target.size()) + " column(s): make the two equal");
  }
}

void Resolver::resolve_idx_data() {
  if (known({"model.loss"}) && get<std::string>("model.loss") != "cross_entropy" && !comes_with_weights("model.loss")) {
    problem("model.loss",
            "the labels of idx data are classes: use \"cross_entropy\", with as many outputs as classes at "
            "the end of model.layers");
  }
  const std::string images = "data.validation_images";
  const std::string labels = "data.validation_labels";
  const bool has_images = known({images.c_str()});
  const bool has_labels = known({labels.c_str()});
  if (checked_.wrong.contains(images) || checked_.wrong.contains(labels)) return;
  if (has_images != has_labels) {
    problem(has_images ? labels : images,
            "missing, and " + (has_images ? images : labels) + " is given: give both, or neither for no evaluation");
  }
  if (!has_images && !has_labels && known({"training.eval_interval"}) &&
      get<std::int64_t>("training.eval_interval") > 0) {
    problem(images,
            "missing, so there is nothing for the evaluations that training.eval_interval asks for: give it and "
            "data.validation_labels, or set training.eval_interval to 0");
  }
}

}  // namespace zt

// What each run was, and in what their configs differ.
#include <algorithm>
#include <cmath>

#include "config/difference.h"
#include "core/json.h"
#include "core/json_text.h"
#include "report/axis.h"
#include "report/contents.h"
#include "report/equal_curves.h"
#include "train/words.h"

namespace zt {

namespace {

std::string none_or(const std::string& text) { return text.empty() ? "-" : text; }

std::string whole(const RecordedRun& run, const char* path) {
  const auto number = find_number(run.summary, path);
  return number ? fixed(*number, 0) : "";
}

std::string steps_text(const RecordedRun& run) {
  const auto skipped = std::count_if(run.steps.begin(), run.steps.end(), [](const auto& step) { return step.skipped; });
  std::string text = std::to_string(run.steps.back().step);
  if (skipped > 0) text += ", " + std::to_string(skipped) + " skipped";
  if (!run.resumes.empty()) text += ", resumed after " + std::to_string(run.resumes.back());
  return text;
}

std::string status_text(const RecordedRun& run) {
  const std::string status = find_text(run.summary, "status");
  return status.empty() ? "no summary" : status;
}

// A page must not become large by one value: a list of thousands of names, say.
std::string cut(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  return text.substr(0, most) + " ... (" + std::to_string(text.size() - most) + " more bytes)";
}

constexpr std::size_t longest_value = 400;
constexpr std::size_t longest_config = 200000;

std::string loss_text(double loss) { return std::isfinite(loss) ? significant(loss, 9) : "not finite"; }

std::string batch_text(const RecordedRun& run) {
  const auto micro = find_number(run.summary, "run.micro_batch");
  const auto accumulation = find_number(run.summary, "run.accumulation");
  if (!micro || !accumulation) return "";
  return fixed(*micro, 0) + " x " + fixed(*accumulation, 0);
}

std::string rate_text(const RecordedRun& run) {
  const bool tokens = find_number(run.summary, "throughput.tokens_per_second").has_value();
  const auto rate = find_number(run.summary, tokens ? "throughput.tokens_per_second" : "throughput.samples_per_second");
  return rate ? count_in_words(*rate) + (tokens ? " tokens/s" : " samples/s") : "";
}

}  // namespace

std::string described(const RecordedRun& run) {
  std::vector<std::string> parts;
  if (const auto ranks = find_number(run.summary, "run.world_size"))
    parts.push_back(fixed(*ranks, 0) + (*ranks == 1.0 ? " rank" : " ranks"));
  if (const auto stage = find_number(run.summary, "run.stage")) parts.push_back("stage " + fixed(*stage, 0));
  if (const std::string precision = find_text(run.summary, "run.precision"); !precision.empty())
    parts.push_back(precision);
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? " (" : ", ") + part;
  return run.name + text + (text.empty() ? "" : ")");
}

std::int64_t steps_of_summary(const RecordedRun& run) {
  const auto attempted = find_number(run.summary, "steps.attempted");
  if (!attempted || !(*attempted > 0.0) || *attempted > 1e15) return 0;
  return static_cast<std::int64_t>(*attempted) - (run.resumes.empty() ? 0 : run.resumes.back());
}

Section overview_section(const std::vector<RecordedRun>& runs) {
  Section section{.id = "runs", .title = runs.size() == 1 ? "The run" : "The runs"};
  Table table{.title = runs.size() == 1 ? "What it was and what came of it" : "What they were and what came of them",
              .head = {""}};
  for (const RecordedRun& run : runs) table.head.push_back(run.name);
  // A row that says nothing of any run is left out.
  const auto row = [&](const std::string& name, auto&& text_of) {
    std::vector<std::string> cells = {name};
    bool any = false;
    for (const RecordedRun& run : runs) {
      const std::string text = text_of(run);
      any = any || !text.empty();
      cells.push_back(none_or(text));
    }
    if (any) table.rows.push_back(std::move(cells));
  };
  row("status", status_text);
  row("ranks", [](const RecordedRun& run) { return whole(run, "run.world_size"); });
  row("ZeRO stage", [](const RecordedRun& run) { return whole(run, "run.stage"); });
  row("precision", [](const RecordedRun& run) { return find_text(run.summary, "run.precision"); });
  row("model", [](const RecordedRun& run) {
    const auto parameters = find_number(run.summary, "model.parameters");
    const std::string type = find_text(run.summary, "model.type");
    return parameters ? type + ", " + count_in_words(*parameters) + " parameters" : type;
  });
  row("micro-batch x accumulation", batch_text);
  row("steps", steps_text);
  row("loss of the last step", [](const RecordedRun& run) { return loss_text(run.steps.back().loss); });
  row("last validation loss", [](const RecordedRun& run) {
    return run.evaluations.empty() ? std::string() : loss_text(run.evaluations.back().loss);
  });
  row("best validation loss", [](const RecordedRun& run) {
    const auto best = find_number(run.summary, "best.validation_loss");
    const auto step = find_number(run.summary, "best.step");
    return best && step ? loss_text(*best) + " after step " + fixed(*step, 0) : std::string();
  });
  row("throughput", rate_text);
  row("device", [](const RecordedRun& run) {
    const std::string gpu = find_text(run.summary, "run.gpu");
    const std::string device = find_text(run.summary, "run.device");
    const std::string set = find_text(run.summary, "run.instruction_set");
    return gpu.empty() ? device + (set.empty() ? "" : ", " + set) : gpu;
  });
  row("checksum of the weights", [](const RecordedRun& run) { return find_text(run.summary, "weights_checksum"); });
  row("directory", [](const RecordedRun& run) { return run.path; });
  section.blocks.emplace_back(std::move(table));
  for (const RecordedRun& run : runs) {
    const std::string error = find_text(run.summary, "error");
    if (!error.empty()) section.blocks.emplace_back(Paragraph{run.name + " failed: " + error, true});
    for (const std::string& remark : run.remarks) section.blocks.emplace_back(Paragraph{remark, true});
  }
  return section;
}

Section config_section(const std::vector<RecordedRun>& runs) {
  Section section{.id = "config", .title = "Config"};
  const auto first = std::find_if(runs.begin(), runs.end(), [](const auto& run) { return run.config.is_object(); });
  if (first == runs.end()) {
    section.blocks.emplace_back(Paragraph{"No config.resolved.json was found."});
    return section;
  }
  if (runs.size() > 1) {
    std::vector<std::string> paths;
    for (const RecordedRun& run : runs) {
      if (!run.config.is_object()) continue;
      for (const ConfigDifference& difference : config_differences(first->config, run.config)) {
        if (difference.path != "training.output_dir" &&
            std::find(paths.begin(), paths.end(), difference.path) == paths.end())
          paths.push_back(difference.path);
      }
    }
    Table table{.title = "Keys that differ", .head = {"key"}, .numbers = false};
    for (const RecordedRun& run : runs) table.head.push_back(run.name);
    for (const std::string& path : paths) {
      std::vector<std::string> row = {path};
      for (const RecordedRun& run : runs) {
        const Json* value = run.config.is_object() ? find_value(run.config, path) : nullptr;
        row.push_back(value == nullptr ? (run.config.is_object() ? "(missing)" : "-")
                                       : cut(json_text(*value), longest_value));
      }
      table.rows.push_back(std::move(row));
    }
    if (paths.empty()) {
      section.blocks.emplace_back(Paragraph{"The configs are the same in all keys but training.output_dir."});
    } else {
      section.blocks.emplace_back(std::move(table));
    }
  }
  section.blocks.emplace_back(Listing{(runs.size() > 1 ? "The whole config of " : "The config of ") + first->name,
                                      cut(json_text(first->config, 2), longest_config)});
  return section;
}

Contents make_contents(const std::vector<RecordedRun>& runs) {
  Contents contents;
  contents.title =
      runs.size() == 1 ? "Training run " + runs.front().name : std::to_string(runs.size()) + " training runs";
  for (const RecordedRun& run : runs) contents.runs.push_back(described(run));
  contents.verdict = equality_in_words(runs);
  contents.sections = {overview_section(runs), curves_section(runs), memory_section(runs), communication_section(runs),
                       time_section(runs)};
  if (Section holdings = holdings_section(runs); !holdings.blocks.empty())
    contents.sections.push_back(std::move(holdings));
  contents.sections.push_back(config_section(runs));
  return contents;
}

}  // namespace zt

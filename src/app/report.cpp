// Runs as a page to look at, or as text.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "app/signals.h"
#include "app/verbs.h"
#include "app/version.h"
#include "core/errors.h"
#include "core/files.h"
#include "report/contents.h"
#include "report/html_page.h"
#include "report/text_report.h"

namespace zt {

namespace {

namespace fs = std::filesystem;

std::string default_output(const std::vector<RecordedRun>& runs) {
  return runs.size() == 1 ? (fs::path(runs.front().path) / "report.html").string() : "report.html";
}

void check_output(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) throw UserError("--output " + path + " is a directory; name a file in it");
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty() && !fs::is_directory(parent, error))
    throw UserError("--output " + path + ": there is no directory " + parent.string());
  static const std::vector<std::string> of_runs = {"metrics.jsonl", "summary.json", "config.resolved.json", "train.log",
                                                   "trace.json"};
  for (const std::string& name : of_runs) {
    if (fs::path(path).filename() == name) throw UserError("--output " + path + " is the name of a file of a run");
  }
}

}  // namespace

int report(int argc, const char* const* argv) {
  CLI::App app(
      "Writes what runs did as one HTML page with figures (curves, memory, communication, times, configs), several "
      "runs "
      "in the same figures. The page needs no network and no script. Prints the page's name.",
      "zerotrain report");
  app.footer(
      "Examples:\n"
      "  zerotrain report runs/gpt\n"
      "  zerotrain report runs/a runs/b --output both.html\n"
      "  zerotrain report runs/gpt --text");
  std::vector<std::string> paths;
  std::string output;
  bool text = false;
  app.add_option("runs", paths, "Directories of runs, one or more")->type_name("RUN")->required();
  app.add_option("--output", output,
                 "The page to write, also over an older one; without it report.html in the run's directory, or of "
                 "several runs in "
                 "the current one")
      ->type_name("FILE");
  app.add_flag("--text", text,
               "As text with plots in characters, to stdout, 80 columns wide; a page only with --output");
  if (!parse_verb(app, argc, argv)) return 0;
  end_at_stop_signals();
  const std::vector<RecordedRun> runs = read_runs(paths);
  if (output.empty() && !text) output = default_output(runs);
  if (!output.empty()) check_output(output);
  const Contents contents = make_contents(runs);
  if (text) std::fputs(text_report(contents).c_str(), stdout);
  if (output.empty()) return 0;
  write_file_atomically(output, html_page(contents, program_name()));
  if (!text) std::puts(output.c_str());
  return 0;
}

}  // namespace zt

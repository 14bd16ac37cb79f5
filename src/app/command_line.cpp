#include "app/command_line.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <system_error>

#include "app/usage/command_usage.h"
#include "app/usage/manual.h"
#include "app/verbs.h"
#include "app/version.h"
#include "config/schema.h"
#include "core/errors.h"
#include "core/json.h"

namespace zt {

namespace {

std::vector<int> numbers(const std::string& option, const std::vector<std::string>& texts, int least, int most) {
  std::vector<int> values;
  for (const std::string& text : texts) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
      throw UserError(option + " must be " + std::to_string(least) + " to " + std::to_string(most) + ", not \"" + text +
                      "\"");
    }
    values.push_back(value);
  }
  return values;
}

// What to write in place of an argument that was not expected.
std::string how_to_give(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    const bool dotted = argument.find('.') < equals;
    if (argument.starts_with("--") && equals != std::string::npos && dotted) {
      return "a key of the config is given as --set " + argument.substr(2);
    }
    if (!argument.starts_with("-") && argument.ends_with(".json") && std::string(argv[i - 1]) != "--config" &&
        std::string(argv[i - 1]) != "-c") {
      return "each config file needs its own --config, as --config " + argument;
    }
  }
  return "options start with --, and a key of the config is given as --set KEY.PATH=VALUE";
}

std::string verb_names() {
  std::string names;
  for (const Verb& verb : verbs()) names += (names.empty() ? "" : ", ") + std::string(verb.name);
  return names;
}

}  // namespace

std::optional<CommandLine> parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App app("Trains neural networks from one JSON file, sharded by ZeRO.", "zerotrain");
  std::string verb_lines;
  for (const Verb& verb : verbs())
    verb_lines += std::string("  zerotrain ") + verb.name + " --help: " + verb.help + "\n";
  app.footer("Other verbs, each with its own options:\n" + verb_lines +
             "\nExamples:\n"
             "  zerotrain --config configs/mlp.json\n"
             "  zerotrain --ranks 4 --config configs/gpt.json --set zero_optimization.stage=3\n"
             "  mpirun -n 4 zerotrain --config configs/gpt.json\n"
             "  zerotrain --config configs/gpt.json --dry-run --world-size 8\n\n"
             "Exit codes: 0 done; 1 the run failed once it had begun; 2 found before the first step; 128+signal when "
             "stopped.");
  std::string output, trace;
  std::vector<std::string> ranks, stages, steps, world_size;
  bool version = false, schema = false, manual = false;
  app.add_option(
      "verb", line.verb,
      "What to do: train (the default), or prove: run the config for a few steps over ranks and stages and compare");
  app.add_option("-c,--config", line.configs, "Config file; several are merged left to right, key by key")
      ->type_name("FILE");
  app.add_option("-s,--set", line.sets, "One key, after all files: a.b.c=VALUE (JSON, or else a string)")
      ->type_name("KEY=VALUE");
  app.add_option("-r,--ranks", ranks, "Start N ranks on this machine (not under mpirun); prove: a list, 1,2,4")
      ->type_name("N")
      ->delimiter(',');
  app.add_option("--stages", stages, "prove: ZeRO stages, 0,1,2,3")->type_name("LIST")->delimiter(',');
  app.add_option("--steps", steps, "prove: steps to run, 4")->type_name("N");
  app.add_flag("--json", line.json, "prove: the table as JSON");
  app.add_flag("--as-is", line.as_is, "prove: keep sums in 16 bits, which differ with the number of ranks");
  CLI::Option* output_option =
      app.add_option("-o,--output", output, "Where the run's files go (key training.output_dir)")->type_name("DIR");
  CLI::Option* resume_option =
      app.add_option("--resume", line.resume_from,
                     "Go on from the newest checkpoint of the output directory, or of the run or checkpoint named; "
                     "without one, from the beginning")
          ->type_name("[PATH]")
          ->expected(0, 1);
  app.add_flag("--resume-previous", line.resume_previous,
               "As --resume, from the checkpoint before the newest (where that is damaged)");
  app.add_flag("--elastic", line.elastic,
               "With --ranks N: where a rank is lost, go on with N-1 from the last checkpoint");
  app.add_flag("--overwrite", line.overwrite, "Remove the run that the output directory holds");
  app.add_flag("--dry-run", line.dry_run, "Check everything and print the plan; train nothing");
  app.add_option("--world-size", world_size, "With --dry-run: plan for so many ranks")->type_name("N");
  app.add_flag("--print-config", line.print_config, "Print the resolved config as JSON to stdout");
  app.add_flag("--print-schema", schema, "Print the JSON Schema of configs, for editors (docs/config.schema.json)");
  app.add_flag("--print-manual", manual, "Print the manual page zerotrain(1), to be read by man");
  CLI::Option* trace_option =
      app.add_option("--trace", trace,
                     "Record the steps named, or the second and third, into the output directory's trace.json: for "
                     "Perfetto, chrome://tracing and zerotrain report")
          ->type_name("[FIRST-LAST]")
          ->expected(0, 1);
  app.add_flag("-q,--quiet", line.quiet, "Only warnings and errors on the screen");
  app.add_flag("-v,--verbose", line.verbose, "More on the screen");
  app.add_flag("--version", version, "Commit, libraries and built backends");
  for (const char* option : {"--config", "--set"}) app.get_option(option)->take_all();
  // Each takes one value, so that the verb may follow.
  for (const char* option : {"--config", "--set", "--ranks", "--stages", "--steps", "--world-size"}) {
    app.get_option(option)->allow_extra_args(false);
  }

  if (is_shown_to_visitor(app)) return std::nullopt;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::ExtrasError& error) {
    throw UserError(std::string(error.what()) + "; " + how_to_give(argc, argv) + "\nSee zerotrain --help.");
  } catch (const CLI::ParseError& error) {
    throw UserError(std::string(error.what()) + "\nSee zerotrain --help.");
  }
  if (version) {
    std::fputs(version_text().c_str(), stdout);
    return std::nullopt;
  }
  if (schema) {
    std::puts(config_schema().dump(1).c_str());
    return std::nullopt;
  }
  if (manual) {
    std::fputs(manual_page(command_usages()).c_str(), stdout);
    return std::nullopt;
  }
  if (*output_option) line.output = output;
  if (*trace_option) {
    line.traces = true;
    if (!trace.empty()) line.traced_steps = traced_steps(trace);
  }
  line.resume = *resume_option || line.resume_previous;
  if (line.verb.ends_with(".json")) {
    throw UserError("\"" + line.verb +
                    "\" stands where a verb would: each config file needs its own --config, as --config " + line.verb);
  }
  if (line.verb != "train" && line.verb != "prove") {
    throw UserError(
        "\"" + line.verb + "\" is not something this version does: it has " + verb_names() +
        " (the verb stands first), train (with --dry-run and --print-config) and prove. See zerotrain --help.");
  }
  if (line.configs.empty()) throw UserError("no config: give one with --config FILE, for example configs/gpt.json");
  line.rank_list = numbers("--ranks", ranks, 1, 1 << 20);
  line.stages = numbers("--stages", stages, 0, 3);
  constexpr int most_steps = 1'000'000'000;
  if (const std::vector<int> given = numbers("--steps", steps, 1, most_steps); !given.empty())
    line.steps = given.back();
  if (const std::vector<int> given = numbers("--world-size", world_size, 1, 1 << 20); !given.empty()) {
    line.world_size = given.back();
  }
  if (line.verb == "prove") {
    if (line.rank_list.empty()) line.rank_list = {1, 2, 4};
    if (line.stages.empty()) line.stages = {0, 1, 2, 3};
  } else {
    if (app.count("--stages") + app.count("--steps") + app.count("--json") + app.count("--as-is") > 0) {
      throw UserError(
          "--stages, --steps, --json and --as-is go with prove; a run's own keys are zero_optimization.stage and "
          "training.max_steps");
    }
    if (line.rank_list.size() > 1) throw UserError("--ranks takes one number here; a list goes with prove");
    if (!line.rank_list.empty()) line.ranks = line.rank_list.front();
  }
  if (app.count("--world-size") > 0) {
    if (!line.dry_run) throw UserError("--world-size goes with --dry-run; to start ranks use --ranks N or mpirun -n N");
  }
  const auto exclude = [&](const char* one, const char* other) {
    if (app.count(one) > 0 && app.count(other) > 0) {
      throw UserError(std::string(one) + " and " + other + " exclude each other");
    }
  };
  for (const char* resume : {"--resume", "--resume-previous"}) exclude(resume, "--overwrite");
  if (line.elastic && line.ranks < 2) throw UserError("--elastic goes with --ranks N, N at least 2");
  exclude("--dry-run", "--print-config");
  exclude("--quiet", "--verbose");
  if (line.dry_run) exclude("--ranks", "--world-size");
  if (line.verb == "prove") {
    for (const char* option : {"--dry-run", "--print-config", "--output", "--resume", "--resume-previous", "--elastic",
                               "--overwrite", "--trace"}) {
      if (app.count(option) > 0)
        throw UserError(std::string(option) + " does not go with prove, which writes no files");
    }
  }
  return line;
}

}  // namespace zt

#include "app/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/usage/command_usage.h"
#include "app/usage/manual.h"
#include "app/verbs.h"
#include "app/version.h"
#include "config/schema.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/spelling.h"

namespace zt {

namespace {

std::vector<int> numbers(const std::string& option, const std::vector<std::string>& texts,
                         const CLI::Validator& allowed) {
  std::vector<int> values;
  for (const std::string& text : texts) {
    if (const std::string wrong = allowed(text); !wrong.empty()) throw UserError(option + ": " + wrong);
    values.push_back(std::stoi(text));
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

// Throws where a word that stands for a verb is none that the config's own line knows.
void check_verb(const std::string& word, bool stands_first) {
  if (word == "train" || word == "prove") return;
  if (word.ends_with(".json")) {
    throw UserError("\"" + word +
                    "\" stands where a verb would: each config file needs its own --config, as --config " + word);
  }
  if (!stands_first && find_verb(word.c_str()) != nullptr) {
    throw UserError("the verb stands first: zerotrain " + word + " ... See zerotrain " + word + " --help.");
  }
  std::vector<std::string> names = {"train", "prove"};
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  const std::string near = nearest_word(word, names);
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  throw UserError("there is no verb \"" + word + "\"" + (near.empty() ? "." : "; did you mean " + near + "?") +
                  " zerotrain has " + known + ". See zerotrain --help.");
}

// What is given as texts, and looked at once all is known.
struct Texts {
  std::string output, trace;
  std::vector<std::string> ranks, stages, steps, world_size;
  bool version = false, schema = false, manual = false;
};

constexpr const char* examples_of_train =
    "\nExamples:\n"
    "  zerotrain --config configs/mlp.json\n"
    "  zerotrain --ranks 4 --config configs/gpt.json --set zero_optimization.stage=3\n"
    "  mpirun -n 4 zerotrain --config configs/gpt.json\n"
    "  zerotrain --config configs/gpt.json --dry-run --world-size 8\n\n"
    "Exit codes: 0 done; 1 the run failed once it had begun; 2 found before the first step; 128+signal when stopped.";

constexpr const char* examples_of_prove =
    "Examples:\n"
    "  zerotrain prove --config configs/gpt.json\n"
    "  zerotrain prove --config configs/gpt.json --ranks 1,2 --stages 0,3 --steps 8\n"
    "  zerotrain prove --config configs/gpt.json --set bf16.enabled=true --json\n\n"
    "Exit codes: 0 every row has the bits that it must have, and holds and sends what was planned; 1 one has not; "
    "2 a wrong command line or config.";

std::string footer_of_train() {
  std::string text =
      "Other verbs, each with its own options:\n  zerotrain prove --help: " + std::string(summary_of_prove) + "\n";
  for (const Verb& verb : verbs()) text += std::string("  zerotrain ") + verb.name + " --help: " + verb.help + "\n";
  return text + examples_of_train;
}

// The options of train and prove, which share a line: those that are only the other's are taken, to be refused with a
// reason, and not shown.
void add_options(CLI::App& app, bool of_prove, CommandLine& line, Texts& texts) {
  app.footer(of_prove ? examples_of_prove : footer_of_train());
  if (!of_prove) {
    app.add_option("verb", line.verb,
                   "What to do: train (the default), or one of those below, each of which has its own --help");
  }
  const auto only_of = [&](bool shown, CLI::Option* option) { option->group(shown ? "Options" : ""); };
  app.add_option("-c,--config", line.configs,
                 "A config, in JSON, in which comments may stand; several, each with its own --config, are merged left "
                 "to right, key by key")
      ->type_name("FILE");
  app.add_option("-s,--set", line.sets, "One key, after all files: a.b.c=VALUE (JSON, or else a text)")
      ->type_name("KEY=VALUE");
  CLI::Option* const ranks =
      app.add_option("-r,--ranks", texts.ranks,
                     of_prove ? "Numbers of ranks to compare"
                              : "Start N ranks, as processes of this machine that share its cores (not under mpirun, "
                                "which starts them itself); without it one")
          ->type_name(of_prove ? "LIST" : "N")
          ->delimiter(',');
  CLI::Option* const stages =
      app.add_option("--stages", texts.stages, "ZeRO stages to compare")->type_name("LIST")->delimiter(',');
  CLI::Option* const steps = app.add_option("--steps", texts.steps, "Steps of each run")->type_name("N");
  if (of_prove) {
    ranks->default_str("1,2,4");
    stages->default_str("0,1,2,3");
    steps->default_str("4");
  }
  only_of(of_prove, stages);
  only_of(of_prove, steps);
  only_of(of_prove, app.add_flag("--json", line.json, "Print the table as a list of JSON objects, one a row"));
  only_of(of_prove, app.add_flag("--as-is", line.as_is,
                                 "Add up gradients as the config says, also where that differs with the number of "
                                 "ranks: in 16 bits, or in fast order; without it sums are fp32 and exact"));
  const auto of_train = [&](CLI::Option* option) {
    only_of(!of_prove, option);
    return option;
  };
  of_train(app.add_option("-o,--output", texts.output,
                          "Where the run's files go, in place of the config's training.output_dir"))
      ->type_name("DIR");
  of_train(app.add_option("--resume", line.resume_from,
                          "Go on from the newest checkpoint of the output directory, or of the run or checkpoint "
                          "named; where there is none yet, from the beginning"))
      ->type_name("[PATH]")
      ->expected(0, 1);
  of_train(app.add_flag("--resume-previous", line.resume_previous,
                        "As --resume, from the checkpoint before the newest (where that is damaged)"));
  of_train(app.add_flag("--elastic", line.elastic,
                        "With --ranks N: where a rank is lost, go on with N-1 from the last checkpoint"));
  of_train(app.add_flag("--overwrite", line.overwrite,
                        "Remove the run that the output directory holds, and nothing else in it, and begin anew"));
  of_train(app.add_flag("--dry-run", line.dry_run,
                        "Check everything and print the plan (memory and communication of a rank); train nothing"));
  of_train(app.add_option("--world-size", texts.world_size, "With --dry-run: plan for so many ranks"))->type_name("N");
  of_train(app.add_flag("--print-config", line.print_config,
                        "Print the resolved config, every key with its value, as JSON to stdout; train nothing"));
  of_train(app.add_flag("--print-schema", texts.schema,
                        "Print the JSON Schema of configs, for editors (docs/config.schema.json)"));
  of_train(app.add_flag("--print-manual", texts.manual, "Print the manual page zerotrain(1), to be read by man"));
  of_train(app.add_option("--trace", texts.trace,
                          "Record the steps named, as 5 or 10-12, or else the second and third, into the output "
                          "directory's trace.json: for Perfetto, chrome://tracing and zerotrain report"))
      ->type_name("[FIRST-LAST]")
      ->expected(0, 1);
  of_train(app.add_flag("-q,--quiet", line.quiet, "Only warnings and errors on the screen"));
  of_train(app.add_flag("-v,--verbose", line.verbose, "More on the screen: what train.log has, too"));
  of_train(app.add_flag("--version", texts.version, "Print commit, libraries and built backends"));
  for (const char* option : {"--config", "--set"}) app.get_option(option)->take_all();
  // Each takes one value, so that the verb may follow.
  for (const char* option : {"--config", "--set", "--ranks", "--stages", "--steps", "--world-size"}) {
    app.get_option(option)->allow_extra_args(false);
  }
}

constexpr const char* about_train = "Trains neural networks from one JSON file, sharded by ZeRO.";
constexpr const char* about_prove =
    "Runs a config for a few steps at several ZeRO stages and numbers of ranks, with the same batches, and compares: "
    "the weights must have the same bits. Ranks are threads; nothing is written to disk.";

void print_help_of_prove() {
  CLI::App app(about_prove, "zerotrain prove");
  CommandLine line;
  Texts texts;
  add_options(app, true, line, texts);
  std::fputs(app.help().c_str(), stdout);
}

// False: help was asked for, and has been printed, or the app was only looked at.
bool parse(CLI::App& app, int argc, const char* const* argv) {
  if (is_shown_to_visitor(app)) return false;
  // The verb may stand behind options.
  const auto checked_verb = [&] {
    const CLI::Option* const verb = app.get_option_no_throw("verb");
    if (verb == nullptr || verb->results().empty()) return std::string();
    check_verb(verb->results().front(), false);
    return verb->results().front();
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    if (checked_verb() == "prove") {
      print_help_of_prove();
    } else {
      std::fputs(app.help().c_str(), stdout);
    }
    return false;
  } catch (const CLI::ExtrasError& error) {
    checked_verb();
    throw UserError(std::string(error.what()) + "; " + how_to_give(argc, argv) + "\nSee " + app.get_name() +
                    " --help.");
  } catch (const CLI::ParseError& error) {
    throw UserError(std::string(error.what()) + "\nSee " + app.get_name() + " --help.");
  }
  return true;
}

}  // namespace

std::optional<CommandLine> parse_command_line(int argc, const char* const* argv) {
  const std::string first = argc > 1 ? argv[1] : "-";
  if (!first.starts_with('-')) check_verb(first, true);
  const bool is_prove = first == "prove";
  CommandLine line;
  Texts texts;
  CLI::App app(is_prove ? about_prove : about_train, is_prove ? "zerotrain prove" : "zerotrain");
  add_options(app, is_prove, line, texts);
  if (!parse(app, is_prove ? argc - 1 : argc, is_prove ? argv + 1 : argv)) return std::nullopt;
  if (is_prove) line.verb = "prove";
  if (texts.version) {
    std::fputs(version_text().c_str(), stdout);
    return std::nullopt;
  }
  if (texts.schema) {
    std::puts(config_schema().dump(1).c_str());
    return std::nullopt;
  }
  if (texts.manual) {
    std::fputs(manual_page(command_usages()).c_str(), stdout);
    return std::nullopt;
  }
  if (app.count("--output") > 0) line.output = texts.output;
  if (app.count("--trace") > 0) {
    line.traces = true;
    if (!texts.trace.empty()) line.traced_steps = traced_steps(texts.trace);
  }
  line.resume = app.count("--resume") > 0 || line.resume_previous;
  check_verb(line.verb, false);
  if (line.configs.empty()) throw UserError("no config: give one with --config FILE, for example configs/gpt.json");
  // A plan has as many ranks as one likes.
  const bool starts_ranks = !line.dry_run && !line.print_config;
  const char* const otherwise =
      line.verb == "prove" ? "" : "; take more machines with mpirun, or look at a plan with --dry-run --world-size N";
  line.rank_list = numbers("--ranks", texts.ranks, starts_ranks ? local_ranks(otherwise) : whole_number(1, 1 << 20));
  line.stages = numbers("--stages", texts.stages, whole_number(0, 3));
  constexpr int most_steps = 1'000'000'000;
  if (const std::vector<int> given = numbers("--steps", texts.steps, whole_number(1, most_steps)); !given.empty())
    line.steps = given.back();
  if (const std::vector<int> given = numbers("--world-size", texts.world_size, whole_number(1, 1 << 20));
      !given.empty())
    line.world_size = given.back();
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

#include "app/run.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "app/command_line.h"
#include "app/fit_memory.h"
#include "app/launcher.h"
#include "app/output_directory.h"
#include "app/planning.h"
#include "app/prove.h"
#include "app/resolve_options.h"
#include "app/resume_search.h"
#include "app/same_config.h"
#include "app/signals.h"
#include "app/verbs.h"
#include "app/version.h"
#include "checkpoint/resume_point.h"
#include "comm/agree.h"
#include "comm/mpi.h"
#include "comm/mpi_environment.h"
#include "comm/threads.h"
#include "config/model_section.h"
#include "config/resolve.h"
#include "config/resolve_again.h"
#include "core/available_memory.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/process.h"
#include "data/source.h"
#include "device/gpu/driver.h"
#include "train/compute.h"
#include "train/plan.h"
#include "train/report.h"
#include "train/trainer.h"

namespace zt {

namespace {

ConfigSource source_of(const CommandLine& line, ResolveOptions options = resolve_options_here()) {
  options.output_dir = line.output;
  return {line.configs, line.sets, std::move(options)};
}

ResolvedConfig resolve(const CommandLine& line, int world_size, ResolveOptions options = resolve_options_here()) {
  return resolve_here(source_of(line, std::move(options)), world_size);
}

// What stays of a run on another number of ranks.
ResumedBatch batch_of(const Settings& settings, const std::string& grad_accum_dtype) {
  return {settings.batch.train, settings.batch.micro, grad_accum_dtype};
}

// The model of a run that goes on is that of its checkpoint. What model.pretrained names was its beginning: it is not
// looked at, and need not be there any more.
PretrainedModel model_of(const ResumePoint& point) {
  return {
      .section = model_section(model_of_section(point.manifest.config.value("model", Json::object()))),
      .description = "the checkpoint " + point.directory + ", from which the run goes on (its beginning is not read)",
      .is_of_resumed_run = true};
}

// The data, able to write the prompt: characters that the vocabulary lacks are found before files are touched.
Dataset open_data(const Settings& settings) {
  Dataset dataset = open_dataset(settings);
  const std::string& prompt = settings.training.sample_prompt;
  if (dataset.tokenizer != nullptr && !prompt.empty()) {
    try {
      dataset.tokenizer->encode(prompt);
    } catch (const UserError& error) {
      throw UserError(std::string("training.sample_prompt: ") + error.what());
    }
  }
  return dataset;
}

void print_plan(ResolvedConfig config, const Dataset& dataset, int ranks) {
  const ComputeChoice choice = plan_compute(config.settings.device, ranks);
  settle_here(config, dataset.vocab_size, ranks, choice);
  refuse_absurd_sizes(config.settings);
  const Plan plan = plan_here(config.settings, ranks, choice);
  for (const std::string& notice : config.notices) std::fprintf(stderr, "notice: %s\n", notice.c_str());
  for (const std::string& notice : choice.notices) std::fprintf(stderr, "notice: %s\n", notice.c_str());
  for (const std::string& notice : dataset.notices) std::fprintf(stderr, "notice: %s\n", notice.c_str());
  if (choice.type == "cuda") {
    std::printf("planned for GPUs, %s\n", ranks == 1                      ? "one rank"
                                          : choice.communicator == "nccl" ? "ranks over NCCL"
                                                                          : "ranks staged through the host");
  }
  for (const std::string& text : plan_tables(config.settings, plan)) std::printf("%s\n", text.c_str());
}

class Run {
 public:
  Run(const CommandLine& line, std::chrono::steady_clock::time_point start, ResumeSearch resume)
      : line_(line), start_(start) {
    go_on_from(std::move(resume));
  }

  // One rank alone, in this process.
  int alone() {
    prepare(1);
    watch_stop_signals();
    int code = 0;
    run_ranks_as_threads(1, 0, [&](Communicator& communicator) { code = rank(communicator, ""); });
    return code;
  }

  int local_ranks() {
    for (int ranks = line_.ranks;; --ranks) {
      prepare(ranks);
      hold_stop_signals();
      bool lost_one = false;
      const int code = launch_local_ranks(
          {.ranks = ranks, .ranks_per_node = config_.settings.device.ranks_per_node, .lost_a_rank = &lost_one},
          [&](Communicator& communicator) {
            watch_stop_signals();
            return rank(communicator, "");
          });
      if (!line_.elastic || !lost_one || ranks == 1) return code;
      go_on_without_one(ranks - 1);
    }
  }

  int mpi_ranks(int world_size) {
    config_ = resolve_run(world_size);
    watch_stop_signals();
    std::string note;
    int code = 0;
    {
      const bool windows = config_.settings.device.communicator != "mpi";
      const auto communicator = mpi_communicator(config_.settings.device.ranks_per_node, windows, &note);
      try {
        require_same_config(*communicator, config_);
        all_or_none(*communicator, [&] {
          open_data_that_fits(world_size, 1);
          if (communicator->rank() == 0) claim();
        });
        code = rank(*communicator, note);
      } catch (const PeerFailed&) {
        // The rank that failed ends the world once it has spoken; a rank that exits before would cut it off.
        std::this_thread::sleep_for(std::chrono::seconds(2));
        throw;
      } catch (const UserError& error) {
        communicator->abort(2, error.what());
        throw;
      } catch (const std::exception& error) {
        communicator->abort(1, error.what());
        throw;
      }
    }
    mpi_finalize();
    return code;
  }

 private:
  void go_on_from(ResumeSearch resume) {
    point_ = std::move(resume.point);
    notices_ = std::move(resume.notices);
    if (point_) batch_ = batch_of(*point_);
  }

  // The run goes on from its last checkpoint, or begins again where it has none yet, with the same micro-batches.
  void go_on_without_one(int ranks) {
    const Settings& settings = config_.settings;
    const std::string sums = config_.json.at("data_types").at("grad_accum_dtype").get<std::string>();
    batch_ = batch_of(settings, sums);
    go_on_from(find_resume_point("", settings.training.output_dir, false));
    adds_to_run_ = true;
    std::fprintf(stderr, "elastic: going on with %d %s %s\n", ranks, ranks == 1 ? "rank" : "ranks",
                 point_ ? ("from " + point_->directory).c_str() : "from the beginning: there is no checkpoint yet");
  }
  bool resumes() const { return adds_to_run_ || (line_.resume && (!point_ || point_->same_run)); }

  ConfigSource source() const {
    ResolveOptions options = resolve_options_here();
    options.resumed = batch_;
    if (point_) options.pretrained_model = [&](const std::string&) { return model_of(*point_); };
    return source_of(line_, std::move(options));
  }
  ResolvedConfig resolve_run(int world_size) const { return resolve_here(source(), world_size); }

  // Everything that can be found wrong before ranks exist.
  void prepare(int world_size) {
    config_ = resolve_run(world_size);
    if (config_.settings.device.communicator == "mpi") {
      throw UserError("device.communicator: \"mpi\" (for CPUs) needs mpirun: mpirun -n " +
                      std::to_string(std::max(2, world_size)) + " zerotrain ..., without --ranks");
    }
    open_data_that_fits(world_size, world_size);
    claim();
  }

  // Data, and the plan of the run: what cannot fit this machine is refused before anything is made, and where the
  // plan does not depend on the data, before they are made, too.
  void open_data_that_fits(int world_size, int ranks_here) {
    // Whether a GPU has room each rank sees for itself; its driver must not be started before ranks are forked.
    const std::string& device = config_.settings.device.type;
    if (config_.left_open.any()) {  // chosen by all ranks together, by what each has free
      refuse_absurd_sizes(least_settings(config_));
      dataset_ = open_data(config_.settings);
      return;
    }
    if (device == "cuda" || (device == "auto" && gpu_driver_is_installed())) {
      dataset_ = open_data(config_.settings);
      return;
    }
    const bool vocabulary_is_known = config_.settings.model.type != "gpt" || config_.settings.model.gpt.vocab_size > 0;
    if (vocabulary_is_known) check_fit({}, world_size, ranks_here);
    dataset_ = open_data(config_.settings);
    if (!vocabulary_is_known) check_fit(dataset_, world_size, ranks_here);
  }
  void check_fit(const Dataset& dataset, int world_size, int ranks_here) const {
    refuse_absurd_sizes(config_.settings);
    ResolvedConfig config = config_;
    ComputeChoice cpu;
    cpu.communicator = config.settings.device.communicator == "mpi" ? "mpi" : "shared";
    settle_here(config, dataset.vocab_size, world_size, cpu);
    // Without the scratch memory of products: their library must not be woken before ranks are forked and have agreed
    // on an instruction set. Each rank checks again, with it.
    const ScratchBytes none = [](const std::vector<Operation>&) { return std::int64_t{0}; };
    const Plan plan = make_plan(config.settings, 0, world_size, config.settings.device.ranks_per_node, none);
    check_memory(plan, ranks_here, available_memory_bytes());
  }
  void claim() {
    claim_output_directory(config_.settings.training.output_dir, resumes(), line_.overwrite && !adds_to_run_, lock_);
  }

  int rank(Communicator& communicator, const std::string& note) {
    if (config_.left_open.any()) config_ = choose_together(source(), config_, dataset_.vocab_size, communicator);
    TrainOptions options;
    options.quiet = line_.quiet;
    options.verbose = line_.verbose;
    options.resume = resumes();
    options.resume_point = point_;
    options.resume_notices = notices_;
    options.program = program_name();
    options.process_start = start_;
    options.stop_signal = stop_signal;
    options.traces = line_.traces;
    options.traced_steps = line_.traced_steps;
    options.communicator_note = note;
    return train(config_, dataset_, communicator, options);
  }

  const CommandLine& line_;
  OutputLock lock_;  // of the output directory
  std::chrono::steady_clock::time_point start_;
  ResolvedConfig config_;
  Dataset dataset_;
  std::optional<ResumePoint> point_;  // none: from the beginning
  std::optional<ResumedBatch> batch_;
  std::vector<std::string> notices_;
  bool adds_to_run_ = false;  // to what this very program began
};

int world_size_of_mpi() { return std::max(1, world_of_environment().size); }

}  // namespace

int run(int argc, const char* const* argv, std::chrono::steady_clock::time_point process_start) {
  if (const Verb* verb = argc > 1 ? find_verb(argv[1]) : nullptr; verb != nullptr) return verb->run(argc - 1, argv + 1);
  const std::optional<CommandLine> parsed = parse_command_line(argc, argv);
  if (!parsed) return 0;
  const CommandLine& line = *parsed;
  const bool under_mpi = launched_by_mpi();
  if (under_mpi && line.ranks > 0)
    throw UserError("--ranks starts ranks itself: use it without mpirun, or mpirun without it");

  if (line.verb == "prove") {
    if (under_mpi) throw UserError("prove runs its ranks as threads: start it without mpirun");
    return prove(resolve(line, 1), line);
  }
  if (line.dry_run || line.print_config) {
    const int ranks = line.world_size > 0 ? line.world_size : line.ranks > 0 ? line.ranks : world_size_of_mpi();
    ResolvedConfig config = resolve(line, ranks);
    refuse_absurd_sizes(least_settings(config));
    const Dataset dataset = open_data(config.settings);
    if (config.left_open.any()) config = choose_here(source_of(line), config, dataset.vocab_size, ranks);
    if (line.dry_run) {
      print_plan(config, dataset, ranks);
    } else {
      settle_here(config, dataset.vocab_size, ranks, plan_compute(config.settings.device, ranks));
      std::printf("%s\n", config.json.dump(2).c_str());
    }
    return 0;
  }
  const int world_size = under_mpi ? world_size_of_mpi() : std::max(1, line.ranks);
  ResumeSearch resume;
  if (line.resume) {
    auto found = search_resume_point(line, [&](const std::optional<ResumedBatch>& batch) {
      ResolveOptions options = resolve_options_here();
      options.resumed = batch;
      options.pretrained_model = {};  // nobody looks before it is known whether there is a checkpoint in its place
      return resolve(line, world_size, options);
    });
    if (!found) return 0;
    resume = std::move(*found);
  }
  Run program(line, process_start, std::move(resume));
  if (under_mpi) return program.mpi_ranks(world_size_of_mpi());
  return line.ranks > 1 ? program.local_ranks() : program.alone();
}

}  // namespace zt

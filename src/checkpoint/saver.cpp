#include "checkpoint/saver.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "checkpoint/checksum.h"
#include "checkpoint/directory.h"
#include "checkpoint/file_access.h"
#include "checkpoint/native.h"
#include "checkpoint/safetensors.h"
#include "comm/agree.h"
#include "core/errors.h"
#include "core/files.h"
#include "core/number_text.h"
#include "core/shape_text.h"
#include "zero/held_state.h"

namespace zt {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t staging_bytes = std::int64_t{1} << 20;

using Clock = std::chrono::steady_clock;

class AddsTime {
 public:
  explicit AddsTime(double& seconds) : seconds_(seconds) {}
  ~AddsTime() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  AddsTime(const AddsTime&) = delete;
  AddsTime& operator=(const AddsTime&) = delete;

 private:
  double& seconds_;
  Clock::time_point start_ = Clock::now();
};

std::int64_t bytes_of(const CheckpointPiece& piece) {
  return piece.count * static_cast<std::int64_t>(size_of(piece.dtype));
}

std::string numbered(const char* format, int rank) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, rank);
  return text.data();
}
std::string file_of(int rank, const std::string& kind) { return numbered("rank-%05d.", rank) + kind + ".safetensors"; }
// What a rank has written, until the manifest says it.
std::string index_of(int rank) { return numbered("rank-%05d.files.json", rank); }

std::string text_of_file(const std::string& path) {
  const InputDescriptor file(path);
  std::string text(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(0, file.bytes(), text.data());
  return text;
}

}  // namespace

std::int64_t owned_state_bytes(Engine& engine, StateStore& states, int moments) {
  std::int64_t bytes = 0;
  for (int kind = held_weights; kind < moments; ++kind)
    visit_owned_state(engine, states, kind, [&](const StateRun& run) { bytes += run.values.bytes(); });
  return bytes;
}

Saver::Saver(Engine& engine, StateStore& states, std::vector<std::string> moments, SaverOptions options)
    : engine_(engine),
      states_(states),
      options_(std::move(options)),
      moments_(std::move(moments)),
      staging_(engine.context().device.allocate_host(staging_bytes, "checkpoint staging")) {
  kinds_ = {weights_kind};
  kinds_.insert(kinds_.end(), moments_.begin(), moments_.end());
  pieces_.resize(kinds_.size());
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    visit_owned_state(engine_, states_, static_cast<int>(kind) - 1, [&](const StateRun& run) {
      pieces_[kind].push_back({run.tensor, run.offset, run.values.count, run.values.dtype, 0});
    });
    for (const CheckpointPiece& piece : pieces_[kind]) bytes_ += bytes_of(piece);
  }
  communicator().all_reduce_sum({&bytes_, 1});
}

Saver::~Saver() {
  abandoned_ = true;
  if (thread_.joinable()) thread_.join();
}

std::string Saver::directory_of(std::int64_t step) const { return temporary_checkpoint(options_.checkpoints, step); }

std::string Saver::lacks_room() const {
  // Headers and the manifest: about 200 bytes a piece.
  const std::int64_t needed = bytes_ + bytes_ / 100 + (std::int64_t{1} << 20);
  fs::path place = options_.checkpoints;
  std::error_code error;
  while (!fs::exists(place, error) && place.has_parent_path() && place != place.parent_path())
    place = place.parent_path();
  struct statvfs disk {};
  if (::statvfs(place.c_str(), &disk) != 0) return "";
  const auto available = static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
  if (available >= needed) return "";
  return "no room for a checkpoint in " + options_.checkpoints + ": it takes " + bytes_in_words(needed) + ", and " +
         bytes_in_words(available) +
         " are free there; free some, write elsewhere with --output DIR, or keep fewer (training.checkpoints_to_keep)";
}

void Saver::prepare(const std::string& directory) const {
  if (const std::string problem = lacks_room(); !problem.empty()) throw RunError(problem);
  std::error_code error;
  fs::create_directories(options_.checkpoints, error);
  if (!error) fs::remove_all(directory, error);
  if (!error) fs::create_directory(directory, error);
  if (error) throw RunError("cannot create " + directory + ": " + error.message());
}

void Saver::save(Manifest manifest) {
  finish();
  const AddsTime time(seconds_waited_);
  const std::string directory = directory_of(manifest.step);
  const bool first = communicator().rank() == 0;
  all_or_none<RunError>(communicator(), [&] {
    if (first) prepare(directory);
  });
  ++saved_;
  if (options_.snapshot != nullptr) {
    take_snapshot();
    phase_ = writing;
    thread_ = std::thread([this, manifest = std::move(manifest)] { write_in_background(manifest); });
    return;
  }
  all_or_none<RunError>(communicator(), [&] {
    write_mine(directory, manifest.step,
               [this](std::size_t kind, const Sink& sink) { produce_from_device(kind, sink); });
  });
  all_or_none<RunError>(communicator(), [&] {
    if (first) commit(std::move(manifest));
  });
}

void Saver::check() {
  if (phase_ != ended || !error_) return;
  thread_.join();
  phase_ = idle;
  std::rethrow_exception(std::exchange(error_, nullptr));
}

// Rank 0's thread is over when all ranks have written, which it would wait for in vain where one has failed: so first
// all agree that each has written its own.
void Saver::finish() {
  if (options_.snapshot == nullptr) return;
  const AddsTime time(seconds_waited_);
  const auto result_from = [&](int phase) {
    return [this, phase] {
      if (phase_ == idle) return;
      int now = phase_;
      while (now < phase) {
        phase_.wait(now);
        now = phase_;
      }
      if (phase_ == ended && error_) std::rethrow_exception(error_);
    };
  };
  const auto fail = [&](const std::string& failure) {
    abandoned_ = true;
    if (thread_.joinable()) thread_.join();
    fail_together<RunError>(communicator(), failure);
  };
  for (const int phase : {written, ended}) {
    const std::string failure = first_failure(communicator(), result_from(phase));
    if (!failure.empty()) fail(failure);
  }
  if (thread_.joinable()) thread_.join();
  phase_ = idle;
}

void Saver::produce_from_device(std::size_t kind, const Sink& sink) const {
  Device& device = engine_.context().device;
  visit_owned_state(engine_, states_, static_cast<int>(kind) - 1, [&](const StateRun& run) {
    const auto* bytes = static_cast<const std::byte*>(run.values.data);
    const std::int64_t all = run.values.bytes();
    for (std::int64_t done = 0; done < all; done += staging_bytes) {
      const std::int64_t count = std::min(staging_bytes, all - done);
      device.copy(Stream::compute, staging_.data(), bytes + done, count);
      device.synchronize(Stream::compute);
      sink(staging_.data(), count);
    }
  });
}

void Saver::take_snapshot() const {
  Device& device = engine_.context().device;
  std::int64_t at = 0;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    visit_owned_state(engine_, states_, static_cast<int>(kind) - 1, [&](const StateRun& run) {
      device.copy(Stream::compute, options_.snapshot->at(at), run.values.data, run.values.bytes());
      at += run.values.bytes();
    });
  }
  device.synchronize(Stream::compute);
}

void Saver::write_mine(const std::string& directory, std::int64_t step, const Produce& produce) const {
  const Layout& layout = engine_.context().layout;
  const int rank = communicator().rank();
  std::vector<CheckpointFile> files;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    if (pieces_[kind].empty()) continue;
    CheckpointFile file{file_of(rank, kinds_[kind]), kinds_[kind], 0, 0, pieces_[kind]};
    std::vector<TensorToWrite> tensors;
    TensorMetadata metadata = {{"format", "zerotrain"},
                               {"kind", kinds_[kind]},
                               {"rank", std::to_string(rank)},
                               {"world_size", std::to_string(communicator().size())},
                               {"step", std::to_string(step)}};
    for (const CheckpointPiece& piece : file.pieces) {
      const TensorPlace& place = layout.tensor(piece.tensor);
      tensors.push_back({piece_name(place.name, piece.offset), stored_type(piece.dtype), {piece.count}});
      metadata["shape." + place.name] = shape_as_list(place.shape);
    }
    SafetensorsWriter writer(directory + "/" + file.name, tensors, metadata);
    produce(kind, [&](const void* bytes, std::int64_t count) {
      if (abandoned_) throw RunError("the checkpoint was given up");
      writer.append(bytes, count);
    });
    writer.finish();
    file.bytes = writer.bytes();
    file.checksum = writer.file_checksum();
    for (std::size_t i = 0; i < file.pieces.size(); ++i) file.pieces[i].checksum = writer.tensor_checksums().at(i);
    files.push_back(std::move(file));
  }
  write_file_atomically(directory + "/" + index_of(rank), files_text(files));
}

void Saver::commit(Manifest manifest) const {
  const std::string directory = directory_of(manifest.step);
  const Layout& layout = engine_.context().layout;
  const auto all = static_cast<int>(moments_.size());
  for (const TensorPlace& place : layout.tensors()) {
    int kept = 0;
    while (kept < all && states_.keeps(kept, place)) ++kept;
    CheckpointTensor& tensor = manifest.tensors.emplace_back();
    tensor.name = place.name;
    tensor.shape = place.shape;
    tensor.trained = is_trained(place.segment);
    if (tensor.trained && kept < all) tensor.moments = kept;
  }
  manifest.moments = moments_;
  for (int rank = 0; rank < communicator().size(); ++rank) {
    const std::string path = directory + "/" + index_of(rank);
    for (CheckpointFile& file : parse_files(text_of_file(path), path)) manifest.files.push_back(std::move(file));
  }
  if (!options_.tokenizer_name.empty()) {
    const std::string& definition = options_.tokenizer_definition;
    manifest.tokenizer = CheckpointTokenizer{options_.tokenizer_name, "tokenizer",
                                             static_cast<std::int64_t>(definition.size()), checksum_of(definition)};
    write_file_atomically(directory + "/tokenizer", definition);
  }
  // What it says of itself is read as anybody would before it counts.
  const std::string text = manifest_text(manifest);
  parse_manifest(text, directory + "/" + manifest_name);
  for (int rank = 0; rank < communicator().size(); ++rank) fs::remove(directory + "/" + index_of(rank));
  write_file_atomically(directory + "/" + manifest_name, text);
  sync_directory(directory);
  publish_checkpoint(options_.checkpoints, manifest.step);
  if (options_.keep > 0) prune_checkpoints(options_.checkpoints, options_.keep);
}

bool Saver::all_have_written(const std::string& directory) const {
  std::error_code error;
  for (int rank = 0; rank < communicator().size(); ++rank) {
    if (!fs::exists(directory + "/" + index_of(rank), error)) return false;
  }
  return true;
}

void Saver::write_in_background(const Manifest& manifest) {
  const auto step_to = [&](int phase) {
    phase_ = phase;
    phase_.notify_all();
  };
  try {
    const std::string directory = directory_of(manifest.step);
    std::int64_t at = 0;
    write_mine(directory, manifest.step, [&](std::size_t kind, const Sink& sink) {
      for (const CheckpointPiece& piece : pieces_[kind]) {
        const std::int64_t bytes = bytes_of(piece);
        for (std::int64_t done = 0; done < bytes; done += staging_bytes)
          sink(options_.snapshot->at(at + done), std::min(staging_bytes, bytes - done));
        at += bytes;
      }
    });
    step_to(written);
    if (communicator().rank() == 0) {
      while (!all_have_written(directory)) {
        if (abandoned_) throw RunError("the checkpoint was given up");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      commit(manifest);
    }
  } catch (const std::exception&) {
    error_ = std::current_exception();
  }
  step_to(ended);
}

}  // namespace zt

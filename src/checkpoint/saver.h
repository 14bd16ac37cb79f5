// Writes the training state of a run as checkpoints: every rank its own files, side by side, rank 0 the manifest.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/manifest.h"
#include "comm/communicator.h"
#include "zero/engine.h"
#include "zero/state_store.h"

namespace zt {

struct SaverOptions {
  std::string checkpoints;  // the directory they go to; made if needed
  std::int64_t keep = 2;    // older ones are removed once a new one is whole
  // Memory of the host for all that this rank owns, to write it from while the training goes on; null: the training
  // waits.
  const Buffer* snapshot = nullptr;
  std::string tokenizer_name{}, tokenizer_definition{};  // empty: none
};

// Bytes that this rank owns of the state: weights and so many moments.
std::int64_t owned_state_bytes(Engine& engine, StateStore& states, int moments);

class Saver {
 public:
  Saver(Engine& engine, StateStore& states, std::vector<std::string> moments, SaverOptions options);
  ~Saver();  // what is being written in the background is given up
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // All ranks call it, with nothing on its way on the device's streams. Returns when the checkpoint is whole, or, in
  // the background, when the state may change again. `manifest` is used on rank 0; files, tensors, moments and
  // tokenizer are filled in here. RunError on all ranks if any failed: what was there before is untouched.
  void save(Manifest manifest);
  // Throws what has gone wrong in the background, on the rank on which it has.
  void check();
  // All ranks: until the last checkpoint is whole.
  void finish();

  // What is wrong with the room on the disk for one more checkpoint, in words; empty: nothing.
  std::string lacks_room() const;
  double seconds_waited() const { return seconds_waited_; }  // that save() and finish() have kept the training
  std::int64_t saved() const { return saved_; }              // checkpoints begun

 private:
  // Takes bytes of a file's tensors, in order.
  using Sink = std::function<void(const void* bytes, std::int64_t count)>;
  using Produce = std::function<void(std::size_t kind, const Sink& sink)>;

  Communicator& communicator() const { return engine_.context().communicator; }
  void prepare(const std::string& directory) const;
  void write_mine(const std::string& directory, std::int64_t step, const Produce& produce) const;
  void produce_from_device(std::size_t kind, const Sink& sink) const;
  void take_snapshot() const;
  void write_in_background(const Manifest& manifest);
  void commit(Manifest manifest) const;
  bool all_have_written(const std::string& directory) const;
  std::string directory_of(std::int64_t step) const;

  Engine& engine_;
  StateStore& states_;
  SaverOptions options_;
  std::vector<std::string> moments_, kinds_;
  std::vector<std::vector<CheckpointPiece>> pieces_;  // of this rank, by kind
  std::int64_t bytes_ = 0;                            // of a checkpoint's tensors, over all ranks
  Buffer staging_;
  std::thread thread_;
  std::atomic<bool> abandoned_{false};
  std::atomic<int> phase_{idle};  // of the thread
  std::exception_ptr error_;      // of the thread, once its phase is `ended`
  double seconds_waited_ = 0.0;
  std::int64_t saved_ = 0;

  static constexpr int idle = 0, writing = 1, written = 2, ended = 3;
};

}  // namespace zt

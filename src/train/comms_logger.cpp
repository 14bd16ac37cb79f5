#include "train/comms_logger.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "comm/communicator_decorator.h"
#include "core/json.h"
#include "device/device_decorator.h"
#include "train/trace_recorder.h"
#include "zero/layout.h"

namespace zt {

namespace {

// The device has come to the end of a step when the host knows the outcome of the next one: that next step needed the
// parameters of this one. The outcome may be read a step late (training.report_delay).
constexpr std::size_t steps_until_read = 2;

}  // namespace

// The calls of the step that is going on.
class CommsLogger::Calls {
 public:
  Calls(const CommsLoggerSettings& settings, Device& device) : device_(device) {
    for (std::size_t kind = 0; kind < logged_.size(); ++kind) {
      const std::string_view name = name_of(static_cast<CollectiveKind>(kind));
      logged_.at(kind) =
          settings.prof_all || std::any_of(settings.prof_ops.begin(), settings.prof_ops.end(),
                                           [&](const std::string& op) { return op.find(name) != std::string::npos; });
    }
  }

  // A training step, and each run of its micro-steps, begins by saying what its traffic is for.
  void set_purpose(Purpose purpose) {
    trains_ = purpose == Purpose::training;
    if (trains_) before_attempt_ = calls_.size();
  }
  void begin_activity(Activity activity, std::int64_t number) { open_.emplace_back(activity, number); }
  void end_activity(Activity activity, std::int64_t number) {
    const auto last = std::find(open_.rbegin(), open_.rend(), std::pair{activity, number});
    if (last != open_.rend()) open_.erase(std::next(last).base());
  }

  // What is put on the stream between the two; none: it is not logged.
  std::optional<std::size_t> begin(CollectiveKind kind, Stream stream, std::int64_t message, std::int64_t sent) {
    if (!trains_ || !logged_.at(static_cast<std::size_t>(kind))) return std::nullopt;
    Call call{.group = {.kind = kind, .message = message}, .sent = sent, .stream = stream};
    if (!open_.empty()) {
      const auto [activity, number] = open_.back();
      call.group.activity = activity;
      call.group.pass = pass();
      if (is_of_unit(activity)) call.group.unit = number;
    }
    call.begin = device_.mark(stream);
    calls_.push_back(call);
    return calls_.size() - 1;
  }
  void end(std::optional<std::size_t> call) {
    if (call) calls_[*call].end = device_.mark(calls_[*call].stream);
  }

  // Marks of what is forgotten stay taken: a step is left once, at the end of a run.
  void forget_attempt() { calls_.resize(std::min(calls_.size(), before_attempt_)); }
  std::vector<Call> take() { return std::exchange(calls_, {}); }

 private:
  Activity pass() const {
    for (const auto& [activity, number] : open_) {
      if (activity == Activity::forward || activity == Activity::backward || activity == Activity::finish)
        return activity;
    }
    return Activity::step;
  }

  Device& device_;
  std::array<bool, collective_kind_count> logged_{};
  bool trains_ = false;
  std::vector<Call> calls_;
  std::size_t before_attempt_ = 0;
  std::vector<std::pair<Activity, std::int64_t>> open_;  // the one that began last behind
};

class CommsLogger::WatchedDevice final : public DeviceDecorator {
 public:
  WatchedDevice(Device& inner, Calls& calls) : DeviceDecorator(inner), calls_(calls) {}
  void begin_activity(Activity activity, std::int64_t number) override {
    calls_.begin_activity(activity, number);
    inner().begin_activity(activity, number);
  }
  void end_activity(Activity activity, std::int64_t number) override {
    calls_.end_activity(activity, number);
    inner().end_activity(activity, number);
  }

 private:
  Calls& calls_;
};

class CommsLogger::WatchedCommunicator final : public CommunicatorDecorator {
 public:
  WatchedCommunicator(Communicator& inner, Calls& calls) : CommunicatorDecorator(inner), calls_(calls) {}

  Ticket all_gather(Device& device, Stream stream, const Region& from, TensorView to) override {
    const auto call = calls_.begin(CollectiveKind::all_gather, stream, to.bytes(), to.bytes() / size() * others());
    const Ticket ticket = inner().all_gather(device, stream, from, to);
    calls_.end(call);
    return ticket;
  }
  Ticket reduce_scatter(Device& device, Stream stream, const Region& from, DType dtype, TensorView acc,
                        bool first) override {
    const std::int64_t slice = acc.count * static_cast<std::int64_t>(size_of(dtype));
    const auto call = calls_.begin(CollectiveKind::reduce_scatter, stream, slice * size(), slice * others());
    const Ticket ticket = inner().reduce_scatter(device, stream, from, dtype, acc, first);
    calls_.end(call);
    return ticket;
  }
  Ticket all_to_all(Device& device, Stream stream, const Region& from, const OwnerBlocks& blocks,
                    TensorView to) override {
    const auto width = static_cast<std::int64_t>(size_of(to.dtype));
    const std::int64_t sent = blocks.sent_by(rank()) * width;
    const auto call =
        calls_.begin(CollectiveKind::all_to_all, stream, sent + blocks.count(rank(), rank()) * width, sent);
    const Ticket ticket = inner().all_to_all(device, stream, from, blocks, to);
    calls_.end(call);
    return ticket;
  }
  void all_reduce_sum(std::span<std::int64_t> values) override {
    const auto bytes = static_cast<std::int64_t>(values.size_bytes());
    const auto call = calls_.begin(CollectiveKind::all_reduce, Stream::compute, bytes, bytes * others());
    inner().all_reduce_sum(values);
    calls_.end(call);
  }
  void sum_on_device(Device& device, Stream stream, std::int64_t* values, std::int64_t count) override {
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof *values);
    const auto call = calls_.begin(CollectiveKind::all_reduce, stream, bytes, bytes * others());
    inner().sum_on_device(device, stream, values, count);
    calls_.end(call);
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    const auto message = static_cast<std::int64_t>(bytes.size());
    const auto call =
        calls_.begin(CollectiveKind::broadcast, Stream::compute, message, root == rank() ? message * others() : 0);
    inner().broadcast(bytes, root);
    calls_.end(call);
  }
  void set_purpose(Purpose purpose) override {
    calls_.set_purpose(purpose);
    inner().set_purpose(purpose);
  }

 private:
  Calls& calls_;
};

CommsLoggerSettings comms_logger_settings(const nlohmann::ordered_json& config) {
  const auto& section = config.at("comms_logger");
  return {.enabled = section.at("enabled").get<bool>(),
          .verbose = section.at("verbose").get<bool>(),
          .prof_all = section.at("prof_all").get<bool>(),
          .prof_ops = section.at("prof_ops").get<std::vector<std::string>>(),
          .debug = section.at("debug").get<bool>()};
}

CommsLogger::CommsLogger(const CommsLoggerSettings& settings, Device& device, Communicator& communicator)
    : settings_(settings),
      device_(device),
      context_{.ranks = communicator.size(), .tells_purpose = settings.debug},
      calls_(std::make_unique<Calls>(settings, device)),
      watched_device_(settings.debug ? std::make_unique<WatchedDevice>(device, *calls_) : nullptr),
      watched_communicator_(std::make_unique<WatchedCommunicator>(communicator, *calls_)) {}

CommsLogger::~CommsLogger() = default;

Device& CommsLogger::device() { return watched_device_ ? static_cast<Device&>(*watched_device_) : device_; }

Communicator& CommsLogger::communicator() { return *watched_communicator_; }

void CommsLogger::name_units(const Layout& layout) {
  context_.units.clear();
  for (const UnitLayout& unit : layout.units()) context_.units.push_back(unit.name);
}

std::vector<std::string> CommsLogger::after_step(std::int64_t step, bool was_left) {
  if (was_left) {
    calls_->forget_attempt();
  } else {
    ++steps_;
  }
  LoggedStep logged{.number = step, .calls = calls_->take()};
  for (int stream = 0; stream < stream_count; ++stream)
    logged.ends.at(static_cast<std::size_t>(stream)) = device_.record(static_cast<Stream>(stream));
  unread_.push_back(std::move(logged));
  std::vector<std::string> lines;
  while (unread_.size() > (settings_.verbose ? 0 : steps_until_read)) settle_oldest(lines);
  return lines;
}

std::vector<std::string> CommsLogger::finish() {
  std::vector<std::string> lines;
  while (!unread_.empty()) settle_oldest(lines);
  if (steps_ == 0) return lines;
  std::vector<std::string> table = comms_table(sums_, steps_, context_);
  std::move(table.begin(), table.end(), std::back_inserter(lines));
  return lines;
}

void CommsLogger::settle_oldest(std::vector<std::string>& lines) {
  const LoggedStep& step = unread_.front();
  for (const Event end : step.ends) device_.synchronize(end);
  for (const Call& call : step.calls) {
    const CollectiveSum one{.calls = 1, .sent = call.sent, .seconds = device_.seconds_between(call.begin, call.end)};
    CollectiveSum& sum = sums_[call.group];
    sum.calls += one.calls;
    sum.sent += one.sent;
    sum.seconds += one.seconds;
    if (settings_.verbose) lines.push_back(call_line(step.number, call.group, one, context_));
  }
  unread_.pop_front();
}

}  // namespace zt

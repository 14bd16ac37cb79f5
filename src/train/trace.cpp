#include "train/trace.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>
#include <variant>

#include "core/errors.h"
#include "core/json.h"
#include "core/json_text.h"
#include "device/device_decorator.h"

namespace zt {

namespace {

// Rows of a rank in the picture. Spans of one row lie within each other or apart.
enum class Row : std::uint8_t { passes, units, compute, gather, reduce, copy };
constexpr std::array<std::string_view, 6> row_names = {"steps and passes", "units",         "compute stream",
                                                       "gather stream",    "reduce stream", "copy stream"};

Row row_of(Stream stream) { return static_cast<Row>(static_cast<int>(Row::compute) + static_cast<int>(stream)); }

Stream stream_of(Activity activity) {
  switch (activity) {
    case Activity::gather: return Stream::gather;
    case Activity::reduce: return Stream::reduce;
    default: return Stream::compute;
  }
}

Row row_of(Activity activity) {
  switch (activity) {
    case Activity::compute:
    case Activity::update:
    case Activity::free: return Row::units;
    case Activity::gather: return Row::gather;
    case Activity::reduce: return Row::reduce;
    default: return Row::passes;
  }
}

bool is_of_unit(Activity activity) { return activity >= Activity::compute; }

std::string_view name_of(CollectiveKind kind) {
  constexpr std::array<std::string_view, collective_kind_count> names = {"all_reduce", "reduce_scatter", "all_gather",
                                                                         "broadcast"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string microseconds(double seconds) {
  std::array<char, 32> text{};
  return {text.data(), static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%.3f", seconds * 1e6))};
}

std::string json_string(std::string_view text) { return nlohmann::ordered_json(text).dump(); }

}  // namespace

TracedSteps traced_steps(const std::string& text) {
  const auto fail = [&]() -> std::int64_t {
    throw UserError("--trace " + text + ": name the steps to record, as 2-3 or 5, counted from 1");
  };
  const auto number = [&](std::string_view digits) {
    if (digits.empty() || digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string_view::npos)
      return fail();
    const std::int64_t value = std::stoll(std::string(digits));
    return value >= 1 ? value : fail();
  };
  const std::string_view all = text;
  const std::size_t dash = all.find('-');
  TracedSteps steps;
  steps.first = number(all.substr(0, dash));
  steps.last = dash == std::string_view::npos ? steps.first : number(all.substr(dash + 1));
  if (steps.last < steps.first) fail();
  return steps;
}

// What has been put on streams, with marks until the device has come to them.
class Trace::Recorder {
 public:
  struct Span {
    enum class Kind : std::uint8_t { operation, copy, collective, activity };
    Kind kind = Kind::operation;
    Stream stream = Stream::compute;
    Activity activity = Activity::step;  // of an activity: which; of others: what they are for
    std::int64_t number = 0;
    Activity pass = Activity::step;
    std::string_view name;
    std::array<std::int64_t, 3> shape{};  // of a product: m, n, k
    std::int64_t bytes = 0;               // sent, or copied
    double flops = 0.0;
    TimeMark begin, end;
  };
  struct Moment {
    std::size_t span = 0;
    bool begins = false;
  };

  explicit Recorder(Device& device) : device_(device) {}

  void start() {
    spans_.clear();
    log_.clear();
    open_.clear();
    left_out_ = 0;
    base_ = device_.mark(Stream::compute);
    recording_ = true;
  }
  void stop() { recording_ = false; }
  bool recording() const { return recording_; }

  void begin_activity(Activity activity, std::int64_t number) {
    if (!recording_) return;
    Span span;
    span.kind = Span::Kind::activity;
    span.stream = stream_of(activity);
    span.activity = activity;
    span.number = number;
    span.name = zt::name_of(activity);
    const std::optional<std::size_t> index = begin(span);
    if (!index) return;
    open_.push_back(*index);
    log_.push_back({*index, true});
  }
  // Of one that began before the recording, or was left out, nothing is open.
  void end_activity(Activity activity, std::int64_t number) {
    if (!recording_) return;
    for (std::size_t place = open_.size(); place-- > 0;) {
      const std::size_t index = open_[place];
      if (spans_[index].activity != activity || spans_[index].number != number) continue;
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(place));
      end(index);
      log_.push_back({index, false});
      return;
    }
  }

  // The span of something put on a stream between the two calls.
  std::optional<std::size_t> begin(Span span) {
    if (!recording_) return std::nullopt;
    if (spans_.size() >= most_events) {
      ++left_out_;
      return std::nullopt;
    }
    if (span.kind != Span::Kind::activity && !open_.empty()) {
      span.activity = spans_[open_.back()].activity;
      span.number = spans_[open_.back()].number;
      span.pass = pass();
    }
    span.begin = device_.mark(span.stream);
    spans_.push_back(span);
    return spans_.size() - 1;
  }
  void end(std::optional<std::size_t> span) {
    if (span) spans_[*span].end = device_.mark(spans_[*span].stream);
  }

  Record take(const Layout& layout, int rank);
  std::vector<Timed> timed();

 private:
  // The one that is going on.
  Activity pass() const {
    for (const std::size_t index : open_) {
      const Activity activity = spans_[index].activity;
      if (activity == Activity::forward || activity == Activity::backward || activity == Activity::finish)
        return activity;
    }
    return Activity::step;
  }
  struct Times {
    double begin = 0.0, end = 0.0;  // seconds
  };
  std::vector<Times> settle();
  static std::string label(const Span& span, const Layout& layout);
  static std::string arguments(const Span& span, const Layout& layout, double seconds);

  Device& device_;
  bool recording_ = false;
  TimeMark base_;
  std::vector<Span> spans_;
  std::vector<Moment> log_;
  std::vector<std::size_t> open_;  // activities, the one that began last behind
  std::int64_t left_out_ = 0;
};

// Every mark is read once. An activity that is still going on ends where it is cut off.
std::vector<Trace::Recorder::Times> Trace::Recorder::settle() {
  std::vector<Times> times(spans_.size());
  double latest = 0.0;
  for (std::size_t index = 0; index < spans_.size(); ++index) {
    const Span& span = spans_[index];
    times[index].begin = device_.seconds_after(base_, span.begin);
    if (span.end.number >= 0) times[index].end = device_.seconds_after(base_, span.end);
    latest = std::max({latest, times[index].begin, times[index].end});
  }
  for (std::size_t index = 0; index < spans_.size(); ++index) {
    if (spans_[index].end.number < 0) times[index].end = latest;
    times[index].end = std::max(times[index].end, times[index].begin);
  }
  const TimeMark now = device_.mark(Stream::compute);
  device_.synchronize(Stream::compute);
  device_.seconds_between(base_, now);  // gives both back
  return times;
}

std::string Trace::Recorder::label(const Span& span, const Layout& layout) {
  const auto of_unit = [&] { return " " + layout.unit(static_cast<int>(span.number)).name; };
  switch (span.kind) {
    case Span::Kind::activity:
      if (is_of_unit(span.activity)) return std::string(span.name) + of_unit();
      return std::string(span.name) + " " + std::to_string(span.number);
    case Span::Kind::operation:
      if (span.shape[0] == 0) return std::string(span.name);
      return std::string(span.name) + " " + std::to_string(span.shape[0]) + " x " + std::to_string(span.shape[1]) +
             " x " + std::to_string(span.shape[2]);
    default: return std::string(span.name);
  }
}

std::string Trace::Recorder::arguments(const Span& span, const Layout& layout, double seconds) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  if (span.kind != Span::Kind::activity) {
    values["for"] = zt::name_of(span.activity);
    if (is_of_unit(span.activity)) values["unit"] = layout.unit(static_cast<int>(span.number)).name;
  }
  if (span.bytes > 0) values[span.kind == Span::Kind::collective ? "bytes sent" : "bytes"] = span.bytes;
  if (span.flops > 0.0) {
    values["flops"] = span.flops;
    if (seconds > 0.0) values["flops per second"] = span.flops / seconds;
  }
  return json_text(values);
}

Trace::Record Trace::Recorder::take(const Layout& layout, int rank) {
  const std::vector<Times> times = settle();
  constexpr std::array<std::string_view, 4> categories = {"operation", "copy", "collective", "activity"};
  Record record;
  const std::string pid = std::to_string(rank);
  record.events = R"({"ph":"M","pid":)" + pid + R"(,"name":"process_name","args":{"name":"rank )" + pid + "\"}}";
  record.events += ",\n" + std::string(R"({"ph":"M","pid":)") + pid +
                   R"(,"name":"process_sort_index","args":{"sort_index":)" + pid + "}}";
  for (std::size_t row = 0; row < row_names.size(); ++row) {
    const std::string tid = std::to_string(row);
    record.events += ",\n" + std::string(R"({"ph":"M","pid":)") + pid + ",\"tid\":" + tid +
                     R"(,"name":"thread_name","args":{"name":)" + json_string(row_names.at(row)) + "}}";
    record.events += ",\n" + std::string(R"({"ph":"M","pid":)") + pid + ",\"tid\":" + tid +
                     R"(,"name":"thread_sort_index","args":{"sort_index":)" + tid + "}}";
  }
  for (std::size_t index = 0; index < spans_.size(); ++index) {
    const Span& span = spans_[index];
    const double seconds = times[index].end - times[index].begin;
    const Row row = span.kind == Span::Kind::activity ? row_of(span.activity) : row_of(span.stream);
    record.events += ",\n" + std::string(R"({"ph":"X","pid":)") + pid +
                     ",\"tid\":" + std::to_string(static_cast<int>(row)) +
                     ",\"ts\":" + microseconds(times[index].begin) + ",\"dur\":" + microseconds(seconds) +
                     ",\"name\":" + json_string(label(span, layout)) + R"(,"cat":")" +
                     std::string(categories.at(static_cast<std::size_t>(span.kind))) + R"(","args":)" +
                     arguments(span, layout, seconds) + "}";
  }
  for (const Moment& moment : log_) {
    const Span& span = spans_[moment.span];
    record.log += (record.log.empty() ? "[" : ",[") +
                  microseconds(moment.begins ? times[moment.span].begin : times[moment.span].end) + ",\"" +
                  std::string(span.name) + "\"," + std::to_string(span.number) + (moment.begins ? ",1]" : ",0]");
  }
  if (left_out_ > 0)
    record.log +=
        (record.log.empty() ? "[" : ",[") + std::string("0,\"left out\",") + std::to_string(left_out_) + ",0]";
  spans_ = {};
  log_ = {};
  return record;
}

std::vector<Trace::Timed> Trace::Recorder::timed() {
  const std::vector<Times> times = settle();
  std::vector<Timed> result;
  for (std::size_t index = 0; index < spans_.size(); ++index) {
    const Span& span = spans_[index];
    if (span.kind == Span::Kind::activity) continue;
    result.push_back({.name = span.name,
                      .pass = span.pass,
                      .activity = span.activity,
                      .number = span.number,
                      .collective = span.kind == Span::Kind::collective,
                      .flops = span.flops,
                      .seconds = times[index].end - times[index].begin,
                      .bytes = span.bytes});
  }
  spans_ = {};
  log_ = {};
  return result;
}

class Trace::TracingDevice final : public DeviceDecorator {
 public:
  TracingDevice(Device& inner, Recorder& recorder) : DeviceDecorator(inner), recorder_(recorder) {}

  void run(Stream stream, const Operation& operation) override {
    if (!recorder_.recording()) return inner().run(stream, operation);
    Recorder::Span span;
    span.stream = stream;
    span.name = zt::name_of(operation);
    span.flops = product_flops(operation);
    if (const auto* product = std::get_if<MatMul>(&operation)) span.shape = {product->m, product->n, product->k};
    const auto index = recorder_.begin(span);
    inner().run(stream, operation);
    recorder_.end(index);
  }
  void copy(Stream stream, void* to, const void* from, std::int64_t bytes) override {
    if (!recorder_.recording()) return inner().copy(stream, to, from, bytes);
    Recorder::Span span;
    span.kind = Recorder::Span::Kind::copy;
    span.stream = stream;
    span.name = "copy";
    span.bytes = bytes;
    const auto index = recorder_.begin(span);
    inner().copy(stream, to, from, bytes);
    recorder_.end(index);
  }
  void begin_activity(Activity activity, std::int64_t number) override { recorder_.begin_activity(activity, number); }
  void end_activity(Activity activity, std::int64_t number) override { recorder_.end_activity(activity, number); }

 private:
  Recorder& recorder_;
};

class Trace::TracingCommunicator final : public Communicator {
 public:
  TracingCommunicator(Communicator& inner, Recorder& recorder) : inner_(inner), recorder_(recorder) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  int ranks_on_node() const override { return inner_.ranks_on_node(); }
  std::string description() const override { return inner_.description(); }
  void reserve(Device& device, std::int64_t largest_slice_bytes) override {
    inner_.reserve(device, largest_slice_bytes);
  }
  SharedBufferPtr allocate(Device& device, std::int64_t bytes, MemoryCategory category,
                           const std::string& name) override {
    return inner_.allocate(device, bytes, category, name);
  }
  Ticket all_gather(Device& device, Stream stream, const Region& from, TensorView to) override {
    const auto span = begin(CollectiveKind::all_gather, stream, to.bytes() / size());
    const Ticket ticket = inner_.all_gather(device, stream, from, to);
    recorder_.end(span);
    return ticket;
  }
  Ticket reduce_scatter(Device& device, Stream stream, const Region& from, DType dtype, TensorView acc,
                        bool first) override {
    const auto span =
        begin(CollectiveKind::reduce_scatter, stream, acc.count * static_cast<std::int64_t>(size_of(dtype)));
    const Ticket ticket = inner_.reduce_scatter(device, stream, from, dtype, acc, first);
    recorder_.end(span);
    return ticket;
  }
  void wait_until_read(Ticket ticket) override { inner_.wait_until_read(ticket); }
  void all_reduce_sum(std::span<std::int64_t> values) override {
    const auto span =
        begin(CollectiveKind::all_reduce, Stream::compute, static_cast<std::int64_t>(values.size_bytes()));
    inner_.all_reduce_sum(values);
    recorder_.end(span);
  }
  void sum_on_device(Device& device, Stream stream, std::int64_t* values, std::int64_t count) override {
    const auto span = begin(CollectiveKind::all_reduce, stream, count * 8);
    inner_.sum_on_device(device, stream, values, count);
    recorder_.end(span);
  }
  void broadcast(std::span<std::byte> bytes, int root) override { inner_.broadcast(bytes, root); }
  std::vector<std::string> all_gather_strings(const std::string& mine) override {
    return inner_.all_gather_strings(mine);
  }
  void abort(int exit_code, const std::string& message) noexcept override { inner_.abort(exit_code, message); }
  void check_peers() override { inner_.check_peers(); }
  void set_purpose(Purpose purpose) override { inner_.set_purpose(purpose); }
  const CommunicationCounts& counts() const override { return inner_.counts(); }
  std::int64_t peers_shared_bytes() const override { return inner_.peers_shared_bytes(); }

 private:
  std::optional<std::size_t> begin(CollectiveKind kind, Stream stream, std::int64_t slice_bytes) {
    Recorder::Span span;
    span.kind = Recorder::Span::Kind::collective;
    span.stream = stream;
    span.name = name_of(kind);
    span.bytes = slice_bytes * (size() - 1);
    return recorder_.begin(span);
  }

  Communicator& inner_;
  Recorder& recorder_;
};

Trace::Trace(Device& device, Communicator& communicator)
    : recorder_(std::make_unique<Recorder>(device)),
      device_(std::make_unique<TracingDevice>(device, *recorder_)),
      communicator_(std::make_unique<TracingCommunicator>(communicator, *recorder_)) {}

Trace::~Trace() = default;

Device& Trace::device() { return *device_; }
Communicator& Trace::communicator() { return *communicator_; }

// The barrier lets the clocks of all ranks start together.
void Trace::start() {
  communicator_->barrier();
  recorder_->start();
}

bool Trace::recording() const { return recorder_->recording(); }
void Trace::stop() { recorder_->stop(); }
Trace::Record Trace::take(const Layout& layout) { return recorder_->take(layout, communicator_->rank()); }

std::vector<Trace::Timed> Trace::timed() { return recorder_->timed(); }

std::string trace_text(const TracedRun& run, const Layout& layout, const std::vector<Trace::Record>& ranks) {
  nlohmann::ordered_json about = {{"format", 1},
                                  {"stage", run.stage},
                                  {"world_size", run.ranks},
                                  {"precision", run.precision},
                                  {"accumulation", run.accumulation},
                                  {"steps", {run.steps.first, run.steps.last}}};
  about["units"] = nlohmann::ordered_json::array();
  for (const UnitLayout& unit : layout.units()) {
    std::int64_t parameters = 0;
    for (const SegmentLayout& segment : unit.segments) parameters += segment.used;
    about["units"].push_back({{"name", unit.name}, {"parameters", parameters}, {"trains", unit.trains()}});
  }
  std::string text = "{\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[\n";
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) text += (rank > 0 ? ",\n" : "") + ranks[rank].events;
  text += "\n],\n\"zerotrain\":" + json_text(about) + ",\n\"log\":[";
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) text += (rank > 0 ? ",\n[" : "\n[") + ranks[rank].log + "]";
  return text + "\n]}\n";
}

std::string packed(const Trace::Record& record) { return record.events + '\0' + record.log; }

Trace::Record unpacked(const std::string& text) {
  const std::size_t end = text.find('\0');
  return {text.substr(0, end), end == std::string::npos ? "" : text.substr(end + 1)};
}

}  // namespace zt

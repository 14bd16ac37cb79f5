// The header of a safetensors file. It is read event by event, without a tree of values: so nothing is allocated but
// the table itself, keys given twice are seen, and no nesting is too deep.
#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "checkpoint/safetensors.h"
#include "core/errors.h"
#include "core/json.h"
#include "data/message_text.h"

namespace zt {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_dimensions = 16;

class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(std::string file) : file_(std::move(file)) {}

  // Everything but the data's places in relation to each other.
  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t /*size*/) override {
    switch (place_) {
      case Place::start: place_ = Place::top; return true;
      case Place::top_value:
        if (name_ == "__metadata__") {
          place_ = Place::metadata;
        } else {
          place_ = Place::tensor;
          tensor_ = {};
          tensor_.name = name_;
          has_type_ = has_shape_ = false;
          range_.clear();
          has_range_ = false;
        }
        return true;
      default: fail_value("an object");
    }
  }
  bool end_object() override {
    if (place_ == Place::tensor) finish_tensor();
    place_ = place_ == Place::top ? Place::end : Place::top;
    return true;
  }
  bool key(string_t& text) override {
    switch (place_) {
      case Place::top:
        if (text.empty()) fail("a tensor without a name");
        if (!names_.insert(text).second) fail("\"" + shown(text) + "\" stands there twice");
        name_ = text;
        place_ = Place::top_value;
        return true;
      case Place::metadata:
        if (header_.metadata.contains(text)) fail("__metadata__: \"" + shown(text) + "\" stands there twice");
        key_ = text;
        place_ = Place::metadata_value;
        return true;
      default:
        key_ = text;
        if (text == "dtype") {
          once(has_type_);
          place_ = Place::type;
        } else if (text == "shape") {
          once(has_shape_);
          place_ = Place::shape;
        } else if (text == "data_offsets") {
          once(has_range_);
          place_ = Place::range;
        } else {
          fail_tensor("it has a key \"" + shown(text) + "\"; there may be dtype, shape and data_offsets");
        }
        return true;
    }
  }
  bool start_array(std::size_t /*size*/) override {
    if (place_ == Place::shape) {
      place_ = Place::in_shape;
    } else if (place_ == Place::range) {
      place_ = Place::in_range;
    } else {
      fail_value("a list");
    }
    return true;
  }
  bool end_array() override {
    if (place_ == Place::in_range && range_.size() != 2) fail_tensor("data_offsets are not two numbers");
    place_ = Place::tensor;
    return true;
  }
  bool string(string_t& text) override {
    if (place_ == Place::metadata_value) {
      header_.metadata.emplace(key_, std::move(text));
      place_ = Place::metadata;
    } else if (place_ == Place::type) {
      const std::optional<StoredType> type = stored_type(text);
      if (!type) fail_tensor("its format \"" + shown(text) + "\" is none that is known here");
      tensor_.type = *type;
      place_ = Place::tensor;
    } else {
      fail_value("a text");
    }
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::in_shape && place_ != Place::in_range) fail_value("a number");
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      fail_tensor("the number " + std::to_string(value) + " in its " + key_ + " is too large");
    }
    const auto number = static_cast<std::int64_t>(value);
    if (place_ == Place::in_shape) {
      if (tensor_.shape.size() == most_dimensions) {
        fail_tensor("its shape has more than " + std::to_string(most_dimensions) + " dimensions");
      }
      tensor_.shape.push_back(number);
    } else {
      if (range_.size() == 2) fail_tensor("data_offsets are not two numbers");
      range_.push_back(number);
    }
    return true;
  }
  bool number_integer(number_integer_t value) override { fail_value("the number " + std::to_string(value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    fail_value("the number " + shown(text));
  }
  bool null() override { fail_value("null"); }
  bool boolean(bool value) override { fail_value(value ? "true" : "false"); }
  bool binary(binary_t& /*value*/) override { fail_value("binary data"); }
  bool parse_error(std::size_t position, const std::string& /*last_token*/, const Json::exception& /*error*/) override {
    fail("it is no JSON from its byte " + std::to_string(position) + " on");
  }

 private:
  // Where the next event belongs.
  enum class Place : std::uint8_t {
    start,
    top,  // keys are names of tensors
    top_value,
    metadata,
    metadata_value,
    tensor,  // keys are dtype, shape, data_offsets
    type,
    shape,
    in_shape,
    range,
    in_range,
    end
  };

  [[noreturn]] void fail(const std::string& reason) const {
    throw RunError(shown_path(file_) + ": the header of this safetensors file is damaged: " + reason);
  }
  [[noreturn]] void fail_tensor(const std::string& reason) const {
    throw RunError(shown_path(file_) + ": tensor \"" + shown(name_, 120) + "\": " + reason);
  }
  [[noreturn]] void fail_value(const std::string& found) const {
    switch (place_) {
      case Place::start: fail("it is " + found + ", not an object");
      case Place::top_value:
        if (name_ == "__metadata__") fail("__metadata__ is " + found + ", not an object");
        fail_tensor("it is " + found + ", not an object");
      case Place::metadata_value: fail("__metadata__: \"" + shown(key_) + "\" is " + found + ", not a text");
      case Place::type: fail_tensor("its dtype is " + found + ", not a text");
      case Place::shape:
      case Place::range: fail_tensor("its " + key_ + " is " + found + ", not a list of numbers");
      default: fail_tensor("there is " + found + " in its " + key_ + ", which holds whole numbers of 0 or more");
    }
  }
  void once(bool& seen) const {
    if (seen) fail_tensor("its " + key_ + " stands there twice");
    seen = true;
  }
  void finish_tensor() {
    for (const auto& [has, what] :
         {std::pair{has_type_, "dtype"}, {has_shape_, "shape"}, {has_range_, "data_offsets"}}) {
      if (!has) fail_tensor(std::string("it has no ") + what);
    }
    if (range_[1] < range_[0]) {
      fail_tensor("its data end at " + std::to_string(range_[1]) + ", before their start at " +
                  std::to_string(range_[0]));
    }
    std::int64_t elements = 1;
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() / size_of(tensor_.type);
    const bool is_empty = std::ranges::find(tensor_.shape, 0) != tensor_.shape.end();
    for (const std::int64_t extent : tensor_.shape) {
      if (is_empty) elements = 0;
      if (elements != 0 && extent > most / elements) fail_tensor("its shape has more elements than can be counted");
      elements *= extent;
    }
    tensor_.elements = elements;
    tensor_.offset = range_[0];
    tensor_.bytes = range_[1] - range_[0];
    if (tensor_.bytes != elements * size_of(tensor_.type)) {
      fail_tensor(counted(elements, "element") + " of " + std::string(name_of(tensor_.type)) + " take " +
                  std::to_string(elements * size_of(tensor_.type)) + " bytes, and its data_offsets span " +
                  std::to_string(tensor_.bytes));
    }
    header_.tensors.push_back(std::move(tensor_));
  }

  std::string file_;
  SafetensorsHeader header_;
  Place place_ = Place::start;
  std::string name_, key_;
  std::unordered_set<std::string> names_;
  StoredTensor tensor_;
  std::vector<std::int64_t> range_;
  bool has_type_ = false, has_shape_ = false, has_range_ = false;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::int64_t file_bytes, const std::string& file) {
  HeaderReader reader(file);
  if (text.empty() || text.front() != '{') {
    throw RunError(shown_path(file) + " is no safetensors file: behind its first 8 bytes is no header in JSON");
  }
  Json::sax_parse(text.begin(), text.end(), &reader);
  SafetensorsHeader header = reader.take();

  const auto data_start = static_cast<std::int64_t>(8 + text.size());
  const std::int64_t data_bytes = file_bytes - data_start;
  std::ranges::stable_sort(header.tensors, [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);  // empty ones before what starts there
  });
  std::int64_t end = 0;
  std::string before;
  for (StoredTensor& tensor : header.tensors) {
    const auto fail = [&](const std::string& reason) {
      throw RunError(shown_path(file) + ": tensor \"" + shown(tensor.name, 120) + "\": " + reason);
    };
    if (tensor.offset + tensor.bytes > data_bytes) {
      fail("its data end at byte " + std::to_string(tensor.offset + tensor.bytes) + ", but the file holds " +
           std::to_string(data_bytes) + " bytes of data: it was cut short or not written to its end; get it again");
    }
    if (tensor.offset < end) fail("its data overlap those of \"" + shown(before, 120) + "\"");
    if (tensor.offset > end) fail("before its data are " + std::to_string(tensor.offset - end) + " bytes of no tensor");
    end += tensor.bytes;
    before = tensor.name;
    tensor.offset += data_start;
  }
  if (end != data_bytes) {
    throw RunError(shown_path(file) + ": behind the last tensor are " + std::to_string(data_bytes - end) +
                   " bytes of no tensor");
  }
  return header;
}

}  // namespace zt

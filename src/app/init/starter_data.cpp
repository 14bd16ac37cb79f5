#include "app/init/starter_data.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/errors.h"
#include "core/json.h"
#include "data/csv_table.h"
#include "data/idx_file.h"
#include "data/token_files.h"

namespace zt {

namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Token files, one or those that a pattern matches.
bool names_files(const std::string& pattern) {
  try {
    return !token_files_named(pattern, "data.validation").empty();
  } catch (const UserError&) {
    return false;
  }
}

bool has_ending(std::string path, const std::vector<std::string>& endings) {
  if (path.ends_with(".gz")) path.resize(path.size() - 3);
  return std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) { return path.ends_with(ending); });
}

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  const std::size_t at = text.rfind(part);
  return at == std::string::npos ? "" : text.replace(at, part.size(), by);
}

class Looker {
 public:
  explicit Looker(const std::string& output) : folder_(fs::absolute(output).lexically_normal().parent_path()) {}

  // A path of a config: it counts from the config's folder, and is typed from the current one.
  void add_path(const std::string& key, const std::string& typed) {
    const fs::path absolute = fs::absolute(typed).lexically_normal();
    const std::string written = fs::path(typed).is_absolute() ? typed : absolute.lexically_relative(folder_).string();
    data_.keys.emplace_back(key, written);
    data_.absolute.emplace_back(key, absolute.string());
  }

  StarterData text(const std::string& path) {
    data_.is_there = is_there(path);
    add_path("data.path", path);
    data_.keys.emplace_back("data.tokenizer", "bytes");
    const bool has_lines = has_ending(path, {".jsonl"});
    data_.keys.emplace_back("data.validation_fraction", 0.1);
    data_.chosen.push_back("data: the text " + path + ", a token a byte" +
                           (has_lines ? "; JSON lines with prompt and completion" : "") +
                           "; a tenth is for validation");
    return data_;
  }

  StarterData tokens(const std::string& given) {
    std::error_code error;
    std::string path = given;
    if (fs::is_directory(given, error)) {
      path = (fs::path(given) / "*train*.bin").string();
      const std::string all = (fs::path(given) / "*.bin").string();
      if (!names_files(path) && names_files(all)) path = all;
    }
    data_.is_there = path != given || path.find_first_of("*?[") != std::string::npos || names_files(path);
    add_path("data.train", path);
    std::string validation;
    const std::string name = fs::path(path).filename().string();
    for (const char* word : {"val", "validation", "valid", "test"}) {
      const std::string other = replaced(name, "train", word);
      if (other.empty()) break;
      const fs::path file = fs::path(path).parent_path() / other;
      const bool is_expected = !data_.is_there && word == std::string("val");
      if (is_expected || names_files(file.string())) {
        validation = file.string();
        break;
      }
    }
    data_.has_validation = !validation.empty();
    if (validation.empty()) {
      data_.keys.emplace_back("data.validation", nullptr);
      data_.remarks.emplace_back("data.validation",
                                 "There are none beside those for training: name some here, and set "
                                 "training.eval_interval, to see a validation loss");
    } else {
      add_path("data.validation", validation);
    }
    data_.chosen.push_back("data: the token files " + path +
                           (validation.empty() ? ", none for validation" : ", for validation " + validation));
    return data_;
  }

  StarterData csv(const std::string& path, const std::string& target) {
    data_.is_there = is_there(path);
    add_path("data.path", path);
    if (!data_.is_there) {
      data_.keys.emplace_back("data.target", Json::array({target.empty() ? "y" : target}));
      data_.keys.emplace_back("data.validation_fraction", 0.1);
      data_.inputs = 10;
      data_.outputs = 1;
      data_.chosen.push_back("data: a table of ten features and the target " + (target.empty() ? "y" : target) +
                             ", to be put at " + path + "; model.layers begins with the number of features");
      return data_;
    }
    const CsvTable table = read_table(path);
    const std::size_t column = column_of(table, target);
    const Json name = table.names.empty() ? Json(column + 1) : Json(table.names[column]);
    data_.keys.emplace_back("data.target", Json::array({name}));
    if (!settings_.header) data_.keys.emplace_back("data.header", false);
    if (settings_.delimiter != ",") data_.keys.emplace_back("data.delimiter", settings_.delimiter);
    data_.has_validation = table.rows >= 10;
    data_.keys.emplace_back("data.validation_fraction", data_.has_validation ? 0.1 : 0.0);
    data_.inputs = static_cast<std::int64_t>(table.columns) - 1;
    const std::int64_t classes = classes_of(table, column);
    data_.has_classes = classes > 0;
    data_.outputs = std::max<std::int64_t>(classes, 1);
    data_.chosen.push_back(
        "data: " + path + ", " + std::to_string(table.rows) + " rows, " + std::to_string(data_.inputs) +
        " features; the target is " + table.column_name(column) +
        (classes > 0 ? ", which holds the classes 0 to " + std::to_string(classes - 1) : ", a number (a regression)"));
    return data_;
  }

  StarterData idx(const std::string& given) {
    std::error_code error;
    const bool is_folder = fs::is_directory(given, error);
    const std::string images = is_folder || !is_there(given) ? in_folder(given, "train", "images", 3) : given;
    const std::string labels = labels_beside(images);
    data_.is_there = is_there(images);
    add_path("data.images", images);
    add_path("data.labels", labels);
    data_.has_validation = false;
    for (const char* part : {"t10k", "test", "val"}) {
      const std::string other = replaced(images, "train", part);
      if (other.empty()) break;
      if (data_.is_there && (!is_there(other) || !is_there(labels_beside(other)))) continue;
      data_.has_validation = true;
      add_path("data.validation_images", other);
      add_path("data.validation_labels", labels_beside(other));
      break;
    }
    data_.has_classes = true;
    data_.inputs = 784;
    data_.outputs = 10;
    if (!data_.is_there) {
      data_.chosen.push_back("data: 28 x 28 images of ten classes, as MNIST has them, to be put at " + images +
                             " and " + labels + ", those for validation beside them");
      return data_;
    }
    const IdxFile image_file(images, "data.images");
    const IdxFile label_file(labels, "data.labels");
    if (!label_file.holds_integers() || label_file.dimensions().size() != 1)
      throw UserError(labels + " (" + label_file.description() + ") does not hold labels, one integer an image");
    std::int64_t largest = 1;
    for (std::int64_t i = 0; i < label_file.items(); ++i) largest = std::max(largest, label_file.integer(i));
    data_.inputs = image_file.values_per_item();
    data_.outputs = std::min<std::int64_t>(largest + 1, std::int64_t{1} << 24);
    data_.chosen.push_back("data: " + images + ", " + image_file.description() + "; classes 0 to " +
                           std::to_string(data_.outputs - 1));
    return data_;
  }

  StarterData synthetic(const std::string& model) {
    data_.keys.emplace_back("data.task", model == "gpt" ? "tokens" : "regression");
    data_.keys.emplace_back("data.samples", 4096);
    data_.inputs = 64;
    data_.outputs = 1;
    data_.chosen.push_back(model == "gpt" ? "data: made-up tokens" : "data: made up, a linear function with noise");
    return data_;
  }

 private:
  // The whole table, with what its separator and first line are found out: the first reading that works and has columns
  // enough. Where none does, the error of the separator that the first line has tells most.
  CsvTable read_table(const std::string& path) {
    settings_.path = path;
    settings_.target = {ColumnName{"", 1}};
    std::string error;
    for (const char* delimiter : {",", ";", "\t"}) {
      settings_.delimiter = delimiter;
      std::string of_header;
      for (const bool header : {true, false}) {
        settings_.header = header;
        try {
          CsvTable table = read_csv_table(settings_, std::nullopt);
          if (table.columns >= 2) return table;
        } catch (const UserError& problem) {
          if (header) of_header = problem.what();
        }
      }
      if (error.empty() || first_line_has_delimiter()) error = of_header;
    }
    if (!error.empty()) throw UserError(error);
    throw UserError(path +
                    " has one column: a table of features and a target is needed, with commas, semicolons or "
                    "tabulators between the columns");
  }
  bool first_line_has_delimiter() const {
    std::ifstream file(settings_.path);
    std::string line;
    std::getline(file, line);
    return line.find(settings_.delimiter) != std::string::npos;
  }

  static std::size_t column_of(const CsvTable& table, const std::string& target) {
    if (target.empty()) return table.columns - 1;
    const auto name = std::find(table.names.begin(), table.names.end(), target);
    if (name != table.names.end()) return static_cast<std::size_t>(name - table.names.begin());
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), number);
    if (error == std::errc() && end == target.data() + target.size() && number >= 1 && number <= table.columns)
      return number - 1;
    std::string known;
    for (const std::string& other : table.names) known += (known.empty() ? "" : ", ") + other;
    throw UserError("--target " + target + ": the table has no such column; it has " +
                    (known.empty() ? "columns 1 to " + std::to_string(table.columns) : known));
  }

  // How many classes the column holds; 0: it is no column of classes. Classes are few integers from 0, all of which
  // occur.
  static std::int64_t classes_of(const CsvTable& table, std::size_t column) {
    constexpr std::size_t most = 100;
    std::set<std::int64_t> seen;
    for (std::int64_t row = 0; row < table.rows; ++row) {
      const double value = table.value(row, column);
      if (value != std::floor(value) || value < 0.0 || value >= static_cast<double>(most)) return 0;
      seen.insert(static_cast<std::int64_t>(value));
    }
    const auto count = static_cast<std::int64_t>(seen.size());
    return count >= 2 && *seen.rbegin() == count - 1 && table.rows >= 4 * count ? count : 0;
  }

  static std::string in_folder(const std::string& folder, const std::string& part, const std::string& what,
                               int dimensions) {
    const fs::path file = fs::path(folder) / (part + "-" + what + "-idx" + std::to_string(dimensions) + "-ubyte");
    return is_there(file.string() + ".gz") ? file.string() + ".gz" : file.string();
  }
  static std::string labels_beside(const std::string& images) {
    std::string name = fs::path(images).filename().string();
    name = replaced(name, "images", "labels");
    if (name.empty())
      throw UserError(images + ": the file of images has \"images\" in its name, that of labels \"labels\"");
    if (const std::string other = replaced(name, "idx3", "idx1"); !other.empty()) name = other;
    return (fs::path(images).parent_path() / name).string();
  }

  fs::path folder_;  // of the config
  StarterData data_;
  DataSettings settings_;
};

}  // namespace

std::string kind_of_data(const std::string& path) {
  std::error_code error;
  if (has_ending(path, {".csv", ".tsv"})) return "csv";
  if (has_ending(path, {".bin"})) return "tokens";
  if (has_ending(path, {"-ubyte", ".idx"})) return "idx";
  if (has_ending(path, {".txt", ".jsonl", ".md"})) return "text";
  if (!fs::is_directory(path, error)) return "";
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string kind = entry.is_directory(error) ? "" : kind_of_data(entry.path().string());
    if (kind == "idx" || kind == "tokens") return kind;
  }
  return "";
}

StarterData look_at_data(const std::string& kind, const std::string& model, const std::string& path,
                         const std::string& target, const std::string& output) {
  Looker looker(output);
  const auto path_or = [&](const char* otherwise) {
    if (!path.empty()) return path;
    const fs::path beside = fs::path(output).parent_path() / otherwise;
    return beside.string();
  };
  if (kind == "text") return looker.text(path_or("data/text.txt"));
  if (kind == "tokens") return looker.tokens(path_or("data/train.bin"));
  if (kind == "csv") return looker.csv(path_or("data/table.csv"), target);
  if (kind == "idx") return looker.idx(path_or("data"));
  return looker.synthetic(model);
}

}  // namespace zt

// What the tests of CSV files share.
#pragma once

#include <string>
#include <vector>

#include "data_support.h"

namespace zt::testing {

inline zt::Settings csv_settings(const std::string& path, std::vector<std::int64_t> layers,
                                 const std::string& target = "y") {
  zt::Settings settings;
  settings.model.type = "mlp";
  settings.model.mlp.layers = std::move(layers);
  settings.data.type = "csv";
  settings.data.path = path;
  settings.data.target = {{.name = target}};
  settings.data.validation_fraction = 0.0;
  settings.data.normalize = false;
  settings.batch = {.train = 1, .micro = 1, .accumulation = 1};
  return settings;
}

// What is said when the table of columns a, b and y is this.
inline std::string message_for(const std::string& text, const std::string& loss = "mse", std::int64_t outputs = 1) {
  const TemporaryFolder folder;
  zt::Settings settings = csv_settings(folder.write("t.csv", text), {2, outputs});
  settings.model.mlp.loss = loss;
  return message_of([&] { zt::open_dataset(settings); });
}

}  // namespace zt::testing
